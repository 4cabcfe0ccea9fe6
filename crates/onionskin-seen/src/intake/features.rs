//! Features of texts, several threads at a time and in order.

use onionskin_core::Analyzer;

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

/// Makes features of texts by the recipe of an index.
pub struct TextFeatures {
    analyzers: Vec<Analyzer>,
    sketches: bool,
}

impl TextFeatures {
    /// With this many threads, one at least.
    pub fn new(params: &Params, threads: usize) -> TextFeatures {
        let analyzers = (0..threads.max(1)).map(|_| Analyzer::new(&params.recipe, params.seed)).collect();
        TextFeatures { analyzers, sketches: params.sketches }
    }

    /// The features of each text, in order.
    pub fn of<T: AsRef<str> + Sync>(&mut self, texts: &[T]) -> Vec<Features> {
        let mut out = vec![Features::default(); texts.len()];
        let share = texts.len().div_ceil(self.analyzers.len()).max(1);
        let sketches = self.sketches;
        let work = move |analyzer: &mut Analyzer, texts: &[T], out: &mut [Features]| {
            for (text, features) in texts.iter().zip(out) {
                let analysis = analyzer.analyze(text.as_ref());
                features.text_fp = analysis.text_fp().map(|fp| fp.0);
                features.features.extend_from_slice(analysis.features());
                if sketches {
                    features.sketch.extend_from_slice(analysis.sketch());
                }
            }
        };
        let mut parts = self.analyzers.iter_mut().zip(texts.chunks(share).zip(out.chunks_mut(share)));
        let first = parts.next();
        std::thread::scope(|scope| {
            for (analyzer, (texts, out)) in parts {
                scope.spawn(move || work(analyzer, texts, out));
            }
            if let Some((analyzer, (texts, out))) = first {
                work(analyzer, texts, out);
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
