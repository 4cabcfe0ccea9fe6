//! What tables say of each other.
//!
//! A table that was found wrong by itself is left out, and so is every comparison with it. Tables
//! are read side by side in their order. Where that is not enough, a bit per document is kept, and
//! as many passes are made as the memory budget asks for.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;

use serde_json::Value;

use super::{COUNTS, VerifyReport};
use crate::MemoryBudget;
use crate::atlas::{Atlas, AtlasError};
use crate::schema::{LevelName, TableName};
use crate::stage::StageName;
use crate::table::{Batch, ClusterRow, CollectionPageRow, CollectionRow, CopyKind, TableError, document};

/// Why a comparison ends.
enum Stop {
    /// Something is wrong: with which table, and what.
    Wrong(TableName, String),
    /// A table could not be read.
    Failed(AtlasError),
}

impl From<AtlasError> for Stop {
    fn from(error: AtlasError) -> Stop {
        Stop::Failed(error)
    }
}

impl From<TableError> for Stop {
    fn from(error: TableError) -> Stop {
        Stop::Failed(error.into())
    }
}

type Checked = Result<(), Stop>;

/// Something is wrong with a row of a table.
fn wrong<T>(table: TableName, row: impl Display, problem: impl Display) -> Result<T, Stop> {
    Err(Stop::Wrong(table, format!("row {row}: {problem}")))
}

/// Ends a comparison where something does not hold.
macro_rules! ensure {
    ($holds:expr, $table:ident, $row:expr, $($problem:tt)+) => {
        if !$holds {
            return wrong(TableName::$table, $row, format_args!($($problem)+));
        }
    };
}

pub(super) fn verify(atlas: &Atlas, memory: MemoryBudget, report: &mut VerifyReport) {
    let documents = atlas.rows(&TableName::Documents);
    let passes = passes(documents, memory);
    run(atlas, report, &[], || counts(atlas));
    run(atlas, report, &[TableName::Documents], || documents_and_inputs(atlas));
    run(atlas, report, &[TableName::Pairs], || pairs(atlas));
    run(atlas, report, &[TableName::Clusters, TableName::ClusterStats], || clusters(atlas));
    run(atlas, report, &[TableName::Clusters], || members(atlas, &passes));
    for level in atlas.levels() {
        let name = TableName::Copies(level.clone());
        run(atlas, report, &[name], || originals(atlas, &level, &passes));
    }
    for name in [TableName::Sketches, TableName::Features] {
        run(atlas, report, &[TableName::Documents, name.clone()], || texts(atlas, &name));
    }
    for chunking in atlas.chunkings() {
        let name = TableName::Chunks(chunking);
        run(atlas, report, &[TableName::Documents, name.clone()], || texts(atlas, &name));
    }
    let groups = [TableName::CollectionGroups, TableName::Collections];
    run(atlas, report, &groups, || replicas(atlas));
    run(atlas, report, &[TableName::Collections, TableName::CollectionPages], || pages(atlas));
    run(atlas, report, &[TableName::UrlRules], || rules(atlas));
}

/// Makes a comparison if all its tables are there and sound so far.
fn run(atlas: &Atlas, report: &mut VerifyReport, of: &[TableName], compare: impl FnOnce() -> Checked) {
    if !of.iter().all(|name| atlas.has(name) && !report.names(name)) {
        return;
    }
    let (table, problem) = match compare() {
        Ok(()) => return,
        Err(Stop::Wrong(table, problem)) => (table, problem),
        Err(Stop::Failed(error)) => match of.last() {
            Some(table) => (table.clone(), error.to_string()),
            None => return,
        },
    };
    let first = atlas.table(&table).ok().and_then(|entry| entry.files.first());
    let file = first.map_or_else(|| table.to_string(), |file| file.path.clone());
    report.note(&table, &file, problem);
}

/// Ranges of documents whose bits fit half of the memory.
fn passes(documents: u64, memory: MemoryBudget) -> Vec<Range<u32>> {
    let end = u32::try_from(documents).unwrap_or(u32::MAX);
    let most = u32::try_from(memory.bytes().saturating_mul(4)).unwrap_or(u32::MAX).max(1 << 20);
    (0..end).step_by(most as usize).map(|from| from..from.saturating_add(most).min(end)).collect()
}

/// A bit per document of a range.
struct Bits {
    range: Range<u32>,
    words: Vec<u64>,
}

impl Bits {
    fn new(range: &Range<u32>) -> Bits {
        Bits { range: range.clone(), words: vec![0; range.len().div_ceil(64)] }
    }

    /// Whether the bit was there before; `None` outside the range.
    fn set(&mut self, doc: u32) -> Option<bool> {
        let at = doc.checked_sub(self.range.start).filter(|_| doc < self.range.end)? as usize;
        let word = self.words.get_mut(at / 64)?;
        let was = *word >> (at % 64) & 1 == 1;
        *word |= 1 << (at % 64);
        Some(was)
    }

    /// `None` outside the range.
    fn get(&self, doc: u32) -> Option<bool> {
        let at = doc.checked_sub(self.range.start).filter(|_| doc < self.range.end)? as usize;
        self.words.get(at / 64).map(|word| word >> (at % 64) & 1 == 1)
    }
}

/// The counts of the manifest are the rows of the tables.
fn counts(atlas: &Atlas) -> Checked {
    for (count, table) in COUNTS {
        let wanted = atlas.manifest().counts.get(count);
        let (Some(wanted), Ok(entry)) = (wanted, atlas.table(&table)) else { continue };
        if entry.rows != *wanted {
            let problem = format!("{} rows, but the manifest counts {wanted} {count}", entry.rows);
            return Err(Stop::Wrong(table, problem));
        }
    }
    Ok(())
}

/// Every document is from an input, and every input has as many as the manifest says.
fn documents_and_inputs(atlas: &Atlas) -> Checked {
    let inputs = &atlas.manifest().inputs;
    if inputs.is_empty() {
        return Ok(());
    }
    let mut left: BTreeMap<&str, u64> = BTreeMap::new();
    for input in inputs {
        *left.entry(&input.name).or_default() += input.documents;
    }
    let (mut row, mut tokens) = (0u64, 0u64);
    for batch in atlas.documents()?.select::<(document::Source, document::Tokens)>() {
        for (source, in_document) in batch?.rows() {
            let Some(documents) = left.get_mut(source) else {
                return wrong(TableName::Documents, row, format_args!("{source:?} is no input"));
            };
            let Some(fewer) = documents.checked_sub(1) else {
                return wrong(TableName::Documents, row, format_args!("{source:?} has too many documents"));
            };
            *documents = fewer;
            tokens = tokens.saturating_add(in_document);
            row += 1;
        }
    }
    if let Some((source, missing)) = left.iter().find(|(_, left)| **left > 0) {
        return wrong(TableName::Documents, row, format_args!("{source:?} lacks {missing} documents"));
    }
    match atlas.manifest().counts.get("tokens") {
        Some(counted) if *counted != tokens => {
            let problem = format!("{tokens} tokens together, but the manifest counts {counted}");
            Err(Stop::Wrong(TableName::Documents, problem))
        }
        _ => Ok(()),
    }
}

/// The two of a pair are in order, and there are as many pairs as were counted.
fn pairs(atlas: &Atlas) -> Checked {
    let count = |name: &str| atlas.manifest().counts.get(name).copied();
    let rows = atlas.rows(&TableName::Pairs);
    if let (Some(exact), Some(near)) = (count("similar.exact_copies"), count("similar.near_pairs"))
        && exact.saturating_add(near) != rows
    {
        let problem = format!("{rows} rows, but the manifest counts {exact} exact and {near} near pairs");
        return Err(Stop::Wrong(TableName::Pairs, problem));
    }
    for (row, pair) in atlas.pairs()?.enumerate() {
        let pair = pair?;
        ensure!(pair.a < pair.b, Pairs, row, "document {} is paired with {}", pair.a, pair.b);
    }
    Ok(())
}

/// Every cluster has one centre and as many members as its numbers say.
fn clusters(atlas: &Atlas) -> Checked {
    let mut rows = atlas.clusters()?.peekable();
    for (at, stats) in atlas.cluster_stats()?.enumerate() {
        let stats = stats?;
        let (mut documents, mut centres, mut exact) = (0u64, 0u64, 0u64);
        let is_of = |row: &Result<ClusterRow, TableError>| {
            row.as_ref().map_or(true, |row| row.cluster == stats.cluster)
        };
        while let Some(row) = rows.next_if(is_of) {
            let row = row?;
            documents += 1;
            exact += u64::from(!row.is_centre && row.kind == CopyKind::Exact);
            if row.is_centre {
                centres += 1;
                ensure!(row.doc == stats.centre, ClusterStats, at, "the centre is document {}", row.doc);
            }
        }
        ensure!(centres == 1, ClusterStats, at, "a cluster with {centres} centres");
        ensure!(documents == stats.documents, ClusterStats, at, "the cluster has {documents} documents");
        ensure!(exact == stats.exact_copies, ClusterStats, at, "the cluster has {exact} exact copies");
        let others = stats.same_site.saturating_add(stats.cross_site);
        ensure!(others + 1 == documents, ClusterStats, at, "{others} others on all sites");
        ensure!(stats.sites <= documents, ClusterStats, at, "more sites than documents");
    }
    Ok(())
}

/// No document is in two clusters.
fn members(atlas: &Atlas, passes: &[Range<u32>]) -> Checked {
    for range in passes {
        let mut bits = Bits::new(range);
        for (row, member) in atlas.clusters()?.enumerate() {
            let doc = member?.doc;
            let is_new = bits.set(doc.get()) != Some(true);
            ensure!(is_new, Clusters, row, "document {doc} is in two clusters");
        }
    }
    Ok(())
}

/// How many rows a table of duplicates has, as far as the manifest tells: all of them for a level
/// that a search found, and for equal texts those that are not their own original.
fn counted(atlas: &Atlas, level: &LevelName) -> Result<(Option<u64>, Option<u64>), AtlasError> {
    let record: Option<Value> = atlas.level(level)?;
    let all = record.as_ref().and_then(|record| record.pointer("/found/clusters/documents")?.as_u64());
    let is_exact = level.as_str() == "exact";
    let copies = atlas.manifest().counts.get("similar.exact_copies").copied().filter(|_| is_exact);
    Ok((all.filter(|_| !is_exact), copies))
}

/// The original of an original is itself, and there are as many as a search has counted.
fn originals(atlas: &Atlas, level: &LevelName, passes: &[Range<u32>]) -> Checked {
    let (all, copies) = counted(atlas, level)?;
    let name = TableName::Copies(level.clone());
    let rows = atlas.rows(&name);
    if all.is_some_and(|all| all != rows) {
        let problem = format!("{rows} rows, but the search counted {}", all.unwrap_or_default());
        return Err(Stop::Wrong(name, problem));
    }
    for range in passes {
        let (mut bits, mut found) = (Bits::new(range), 0u64);
        for row in atlas.copies(level)? {
            let (doc, original) = row?;
            if doc == original {
                bits.set(doc.get());
            } else {
                found += 1;
            }
        }
        if copies.is_some_and(|copies| copies != found) {
            let problem = format!("{found} copies, but the search counted {}", copies.unwrap_or_default());
            return Err(Stop::Wrong(name, problem));
        }
        for (at, row) in atlas.copies(level)?.enumerate() {
            let (doc, original) = row?;
            if bits.get(original.get()) == Some(false) {
                let problem = format!("document {doc} is a copy of {original}, which is a copy itself");
                return wrong(name, at, problem);
            }
        }
    }
    Ok(())
}

/// Documents with a text, and no others, have rows in a table that is made from texts.
fn texts(atlas: &Atlas, name: &TableName) -> Checked {
    let mut documents = atlas.documents()?.select::<(document::Doc, document::TextFp)>();
    let mut batch = None;
    let mut next_text = move || -> Result<Option<u32>, TableError> {
        loop {
            let (rows, at) = match &mut batch {
                Some((rows, at)) => (rows, at),
                None => match documents.next_batch()? {
                    Some(rows) => {
                        batch = Some((rows, 0));
                        continue;
                    }
                    None => return Ok(None),
                },
            };
            let rows: &Batch<(document::Doc, document::TextFp)> = rows;
            if *at == rows.len() {
                batch = None;
                continue;
            }
            let (doc, text) = rows.row(*at);
            *at += 1;
            if text.is_some() {
                return Ok(Some(doc.get()));
            }
        }
    };
    let mut next_row = rows_of(atlas, name)?;
    loop {
        let (text, row) = (next_text()?, next_row()?);
        let (doc, problem) = match (text, row) {
            (None, None) => return Ok(()),
            (Some(text), Some(row)) if text == row => continue,
            (Some(text), row) if row.is_none_or(|row| text < row) => (text, "has a text, but no row"),
            (_, row) => (row.unwrap_or_default(), "has a row, but no text"),
        };
        return Err(Stop::Wrong(name.clone(), format!("document {doc} {problem}")));
    }
}

type NextDoc = Box<dyn FnMut() -> Result<Option<u32>, TableError>>;

/// The documents of a table that is made from texts, each once.
fn rows_of(atlas: &Atlas, name: &TableName) -> Result<NextDoc, AtlasError> {
    Ok(match name {
        TableName::Chunks(chunking) => {
            let mut reader = atlas.chunks(chunking)?;
            Box::new(move || Ok(reader.advance()?.map(|doc| doc.get())))
        }
        TableName::Sketches => {
            let mut reader = atlas.sketches()?;
            Box::new(move || Ok(reader.next_row()?.map(|(doc, _)| doc.get())))
        }
        _ => {
            let mut reader = atlas.features()?;
            Box::new(move || Ok(reader.next_row()?.map(|(doc, _)| doc.get())))
        }
    })
}

/// Replicas are dense in their collection, one of them is the principal, and sums are right.
fn replicas(atlas: &Atlas) -> Checked {
    let mut rows = atlas.collections()?.enumerate().peekable();
    for (at, group) in atlas.collection_groups()?.enumerate() {
        let group = group?;
        let (mut replicas, mut principals, mut pages, mut bytes) = (0u64, 0u64, 0u64, 0u64);
        let (mut duplicates, mut last) = (0u64, at);
        let is_of = |(_, row): &(usize, Result<CollectionRow, TableError>)| {
            row.as_ref().map_or(true, |row| row.group == group.group)
        };
        while let Some((row_at, row)) = rows.next_if(is_of) {
            let row = row?;
            last = row_at;
            let is_next = u64::from(row.replica) == replicas;
            ensure!(is_next, Collections, row_at, "replica {} comes after {replicas} others", row.replica);
            replicas += 1;
            principals += u64::from(row.is_principal);
            pages = pages.saturating_add(row.pages);
            bytes = bytes.saturating_add(row.bytes);
            duplicates = duplicates.saturating_add(if row.is_principal { 0 } else { row.copies });
        }
        ensure!(principals == 1, Collections, last, "collection {} has {principals} principals", group.group);
        ensure!(replicas == group.replicas, CollectionGroups, at, "the collection has {replicas} replicas");
        ensure!(pages == group.pages, CollectionGroups, at, "the replicas have {pages} pages");
        ensure!(bytes == group.bytes, CollectionGroups, at, "the replicas have {bytes} bytes");
        let is_sum = duplicates == group.duplicate_pages;
        ensure!(is_sum, CollectionGroups, at, "the replicas have {duplicates} duplicates");
    }
    Ok(())
}

/// Every page is of a replica that there is, which has as many as it says.
fn pages(atlas: &Atlas) -> Checked {
    let mut rows = atlas.collection_pages()?.enumerate().peekable();
    for (at, replica) in atlas.collections()?.enumerate() {
        let replica = replica?;
        let (mut own, mut virtual_pages) = (0u64, 0u64);
        let key = (replica.group, replica.replica);
        let is_of = |(_, row): &(usize, Result<CollectionPageRow, TableError>)| {
            row.as_ref().map_or(true, |row| (row.group, row.replica) <= key)
        };
        while let Some((row_at, row)) = rows.next_if(is_of) {
            let row = row?;
            let is_there = (row.group, row.replica) == key;
            ensure!(is_there, CollectionPages, row_at, "no replica {} of {}", row.replica, row.group);
            if row.is_virtual {
                virtual_pages += 1;
            } else {
                own += 1;
            }
        }
        ensure!(own == replica.pages, Collections, at, "the replica has {own} pages");
        let as_many = virtual_pages == replica.virtual_pages;
        ensure!(as_many, Collections, at, "the replica has {virtual_pages} virtual pages");
    }
    match rows.next() {
        None => Ok(()),
        Some((at, _)) => wrong(TableName::CollectionPages, at, "of no replica"),
    }
}

/// A rule does not hold more often than it was tried, and there are as many as were counted.
fn rules(atlas: &Atlas) -> Checked {
    let rows = atlas.rows(&TableName::UrlRules);
    let counted = atlas.manifest().stages.raw(StageName::Collections).pointer("/found/url_rules");
    if let Some(counted) = counted.and_then(Value::as_u64).filter(|counted| *counted != rows) {
        let problem = format!("{rows} rows, but the search counted {counted}");
        return Err(Stop::Wrong(TableName::UrlRules, problem));
    }
    for (row, rule) in atlas.url_rules()?.enumerate() {
        let rule = rule?;
        ensure!(rule.support <= rule.checked, UrlRules, row, "{} of {} hold", rule.support, rule.checked);
    }
    Ok(())
}
