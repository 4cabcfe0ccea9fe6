//! The part of a stream that is in memory.

use std::io::{self, Read};
use std::ops::Range;

/// Bytes of a stream that were read and not yet taken.
pub(super) struct Window<R> {
    input: R,
    buffer: Vec<u8>,
    filled: Range<usize>,
    /// There is nothing more to read.
    pub at_end: bool,
    /// The stream broke here: what the decoder said.
    pub damage: Option<String>,
}

impl<R: Read> Window<R> {
    pub fn new(input: R, bytes: usize) -> Window<R> {
        Window { input, buffer: vec![0; bytes], filled: 0..0, at_end: false, damage: None }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.filled.clone()]
    }

    /// Takes the first `n` bytes.
    pub fn take(&mut self, n: usize) -> &[u8] {
        let taken = self.filled.start..self.filled.start + n;
        self.filled.start = taken.end;
        &self.buffer[taken]
    }

    /// Reads more. The window grows up to `most` bytes, or by one where it has as many.
    pub fn refill(&mut self, most: usize) -> io::Result<()> {
        self.buffer.copy_within(self.filled.clone(), 0);
        self.filled = 0..self.filled.len();
        if self.filled.end == self.buffer.len() {
            let wanted = self.buffer.len().saturating_mul(2).min(most);
            self.buffer.resize(wanted.max(self.buffer.len() + 1), 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.filled.end..]) {
                Ok(0) => self.at_end = true,
                Ok(n) => self.filled.end += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // The disk failed; that is not for us to pass over.
                Err(error) if error.raw_os_error().is_some() => return Err(error),
                // The scan met the same break, and took nothing behind it for a document.
                Err(error) => {
                    self.at_end = true;
                    self.damage = Some(error.to_string());
                }
            }
            return Ok(());
        }
    }
}
