//! Chunk sets out of what the scan has kept in memory, and out of texts read again where it has not.

use std::sync::Arc;

use onionskin_similar::{SetCursor, SetSource, SimilarError};

use super::reread::Reread;
use crate::kept::Kept;

/// The kept sets, and the others.
#[derive(Debug)]
pub(super) struct KeptSets {
    kept: Arc<Kept>,
    rest: Reread,
}

impl KeptSets {
    pub fn new(kept: Arc<Kept>, rest: Reread) -> KeptSets {
        KeptSets { kept, rest }
    }
}

impl SetSource for KeptSets {
    fn open(&self) -> Result<Box<dyn SetCursor>, SimilarError> {
        Ok(Box::new(Cursor {
            kept: Arc::clone(&self.kept),
            rest: Some(self.rest.open()?),
            ahead: None,
            next: 0,
            at_rest: false,
            current: Vec::new(),
        }))
    }
}

struct Cursor {
    kept: Arc<Kept>,
    rest: Option<Box<dyn SetCursor>>,
    /// The document that the rest has come to, when its turn has not come.
    ahead: Option<u32>,
    /// No document below this one comes any more.
    next: u32,
    /// Whether the present set is one of the rest.
    at_rest: bool,
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
