//! How much of a result stands in the results above it.
//!
//! A search must know this for a hundred documents in a fraction of a millisecond, so the index has
//! a small sketch of every document in a file of its own: 64 bytes, at a place that follows from
//! the document's number. Thirty minima, sixteen bits of each, which is enough to tell half from
//! nine tenths (the standard error is 0.09 at worst), and the number of words, which turns
//! resemblance into containment.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use onionskin_core::{Analyzer, DocId};

use crate::index::beginning;

/// Minima of a sketch.
const MINIMA: usize = 30;
/// Bytes of a sketch: the words of the document, then the minima.
const RECORD: usize = 4 + 2 * MINIMA;
const RECIPE: &str = "w4-rabin64-t30-one";
/// Bytes of a text that a sketch is of. Making one takes twenty bytes for each of them, and the
/// beginning of a long text says enough of it for an order of results.
const SKETCHED: usize = 1 << 20;

/// What is known of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sketch {
    words: u32,
    minima: [u16; MINIMA],
}

impl Sketch {
    /// The share of this document that stands in another, as far as sketches tell.
    pub(crate) fn contained_in(&self, other: &Sketch) -> f32 {
        if self.words == 0 || other.words == 0 {
            return 0.0;
        }
        let equal = self.minima.iter().zip(&other.minima).filter(|(a, b)| a == b).count();
        let resemblance = equal as f32 / MINIMA as f32;
        // |A∩B| = r / (1 + r) · (|A| + |B|)
        let shared = resemblance / (1.0 + resemblance) * (self.words as f32 + other.words as f32);
        (shared / self.words as f32).min(1.0)
    }

    fn to_bytes(self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[..4].copy_from_slice(&self.words.to_le_bytes());
        for (place, minimum) in bytes[4..].chunks_exact_mut(2).zip(self.minima) {
            place.copy_from_slice(&minimum.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; RECORD]) -> Sketch {
        let (words, minima) = bytes.split_at(4);
        let mut sketch =
            Sketch { words: words.try_into().map_or(0, u32::from_le_bytes), ..Sketch::default() };
        for (minimum, bytes) in sketch.minima.iter_mut().zip(minima.chunks_exact(2)) {
            *minimum = bytes.try_into().map_or(0, u16::from_le_bytes);
        }
        sketch
    }
}

/// Makes sketches of texts.
pub(crate) struct Sketcher(Analyzer);

impl Sketcher {
    pub(crate) fn new() -> Sketcher {
        Sketcher(Analyzer::new(&RECIPE.parse().expect("a recipe that a test parses"), 0))
    }

    pub(crate) fn sketch(&mut self, text: &str) -> Sketch {
        let analysis = self.0.analyze(beginning(text, SKETCHED));
        let words = u32::try_from(analysis.tokens()).unwrap_or(u32::MAX);
        let mut sketch = Sketch { words, ..Sketch::default() };
        for (to, from) in sketch.minima.iter_mut().zip(analysis.sketch()) {
            *to = *from as u16;
        }
        sketch
    }
}

/// Writes the sketches of all documents, in order.
pub(crate) struct SketchesWriter(BufWriter<File>);

impl SketchesWriter {
    pub(crate) fn create(path: &Path) -> io::Result<SketchesWriter> {
        Ok(SketchesWriter(BufWriter::with_capacity(1 << 20, File::create(path)?)))
    }

    pub(crate) fn push(&mut self, sketch: Sketch) -> io::Result<()> {
        self.0.write_all(&sketch.to_bytes())
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        self.0.into_inner().map_err(|error| error.into_error())?.sync_all()
    }
}

/// Sketches by document.
#[derive(Debug)]
pub(crate) struct Sketches(File);

impl Sketches {
    /// An error when there are not as many as documents.
    pub(crate) fn open(path: &Path, documents: u32) -> io::Result<Sketches> {
        let file = File::open(path)?;
        if file.metadata()?.len() != u64::from(documents) * RECORD as u64 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it has another length than documents need",
            ));
        }
        Ok(Sketches(file))
    }

    pub(crate) fn get(&self, doc: DocId) -> io::Result<Sketch> {
        let mut bytes = [0; RECORD];
        self.0.read_exact_at(&mut bytes, u64::from(doc) * RECORD as u64)?;
        Ok(Sketch::from_bytes(&bytes))
    }
}

#[cfg(test)]
mod tests;
