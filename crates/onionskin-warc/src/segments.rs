//! Records that were written in pieces.
//!
//! A record may be cut into segments: the first has `WARC-Segment-Number: 1`, the others are
//! `continuation` records that name it, and the last of them says how long the whole is. Segments
//! that follow each other in one file are joined here. Those that are spread over files are not:
//! the first is handed out as far as it goes, with a [`DamageKind::MissingSegment`].

use crate::{Damage, DamageKind, Item, Record, RecordKind};
use std::collections::VecDeque;

#[derive(Default)]
pub(crate) struct Segments {
    open: Option<Open>,
    /// A reader of the middle of a file cannot know whether the first segment lies before its part.
    pub(crate) ignore_orphans: bool,
}

struct Open {
    record: Record,
    next_number: u64,
}

impl Segments {
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Bytes of the record that is being joined.
    pub(crate) fn bytes(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.record.block.len() as u64)
    }

    /// Is this the next segment of the record that is being joined?
    pub(crate) fn wants(&self, record: &Record) -> bool {
        self.open.as_ref().is_some_and(|open| {
            let origin = record.headers.get("WARC-Segment-Origin-ID");
            record.kind == RecordKind::Continuation
                && origin.is_some_and(|origin| Some(origin) == open.record.headers.get("WARC-Record-ID"))
                && segment_number(record) == Some(open.next_number)
        })
    }

    /// Takes a record in file order; what is complete goes to `out`.
    pub(crate) fn push(&mut self, record: Record, max_record_bytes: u64, out: &mut VecDeque<Item>) {
        if self.wants(&record) {
            self.join(record, max_record_bytes, out);
            return;
        }
        self.flush(out);
        if record.kind == RecordKind::Continuation {
            if !self.ignore_orphans {
                let lost_bytes = record.block.len() as u64;
                let kind = DamageKind::MissingSegment;
                out.push_back(Item::Damage(Damage { offset: record.offset, kind, lost_bytes }));
            }
        } else if segment_number(&record) == Some(1) && !record.truncated {
            self.open = Some(Open { record, next_number: 2 });
        } else {
            out.push_back(Item::Record(record));
        }
    }

    fn join(&mut self, segment: Record, max_record_bytes: u64, out: &mut VecDeque<Item>) {
        let Some(mut open) = self.open.take() else { return };
        let whole = &mut open.record;
        whole.stored_len = None;
        let total = (whole.block.len() as u64).saturating_add(segment.block.len() as u64);
        if total > max_record_bytes {
            whole.truncated = true;
            let damage = Damage {
                offset: segment.offset,
                kind: DamageKind::TooLarge,
                lost_bytes: segment.block.len() as u64,
            };
            out.extend([Item::Record(open.record), Item::Damage(damage)]);
            return;
        }
        whole.block.extend_from_slice(&segment.block);
        whole.truncated |= segment.truncated;
        open.next_number += 1;
        let is_last = segment.headers.get("WARC-Segment-Total-Length").is_some();
        if is_last || segment.truncated {
            out.push_back(Item::Record(open.record));
        } else {
            self.open = Some(open);
        }
    }

    /// No more segments will come.
    pub(crate) fn flush(&mut self, out: &mut VecDeque<Item>) {
        if let Some(Open { mut record, .. }) = self.open.take() {
            record.truncated = true;
            let damage = Damage { offset: record.offset, kind: DamageKind::MissingSegment, lost_bytes: 0 };
            out.extend([Item::Record(record), Item::Damage(damage)]);
        }
    }
}

fn segment_number(record: &Record) -> Option<u64> {
    record.headers.get("WARC-Segment-Number")?.parse().ok()
}
