//! Puts batches into tables, in order, and commits.

use onionskin_core::format::grouped;
use onionskin_core::{DocId, SiteId};
use onionskin_corpus::{BadReason, BadRecord, Format, SkipReason, Source};
use onionskin_extract::url::registered_domain;
use onionskin_store::schema::ChunkingName;
use onionskin_store::stage::Work;
use onionskin_store::table::{DocumentRow, SiteRow, SitesReader};
use onionskin_store::{Event, MemoryBudget, Staging, StagingError, TableName};

use super::batch::{Batch, Row, Strings};
use super::read::Sink;
use super::sites::Sites;
use super::state::BAD_RECORD_EXAMPLES;
use super::{Scan, ScanError};

/// The name of the work file of (fingerprint of address, document).
pub(super) const ADDRESSES: &str = "addresses";
/// The name of the work file of (fingerprint of address linked to, document).
pub(super) const LINKS: &str = "unresolved-links";

/// Reasons for skipping records that are counted each by itself.
const SKIP_REASONS: usize = 1000;
/// What the others are counted under.
const OTHER_REASONS: &str = "other reasons";

/// Strings of documents that are gathered before they are encoded, and that a row group has, in
/// bytes. Those of ordinary documents come to less.
const BATCH_STRINGS: usize = 8 << 20;
const ROW_GROUP_STRINGS: usize = 32 << 20;

/// Documents after which a commit is due even if they were small.
const COMMIT_DOCUMENTS: u64 = 4 << 20;

/// What was read since the last commit.
#[derive(Debug, Default)]
pub(super) struct Uncommitted {
    input_bytes: u64,
    documents: u64,
}

impl Uncommitted {
    /// Counts a batch. Whether a commit is due, and then begins again: commits happen at the ends
    /// of tasks alone.
    pub fn is_due_after(&mut self, batch: &Batch, commit_bytes: u64) -> bool {
        self.documents += batch.rows.len() as u64;
        if batch.more {
            return false;
        }
        self.input_bytes += batch.input_bytes;
        let is_due = self.input_bytes >= commit_bytes || self.documents >= COMMIT_DOCUMENTS;
        if is_due {
            *self = Uncommitted::default();
        }
        is_due
    }
}

/// Writes chunks of documents, and counts them. Documents without chunks have no rows.
pub(super) fn push_chunks<'c>(
    staging: &mut Staging,
    chunking: &ChunkingName,
    rows: impl Iterator<Item = (DocId, &'c [u64])>,
) -> Result<u64, ScanError> {
    let mut rows = rows.filter(|(_, chunks)| !chunks.is_empty()).peekable();
    if rows.peek().is_none() {
        return Ok(0);
    }
    let (writer, mut written) = (staging.chunks(chunking)?, 0);
    for (doc, chunks) in rows {
        writer.push(doc, chunks).map_err(StagingError::from)?;
        written += chunks.len() as u64;
    }
    Ok(written)
}

pub(super) struct Writer<'w, 'a> {
    work: &'w mut Work<'a, Scan>,
    sites: Sites,
    sources: &'a [Source],
    chunkings: Vec<ChunkingName>,
    sketch_len: usize,
    keep_sketches: bool,
    features: usize,
    memory: MemoryBudget,
    max_bad_records: Option<u64>,
    strict: bool,
    commit_bytes: u64,
    uncommitted: Uncommitted,
    /// Bytes of strings since a batch and a row group were last ended for their size.
    strings: (usize, usize),
}

impl Sink for Writer<'_, '_> {
    fn sources(&self) -> &[Source] {
        self.sources
    }

    /// Writes the batch that comes next. The place to resume at moves, and commits happen, at the
    /// ends of tasks alone: how a task is cut into batches leaves no trace.
    fn write(&mut self, batch: &Batch) -> Result<(), ScanError> {
        let first = self.work.state.documents;
        if first + batch.rows.len() as u64 > u64::from(u32::MAX) {
            return Err(ScanError::TooManyDocuments);
        }
        let first = DocId(first as u32);
        self.write_documents(batch, first)?;
        self.write_chunks(batch, first)?;
        self.write_sketches(batch, first)?;
        self.write_links(batch, first)?;

        self.work.state.documents += batch.rows.len() as u64;
        self.work.state.text_bytes += batch.text_bytes;
        self.work.state.links_unresolved += batch.links_unresolved;
        if !batch.more {
            self.work.state.input_bytes += batch.input_bytes;
            self.work.state.set_position(batch.position);
        }
        for (reason, count) in &batch.skipped {
            let skipped = &mut self.work.state.skipped;
            let mut reason = reason.to_string();
            // Media types are foreign words, and there may be any number of them.
            if skipped.len() >= SKIP_REASONS && !skipped.contains_key(&reason) {
                OTHER_REASONS.clone_into(&mut reason);
            }
            *skipped.entry(reason).or_default() += count;
        }
        self.note_skipped_files(batch)?;
        self.note_bad_records(batch)?;
        self.note_undocumented(batch);
        self.work.progress.event(Event::Scanned {
            documents: self.work.state.documents,
            input_bytes: batch.read_bytes,
            bad_records: self.work.state.bad_record_count(),
        });
        if self.uncommitted.is_due_after(batch, self.commit_bytes) {
            // Every commit begins new files.
            self.strings = (0, 0);
            self.work.commit()?;
        }
        Ok(())
    }
}

impl<'w, 'a> Writer<'w, 'a> {
    pub fn new(work: &'w mut Work<'a, Scan>) -> Result<Writer<'w, 'a>, ScanError> {
        let Scan { params, recipe, sources, .. } = work.stage;
        let chunkings = recipe.kept_chunks().iter().copied().map(ChunkingName::from);
        let mut sites = Sites::new();
        let mut committed = SitesReader::new(work.staging.files(&TableName::Sites));
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
            work,
            sites,
            sources,
            memory: params.memory,
            max_bad_records: params.max_bad_records,
            strict: params.strict,
            commit_bytes: params.commit_bytes,
            uncommitted: Uncommitted::default(),
            strings: (0, 0),
        })
    }

    fn write_documents(&mut self, batch: &Batch, first: DocId) -> Result<(), ScanError> {
        for (doc, (row, strings)) in first.onward().zip(batch.documents()) {
            let Strings { id, url, host, title, canonical_url, media_type } = strings;
            let site = host.map(|host| self.site(host)).transpose()?;
            let input = self.sources.get(row.source as usize);
            let source = input.map_or("", |source| source.name.as_str());
            self.work
                .staging
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
            self.end_large(strings)?;
            self.work.state.tokens += row.tokens;
            self.work.state.documents_without_url += u64::from(url.is_none());
            if input.is_some_and(|source| has_fields(source.format)) {
                self.work.state.fields.count(id.is_some(), url.is_some(), row.fetched_at.is_some());
            }
            self.work.state.empty_documents += u64::from(is_empty(row) && !row.revisit);
            self.work.state.revisits += u64::from(row.revisit);
            if let Some(count) = self.work.state.per_source.get_mut(row.source as usize) {
                count.0 += 1;
            }
        }
        Ok(())
    }

    /// Foreign bytes decide how long ids, titles and URLs are: their number alone bounds nothing.
    fn end_large(&mut self, strings: Strings<'_>) -> Result<(), ScanError> {
        let bytes = strings.bytes();
        self.strings.0 += bytes;
        self.strings.1 += bytes;
        if self.strings.1 >= ROW_GROUP_STRINGS {
            self.strings = (0, 0);
            self.work.staging.documents()?.end_row_group().map_err(StagingError::from)?;
        } else if self.strings.0 >= BATCH_STRINGS {
            self.strings.0 = 0;
            self.work.staging.documents()?.end_batch().map_err(StagingError::from)?;
        }
        Ok(())
    }

    fn site(&mut self, host: &str) -> Result<SiteId, ScanError> {
        let (site, new) = self.sites.number(host);
        if new {
            self.work.state.sites += 1;
            let row = SiteRow { site, host, registered_domain: registered_domain(host) };
            self.work.staging.sites()?.push(&row).map_err(StagingError::from)?;
            if self.sites.bytes_when_grown() > self.memory.bytes() / 4 {
                return Err(ScanError::TooManySites {
                    sites: u64::from(self.sites.len()),
                    memory: self.memory,
                });
            }
        }
        Ok(site)
    }

    fn write_chunks(&mut self, batch: &Batch, first: DocId) -> Result<(), ScanError> {
        for (nth, chunking) in self.chunkings.iter().enumerate() {
            let rows = first.onward().zip(batch.chunks_by_row(nth));
            let written = push_chunks(&mut self.work.staging, chunking, rows)?;
            if written > 0 {
                *self.work.state.chunks.entry(chunking.as_str().to_owned()).or_default() += written;
            }
        }
        Ok(())
    }

    fn write_sketches(&mut self, batch: &Batch, first: DocId) -> Result<(), ScanError> {
        let docs = || first.onward().zip(&batch.rows).filter(|(_, row)| !is_empty(row)).map(|(doc, _)| doc);
        if self.keep_sketches && !batch.sketches.is_empty() {
            let writer = self.work.staging.sketches()?;
            for (doc, sketch) in docs().zip(batch.sketches.chunks_exact(self.sketch_len)) {
                writer.push(doc, sketch).map_err(StagingError::from)?;
            }
        }
        if self.features > 0 && !batch.features.is_empty() {
            let writer = self.work.staging.features()?;
            for (doc, features) in docs().zip(batch.features.chunks_exact(self.features)) {
                writer.push(doc, features).map_err(StagingError::from)?;
            }
        }
        Ok(())
    }

    fn write_links(&mut self, batch: &Batch, first: DocId) -> Result<(), ScanError> {
        if batch.rows.iter().any(|row| row.url_fp.is_some()) {
            let mut addresses = self.work.staging.raw::<(u64, DocId)>(ADDRESSES)?;
            for (doc, row) in first.onward().zip(&batch.rows) {
                if let Some(fingerprint) = row.url_fp {
                    addresses.push(&(fingerprint, doc))?;
                }
            }
        }
        if !batch.links.is_empty() {
            let mut links = self.work.staging.raw::<(u64, DocId)>(LINKS)?;
            let mut rest = batch.links.iter();
            for (doc, row) in first.onward().zip(&batch.rows) {
                for fingerprint in rest.by_ref().take(row.links as usize) {
                    links.push(&(*fingerprint, doc))?;
                }
            }
            self.work.state.links_found += batch.links.len() as u64;
        }
        Ok(())
    }

    fn place(&self, source: u32, offset: u64) -> String {
        self.sources.get(source as usize).map_or_else(String::new, |source| source.place(offset))
    }

    fn note_skipped_files(&mut self, batch: &Batch) -> Result<(), ScanError> {
        for file in &batch.skipped_files {
            let place = self.place(file.source, file.offset);
            if self.strict && file.reason == SkipReason::UnreadableFile {
                return Err(ScanError::Unreadable { place, reason: file.detail.clone() });
            }
            self.work.state.note_skipped_file(place, file);
        }
        Ok(())
    }

    /// Why the input has no document, as long as it has none.
    fn note_undocumented(&mut self, batch: &Batch) {
        let state = &mut self.work.state;
        state.no_text += batch.no_text;
        if !batch.rows.is_empty() {
            state.undocumented.remove(&batch.source);
            return;
        }
        let names = &self.work.stage.options.text_field;
        let missing = |bad: &&BadRecord| matches!(bad.reason, BadReason::MissingColumn { .. });
        if let Some(fields) = &batch.other_fields {
            let reason = || format!("no field {}; there are {fields}", names.spoken());
            state.note_undocumented(batch.source, true, reason);
        } else if let Some(bad) = batch.bad_records.iter().find(missing) {
            state.note_undocumented(batch.source, true, || bad.reason.to_string());
        } else if let Some(bad) = batch.bad_records.first() {
            state.note_undocumented(batch.source, false, || bad.reason.to_string());
        } else if batch.no_text > 0 {
            state.note_undocumented(batch.source, false, || "every text is null".to_owned());
        } else if let Some(reason) = batch.skipped.keys().next() {
            state.note_undocumented(batch.source, false, || reason.to_string());
        }
    }

    fn note_bad_records(&mut self, batch: &Batch) -> Result<(), ScanError> {
        for bad in &batch.bad_records {
            let place = self.place(bad.source, bad.offset);
            let reason = described(bad);
            self.work.progress.event(Event::BadRecord { place: &place, reason: &reason });
            let lost = self.work.state.bad_records.entry(bad.reason.code().to_owned()).or_default();
            *lost = lost.saturating_add(bad.records);
            self.work.state.bad_record_bytes = self.work.state.bad_record_bytes.saturating_add(bad.bytes);
            if let Some(count) = self.work.state.per_source.get_mut(bad.source as usize) {
                count.1 = count.1.saturating_add(bad.records);
            }
            let count = self.work.state.bad_record_count();
            if let Some(limit) = self.max_bad_records
                && count > limit
            {
                return Err(ScanError::TooManyBadRecords { count, limit, place, reason });
            }
            if self.work.state.bad_record_examples.len() < BAD_RECORD_EXAMPLES {
                self.work.state.bad_record_examples.push((place, reason));
            }
        }
        Ok(())
    }
}

/// Whether the records of a format have their id, URL and date in fields.
fn has_fields(format: Format) -> bool {
    matches!(format, Format::Jsonl | Format::Parquet | Format::Csv | Format::Tsv)
}

/// The reason, and how much is lost where that is more than one record.
fn described(bad: &BadRecord) -> String {
    match bad.records {
        1 => bad.reason.to_string(),
        records => format!("{} ({} records)", bad.reason, grouped(records)),
    }
}

fn is_empty(row: &Row) -> bool {
    row.text_fp.is_none()
}
