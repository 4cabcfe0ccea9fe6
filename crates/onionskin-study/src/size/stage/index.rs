//! An index of seen documents as a member: it has names, and 48 bits of the fingerprint of each
//! text.

use std::path::Path;

use crate::size::{By, MemberFailure, Page, Presence, Sample};
use onionskin_extract::url::normalize;
use onionskin_seen::{Entry, Params, Reader, SeenError};
use xxhash_rust::xxh3::xxh3_64;

use super::stored::{Bottom, Questions, Room, Source, url_key};

/// An index, as it was when it was opened.
pub(super) struct IndexMember {
    name: String,
    reader: Reader,
    by: By,
}

impl IndexMember {
    pub(super) fn open(name: &str, room: &Room) -> Result<IndexMember, SeenError> {
        let reader = Reader::open(Path::new(name), room.memory.share(1, 4))?;
        Ok(IndexMember { name: name.to_owned(), reader, by: By::Text })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn params(&self) -> &Params {
        self.reader.params()
    }

    /// Compares by this. Near copies are not for an index: it keeps minima of some documents at
    /// most.
    pub(super) fn by(self, by: By) -> IndexMember {
        IndexMember { by, ..self }
    }

    /// What a document is known by, and the page that it is.
    fn page(&self, entry: Entry<'_>) -> Option<(u64, Page)> {
        match self.by {
            By::Url => {
                let url = normalize(entry.name?)?;
                Some((xxh3_64(url.as_bytes()), Page { url: Some(url), ..Page::default() }))
            }
            _ => Some((entry.text_fp, Page { text_fp: Some(entry.text_fp), ..Page::default() })),
        }
    }
}

impl Source for IndexMember {
    fn draw(&mut self, name: &str, mut bottom: Bottom) -> Result<(Sample, Option<u64>), MemberFailure> {
        let mut passed_over = 0u64;
        self.reader.each_document::<MemberFailure>(|entry| match self.page(entry) {
            Some((unit, page)) => bottom.push(unit, || page),
            None => {
                passed_over += 1;
                Ok(())
            }
        })?;
        let (sample, count) = bottom.finish()?;
        if passed_over > 0 && count == 0 {
            return Err("none of its names is an address".into());
        }
        if passed_over > 0 {
            tracing::warn!(
                index = name,
                documents = passed_over,
                "names that are no addresses were passed over"
            );
        }
        Ok((sample, Some(count)))
    }

    fn contains(&mut self, pages: &[Page]) -> Result<Vec<Presence>, MemberFailure> {
        let by_url = self.by == By::Url;
        let text = |page: &Page| page.text_fp.map(|fp| fp & Entry::TEXT_BITS);
        let mut questions = Questions::new(pages, |page| if by_url { url_key(page) } else { text(page) });
        self.reader.each_document::<MemberFailure>(|entry| {
            if let Some((unit, _)) = self.page(entry) {
                questions.meet(unit);
            }
            Ok(())
        })?;
        Ok(questions.finish())
    }
}
