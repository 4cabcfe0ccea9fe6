//! Runs become fewer: small ones are merged as the index grows, all of them when it is compacted.

use std::ops::Range;
use std::sync::Arc;

use super::Seen;
use crate::error::SeenError;
use crate::removed::Removed;
use crate::run::{LOST_MINIMUM, Record, Run, RunMeta, RunPlan, RunWriter};
use crate::view::View;
use crate::wal::Position;

impl Seen {
    /// Merges runs until each is larger than twice all younger ones together.
    pub(super) fn merge(&mut self) -> Result<(), SeenError> {
        let runs = &self.catalogue.runs;
        let mut younger = 0u64;
        let (mut from, mut postings, mut room) = (runs.len(), 0, true);
        for (at, run) in runs.iter().enumerate().rev() {
            postings += run.postings;
            room &= postings <= self.options.most_postings();
            if at + 1 < runs.len() && u64::from(run.docs) <= 2 * younger && room {
                from = at;
            }
            younger += u64::from(run.docs);
        }
        if from == runs.len() {
            return Ok(());
        }
        self.ensure_usable()?;
        self.poisoned = true;
        let mut next = self.catalogue.clone();
        let merged = self.merge_runs(next.take_number(), &self.view.runs[from..])?;
        next.runs.truncate(from);
        next.runs.push(merged);
        let removed = std::mem::take(&mut self.view.removed);
        let table = std::mem::take(&mut self.view.memtable);
        debug_assert_eq!(table.docs(), 0, "only sealed indexes are merged");
        self.switch(next, removed)?;
        self.poisoned = false;
        Ok(())
    }

    fn merge_runs(&self, number: u64, runs: &[Arc<Run>]) -> Result<RunMeta, SeenError> {
        let first = runs.first().map_or(0, |run| run.meta().first);
        let docs = runs.iter().map(|run| run.meta().docs).sum();
        let names = runs.iter().map(|run| run.meta().names).sum();
        let plan = RunPlan { number, first, docs, names, sketch: self.view.params.sketch_shape() };
        let mut writer = RunWriter::create(self.options.storage.as_ref(), &self.dir, plan)?;
        let mut names_before = 0;
        for run in runs {
            for document in run.documents() {
                let (doc, mut record) = document?;
                if self.view.params.names {
                    record.key = record.key.saturating_add(names_before);
                }
                writer.push_document(doc, record)?;
            }
            names_before += run.meta().names;
        }
        for run in runs {
            run.copy_names(|bytes| writer.push_names(bytes))?;
        }
        writer.begin_sketches()?;
        for run in runs {
            run.copy_sketches(|bytes| writer.push_sketch_bytes(bytes))?;
        }
        merge_postings(runs, |key, doc| writer.push_posting(key, doc))?;
        writer.finish()
    }

    /// Rewrites everything into one run, without the removed; into several when it has more
    /// postings than fit. Documents are numbered anew, in the same order; heirs become centres.
    pub fn compact(&mut self) -> Result<(), SeenError> {
        self.write_batch()?;
        if self.wal_at != Position::start() {
            self.seal()?;
        }
        let gone = self.view.removed.sorted();
        let ranges = self.compacted_ranges(&gone)?;
        let runs = &self.catalogue.runs;
        let fit = runs.iter().all(|run| run.postings <= self.options.most_postings());
        if runs.len() <= ranges.len() && fit && gone.is_empty() {
            return Ok(());
        }
        self.poisoned = true;
        let mut next = self.catalogue.clone();
        next.runs.clear();
        for docs in ranges {
            let number = next.take_number();
            next.runs.push(self.compacted(number, docs, &gone)?);
        }
        next.removed = None;
        self.switch(next, Removed::default())?;
        self.poisoned = false;
        Ok(())
    }

    /// The documents that are left, by their new numbers: all together, or cut so that no part has
    /// more postings than a run can hold. Postings that heirs will share are counted twice, so that
    /// a part may have fewer than it could.
    fn compacted_ranges(&self, gone: &[u32]) -> Result<Vec<Range<u32>>, SeenError> {
        /// Counters, so that memory is bounded.
        const PARTS: u32 = 1 << 16;
        let left = self.view.documents() - gone.len() as u32;
        let most = self.options.most_postings();
        // Compacting makes no more of them.
        if self.catalogue.runs.iter().map(|run| run.postings).sum::<u64>() <= most {
            return Ok((left > 0).then_some(0..left).into_iter().collect());
        }
        let part = left.div_ceil(PARTS).max(1);
        let mut counts = vec![0u64; left.div_ceil(part) as usize];
        for run in &self.view.runs {
            let mut postings = run.postings()?;
            while let Some((_, doc)) = postings.next()? {
                if let Some(doc) = self.view.removed.stand_in(doc) {
                    counts[(renumbered(gone, doc) / part) as usize] += 1;
                }
            }
        }
        let mut ranges: Vec<Range<u32>> = Vec::new();
        let mut sum = 0;
        for (at, count) in (0..).zip(counts) {
            let (start, end) = (at * part, left.min((at + 1).saturating_mul(part)));
            sum += count;
            match ranges.last_mut().filter(|_| sum <= most) {
                Some(last) => last.end = end,
                None => {
                    ranges.push(start..end);
                    sum = count;
                }
            }
        }
        Ok(ranges)
    }

    /// Writes the run of some documents, by their new numbers.
    fn compacted(&self, number: u64, docs: Range<u32>, gone: &[u32]) -> Result<RunMeta, SeenError> {
        let view = &self.view;
        let renumbered = |doc: u32| renumbered(gone, doc);
        // Every living document of the run with its new number.
        let each = |visit: &mut dyn FnMut(u32, u32, Record) -> Result<(), SeenError>| {
            let mut new = 0;
            view.each_document(|doc, record| {
                if view.removed.is_removed(doc) {
                    return Ok(());
                }
                new += 1;
                if docs.contains(&(new - 1)) { visit(new - 1, doc, record) } else { Ok(()) }
            })
        };
        let mut names = 0;
        if view.params.names {
            each(&mut |_, doc, record| {
                names += 2 + view.raw_name(doc, record)?.len() as u64;
                Ok(())
            })?;
        }
        let sketch = view.params.sketch_shape();
        let plan = RunPlan { number, first: docs.start, docs: docs.end - docs.start, names, sketch };
        let mut writer = RunWriter::create(self.options.storage.as_ref(), &self.dir, plan)?;
        let mut place = 0;
        each(&mut |new, doc, record| {
            let mut key = record.key;
            if view.params.names {
                key = place;
                place += 2 + view.raw_name(doc, record)?.len() as u64;
            }
            let centre = view.removed.stand_in(record.centre).unwrap_or(doc);
            writer.push_document(new, Record { centre: renumbered(centre), key, ..record })
        })?;
        if view.params.names {
            each(&mut |_, doc, record| {
                let name = view.raw_name(doc, record)?;
                writer.push_names(&(name.len() as u16).to_le_bytes())?;
                writer.push_names(&name)
            })?;
        }
        writer.begin_sketches()?;
        if !sketch.is_none() {
            let lost = vec![LOST_MINIMUM; sketch.minima as usize];
            each(&mut |_, doc, record| {
                if view.removed.stand_in(record.centre).unwrap_or(doc) != doc {
                    return Ok(());
                }
                // Of the document whose place this one has inherited, where it has.
                let sketch = view.sketch(record.centre)?;
                writer.push_sketch(sketch.as_deref().unwrap_or(&lost))
            })?;
        }
        // An heir may come later than the document it stands for, so the documents of a key are
        // sorted anew.
        let (mut key_before, mut list) = (0, Vec::new());
        let mut write = |key: u64, list: &mut Vec<u32>| {
            list.sort_unstable();
            list.dedup();
            list.drain(..).try_for_each(|doc| writer.push_posting(key, doc))
        };
        merge_postings(&view.runs, |key, doc| {
            if key != key_before {
                write(key_before, &mut list)?;
                key_before = key;
            }
            list.extend(view.removed.stand_in(doc).map(renumbered).filter(|doc| docs.contains(doc)));
            Ok(())
        })?;
        write(key_before, &mut list)?;
        writer.finish()
    }
}

/// The number of a document when these, which are sorted, are gone.
fn renumbered(gone: &[u32], doc: u32) -> u32 {
    doc - gone.partition_point(|removed| *removed < doc) as u32
}

/// All postings of some runs, in order of key and document. The runs are in order of document.
fn merge_postings(
    runs: &[Arc<Run>],
    mut sink: impl FnMut(u64, u32) -> Result<(), SeenError>,
) -> Result<(), SeenError> {
    let mut streams = Vec::new();
    for run in runs {
        let mut postings = run.postings()?;
        if let Some(head) = postings.next()? {
            streams.push((head, postings));
        }
    }
    // A handful of runs: looking at all heads is as quick as a heap.
    while let Some(least) = (0..streams.len()).min_by_key(|at| streams[*at].0) {
        let ((key, doc), postings) = &mut streams[least];
        sink(*key, *doc)?;
        match postings.next()? {
            Some(head) => (*key, *doc) = head,
            None => drop(streams.remove(least)),
        }
    }
    Ok(())
}

impl View {
    /// The bytes of a name.
    fn raw_name(&self, doc: u32, record: Record) -> Result<Vec<u8>, SeenError> {
        match self.runs.iter().find(|run| run.contains(doc)) {
            Some(run) => run.name(record.key),
            None => Ok(self.memtable.name(record.key)),
        }
    }
}
