//! Lines out of bytes: for a worker that reads a range of a file itself, and for blocks of a stream
//! decoded in order.
//!
//! The naive way is `BufRead::read_until` into a vector. It copies every line, and a line of
//! gigabytes is held whole before anyone can refuse it. Here a line is lent out of the buffer it
//! was read into, the buffer grows only for a line that does not fit, and never beyond the limit;
//! what is longer is passed over without being kept.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use memchr::{memchr, memrchr};

use crate::document::{BadReason, Loss};

/// Small enough to stay in a core's own cache between being read and being parsed.
const BUFFER_BYTES: usize = 256 << 10;

/// A step when a stream is decoded into a block.
const STEP_BYTES: usize = 64 << 10;

/// Room that is made ahead for a block.
const MAX_RESERVE: usize = 8 << 20;

/// A line, or word that there was one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// Without its line feed.
    Whole { offset: u64, bytes: &'a [u8] },
    /// Longer than the limit.
    TooLong { offset: u64, bytes: u64 },
}

/// Lends the lines that begin in a range of a file.
pub(crate) struct LineReader<'b, R> {
    input: R,
    buffer: &'b mut Vec<u8>,
    /// The part of the buffer that is filled and not yet handed out.
    filled: Range<usize>,
    /// How much of `filled` is known to hold no line feed.
    searched: usize,
    /// Offset in the file of `filled.start`.
    offset: u64,
    range_end: u64,
    max_line: usize,
    /// In a line whose beginning is not ours, or was too long: drop until the next line feed.
    dropping: bool,
    /// Where the line begins that is dropped because it is too long.
    too_long: Option<u64>,
    at_end: bool,
    /// Nothing from this offset on is wanted for now.
    read_until: u64,
}

impl<'b, R: Read + Seek> LineReader<'b, R> {
    /// Goes on with the line that begins where `wanted` does, if that is ahead; reads no further
    /// than its end as long as no line does. Over `gap` bytes that are not read yet it jumps.
    pub(crate) fn skip_to(&mut self, wanted: Range<u64>, gap: u64) -> io::Result<()> {
        self.read_until = wanted.end;
        if wanted.start <= self.offset {
            return Ok(());
        }
        (self.dropping, self.too_long) = (false, None);
        loop {
            let ahead = wanted.start - self.offset;
            let buffered = self.filled.len() as u64;
            if ahead <= buffered {
                self.consume(ahead as usize);
                return Ok(());
            }
            if ahead - buffered >= gap {
                let sought = self.input.seek(SeekFrom::Start(wanted.start));
                sought.inspect_err(|_| (self.range_end, self.too_long) = (0, None))?;
                self.filled = 0..0;
                self.searched = 0;
                self.offset = wanted.start;
                return Ok(());
            }
            self.consume(self.filled.len());
            if self.at_end {
                return Ok(());
            }
            // All of the buffer is free.
            self.refill(&mut |_| {})?;
        }
    }
}

impl<'b, R: Read> LineReader<'b, R> {
    /// Reads lines that begin in `range`. A line begins at 0 and after every line feed, so the
    /// input must stand one byte before the range, or at 0 when the range begins there.
    pub(crate) fn new(
        input: R,
        range: Range<u64>,
        max_line: usize,
        buffer: &'b mut Vec<u8>,
    ) -> LineReader<'b, R> {
        if buffer.len() < BUFFER_BYTES {
            buffer.resize(BUFFER_BYTES, 0);
        }
        LineReader {
            input,
            buffer,
            filled: 0..0,
            searched: 0,
            offset: range.start.saturating_sub(1),
            range_end: range.end,
            max_line,
            dropping: range.start > 0,
            too_long: None,
            at_end: false,
            read_until: u64::MAX,
        }
    }

    /// Where the next line begins, or the rest of one that is being dropped.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next line. `before_large` is called with what the buffer grows to, before it does.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` when the file ends before its range, others from the input. After an error
    /// there are no more lines.
    pub(crate) fn next(&mut self, before_large: &mut dyn FnMut(u64)) -> io::Result<Option<Line<'_>>> {
        loop {
            // A line that is too long is reported when its end, and so its length, is known.
            if self.offset >= self.range_end && self.too_long.is_none() {
                return Ok(None);
            }
            let unsearched = self.filled.start + self.searched;
            if let Some(at) = memchr(b'\n', &self.buffer[unsearched..self.filled.end]) {
                let line = self.filled.start..unsearched + at;
                let offset = self.offset;
                self.consume(line.len() + 1);
                if std::mem::take(&mut self.dropping) {
                    match self.too_long.take() {
                        Some(begin) => {
                            let bytes = offset + line.len() as u64 - begin;
                            return Ok(Some(Line::TooLong { offset: begin, bytes }));
                        }
                        None => continue,
                    }
                }
                return Ok(Some(if line.len() > self.max_line {
                    Line::TooLong { offset, bytes: line.len() as u64 }
                } else {
                    Line::Whole { offset, bytes: &self.buffer[line] }
                }));
            }
            self.searched = self.filled.len();
            if self.dropping {
                self.consume(self.filled.len());
            } else if self.filled.len() > self.max_line {
                self.too_long = Some(self.offset);
                self.dropping = true;
                self.consume(self.filled.len());
            }
            if self.at_end {
                if let Some(begin) = self.too_long.take() {
                    return Ok(Some(Line::TooLong { offset: begin, bytes: self.offset - begin }));
                }
                let (line, offset) = (self.filled.clone(), self.offset);
                self.consume(line.len());
                if self.offset < self.range_end {
                    let short = self.range_end;
                    self.range_end = 0;
                    // The file is shorter than when it was found. A line cut by that is not to be
                    // trusted.
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        format!("ends before byte {short}"),
                    ));
                }
                // A last line without a line feed.
                let bytes = &self.buffer[line];
                return Ok(if bytes.is_empty() { None } else { Some(Line::Whole { offset, bytes }) });
            }
            self.refill(before_large)?;
        }
    }

    fn consume(&mut self, n: usize) {
        self.filled.start += n;
        self.offset += n as u64;
        self.searched = 0;
    }

    fn refill(&mut self, before_large: &mut dyn FnMut(u64)) -> io::Result<()> {
        if self.filled.start > 0 {
            self.buffer.copy_within(self.filled.clone(), 0);
            self.filled = 0..self.filled.len();
        }
        if self.filled.end == self.buffer.len() {
            // At most one byte more than the longest line and its line feed is ever needed.
            let wanted = self.buffer.len().saturating_mul(2).min(self.max_line.saturating_add(2));
            let wanted = wanted.max(self.buffer.len() + 1);
            before_large(wanted as u64);
            self.buffer.resize(wanted, 0);
        }
        let free = &mut self.buffer[self.filled.end..];
        let wanted = self.read_until.saturating_sub(self.offset + self.filled.len() as u64);
        let most = if wanted == 0 { free.len() } else { free.len().min(wanted.min(1 << 32) as usize) };
        let read = read_some(&mut self.input, &mut free[..most]);
        let n = read.inspect_err(|_| (self.range_end, self.too_long) = (0, None))?;
        self.at_end = n == 0;
        self.filled.end += n;
        Ok(())
    }
}

impl<R> Drop for LineReader<'_, R> {
    fn drop(&mut self) {
        // One giant line should not make every worker keep a giant buffer.
        if self.buffer.len() > 16 * BUFFER_BYTES {
            self.buffer.truncate(BUFFER_BYTES);
            self.buffer.shrink_to_fit();
        }
    }
}

fn read_some(input: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// The lines of a block in memory, with their offset in the block.
pub(crate) fn lines(block: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = block.get(start..).filter(|rest| !rest.is_empty())?;
        let end = memchr(b'\n', rest).unwrap_or(rest.len());
        let line = (start, &rest[..end]);
        start += end + 1;
        Some(line)
    })
}

/// Whole lines of a stream.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// Lines longer than a block may be, met before these; their offsets and lengths.
    pub(crate) too_long: Vec<(u64, u64)>,
    /// The lines, each with its line feed but perhaps the last of the stream.
    pub(crate) bytes: Vec<u8>,
    /// Offset of `bytes` in the decoded stream.
    pub(crate) offset: u64,
    /// The stream broke after these lines.
    pub(crate) failure: Option<Loss>,
    /// Nothing comes after this block.
    pub(crate) last: bool,
}

impl Block {
    /// Keeps the line that begins at an offset of the stream. `false` when none does.
    pub(crate) fn keep_line(&mut self, offset: u64) -> bool {
        self.too_long.retain(|(at, _)| *at == offset);
        self.failure = self.failure.take().filter(|loss| loss.offset == offset);
        let place = offset.checked_sub(self.offset).and_then(|at| usize::try_from(at).ok());
        let start = place.filter(|&at| {
            at < self.bytes.len()
                && (at == 0 || self.bytes.get(at - 1).is_some_and(|before| *before == b'\n'))
        });
        match start {
            Some(start) => {
                let end = memchr(b'\n', &self.bytes[start..]).map_or(self.bytes.len(), |end| start + end + 1);
                self.bytes.truncate(end);
                self.bytes.drain(..start);
                self.offset = offset;
            }
            None => self.bytes.clear(),
        }
        !self.bytes.is_empty() || !self.too_long.is_empty() || self.failure.is_some()
    }
}

/// Cuts a stream into blocks of whole lines of about the same size. Where it cuts depends on the
/// bytes alone, not on how the reads happen to fall: at the last line feed among the first
/// `block_bytes`, or if there is none, at the first one after.
pub(crate) struct BlockReader<R> {
    input: R,
    block_bytes: usize,
    max_line: usize,
    /// Read, and not yet part of a block.
    pending: Vec<u8>,
    /// Offset of `pending` in the stream.
    offset: u64,
    at_end: bool,
    failure: Option<BadReason>,
}

impl<R: Read> BlockReader<R> {
    pub(crate) fn new(input: R, block_bytes: u64, max_line: usize) -> BlockReader<R> {
        let block_bytes = usize::try_from(block_bytes).unwrap_or(usize::MAX).max(1);
        BlockReader {
            input,
            block_bytes,
            max_line,
            pending: Vec::new(),
            offset: 0,
            at_end: false,
            failure: None,
        }
    }

    /// The next block; `None` after the last, and for an empty stream.
    /// `before_large` is called with the size of a line that is longer than a block, as it grows.
    pub(crate) fn next_block(&mut self, before_large: &mut dyn FnMut(u64)) -> Option<Block> {
        let mut block = Block::default();
        while self.fill_to(self.block_bytes) && !self.cut(&mut block, before_large) {}
        // Is there more? The block before the end should know that it is the last.
        if self.pending.is_empty() {
            self.fill_to(1);
        }
        block.last = self.at_end && self.pending.is_empty();
        if block.last {
            block.failure = self.failure.take().map(|reason| Loss::record(self.offset, 0, reason));
        }
        let empty = block.bytes.is_empty() && block.too_long.is_empty() && block.failure.is_none();
        (!empty).then_some(block)
    }

    /// Takes the block's lines out of `pending`. `false` when there was only (the beginning of) a
    /// line that is too long.
    fn cut(&mut self, block: &mut Block, before_large: &mut dyn FnMut(u64)) -> bool {
        let first = self.pending.len().min(self.block_bytes);
        let mut end = memrchr(b'\n', &self.pending[..first]).map(|at| at + 1);
        if end.is_none() {
            // One line fills the block: go on to where it ends, as long as that is allowed.
            let longest = self.block_bytes.max(self.max_line.saturating_add(1));
            let mut searched = first;
            while end.is_none() && searched < longest {
                let wanted = longest.min(searched.saturating_add(STEP_BYTES));
                before_large(wanted as u64);
                self.fill_to(wanted);
                let until = self.pending.len().min(longest);
                // A stream that broke has lost its unfinished line from `pending`.
                let fresh = self.pending.get(searched..until).unwrap_or_default();
                end = memchr(b'\n', fresh).map(|at| searched + at + 1);
                searched = until;
                if self.at_end {
                    break;
                }
            }
            if end.is_none() && self.at_end && self.pending.len() < longest {
                end = Some(self.pending.len());
            }
        }
        match end {
            Some(end) => {
                block.offset = self.offset;
                let rest = self.pending.split_off(end);
                block.bytes = std::mem::replace(&mut self.pending, rest);
                self.offset += end as u64;
                true
            }
            None => {
                let begin = self.offset;
                self.drop_line();
                block.too_long.push((begin, self.offset - begin));
                false
            }
        }
    }

    fn drop_line(&mut self) {
        loop {
            if let Some(at) = memchr(b'\n', &self.pending) {
                self.pending.drain(..=at);
                self.offset += at as u64 + 1;
                return;
            }
            self.offset += self.pending.len() as u64;
            self.pending.clear();
            if !self.fill_to(1) {
                return;
            }
        }
    }

    /// Reads until `pending` has that many bytes. `false` when the stream ended with nothing
    /// pending.
    fn fill_to(&mut self, wanted: usize) -> bool {
        while self.pending.len() < wanted && !self.at_end {
            let len = self.pending.len();
            if len >= STEP_BYTES {
                // Not before the stream has shown that it is more than small, and not all that may
                // be allowed.
                self.pending.reserve_exact((wanted - len).min(MAX_RESERVE));
            }
            self.pending.resize(len + STEP_BYTES.min(wanted - len).max(1024), 0);
            let read = read_some(&mut self.input, &mut self.pending[len..]);
            self.pending.truncate(len + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => self.at_end = true,
                Ok(_) => {}
                Err(error) => {
                    self.at_end = true;
                    self.failure = Some(BadReason::from_io(&error));
                    // The lines before the break are whole; the one it fell into is not.
                    let whole = memrchr(b'\n', &self.pending).map_or(0, |at| at + 1);
                    self.pending.truncate(whole);
                }
            }
        }
        !self.pending.is_empty()
    }
}

#[cfg(test)]
mod tests;
