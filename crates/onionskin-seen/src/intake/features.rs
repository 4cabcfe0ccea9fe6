//! Features of texts, several threads at a time and in order.

use onionskin_core::feature::FeatureMaker;
use onionskin_core::{Analyzer, Recipe};
use onionskin_corpus::{BadReason, Shares};

use super::documents::{Incoming, Prepared};
use crate::catalogue::Params;
use crate::view::Probe;

/// What an index needs to know of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// The fingerprint of the canonical text; `None` for a document without words, which is never
    /// seen.
    pub text_fp: Option<u64>,
    /// Its features; none for a document without words.
    pub features: Vec<u64>,
    /// Its minima, for an index that keeps sketches; else none.
    pub sketch: Vec<u32>,
}

impl Features {
    /// As it is looked for; `None` for a document without words.
    pub fn probe(&self) -> Option<Probe<'_>> {
        self.text_fp.map(|text_fp| Probe::new(text_fp, &self.features).with_sketch(&self.sketch))
    }
}

/// Makes features of texts by the recipe and the filter of an index.
pub struct TextFeatures {
    workers: Vec<Worker>,
    /// Of a memory budget; without them every text is analysed.
    shares: Option<Shares>,
}

/// What one thread needs.
struct Worker {
    recipe: Recipe,
    seed: u64,
    analyzer: Analyzer,
    /// For a filter that is not that of the recipe.
    maker: Option<FeatureMaker>,
    sketches: bool,
}

/// Buffers for the analysis of a longer text are not kept for the next.
const KEPT_TEXT_BYTES: usize = 1 << 20;

impl Worker {
    fn analyze(&mut self, text: &str, out: &mut Features) {
        let analysis = self.analyzer.analyze(text);
        out.text_fp = analysis.text_fp().map(|fp| fp.0);
        let sketch = analysis.sketch();
        match &mut self.maker {
            Some(maker) if !sketch.is_empty() => out.features.extend_from_slice(maker.features(sketch)),
            _ => out.features.extend_from_slice(analysis.features()),
        }
        if self.sketches {
            out.sketch.extend_from_slice(sketch);
        }
        if text.len() > KEPT_TEXT_BYTES {
            self.analyzer = Analyzer::new(&self.recipe, self.seed);
        }
    }
}

impl TextFeatures {
    /// With this many threads, one at least.
    pub fn new(params: &Params, threads: usize) -> TextFeatures {
        let worker = || Worker {
            recipe: params.recipe.clone(),
            seed: params.seed,
            analyzer: Analyzer::new(&params.recipe, params.seed),
            maker: (!params.has_own_features()).then(|| FeatureMaker::new(params.filter)),
            sketches: params.sketches,
        };
        TextFeatures { workers: (0..threads.max(1)).map(|_| worker()).collect(), shares: None }
    }

    /// With threads and texts that a memory budget has room for. A document whose text it has no
    /// room for is bad.
    pub fn within(params: &Params, shares: Shares) -> TextFeatures {
        TextFeatures { shares: Some(shares), ..TextFeatures::new(params, shares.threads) }
    }

    /// The most memory, in bytes, that it takes to analyse a text, beside the text itself.
    pub fn memory_for(&self, text: &str) -> usize {
        self.workers.first().map_or(0, |worker| worker.analyzer.memory_for(text))
    }

    /// A text that is longer is analysed when no other is.
    fn small_bytes(&self) -> usize {
        let small = self.shares.map_or(KEPT_TEXT_BYTES as u64, |shares| shares.small_record_bytes);
        usize::try_from(small).unwrap_or(usize::MAX)
    }

    /// Why a text is not analysed.
    fn refusal(&self, text: &str) -> Option<BadReason> {
        let shares = self.shares.filter(|_| text.len() > self.small_bytes())?;
        let fits = shares.fits(text.len(), self.memory_for(text));
        (!fits).then_some(BadReason::NeedsMemory { limit: shares.large_bytes })
    }

    /// The features of each text, in order.
    pub fn of<T: AsRef<str> + Sync>(&mut self, texts: &[T]) -> Vec<Features> {
        let mut out = vec![Features::default(); texts.len()];
        let is_small = |text: &T| text.as_ref().len() <= self.small_bytes();
        // Small ones that follow each other go together.
        let mut runs = Vec::new();
        for run in texts.chunk_by(|a, b| is_small(a) && is_small(b)) {
            runs.push(run.len());
        }
        let (mut texts, mut rest) = (texts, out.as_mut_slice());
        for len in runs {
            let (run, others) = texts.split_at(len);
            let (done, undone) = rest.split_at_mut(len);
            self.together(run, done);
            (texts, rest) = (others, undone);
        }
        out
    }

    /// Of texts that all threads may hold one of at a time.
    fn together<T: AsRef<str> + Sync>(&mut self, texts: &[T], out: &mut [Features]) {
        let share = texts.len().div_ceil(self.workers.len()).max(1);
        let work = |worker: &mut Worker, texts: &[T], out: &mut [Features]| {
            texts.iter().zip(out).for_each(|(text, features)| worker.analyze(text.as_ref(), features));
        };
        let mut parts = self.workers.iter_mut().zip(texts.chunks(share).zip(out.chunks_mut(share)));
        let first = parts.next();
        std::thread::scope(|scope| {
            for (worker, (texts, out)) in parts {
                scope.spawn(move || work(worker, texts, out));
            }
            if let Some((worker, (texts, out))) = first {
                work(worker, texts, out);
            }
        });
    }

    /// The same of documents that came in, with their names.
    pub fn prepare(&mut self, mut documents: Vec<Incoming>) -> Vec<Prepared> {
        for one in &mut documents {
            if let Some(reason) = one.text.as_deref().ok().and_then(|text| self.refusal(text)) {
                one.text = Err(reason.to_string());
            }
        }
        let texts: Vec<&str> = documents.iter().map(|one| one.text.as_deref().unwrap_or("")).collect();
        let features = self.of(&texts);
        let prepared = documents
            .into_iter()
            .zip(features)
            .map(|(one, features)| Prepared { name: one.name, features: one.text.map(|_| features) });
        prepared.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intake::{RECIPE, SEED};

    fn document(text: String) -> Incoming {
        Incoming { name: text.len().to_string(), text: Ok(text) }
    }

    /// Large texts come between small ones, and some have too many words for the memory.
    #[test]
    fn a_budget_changes_only_what_it_has_no_room_for() {
        let params = Params::new(&RECIPE.parse().unwrap(), SEED, true).unwrap();
        let shares = Shares { small_record_bytes: 100, large_bytes: 400_000, ..Shares::of(64 << 20, 3) };
        let sizes = [3, 40, 90, 300, 2, 4000, 4001, 9, 20_000, 7];
        let texts: Vec<Incoming> = sizes.iter().map(|n| document("ab ".repeat(*n))).collect();
        let expected = TextFeatures::new(&params, 1).prepare(texts.clone());
        let limited = TextFeatures::within(&params, shares).prepare(texts);
        for (one, expected) in limited.iter().zip(&expected) {
            match &one.features {
                Err(problem) => assert!(one.name == "60000" && problem.contains("400000 bytes"), "{problem}"),
                Ok(_) => assert_eq!(one, expected),
            }
        }
        assert_eq!(limited.iter().filter(|one| one.features.is_err()).count(), 1);
    }
}
