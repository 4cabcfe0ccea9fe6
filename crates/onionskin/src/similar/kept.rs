//! Chunk sets out of what the scan has kept in memory, and out of texts read again where it has not.

use std::sync::Arc;

use onionskin_core::{Chunking, FingerprintSet, Recipe};
use onionskin_similar::{SetCursor, SetSource, SimilarError};

use super::reread::Reread;
use crate::kept::Kept;

/// The kept sets, and the others.
#[derive(Debug)]
pub(super) struct KeptSets {
    kept: Arc<Kept>,
    /// Shingles are a set; other chunks come as often as they occur.
    as_sets: bool,
    rest: Reread,
}

impl KeptSets {
    pub fn new(kept: Arc<Kept>, recipe: &Recipe, rest: Reread) -> KeptSets {
        KeptSets { kept, as_sets: matches!(recipe.main(), Chunking::Shingles(..)), rest }
    }
}

impl SetSource for KeptSets {
    fn open(&self) -> Result<Box<dyn SetCursor>, SimilarError> {
        Ok(Box::new(Cursor {
            kept: Arc::clone(&self.kept),
            as_sets: self.as_sets,
            rest: Some(self.rest.open()?),
            ahead: None,
            next: 0,
            at_rest: false,
            seen: FingerprintSet::default(),
            current: Vec::new(),
        }))
    }
}

struct Cursor {
    kept: Arc<Kept>,
    as_sets: bool,
    rest: Option<Box<dyn SetCursor>>,
    /// The document that the rest has come to, when its turn has not come.
    ahead: Option<u32>,
    /// No document below this one comes any more.
    next: u32,
    /// Whether the present set is one of the rest.
    at_rest: bool,
    seen: FingerprintSet,
    current: Vec<u64>,
}

impl SetCursor for Cursor {
    fn advance(&mut self, wanted: &dyn Fn(u32) -> bool) -> Result<Option<u32>, SimilarError> {
        let kept = Arc::clone(&self.kept);
        if self.ahead.is_none()
            && let Some(rest) = &mut self.rest
        {
            self.ahead = rest.advance(&|doc| wanted(doc) && !kept.has(doc))?;
            if self.ahead.is_none() {
                self.rest = None;
            }
        }
        let until = self.ahead.unwrap_or_else(|| kept.end());
        while self.next < until {
            let doc = self.next;
            self.next += 1;
            if wanted(doc) && kept.copy_into(doc, &mut self.current) {
                if self.as_sets {
                    self.seen.retain_first(&mut self.current);
                }
                self.at_rest = false;
                return Ok(Some(doc));
            }
        }
        let doc = self.ahead.take();
        if let Some(doc) = doc {
            self.next = doc + 1;
            self.at_rest = true;
        }
        Ok(doc)
    }

    fn chunks(&self) -> &[u64] {
        match &self.rest {
            Some(rest) if self.at_rest => rest.chunks(),
            _ => &self.current,
        }
    }
}
