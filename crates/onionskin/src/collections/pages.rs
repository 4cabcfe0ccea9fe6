//! What is known of some documents, in memory: addresses and titles in one piece.

use onionskin_mirror::describe::{PageInfo, SiteInfo};
use onionskin_similar::SimilarError;
use onionskin_store::Atlas;
use onionskin_store::table::DocumentRow;

/// Columns that are kept.
pub(super) const COLUMNS: [&str; 5] = ["url", "title", "bytes", "fetched_at", "text_fp"];

/// Bytes that a page takes beside its address and title.
pub(super) const PAGE_BYTES: u64 = size_of::<Kept>() as u64;

#[derive(Clone, Copy, Debug)]
struct Kept {
    doc: u32,
    url_len: u32,
    start: u64,
    end: u64,
    has_title: bool,
    bytes: u64,
    fetched_at: Option<i64>,
    content: Option<u64>,
}

/// Documents, pushed in ascending order.
#[derive(Debug, Default)]
pub(super) struct Pages {
    kept: Vec<Kept>,
    text: String,
}

impl Pages {
    /// Keeps a document that has an address.
    pub(super) fn push(&mut self, row: &DocumentRow<'_>) {
        let Some(url) = row.url else { return };
        let start = self.text.len() as u64;
        self.text.push_str(url);
        self.text.push_str(row.title.unwrap_or_default());
        self.kept.push(Kept {
            doc: row.doc,
            url_len: url.len() as u32,
            start,
            end: self.text.len() as u64,
            has_title: row.title.is_some(),
            bytes: row.bytes,
            fetched_at: row.fetched_at,
            content: row.text_fp,
        });
    }

    /// Reads the documents that are wanted.
    pub(super) fn read(atlas: &Atlas, wanted: impl Fn(u32) -> bool) -> Result<Pages, SimilarError> {
        let mut pages = Pages::default();
        for batch in atlas.documents()?.only(&COLUMNS) {
            for row in batch?.rows().filter(|row| wanted(row.doc)) {
                pages.push(&row);
            }
        }
        Ok(pages)
    }

    /// What is known of a document; nothing when it was not kept.
    pub(super) fn info(&self, doc: u32) -> PageInfo<'_> {
        let Ok(at) = self.kept.binary_search_by_key(&doc, |kept| kept.doc) else {
            return PageInfo::default();
        };
        let kept = &self.kept[at];
        let text = &self.text[kept.start as usize..kept.end as usize];
        let (url, title) = text.split_at(kept.url_len as usize);
        PageInfo {
            url,
            title: kept.has_title.then_some(title),
            bytes: kept.bytes,
            fetched_at: kept.fetched_at,
            content: kept.content,
        }
    }
}

/// The sites of an atlas and how many pages each has.
#[derive(Debug, Default)]
pub(super) struct Sites {
    text: String,
    /// Where the host begins, ends, and where the registered domain ends.
    at: Vec<(u64, u64, u64)>,
    pages: Vec<u32>,
}

impl Sites {
    pub(super) fn read(atlas: &Atlas) -> Result<Sites, SimilarError> {
        let mut sites = Sites::default();
        let mut reader = atlas.sites()?;
        while let Some(batch) = reader.next_batch()? {
            for row in batch.rows() {
                let start = sites.text.len() as u64;
                sites.text.push_str(row.host);
                let middle = sites.text.len() as u64;
                sites.text.push_str(row.registered_domain.unwrap_or_default());
                // Dense and ascending, unless another program wrote them.
                let index = row.site as usize;
                if sites.at.len() <= index {
                    sites.at.resize(index + 1, (0, 0, 0));
                }
                sites.at[index] = (start, middle, sites.text.len() as u64);
            }
        }
        sites.pages = vec![0; sites.at.len()];
        Ok(sites)
    }

    /// A page of a site was seen.
    pub(super) fn count(&mut self, site: u32) {
        if let Some(pages) = self.pages.get_mut(site as usize) {
            *pages += 1;
        }
    }

    pub(super) fn info(&self, site: u32) -> SiteInfo<'_> {
        let (start, middle, end) = self.at.get(site as usize).copied().unwrap_or_default();
        let domain = &self.text[middle as usize..end as usize];
        SiteInfo {
            host: &self.text[start as usize..middle as usize],
            domain: (!domain.is_empty()).then_some(domain),
            pages: self.pages.get(site as usize).copied().unwrap_or_default().into(),
        }
    }
}
