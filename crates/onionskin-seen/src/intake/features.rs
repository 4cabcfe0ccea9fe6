//! Features of texts, several threads at a time and in order.

use onionskin_core::Analyzer;
use onionskin_core::feature::FeatureMaker;

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
}

/// What one thread needs.
struct Worker {
    analyzer: Analyzer,
    /// For a filter that is not that of the recipe.
    maker: Option<FeatureMaker>,
    sketches: bool,
}

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
    }
}

impl TextFeatures {
    /// With this many threads, one at least.
    pub fn new(params: &Params, threads: usize) -> TextFeatures {
        let worker = || Worker {
            analyzer: Analyzer::new(&params.recipe, params.seed),
            maker: (!params.has_own_features()).then(|| FeatureMaker::new(params.filter)),
            sketches: params.sketches,
        };
        TextFeatures { workers: (0..threads.max(1)).map(|_| worker()).collect() }
    }

    /// The features of each text, in order.
    pub fn of<T: AsRef<str> + Sync>(&mut self, texts: &[T]) -> Vec<Features> {
        let mut out = vec![Features::default(); texts.len()];
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
        out
    }

    /// The same of documents that came in, with their names.
    pub fn prepare(&mut self, documents: Vec<Incoming>) -> Vec<Prepared> {
        let texts: Vec<&str> = documents.iter().map(|one| one.text.as_deref().unwrap_or("")).collect();
        let features = self.of(&texts);
        let prepared = documents
            .into_iter()
            .zip(features)
            .map(|(one, features)| Prepared { name: one.name, features: one.text.map(|_| features) });
        prepared.collect()
    }
}
