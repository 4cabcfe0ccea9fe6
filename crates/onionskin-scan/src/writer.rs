//! Puts batches into tables, in order, and commits.

use onionskin_core::Recipe;
use onionskin_corpus::Source;
use onionskin_extract::url::registered_domain;
use onionskin_store::manifest::InputEntry;
use onionskin_store::schema::ChunkingName;
use onionskin_store::table::{DocumentRow, SiteRow, SitesReader};
use onionskin_store::{MemoryBudget, Staging, StagingError};

use super::batch::{Batch, Row};
use super::sites::Sites;
use super::state::{BAD_RECORD_EXAMPLES, State};
use super::{ScanError, ScanParams, ScanSummary};
use onionskin_store::progress::{Event, Progress};

/// The name of the work file of (fingerprint of address, document).
pub(super) const ADDRESSES: &str = "addresses";
/// The name of the work file of (fingerprint of address linked to, document).
pub(super) const LINKS: &str = "unresolved-links";

/// Documents after which a commit is due even if they were small.
const COMMIT_DOCUMENTS: u64 = 4 << 20;

pub(super) struct Writer<'a> {
    pub staging: Staging,
    state: State,
    sites: Sites,
    sources: &'a [Source],
    progress: &'a dyn Progress,
    chunkings: Vec<ChunkingName>,
    sketch_len: usize,
    keep_sketches: bool,
    features: usize,
    memory: MemoryBudget,
    max_bad_records: Option<u64>,
    commit_bytes: u64,
    /// Input and documents since the last commit.
    uncommitted: (u64, u64),
}

impl<'a> Writer<'a> {
    pub fn new(
        params: &ScanParams,
        sources: &'a [Source],
        staging: Staging,
        state: State,
        progress: &'a dyn Progress,
    ) -> Result<Writer<'a>, ScanError> {
        let recipe: &Recipe = &params.recipe;
        let chunkings = recipe.kept_chunks().iter().map(|chunking| {
            ChunkingName::new(&chunking.to_string()).expect("a chunking's spelling is a folder name")
        });
        let mut sites = Sites::new();
        let mut committed = SitesReader::new(staging.files("sites"));
        while let Some(batch) = committed.next_batch().map_err(StagingError::from)? {
            batch.rows().for_each(|site| {
                sites.number(site.host);
            });
        }
        Ok(Writer {
            chunkings: chunkings.collect(),
            sketch_len: recipe.scheme().sketch_len(),
            keep_sketches: recipe.keeps_sketches(),
            features: recipe.scheme().filter().map_or(0, |filter| filter.k()),
            staging,
            state,
            sites,
            sources,
            progress,
            memory: params.memory,
            max_bad_records: params.max_bad_records,
            commit_bytes: params.commit_bytes,
            uncommitted: (0, 0),
        })
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// Writes the batch that comes next.
    pub fn write(&mut self, batch: &Batch) -> Result<(), ScanError> {
        let first = self.state.documents;
        if first + batch.rows.len() as u64 > u64::from(u32::MAX) {
            return Err(ScanError::TooManyDocuments);
        }
        self.write_documents(batch, first as u32)?;
        self.write_chunks(batch, first as u32)?;
        self.write_sketches(batch, first as u32)?;
        self.write_links(batch, first as u32)?;

        self.state.documents += batch.rows.len() as u64;
        self.state.text_bytes += batch.text_bytes;
        self.state.input_bytes += batch.input_bytes;
        self.state.set_position(batch.position);
        for (reason, count) in &batch.skipped {
            *self.state.skipped.entry(reason.to_string()).or_default() += count;
        }
        self.note_bad_records(batch)?;
        self.progress.event(Event::Scanned {
            documents: self.state.documents,
            input_bytes: self.state.input_bytes,
            bad_records: self.state.bad_record_count(),
        });
        self.uncommitted.0 += batch.input_bytes;
        self.uncommitted.1 += batch.rows.len() as u64;
        if self.uncommitted.0 >= self.commit_bytes || self.uncommitted.1 >= COMMIT_DOCUMENTS {
            self.commit()?;
        }
        Ok(())
    }

    fn write_documents(&mut self, batch: &Batch, first: u32) -> Result<(), ScanError> {
        let mut strings = batch.strings.as_str();
        let mut take = |length: u32| {
            let (text, rest) = strings.split_at(length as usize);
            strings = rest;
            text
        };
        for (doc, row) in (first..).zip(&batch.rows) {
            let id = row.id.map(&mut take);
            let url = row.url.map(&mut take);
            let host = row.site.map(&mut take);
            let title = row.title.map(&mut take);
            let canonical_url = row.canonical.map(&mut take);
            let media_type = take(row.media_type);
            let site = host.map(|host| self.site(host)).transpose()?;
            let source = self.sources.get(row.source as usize).map_or("", |source| source.name.as_str());
            self.staging
                .documents()?
                .push(&DocumentRow {
                    doc,
                    id,
                    url,
                    site,
                    source,
                    offset: row.offset,
                    media_type,
                    bytes: row.bytes,
                    tokens: row.tokens,
                    title,
                    canonical_url,
                    fetched_at: row.fetched_at,
                    payload_sha1: row.payload_sha1,
                    text_fp: row.text_fp,
                })
                .map_err(StagingError::from)?;
            self.state.tokens += row.tokens;
            self.state.empty_documents += u64::from(is_empty(row) && !row.revisit);
            self.state.revisits += u64::from(row.revisit);
            if let Some(count) = self.state.per_source.get_mut(row.source as usize) {
                count.0 += 1;
            }
        }
        Ok(())
    }

    fn site(&mut self, host: &str) -> Result<u32, ScanError> {
        let (site, new) = self.sites.number(host);
        if new {
            self.state.sites += 1;
            let row = SiteRow { site, host, registered_domain: registered_domain(host) };
            self.staging.sites()?.push(&row).map_err(StagingError::from)?;
            if self.sites.bytes_when_grown() > self.memory.bytes() / 4 {
                return Err(ScanError::TooManySites {
                    sites: u64::from(self.sites.len()),
                    memory: self.memory,
                });
            }
        }
        Ok(site)
    }

    fn write_chunks(&mut self, batch: &Batch, first: u32) -> Result<(), ScanError> {
        let chunkings = self.chunkings.len();
        for (nth, (chunking, column)) in self.chunkings.iter().zip(&batch.chunks).enumerate() {
            if column.is_empty() {
                continue;
            }
            let writer = self.staging.chunks(chunking)?;
            let counts = batch.chunk_counts.iter().skip(nth).step_by(chunkings);
            let mut rest = column.as_slice();
            for (doc, count) in (first..).zip(counts) {
                let (chunks, remaining) = rest.split_at(*count as usize);
                rest = remaining;
                if !chunks.is_empty() {
                    writer.push(doc, chunks).map_err(StagingError::from)?;
                }
            }
            *self.state.chunks.entry(chunking.as_str().to_owned()).or_default() += column.len() as u64;
        }
        Ok(())
    }

    fn write_sketches(&mut self, batch: &Batch, first: u32) -> Result<(), ScanError> {
        let docs = || (first..).zip(&batch.rows).filter(|(_, row)| !is_empty(row)).map(|(doc, _)| doc);
        if self.keep_sketches && !batch.sketches.is_empty() {
            let writer = self.staging.sketches()?;
            for (doc, sketch) in docs().zip(batch.sketches.chunks_exact(self.sketch_len)) {
                writer.push(doc, sketch).map_err(StagingError::from)?;
            }
        }
        if self.features > 0 && !batch.features.is_empty() {
            let writer = self.staging.features()?;
            for (doc, features) in docs().zip(batch.features.chunks_exact(self.features)) {
                writer.push(doc, features).map_err(StagingError::from)?;
            }
        }
        Ok(())
    }

    fn write_links(&mut self, batch: &Batch, first: u32) -> Result<(), ScanError> {
        if batch.rows.iter().any(|row| row.url_fp.is_some()) {
            let mut addresses = self.staging.raw::<(u64, u32)>(ADDRESSES)?;
            for (doc, row) in (first..).zip(&batch.rows) {
                if let Some(fingerprint) = row.url_fp {
                    addresses.push(&(fingerprint, doc))?;
                }
            }
        }
        if !batch.links.is_empty() {
            let mut links = self.staging.raw::<(u64, u32)>(LINKS)?;
            let mut rest = batch.links.iter();
            for (doc, row) in (first..).zip(&batch.rows) {
                for fingerprint in rest.by_ref().take(row.links as usize) {
                    links.push(&(*fingerprint, doc))?;
                }
            }
            self.state.links_found += batch.links.len() as u64;
        }
        Ok(())
    }

    fn note_bad_records(&mut self, batch: &Batch) -> Result<(), ScanError> {
        for bad in &batch.bad_records {
            let place = self
                .sources
                .get(bad.source as usize)
                .map_or_else(String::new, |source| source.place(bad.offset));
            let reason = bad.reason.to_string();
            self.progress.event(Event::BadRecord { place: &place, reason: &reason });
            *self.state.bad_records.entry(bad.reason.code().to_owned()).or_default() += 1;
            if let Some(count) = self.state.per_source.get_mut(bad.source as usize) {
                count.1 += 1;
            }
            let count = self.state.bad_record_count();
            if let Some(limit) = self.max_bad_records
                && count > limit
            {
                return Err(ScanError::TooManyBadRecords { count, limit, place, reason });
            }
            if self.state.bad_record_examples.len() < BAD_RECORD_EXAMPLES {
                self.state.bad_record_examples.push((place, reason));
            }
        }
        Ok(())
    }

    /// Makes everything written so far safe.
    pub fn commit(&mut self) -> Result<(), ScanError> {
        self.uncommitted = (0, 0);
        Ok(self.staging.commit(self.state.to_json()?)?)
    }

    /// All input has been read.
    pub fn finish_reading(&mut self) -> Result<(), ScanError> {
        self.state.read = true;
        self.commit()
    }

    /// Makes the atlas what it is.
    pub fn publish(self, params: &ScanParams, sources: &[Source]) -> Result<ScanSummary, ScanError> {
        let state = self.state;
        let extractors = super::extractors(&params.options);
        self.staging.publish(|manifest| {
            manifest.recipe = params.recipe.to_string();
            manifest.seed = params.seed;
            manifest.inputs = sources
                .iter()
                .zip(&state.per_source)
                .map(|(source, (documents, bad_records))| InputEntry {
                    name: source.name.clone(),
                    bytes: source.bytes,
                    format: source.format.to_string(),
                    documents: *documents,
                    bad_records: *bad_records,
                })
                .collect();
            manifest.extractors = extractors;
            manifest.stages.insert("scan".to_owned(), crate::inputs::to_json(&params.options));
            let mut count = |name: &str, value: u64| manifest.counts.insert(name.to_owned(), value);
            count("documents", state.documents);
            count("empty_documents", state.empty_documents);
            count("revisits", state.revisits);
            count("tokens", state.tokens);
            count("text_bytes", state.text_bytes);
            count("input_bytes", state.input_bytes);
            count("sites", state.sites);
            count("links_found", state.links_found);
            count("links", state.links);
            for (code, records) in &state.bad_records {
                count(&format!("bad_records.{code}"), *records);
            }
            for (reason, records) in &state.skipped {
                count(&format!("skipped.{reason}"), *records);
            }
            if !state.bad_record_examples.is_empty() {
                let examples = state.bad_record_examples.iter();
                let examples =
                    examples.map(|(place, reason)| serde_json::json!({ "place": place, "reason": reason }));
                manifest.more.insert("bad_record_examples".to_owned(), examples.collect());
            }
        })?;
        Ok(ScanSummary {
            documents: state.documents,
            empty_documents: state.empty_documents,
            revisits: state.revisits,
            tokens: state.tokens,
            text_bytes: state.text_bytes,
            sites: state.sites,
            links_found: state.links_found,
            links: state.links,
            chunks: state.chunks,
            bad_records: state.bad_records,
            skipped: state.skipped,
            sources: sources.len() as u64,
            input_bytes: state.input_bytes,
            bad_record_examples: state.bad_record_examples,
            ..ScanSummary::default()
        })
    }
}

fn is_empty(row: &Row) -> bool {
    row.text_fp.is_none()
}
