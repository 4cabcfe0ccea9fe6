//! From decoded bytes to records.
//!
//! The reader believes a head as long as the bytes agree with it: after a block there must be the
//! end of a member, the end of the file, or the next record. Where they disagree, the members'
//! borders are believed first, then the text, and the head last. Every path either takes bytes or
//! ends, so that reading always comes to an end.

use crate::head::{
    Begins, Head, MAX_HEAD_BYTES, SEARCH_OVERLAP, complete_arc_head, find_record, head_end, parse_head,
    record_begins,
};
use crate::input::Input;
use crate::segments::Segments;
use crate::sniff::{sniff_compressed, sniff_inside};
use crate::stream::zstd::SetupError;
use crate::stream::{Fill, Open, Stream};
use crate::{Compression, ContainerKind, Damage, DamageKind, Item, Limits, Record};
use std::collections::VecDeque;
use std::io::{self, Read};

/// Why a file cannot be read at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Neither WARC nor ARC, plain or compressed, nor anything like it in the first megabyte.
    #[error("not a WARC or ARC file")]
    Unrecognized,
    /// The zstd dictionary in front of the records is unusable, and without it so are they.
    #[error("the zstd dictionary {0}")]
    Dictionary(&'static str),
    /// The input failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<SetupError> for OpenError {
    fn from(error: SetupError) -> OpenError {
        match error {
            SetupError::Dictionary(reason) => OpenError::Dictionary(reason),
            SetupError::Io(error) => OpenError::Io(error),
        }
    }
}

/// Reads the records of one file, one after the other, whatever its packing.
///
/// The iterator gives `Err` only when the input itself fails; it does so once and then ends.
/// Everything that is wrong *in* the file is an [`Item::Damage`]. Memory is bounded by
/// [`Limits::max_record_bytes`] plus at most a few MiB of buffers; time is linear in the decoded
/// size.
pub struct Reader<R> {
    stream: Stream<R>,
    limits: Limits,
    ready: VecDeque<Item>,
    phase: Phase,
    segments: Segments,
    records_in_member: u64,
    /// Nothing is handed out before the first member that begins here or later.
    floor: u64,
    is_above_floor: bool,
    /// Members that begin here or later are left to another reader.
    ceiling: u64,
    is_past_ceiling: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Between,
    Inside,
    Done,
}

/// Decoded bytes are made this many at a time while a head is read, and while bytes are passed
/// over.
const HEAD_STEP: usize = 4 << 10;
const SKIP_STEP: usize = 64 << 10;

/// How far into a file that begins with damage to look for records.
const SEARCH_HEAD: usize = 1 << 20;

/// What there is where a record must go on and its member ended.
enum Crossing {
    /// The record goes on in the member that follows (block gzip, several frames a record).
    Continued,
    /// Another record begins there; `usize` is where, in what is pending.
    NextRecord(usize),
    /// Nothing to go on with; what there is will be seen again between members.
    Nothing,
    /// The end of the file.
    End,
    /// The next member is broken from its beginning.
    Broken(DamageKind),
}

/// How the search for the end of a head went.
enum HeadSearch {
    Found(usize),
    NotARecord,
    TooLong,
    Cut(Crossing),
    Broken(DamageKind),
}

/// What follows a block.
enum Tail {
    /// Another record, or so much white space that it does not matter.
    Record,
    /// The end of the member, which was whole.
    MemberEnd,
    /// Neither.
    Mismatch,
    Broken(DamageKind),
}

impl<R: Read> Reader<R> {
    /// Looks at the first bytes and prepares for reading. An empty file is an archive without
    /// records.
    pub fn new(input: R, limits: Limits) -> Result<Reader<R>, OpenError> {
        let mut input = Input::new(input, 0);
        let head = input.peek(crate::stream::zstd::PROBE_BYTES)?;
        if head.iter().all(|&byte| matches!(byte, 0 | b'\r' | b'\n')) && head.len() < 4096 {
            return Reader::with_input(input, Compression::None, ContainerKind::Warc, limits);
        }
        if let Some((compression, container)) = sniff_compressed(head) {
            return Reader::with_input(input, compression, container, limits);
        }
        let head = input.peek(SEARCH_HEAD)?;
        let head = &head[..head.len().min(SEARCH_HEAD)];
        let (lost, compression, container) = sniff_inside(head).ok_or(OpenError::Unrecognized)?;
        let kind = if crate::stream::gzip::begins(head) || crate::stream::zstd::begins(head) {
            DamageKind::CorruptMember
        } else {
            DamageKind::Garbage
        };
        input.consume(lost);
        let mut reader = Reader::with_input(input, compression, container, limits)?;
        reader.emit(Item::Damage(Damage { offset: 0, kind, lost_bytes: lost as u64 }));
        Ok(reader)
    }

    fn with_input(
        input: Input<R>,
        compression: Compression,
        container: ContainerKind,
        limits: Limits,
    ) -> Result<Reader<R>, OpenError> {
        let stream = Stream::new(input, compression, container, limits.max_record_bytes)?;
        Ok(Reader {
            stream,
            limits,
            ready: VecDeque::new(),
            phase: Phase::Between,
            segments: Segments::default(),
            records_in_member: 0,
            floor: 0,
            is_above_floor: true,
            ceiling: u64::MAX,
            is_past_ceiling: false,
        })
    }

    /// A reader of a gzip file that `input` gives from `offset` on. It starts at the first member
    /// found there, and hands out what lies in members that begin in `floor..ceiling`.
    pub(crate) fn for_range(
        input: R,
        offset: u64,
        (floor, ceiling): (u64, u64),
        container: ContainerKind,
        limits: Limits,
    ) -> Result<Reader<R>, OpenError> {
        let mut reader = Reader::with_input(Input::new(input, offset), Compression::Gzip, container, limits)?;
        if offset > 0 {
            reader.stream.resync(false)?;
        }
        reader.floor = floor;
        reader.is_above_floor = floor == 0;
        reader.ceiling = ceiling;
        reader.segments.ignore_orphans = floor > 0;
        Ok(reader)
    }

    /// WARC or ARC.
    pub fn container(&self) -> ContainerKind {
        self.stream.container()
    }

    /// How many bytes of the file have been read, for progress.
    pub fn bytes_read(&self) -> u64 {
        self.stream.input_offset()
    }

    fn emit(&mut self, item: Item) {
        if self.is_above_floor && !self.is_past_ceiling {
            self.ready.push_back(item);
        }
    }

    fn emit_damage(&mut self, offset: u64, kind: DamageKind, lost_bytes: u64) {
        self.segments.flush(&mut self.ready);
        self.emit(Item::Damage(Damage { offset, kind, lost_bytes }));
    }

    fn emit_record(&mut self, record: Record) {
        self.records_in_member += 1;
        if self.is_past_ceiling {
            // Only a record whose first segment is ours is still of interest here.
            if self.segments.wants(&record) {
                self.segments.push(record, self.limits.max_record_bytes, &mut self.ready);
            } else {
                self.segments.flush(&mut self.ready);
            }
        } else if self.is_above_floor {
            self.segments.push(record, self.limits.max_record_bytes, &mut self.ready);
        }
    }

    fn finish(&mut self) {
        self.segments.flush(&mut self.ready);
        self.phase = Phase::Done;
    }

    fn step(&mut self, before_large: &mut dyn FnMut(u64)) -> io::Result<()> {
        match self.phase {
            Phase::Between => self.open_member(),
            Phase::Inside => self.read_record(before_large),
            Phase::Done => Ok(()),
        }
    }

    fn open_member(&mut self) -> io::Result<()> {
        match self.stream.open()? {
            Open::Member => self.enter_member(),
            Open::End => self.finish(),
            Open::Garbage => {
                let offset = self.stream.input_offset();
                self.stream.resync(false)?;
                let lost = self.stream.input_offset() - offset;
                self.emit_damage(offset, DamageKind::Garbage, lost);
            }
            Open::CutOff => {
                let offset = self.stream.input_offset();
                self.stream.resync(false)?;
                let lost = self.stream.input_offset() - offset;
                self.emit_damage(offset, DamageKind::CutOff, lost);
            }
        }
        Ok(())
    }

    fn enter_member(&mut self) {
        self.phase = Phase::Inside;
        self.records_in_member = 0;
    }

    /// Reads what lies at the beginning of the pending bytes, up to the beginning of the next
    /// record.
    fn read_record(&mut self, before_large: &mut dyn FnMut(u64)) -> io::Result<()> {
        if !self.skip_blanks()? {
            return Ok(());
        }
        let offset = self.stream.offset();
        let search = self.find_head()?;
        if let HeadSearch::NotARecord = search {
            return self.skip_garbage(offset, DamageKind::Garbage, 0);
        }
        // Only a record moves a reader of a range over its borders: what lies behind a record and
        // is none belongs to whoever read the record.
        if offset >= self.ceiling {
            if !self.segments.is_open() {
                self.finish();
                return Ok(());
            }
            self.is_past_ceiling = true;
        }
        self.is_above_floor |= offset >= self.floor;
        let head_len = match search {
            HeadSearch::Found(len) => len,
            HeadSearch::NotARecord | HeadSearch::TooLong => {
                self.stream.consume(1);
                return self.skip_garbage(offset, DamageKind::BadHeader, 1);
            }
            HeadSearch::Cut(crossing) => return self.cut_head(offset, crossing),
            HeadSearch::Broken(kind) => return self.broken(offset, kind),
        };
        let container = self.stream.container();
        let Some(head) = parse_head(&self.stream.pending()[..head_len], container) else {
            self.stream.consume(1);
            return self.skip_garbage(offset, DamageKind::BadHeader, 1);
        };
        self.stream.consume(head_len);
        if head.length > self.limits.max_record_bytes {
            return self.skip_block(offset, head_len as u64, head.length);
        }
        match usize::try_from(head.length) {
            Ok(length) => {
                // What a segment is joined to is in memory as well.
                before_large(head.length.saturating_add(self.segments.bytes()));
                self.read_block(offset, head, length)
            }
            Err(_) => self.skip_block(offset, head_len as u64, head.length),
        }
    }

    /// Passes over line ends and padding. False when the member ended or broke instead, which is
    /// then dealt with.
    fn skip_blanks(&mut self) -> io::Result<bool> {
        let mut skipped = 0;
        loop {
            let pending = self.stream.pending();
            let blanks = pending.iter().take_while(|byte| matches!(byte, b'\r' | b'\n' | 0)).count();
            let is_over = blanks < pending.len();
            self.stream.consume(blanks);
            skipped += blanks as u64;
            if is_over {
                return Ok(true);
            }
            if skipped > self.limits.max_skip_bytes() && self.stream.is_compressed() {
                self.give_up_member(self.stream.offset(), DamageKind::Garbage, skipped)?;
                return Ok(false);
            }
            match self.stream.fill(HEAD_STEP)? {
                Fill::Bytes => {}
                Fill::MemberEnd => {
                    self.phase = Phase::Between;
                    return Ok(false);
                }
                Fill::Broken(kind) => {
                    self.broken(self.stream.offset(), kind)?;
                    return Ok(false);
                }
            }
        }
    }

    fn find_head(&mut self) -> io::Result<HeadSearch> {
        let container = self.stream.container();
        let mut searched = 0;
        loop {
            let pending = self.stream.pending();
            match record_begins(pending, container) {
                Begins::Yes => {
                    if let Some(len) = head_end(pending, container, searched) {
                        return Ok(HeadSearch::Found(len));
                    }
                    if pending.len() > MAX_HEAD_BYTES {
                        return Ok(HeadSearch::TooLong);
                    }
                    searched = pending.len();
                }
                Begins::No => return Ok(HeadSearch::NotARecord),
                Begins::TooShort => {}
            }
            match self.stream.fill(HEAD_STEP)? {
                Fill::Bytes => {}
                Fill::Broken(kind) => return Ok(HeadSearch::Broken(kind)),
                Fill::MemberEnd => match self.cross()? {
                    Crossing::Continued => {}
                    other => return Ok(HeadSearch::Cut(other)),
                },
            }
        }
    }

    /// The member ended inside a record: does the record go on in the next one?
    fn cross(&mut self) -> io::Result<Crossing> {
        let border = self.stream.pending().len();
        match self.stream.open()? {
            Open::Member => {}
            Open::End => return Ok(Crossing::End),
            Open::Garbage | Open::CutOff => return Ok(Crossing::Nothing),
        }
        self.records_in_member = 0;
        loop {
            let bytes = &self.stream.pending()[border..];
            match record_begins(bytes, self.stream.container()) {
                Begins::Yes => return Ok(Crossing::NextRecord(border)),
                Begins::No => return Ok(Crossing::Continued),
                Begins::TooShort => match self.stream.fill(HEAD_STEP)? {
                    Fill::Bytes => {}
                    Fill::MemberEnd => return Ok(Crossing::Continued),
                    Fill::Broken(kind) => return Ok(Crossing::Broken(kind)),
                },
            }
        }
    }

    /// A member ended inside a head.
    fn cut_head(&mut self, offset: u64, crossing: Crossing) -> io::Result<()> {
        let lost = match crossing {
            Crossing::NextRecord(border) => border,
            _ => self.stream.pending().len(),
        };
        self.stream.consume(lost);
        let kind = if matches!(crossing, Crossing::End) { DamageKind::CutOff } else { DamageKind::BadHeader };
        self.emit_damage(offset, kind, lost as u64);
        self.after_crossing(crossing)
    }

    /// Goes on where a record that was cut short left the stream.
    fn after_crossing(&mut self, crossing: Crossing) -> io::Result<()> {
        match crossing {
            Crossing::Continued | Crossing::NextRecord(_) => self.enter_member(),
            Crossing::Nothing | Crossing::End => self.phase = Phase::Between,
            Crossing::Broken(kind) => return self.broken(self.stream.member_offset(), kind),
        }
        Ok(())
    }

    fn read_block(&mut self, offset: u64, head: Head, length: usize) -> io::Result<()> {
        let mut block = Stream::<R>::new_block(length);
        let is_first = self.records_in_member == 0;
        loop {
            self.stream.take_into(&mut block, length);
            if block.len() == length {
                break;
            }
            match self.stream.fill_block(&mut block, length)? {
                Fill::Bytes => {}
                Fill::Broken(kind) => {
                    self.emit_block(offset, head, block, None, true);
                    return self.broken(offset, kind);
                }
                Fill::MemberEnd => match self.cross()? {
                    Crossing::Continued => {}
                    crossing => return self.short_block(offset, head, block, crossing),
                },
            }
        }
        match self.tail()? {
            Tail::Record => self.emit_block(offset, head, block, None, false),
            Tail::MemberEnd => {
                let stored = self.stream.input_offset() - offset;
                let is_alone = is_first && self.stream.is_compressed();
                self.emit_block(offset, head, block, is_alone.then_some(stored), false);
                self.phase = Phase::Between;
            }
            Tail::Mismatch => return self.mismatch(offset, head, block),
            Tail::Broken(kind) => {
                // With the whole block there, a file that ends before the checksum has lost nothing
                // of it.
                self.emit_block(offset, head, block, None, kind != DamageKind::CutOff);
                return self.broken(offset, kind);
            }
        }
        Ok(())
    }

    fn emit_block(
        &mut self,
        offset: u64,
        mut head: Head,
        block: Vec<u8>,
        stored_len: Option<u64>,
        truncated: bool,
    ) {
        if self.stream.container() == ContainerKind::Arc {
            complete_arc_head(&mut head, &block);
        }
        let Head { kind, headers, .. } = head;
        // In a plain file a record is alone by nature; its length is that of head, block and line
        // ends, and is not kept since nothing needs it.
        self.emit_record(Record { kind, headers, block, offset, stored_len, truncated });
    }

    /// The block is shorter than its head says, and nothing that follows can be a part of it.
    fn short_block(
        &mut self,
        offset: u64,
        head: Head,
        mut block: Vec<u8>,
        crossing: Crossing,
    ) -> io::Result<()> {
        let missing = head.length - block.len() as u64;
        if matches!(crossing, Crossing::End) && self.push_back_next_record(&mut block)? {
            self.emit_block(offset, head, block, None, true);
            self.emit_damage(offset, DamageKind::WrongLength, 0);
            self.phase = Phase::Inside;
            return Ok(());
        }
        let is_cut_off = matches!(crossing, Crossing::End) && !self.stream.is_compressed();
        let kind = if is_cut_off { DamageKind::CutOff } else { DamageKind::WrongLength };
        self.emit_block(offset, head, block, None, true);
        self.emit_damage(offset, kind, missing);
        self.after_crossing(crossing)
    }

    /// If another record begins inside this block, gives it back to the stream.
    fn push_back_next_record(&mut self, block: &mut Vec<u8>) -> io::Result<bool> {
        let container = self.stream.container();
        let mut found = find_record(block, container, true);
        if found.is_none() {
            // Its head may lie across the end of the block.
            while self.stream.pending().len() < SEARCH_OVERLAP && self.stream.fill(HEAD_STEP)? == Fill::Bytes
            {
            }
            let pending = self.stream.pending();
            let start = block.len().saturating_sub(SEARCH_OVERLAP);
            let seam = [&block[start..], &pending[..pending.len().min(SEARCH_OVERLAP)]].concat();
            found = find_record(&seam, container, true).map(|at| start + at).filter(|&at| at < block.len());
        }
        let Some(at) = found else { return Ok(false) };
        if !self.stream.push_back(&block[at..]) {
            return Ok(false);
        }
        block.truncate(at);
        // What stands between two records is not of the block: two line ends in WARC, one in ARC.
        let line_ends = if self.stream.container() == ContainerKind::Warc { 2 } else { 1 };
        for _ in 0..line_ends {
            if block.last() == Some(&b'\n') {
                block.pop();
                if block.last() == Some(&b'\r') {
                    block.pop();
                }
            }
        }
        Ok(true)
    }

    /// Looks at what follows a block, and passes over the line ends.
    fn tail(&mut self) -> io::Result<Tail> {
        loop {
            let pending = self.stream.pending();
            let blanks = pending.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            let begins = match &pending[blanks..] {
                [] => Begins::TooShort,
                // Padding is nobody's data either.
                [0, ..] => Begins::Yes,
                rest => record_begins(rest, self.stream.container()),
            };
            match begins {
                Begins::Yes => {
                    self.stream.consume(blanks);
                    return Ok(Tail::Record);
                }
                Begins::No => return Ok(Tail::Mismatch),
                Begins::TooShort if blanks > SKIP_STEP => {
                    self.stream.consume(blanks);
                    return Ok(Tail::Record);
                }
                Begins::TooShort => {}
            }
            let is_blank = blanks == pending.len();
            match self.stream.fill(HEAD_STEP)? {
                Fill::Bytes => {}
                Fill::MemberEnd if is_blank => {
                    self.stream.consume(blanks);
                    return Ok(Tail::MemberEnd);
                }
                Fill::MemberEnd => {
                    // Too few bytes to tell; perhaps the head of the next record goes on in the
                    // next member.
                    self.stream.consume(blanks);
                    return Ok(Tail::Record);
                }
                Fill::Broken(kind) => return Ok(Tail::Broken(kind)),
            }
        }
    }

    /// Something follows the block that is no record. Either the block swallowed the next record,
    /// or it goes on beyond the length in its head.
    fn mismatch(&mut self, offset: u64, head: Head, mut block: Vec<u8>) -> io::Result<()> {
        const RECORD_END: &[u8] = b"\r\n\r\n";
        if self.stream.container() == ContainerKind::Warc && self.stream.pending().starts_with(RECORD_END) {
            // The record ends where it should; what follows is garbage in its own right.
            self.stream.consume(RECORD_END.len());
            self.emit_block(offset, head, block, None, false);
            return self.skip_garbage(self.stream.offset(), DamageKind::Garbage, 0);
        }
        let was_too_long = self.push_back_next_record(&mut block)?;
        self.emit_block(offset, head, block, None, was_too_long);
        if was_too_long {
            self.emit_damage(offset, DamageKind::WrongLength, 0);
            return Ok(());
        }
        self.skip_garbage(offset, DamageKind::WrongLength, 0)
    }

    /// Passes over text up to the next record or the end of the member, and reports it.
    fn skip_garbage(&mut self, offset: u64, kind: DamageKind, mut lost: u64) -> io::Result<()> {
        loop {
            let pending = self.stream.pending();
            let found = find_record(pending, self.stream.container(), false);
            let passed = found.unwrap_or(pending.len().saturating_sub(SEARCH_OVERLAP));
            self.stream.consume(passed);
            lost += passed as u64;
            if found.is_some() {
                self.emit_damage(offset, kind, lost);
                return Ok(());
            }
            if lost > self.limits.max_skip_bytes() && self.stream.is_compressed() {
                return self.give_up_member(offset, kind, lost);
            }
            match self.stream.fill(SKIP_STEP)? {
                Fill::Bytes => {}
                Fill::MemberEnd => match self.cross()? {
                    Crossing::Continued => {}
                    crossing => {
                        let rest = match crossing {
                            Crossing::NextRecord(border) => border,
                            _ => self.stream.pending().len(),
                        };
                        self.stream.consume(rest);
                        self.emit_damage(offset, kind, lost + rest as u64);
                        return self.after_crossing(crossing);
                    }
                },
                Fill::Broken(broken) => return self.broken(offset, broken),
            }
        }
    }

    /// Passes over a block that is too large, and reports it.
    fn skip_block(&mut self, offset: u64, head_len: u64, length: u64) -> io::Result<()> {
        if length > self.limits.max_skip_bytes() && !self.stream.is_compressed() {
            // Not to be believed: in a plain file it may swallow everything that follows.
            return self.skip_garbage(offset, DamageKind::TooLarge, head_len);
        }
        let mut skipped = 0;
        while skipped < length {
            let pending = self.stream.pending().len() as u64;
            let passed = pending.min(length - skipped);
            self.stream.consume(passed as usize);
            skipped += passed;
            if skipped == length {
                break;
            }
            if skipped > self.limits.max_skip_bytes() {
                return self.give_up_member(offset, DamageKind::TooLarge, head_len + skipped);
            }
            match self.stream.fill(SKIP_STEP)? {
                Fill::Bytes => {}
                Fill::Broken(kind) => {
                    self.emit_damage(offset, DamageKind::TooLarge, head_len + skipped);
                    return self.broken(offset, kind);
                }
                Fill::MemberEnd => match self.cross()? {
                    Crossing::Continued => {}
                    crossing => {
                        self.emit_damage(offset, DamageKind::TooLarge, head_len + skipped);
                        return self.after_crossing(crossing);
                    }
                },
            }
        }
        self.records_in_member += 1;
        self.emit_damage(offset, DamageKind::TooLarge, head_len + length);
        Ok(())
    }

    /// Leaves a member that gives too much, without decoding the rest of it.
    fn give_up_member(&mut self, offset: u64, kind: DamageKind, lost: u64) -> io::Result<()> {
        self.emit_damage(offset, kind, lost);
        self.stream.resync(false)?;
        self.phase = Phase::Between;
        Ok(())
    }

    /// The open member cannot be decoded further: looks for the next one and reports what lies
    /// between.
    fn broken(&mut self, offset: u64, kind: DamageKind) -> io::Result<()> {
        // In a member with many records the damage is where the decoder stands, not where the
        // member began.
        let offset = if self.records_in_member > 1 { self.stream.input_offset() } else { offset };
        if kind == DamageKind::CorruptMember {
            // A record that was handed out in this step is of this member, and as doubtful as it
            // is.
            for item in &mut self.ready {
                if let Item::Record(record) = item {
                    record.truncated = true;
                }
            }
        }
        let found = self.stream.resync(true)?;
        let kind = if found { DamageKind::CorruptMember } else { kind };
        let lost = self.stream.input_offset().saturating_sub(offset);
        self.emit_damage(offset, kind, lost);
        self.phase = Phase::Between;
        Ok(())
    }
}

impl<R: Read> Reader<R> {
    /// The next item. `before_large` is called with the length of each block before there is memory
    /// for it, and may wait until there is.
    pub fn next_item(&mut self, before_large: &mut dyn FnMut(u64)) -> Option<io::Result<Item>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(Ok(item));
            }
            if self.phase == Phase::Done {
                return None;
            }
            if let Err(error) = self.step(before_large) {
                self.phase = Phase::Done;
                return Some(Err(error));
            }
            if self.is_past_ceiling && !self.segments.is_open() {
                self.finish();
            }
        }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = io::Result<Item>;

    fn next(&mut self) -> Option<io::Result<Item>> {
        self.next_item(&mut |_| {})
    }
}

impl<R> std::iter::FusedIterator for Reader<R> where Reader<R>: Iterator {}

#[cfg(test)]
mod tests;
