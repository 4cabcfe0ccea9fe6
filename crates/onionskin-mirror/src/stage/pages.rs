//! What is known of some documents, in memory: addresses and titles in one piece.

use crate::describe::{PageInfo, SiteInfo};
use crate::principal::Voter;
use onionskin_core::{DocId, SiteId};
use onionskin_extract::url::voter;
use onionskin_similar::SimilarError;
use onionskin_store::Atlas;
use onionskin_store::table::document::{Bytes, CanonicalUrl, Doc, FetchedAt, TextFp, Title, Url};

use super::{Links, open_links};

/// A document, as far as collections look at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub doc: DocId,
    pub url: Option<&'a str>,
    pub title: Option<&'a str>,
    pub canonical: Option<&'a str>,
    pub bytes: u64,
    pub fetched_at: Option<i64>,
    pub text_fp: Option<u64>,
}

/// What collections are made of: documents and links, as often as they are asked for.
pub(crate) trait Material {
    /// Every document with its address, title, length, date and text, in order.
    fn documents(&self, visit: &mut dyn FnMut(&Seen<'_>)) -> Result<(), SimilarError>;
    /// Every link; source and destination are documents.
    fn links(&self) -> Result<Links<'_>, SimilarError>;
}

/// An atlas of so many documents.
pub(super) struct OfAtlas<'a>(pub &'a Atlas, pub u32);

impl Material for OfAtlas<'_> {
    fn documents(&self, visit: &mut dyn FnMut(&Seen<'_>)) -> Result<(), SimilarError> {
        type Wanted = (Doc, Url, Title, CanonicalUrl, Bytes, FetchedAt, TextFp);
        for batch in self.0.documents()?.select::<Wanted>() {
            for (doc, url, title, canonical, bytes, fetched_at, text_fp) in batch?.rows() {
                visit(&Seen { doc, url, title, canonical, bytes, fetched_at, text_fp });
            }
        }
        Ok(())
    }

    fn links(&self) -> Result<Links<'_>, SimilarError> {
        open_links(self.0, self.1)
    }
}

/// Bytes that a page takes beside its address and title.
pub(crate) const PAGE_BYTES: u64 = size_of::<Kept>() as u64;

#[derive(Clone, Copy, Debug)]
struct Kept {
    doc: DocId,
    url_len: u32,
    title_len: u32,
    start: u64,
    end: u64,
    has_title: bool,
    has_canonical: bool,
    bytes: u64,
    fetched_at: Option<i64>,
    content: Option<u64>,
}

/// Documents, pushed in ascending order.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    kept: Vec<Kept>,
    text: String,
}

impl Pages {
    /// Keeps a document that has an address.
    pub(crate) fn push(&mut self, row: &Seen<'_>) {
        let Some(url) = row.url else { return };
        let start = self.text.len() as u64;
        self.text.push_str(url);
        let title = row.title.unwrap_or_default();
        self.text.push_str(title);
        // Most pages that name an address as canonical name their own.
        let canonical = row.canonical.filter(|canonical| *canonical != url);
        self.text.push_str(canonical.unwrap_or_default());
        self.kept.push(Kept {
            doc: row.doc,
            url_len: url.len() as u32,
            title_len: title.len() as u32,
            start,
            end: self.text.len() as u64,
            has_title: row.title.is_some(),
            has_canonical: canonical.is_some(),
            bytes: row.bytes,
            fetched_at: row.fetched_at,
            content: row.text_fp,
        });
    }

    /// Reads the documents that are wanted.
    pub(crate) fn read(
        material: &dyn Material,
        wanted: impl Fn(DocId) -> bool,
    ) -> Result<Pages, SimilarError> {
        let mut pages = Pages::default();
        material.documents(&mut |row| {
            if wanted(row.doc) {
                pages.push(row);
            }
        })?;
        Ok(pages)
    }

    /// What is known of a document; nothing when it was not kept.
    pub(crate) fn info(&self, doc: DocId) -> PageInfo<'_> {
        let Ok(at) = self.kept.binary_search_by_key(&doc, |kept| kept.doc) else {
            return PageInfo::default();
        };
        let kept = &self.kept[at];
        let text = &self.text[kept.start as usize..kept.end as usize];
        let (url, rest) = text.split_at(kept.url_len as usize);
        let (title, canonical) = rest.split_at(kept.title_len as usize);
        PageInfo {
            url,
            title: kept.has_title.then_some(title),
            canonical: kept.has_canonical.then_some(canonical),
            bytes: kept.bytes,
            fetched_at: kept.fetched_at,
            content: kept.content,
        }
    }
}

/// The sites of an atlas and how many pages each has.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    text: String,
    /// Where the host begins, ends, and where the registered domain ends.
    at: Vec<(u64, u64, u64)>,
    pages: Vec<u32>,
}

impl Sites {
    /// A site with its host, domain and number of pages; sites are pushed in order, from 0 on.
    pub(crate) fn push(&mut self, host: &str, domain: Option<&str>, pages: u32) {
        let start = self.text.len() as u64;
        self.text.push_str(host);
        let middle = self.text.len() as u64;
        self.text.push_str(domain.unwrap_or_default());
        self.at.push((start, middle, self.text.len() as u64));
        self.pages.push(pages);
    }

    pub(crate) fn read(atlas: &Atlas) -> Result<Sites, SimilarError> {
        let mut sites = Sites::default();
        let mut reader = atlas.sites()?;
        while let Some(batch) = reader.next_batch()? {
            for row in batch.rows() {
                let start = sites.text.len() as u64;
                sites.text.push_str(row.host);
                let middle = sites.text.len() as u64;
                sites.text.push_str(row.registered_domain.unwrap_or_default());
                // Dense and ascending, unless another program wrote them.
                let index = row.site.index();
                if sites.at.len() <= index {
                    sites.at.resize(index + 1, (0, 0, 0));
                }
                sites.at[index] = (start, middle, sites.text.len() as u64);
            }
        }
        sites.pages = vec![0; sites.at.len()];
        Ok(sites)
    }

    /// The domain that each site votes for, by number; numbers are in the order of the domains.
    pub(crate) fn voters(&self) -> Vec<Option<Voter>> {
        let names: Vec<Option<&str>> = self.voter_names().collect();
        let mut known: Vec<&str> = names.iter().copied().flatten().collect();
        known.sort_unstable();
        known.dedup();
        let number = |name: &str| known.binary_search(&name).ok().map(|at| at as Voter);
        names.into_iter().map(|name| number(name?)).collect()
    }

    /// The domain that each site votes for.
    pub(crate) fn voter_names(&self) -> impl Iterator<Item = Option<&str>> {
        self.at.iter().map(|&(start, middle, _)| voter(&self.text[start as usize..middle as usize]))
    }

    /// A page of a site was seen.
    pub(crate) fn count(&mut self, site: Option<SiteId>) {
        if let Some(pages) = site.and_then(|site| self.pages.get_mut(site.index())) {
            *pages += 1;
        }
    }

    /// What is known of a site; nothing when there is none.
    pub(crate) fn info(&self, site: Option<SiteId>) -> SiteInfo<'_> {
        let site = site.map_or(usize::MAX, SiteId::index);
        let (start, middle, end) = self.at.get(site).copied().unwrap_or_default();
        let domain = &self.text[middle as usize..end as usize];
        SiteInfo {
            host: &self.text[start as usize..middle as usize],
            domain: (!domain.is_empty()).then_some(domain),
            pages: self.pages.get(site).copied().unwrap_or_default().into(),
        }
    }
}
