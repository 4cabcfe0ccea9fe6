//! The bytes of the file, with the way back.
//!
//! A damaged gzip member may decode on for a while, over the borders of the members behind it,
//! before the decoder notices. To find those members again the reader must go back to where the
//! damaged one began, and most inputs (pipes, sockets, members of a zip) cannot seek. So the buffer
//! keeps what lies behind the current member's beginning, up to [`REWIND_BYTES`].

use std::io::{self, Read};

/// How far back one can go at most. Members of a record-per-member file are far smaller; in a file
/// that is one single member the way back is of no use anyway.
pub(crate) const REWIND_BYTES: usize = 4 << 20;

const FIRST_BUFFER: usize = 256 << 10;

pub(crate) struct Input<R> {
    inner: R,
    buffer: Vec<u8>,
    /// Next byte to hand out, and end of what was read, both in `buffer`.
    at: usize,
    end: usize,
    /// File offset of `buffer[0]`.
    base: u64,
    /// File offset from which bytes are kept for going back.
    mark: u64,
    at_end: bool,
}

impl<R: Read> Input<R> {
    /// `offset` is where in the file `inner` stands.
    pub(crate) fn new(inner: R, offset: u64) -> Input<R> {
        let buffer = vec![0; FIRST_BUFFER];
        Input { inner, buffer, at: 0, end: 0, base: offset, mark: offset, at_end: false }
    }

    /// File offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// What is in memory from the next byte on.
    pub(crate) fn available(&self) -> &[u8] {
        &self.buffer[self.at..self.end]
    }

    pub(crate) fn consume(&mut self, n: usize) {
        debug_assert!(n <= self.end - self.at);
        self.at = (self.at + n).min(self.end);
    }

    /// Keeps what comes from here on for [`Input::rewind`].
    pub(crate) fn set_mark(&mut self) {
        self.mark = self.offset();
    }

    /// Goes back to `offset`, or as near to it as memory reaches.
    pub(crate) fn rewind(&mut self, offset: u64) {
        let oldest = self.base.max(self.mark);
        let wanted = offset.max(oldest).min(self.offset());
        self.at = (wanted - self.base) as usize;
    }

    /// Reads more behind what is available. False at the end of the file.
    pub(crate) fn fill(&mut self) -> io::Result<bool> {
        if self.at_end {
            return Ok(false);
        }
        if self.end == self.buffer.len() {
            self.make_room();
        }
        let n = read_retrying(&mut self.inner, &mut self.buffer[self.end..])?;
        self.end += n;
        self.at_end = n == 0;
        Ok(n > 0)
    }

    /// Makes at least `n` bytes available unless the file ends before; returns what there is.
    pub(crate) fn peek(&mut self, n: usize) -> io::Result<&[u8]> {
        while self.end - self.at < n && self.fill()? {}
        Ok(self.available())
    }

    fn make_room(&mut self) {
        let marked = self.mark.saturating_sub(self.base) as usize;
        let keep_from = marked.min(self.at).max(self.at.saturating_sub(REWIND_BYTES));
        // Moving only when half of the buffer comes free keeps the copying linear. The kept part is
        // bounded, so the buffer is: whoever peeks asks for a bounded number of bytes.
        if keep_from >= self.buffer.len() / 2 {
            self.buffer.copy_within(keep_from..self.end, 0);
            self.at -= keep_from;
            self.end -= keep_from;
            self.base += keep_from as u64;
        } else {
            let grown = self.buffer.len() * 2;
            self.buffer.resize(grown, 0);
        }
    }

    /// Appends up to `wanted` bytes to `out` and passes over them here; 0 at the end of the file.
    /// Big pieces go around the buffer, so this input cannot go back over them.
    pub(crate) fn read_into(&mut self, out: &mut Vec<u8>, wanted: usize) -> io::Result<usize> {
        const DIRECT: usize = 64 << 10;
        if self.at == self.end && wanted >= DIRECT && !self.at_end {
            let n = self.inner.by_ref().take(wanted as u64).read_to_end(out)?;
            self.at_end = n < wanted;
            self.base += (self.end + n) as u64;
            self.at = 0;
            self.end = 0;
            self.mark = self.base;
            return Ok(n);
        }
        if self.at == self.end {
            self.fill()?;
        }
        let n = wanted.min(self.end - self.at);
        out.extend_from_slice(&self.buffer[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

fn read_retrying<R: Read>(inner: &mut R, out: &mut [u8]) -> io::Result<usize> {
    loop {
        match inner.read(out) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_back_to_the_mark_and_no_further() {
        let data: Vec<u8> = (0..2_000_000u32).map(|i| (i % 251) as u8).collect();
        let mut input = Input::new(&data[..], 0);
        let pass = |input: &mut Input<&[u8]>, n: usize| {
            for _ in 0..n {
                assert!(!input.peek(1).unwrap().is_empty());
                input.consume(1);
            }
        };
        pass(&mut input, 1000);
        input.set_mark();
        pass(&mut input, 1_500_000);
        input.rewind(0);
        assert_eq!(input.offset(), 1000);
        assert_eq!(input.peek(1_000_000).unwrap()[..1_000_000], data[1000..1_001_000]);
    }

    #[test]
    fn the_buffer_is_bounded() {
        let mut input = Input::new(io::repeat(7).take(64 << 20), 0);
        while !input.peek(1).unwrap().is_empty() {
            let n = input.available().len();
            input.consume(n);
        }
        assert_eq!(input.offset(), 64 << 20);
        assert!(input.buffer.len() <= 4 * REWIND_BYTES, "{}", input.buffer.len());
        input.rewind(0);
        assert!(input.offset() >= (64 << 20) - 2 * REWIND_BYTES as u64);
    }

    #[test]
    fn big_pieces_keep_their_place() {
        let data: Vec<u8> = (0..700_000u32).map(|i| (i % 253) as u8).collect();
        let mut input = Input::new(&data[..], 5);
        let mut out = Vec::new();
        input.peek(10).unwrap();
        while input.read_into(&mut out, 100_000).unwrap() > 0 {}
        assert_eq!(out, data);
        assert_eq!(input.offset(), 5 + data.len() as u64);
    }
}
