//! Decoding ahead: inputs that are compressed in pieces, decoded by whoever has nothing else to do.
//!
//! The naive way decodes a compressed input from its front, in the thread that asks for the next
//! task, while the others wait for theirs. That costs nothing as long as decoding a task takes less
//! time than all threads but one take to work on theirs; beyond, it bounds the whole scan.
//!
//! A file that was put together from frames of zstd or members of gzip can be decoded in several
//! places at once. Whoever asks for a task cuts the stored bytes into pieces of whole frames, a few
//! ahead; whoever waits for its turn to ask decodes one of them. No thread is there for this alone,
//! so the work never has more threads than it was given.
//!
//! ```text
//!  stored bytes ──cut──▶ piece  piece  piece  piece      read once, copied once
//!                          │      │      │
//!          who asks ◀── decoded  decoded │               by whoever waits, or by who asks
//!             │                       decoding
//!             ▼
//!        block of lines                                  copied once: the serial way decodes into it
//! ```
//!
//! - The frames of zstd say how long they are and what they decode to at the most.
//! - A member of gzip is known to end only when it is decoded. What looks like the beginning of
//!   another one, behind a plausible length, is taken for a border. A piece must decode to just
//!   what its members say; if it does not, the border was none or the data is damaged.
//! - Where a piece cannot be used, and where a frame is too large for one, the rest of the input is
//!   decoded in order, from exactly there: nobody sees which way was taken, in errors neither.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use flate2::bufread::MultiGzDecoder;
use memchr::memmem;

use crate::decode::{READ_BYTES, Steps, decoder_of};
use crate::sniff::Encoding;
use crate::watch::Watch;

/// Decoded, a piece is at least as large where frames are smaller: taking one costs a lock.
const PIECE_BYTES: u64 = 1 << 20;

/// A piece has at most this part of all memory, packed and decoded, so that there are several.
const PIECE_SHARE: u64 = 4;

/// Packed bytes are looked through for the end of a member up to this part of all memory.
const SEARCH_SHARE: u64 = 16;

/// What is looked at and not cut yet takes at most this part of it.
const LOOK_SHARE: u64 = 8;

/// A header and a trailer of gzip, with nothing in between.
const LEAST_MEMBER: usize = 20;

/// Deflate makes at most so many bytes of one.
const MOST_RATIO: u64 = 1032;

/// A block of zstd decodes to at most this.
const ZSTD_BLOCK: u64 = 128 << 10;

/// Work that threads do while they wait for a task. Clones share it.
#[derive(Clone, Default)]
pub struct Ahead(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// For all pieces of an input, packed and decoded.
    bytes: u64,
    /// Pieces that nobody has begun.
    waiting: Mutex<VecDeque<Arc<Piece>>>,
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead").field("bytes", &self.0.bytes).finish_non_exhaustive()
    }
}

impl Ahead {
    /// Pieces may take so many bytes in all. None are made for 0.
    pub fn within(bytes: u64) -> Ahead {
        Ahead(Arc::new(Shared { bytes, waiting: Mutex::default() }))
    }

    /// Decodes one piece. `false` when there is none to decode.
    pub fn help(&self) -> bool {
        let piece = self.waiting().pop_front();
        piece.inspect(|piece| piece.decode()).is_some()
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.bytes > 0
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Arc<Piece>>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a piece decodes to, `None` when it is not whole. Waits for whoever has begun it.
    fn take(&self, piece: &Arc<Piece>) -> Option<Vec<u8>> {
        let mut waiting = self.waiting();
        let at = waiting.iter().position(|other| Arc::ptr_eq(other, piece));
        at.map(|at| waiting.remove(at));
        drop(waiting);
        if at.is_some() {
            piece.decode();
        }
        let mut state = piece.state();
        loop {
            match std::mem::replace(&mut *state, State::Begun) {
                State::Decoded(bytes) => return bytes,
                State::Begun => {
                    state = piece.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

/// Whole frames, one after the other.
struct Piece {
    packed: Vec<u8>,
    encoding: Encoding,
    /// What it decodes to: at most this of zstd, just this of gzip.
    unpacked: u64,
    state: Mutex<State>,
    changed: Condvar,
}

enum State {
    /// Or nobody has begun yet.
    Begun,
    Decoded(Option<Vec<u8>>),
}

impl Piece {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bytes(&self) -> u64 {
        self.packed.len() as u64 + self.unpacked
    }

    fn decode(&self) {
        /// Somebody may wait, whatever happens here.
        struct Decoded<'a>(&'a Piece, Option<Vec<u8>>);
        impl Drop for Decoded<'_> {
            fn drop(&mut self) {
                *self.0.state() = State::Decoded(self.1.take());
                self.0.changed.notify_all();
            }
        }
        let mut decoded = Decoded(self, None);
        decoded.1 = self.unpack();
    }

    fn unpack(&self) -> Option<Vec<u8>> {
        let unpacked = usize::try_from(self.unpacked).ok()?;
        match self.encoding {
            // All at once, without a window beside the output.
            Encoding::Zstd => {
                let mut out = Vec::with_capacity(unpacked);
                let mut decoder = zstd::bulk::Decompressor::new().ok()?;
                decoder.decompress_to_buffer(&self.packed, &mut out).ok()?;
                Some(out)
            }
            Encoding::Gzip => {
                // Room enough for the reader to meet the end without growing.
                let mut out = Vec::with_capacity(unpacked + 64);
                let input = MultiGzDecoder::new(&*self.packed);
                input.take(self.unpacked + 1).read_to_end(&mut out).ok()?;
                (out.len() == unpacked).then_some(out)
            }
            Encoding::Plain => None,
        }
    }
}

/// What a compressed input decodes to.
pub(crate) struct Pieces<R: Read + Send + 'static> {
    ahead: Ahead,
    encoding: Encoding,
    window_log: u32,
    /// `None` when it has become `rest`.
    stored: Option<Stored<R>>,
    pieces: VecDeque<Arc<Piece>>,
    /// No more pieces can be cut.
    is_cut: bool,
    /// Of `pieces` and of `current`.
    held_bytes: u64,
    current: Current,
    /// How much the pieces so far have given.
    decoded: u64,
    /// Whatever comes after the pieces, decoded in order.
    rest: Option<Steps<Box<dyn Read + Send>>>,
}

/// A decoded piece that is being handed out.
#[derive(Default)]
struct Current {
    bytes: Vec<u8>,
    at: usize,
    held_bytes: u64,
}

impl<R: Read + Send + 'static> Pieces<R> {
    /// Windows of zstd are at most 2 to `window_log` bytes. The watch is that of the input.
    pub(crate) fn new(
        input: R,
        encoding: Encoding,
        window_log: u32,
        ahead: &Ahead,
        watch: &Watch,
    ) -> Pieces<R> {
        Pieces {
            ahead: ahead.clone(),
            encoding,
            window_log,
            stored: Some(Stored::new(input, watch)),
            pieces: VecDeque::new(),
            is_cut: false,
            held_bytes: 0,
            current: Current::default(),
            decoded: 0,
            rest: None,
        }
    }

    /// Cuts as many pieces as there is room for.
    fn cut(&mut self) {
        let all = self.ahead.0.bytes;
        let Some(stored) = &mut self.stored else { return };
        let room = all - all / PIECE_SHARE - all / LOOK_SHARE;
        while !self.is_cut && (self.pieces.is_empty() || self.held_bytes <= room) {
            let mut piece = Frame { packed: 0, unpacked: 0 };
            while piece.unpacked < PIECE_BYTES && (piece.packed as u64) < all / SEARCH_SHARE {
                let most = usize::try_from(all / SEARCH_SHARE).unwrap_or(usize::MAX);
                let Some(frame) = stored.frame(self.encoding, piece.packed, self.window_log, most) else {
                    break;
                };
                let longer = Frame {
                    packed: piece.packed + frame.packed,
                    unpacked: piece.unpacked.saturating_add(frame.unpacked),
                };
                if longer.unpacked.saturating_add(longer.packed as u64) > all / PIECE_SHARE {
                    break;
                }
                piece = longer;
            }
            self.is_cut = piece.packed == 0;
            if self.is_cut {
                return;
            }
            let piece = Arc::new(Piece {
                packed: stored.take(piece.packed),
                encoding: self.encoding,
                unpacked: piece.unpacked,
                state: Mutex::new(State::Begun),
                changed: Condvar::new(),
            });
            self.held_bytes = self.held_bytes.saturating_add(piece.bytes());
            self.ahead.waiting().push_back(Arc::clone(&piece));
            self.pieces.push_back(piece);
        }
    }

    /// The next decoded bytes, or the rest. `false` at the end.
    fn advance(&mut self) -> io::Result<bool> {
        let held = std::mem::take(&mut self.current).held_bytes;
        self.held_bytes -= held;
        self.cut();
        let Some(stored) = &mut self.stored else { return Ok(true) };
        // What follows the last piece is no frame. A decoder that begins there would not miss one.
        let is_before_rest = self.is_cut && self.pieces.len() == 1 && !stored.is_at_end();
        if let Some(piece) = self.pieces.front().filter(|_| !is_before_rest) {
            if let Some(bytes) = self.ahead.take(piece) {
                self.decoded += bytes.len() as u64;
                self.current = Current { bytes, at: 0, held_bytes: piece.bytes() };
                self.pieces.pop_front();
                // What was read ahead has not been used.
                let ahead = self.pieces.iter().map(|piece| piece.packed.len() as u64).sum();
                stored.watch.set_position(stored.offset.saturating_sub(ahead));
                return Ok(true);
            }
        } else if self.pieces.is_empty() && stored.offset > 0 && stored.is_at_end() {
            return Ok(false);
        }
        self.ahead.waiting().clear();
        let pieces: Vec<_> = self.pieces.drain(..).collect();
        stored.put_back(&pieces.iter().map(|piece| &*piece.packed).collect::<Vec<_>>().concat());
        drop(pieces);
        let stored = self.stored.take().expect("it was there above");
        let decoder = decoder_of(stored, self.encoding, self.window_log)?;
        self.rest = Some(Steps::new(decoder, self.decoded));
        Ok(true)
    }
}

impl<R: Read + Send + 'static> Read for Pieces<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(rest) = &mut self.rest {
                return rest.read(into);
            }
            let left = &self.current.bytes[self.current.at..];
            if !left.is_empty() {
                let n = left.len().min(into.len());
                into[..n].copy_from_slice(&left[..n]);
                self.current.at += n;
                return Ok(n);
            }
            if !self.advance()? {
                return Ok(0);
            }
        }
    }
}

impl<R: Read + Send + 'static> Drop for Pieces<R> {
    fn drop(&mut self) {
        self.ahead.waiting().clear();
    }
}

/// The length of a frame or member, and what it decodes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    packed: usize,
    unpacked: u64,
}

/// Stored bytes, as far ahead as anybody wants to see them. Whoever reads them in order gets them
/// in the steps of a `BufReader`, and the watch learns no more than it would from one: what is left
/// of an input that breaks does not depend on what was looked at.
struct Stored<R> {
    input: R,
    watch: Watch,
    buffer: Vec<u8>,
    /// What is before it in the buffer has been taken.
    at: usize,
    /// Of `buffer[at]` in the input.
    offset: u64,
    at_end: bool,
    failure: Option<io::Error>,
}

impl<R: Read> Stored<R> {
    fn new(input: R, watch: &Watch) -> Stored<R> {
        Stored {
            input,
            watch: watch.clone(),
            buffer: Vec::new(),
            at: 0,
            offset: 0,
            at_end: false,
            failure: None,
        }
    }

    /// At least `n` bytes, or all that there are.
    fn look(&mut self, n: usize) -> &[u8] {
        while self.buffer.len() - self.at < n && !self.at_end && self.failure.is_none() {
            if self.at >= self.buffer.len() / 2 {
                self.buffer.drain(..self.at);
                self.at = 0;
            }
            let len = self.buffer.len();
            let ahead = self.offset + (len - self.at) as u64;
            self.buffer.resize(len + step(ahead), 0);
            let read = self.input.read(&mut self.buffer[len..]);
            self.buffer.truncate(len + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(n) => self.at_end = n == 0,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // For whoever comes to it.
                Err(error) => self.failure = Some(error),
            }
        }
        &self.buffer[self.at..]
    }

    fn is_at_end(&mut self) -> bool {
        self.look(1).is_empty() && self.failure.is_none()
    }

    fn take(&mut self, n: usize) -> Vec<u8> {
        let taken = self.buffer[self.at..self.at + n].to_vec();
        self.at += n;
        self.offset += n as u64;
        taken
    }

    /// Bytes that were taken, in front of all others.
    fn put_back(&mut self, bytes: &[u8]) {
        self.buffer.splice(..self.at, bytes.iter().copied());
        self.at = 0;
        self.offset -= bytes.len() as u64;
    }

    /// The frame or member that begins so many bytes ahead, if one does and ends within `most`.
    fn frame(&mut self, encoding: Encoding, at: usize, window_log: u32, most: usize) -> Option<Frame> {
        match encoding {
            Encoding::Gzip => self.member(at, most),
            Encoding::Zstd => self.zstd_frame(at, window_log, most),
            Encoding::Plain => None,
        }
    }

    fn member(&mut self, start: usize, most: usize) -> Option<Frame> {
        if !begins_member(self.look(start + LEAST_MEMBER).get(start..)?) {
            return None;
        }
        let mut searched = start + LEAST_MEMBER;
        loop {
            let wanted = (searched + READ_BYTES).min(start.saturating_add(most));
            let seen = self.look(wanted);
            let (at_end, len) = (seen.len() < wanted, seen.len());
            for found in memmem::find_iter(seen.get(searched..)?, b"\x1f\x8b\x08") {
                let end = searched + found;
                if end + LEAST_MEMBER > len {
                    break;
                }
                if begins_member(&seen[end..])
                    && let Some(unpacked) = says_length(&seen[start..end])
                {
                    return Some(Frame { packed: end - start, unpacked });
                }
            }
            if at_end {
                let whole = self.failure.is_none();
                let unpacked = says_length(&self.look(0)[start..])?;
                return whole.then_some(Frame { packed: len - start, unpacked });
            }
            if wanted - start >= most {
                return None;
            }
            searched = len.saturating_sub(LEAST_MEMBER - 1).max(searched);
        }
    }

    fn zstd_frame(&mut self, start: usize, window_log: u32, most: usize) -> Option<Frame> {
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        let mut at = start;
        let mut next = |stored: &mut Stored<R>, n: usize| {
            let bytes = stored.look(at + n).get(at..at + n).map(number);
            at += n;
            bytes.filter(|_| at - start <= most).map(|number| (number, at))
        };
        let (magic, _) = next(self, 4)?;
        if magic & !0xf == 0x184d_2a50 {
            let (length, end) = next(self, 4)?;
            let packed = (end - start).checked_add(usize::try_from(length).ok()?)?;
            let whole = packed <= most && self.look(start + packed).len() >= start + packed;
            return whole.then_some(Frame { packed, unpacked: 0 });
        }
        if magic != 0xfd2f_b528 {
            return None;
        }
        let (descriptor, _) = next(self, 1)?;
        let (size_flag, single, reserved, checksum, dictionary) = (
            descriptor >> 6,
            descriptor & 0x20 != 0,
            descriptor & 0x08 != 0,
            descriptor & 0x04 != 0,
            descriptor & 3,
        );
        if reserved || dictionary != 0 {
            return None;
        }
        let window = if single {
            None
        } else {
            let (window, _) = next(self, 1)?;
            let base = 1_u64 << (10 + (window >> 3));
            Some(base + base / 8 * (window & 7))
        };
        let size = match (size_flag, single) {
            (0, false) => None,
            (0, true) => Some(next(self, 1)?.0),
            (1, _) => Some(next(self, 2)?.0 + 256),
            (2, _) => Some(next(self, 4)?.0),
            (_, _) => Some(next(self, 8)?.0),
        };
        // What decodes in order says so if this is too large.
        if window.or(size)? > 1 << window_log.min(63) {
            return None;
        }
        let mut unpacked = 0_u64;
        let mut last = false;
        while !last {
            let (block, _) = next(self, 3)?;
            last = block & 1 != 0;
            let length = block >> 3;
            unpacked = unpacked.saturating_add(if block >> 1 & 3 == 2 { ZSTD_BLOCK } else { length });
            let stored = if block >> 1 & 3 == 1 { 1 } else { length };
            next(self, usize::try_from(stored).ok()?)?;
        }
        let (_, end) = next(self, if checksum { 4 } else { 0 })?;
        Some(Frame { packed: end - start, unpacked: size.map_or(unpacked, |size| size.min(unpacked)) })
    }
}

/// Up to the next of the borders at which a `BufReader` would read.
fn step(offset: u64) -> usize {
    READ_BYTES - (offset % READ_BYTES as u64) as usize
}

fn begins_member(bytes: &[u8]) -> bool {
    // Method, no reserved flag, a kind of effort and a system that there are.
    matches!(bytes, [0x1f, 0x8b, 8, 0..=0x1f, _, _, _, _, 0 | 2 | 4, 0..=13 | 255, ..])
}

/// What a member says at its end that it decodes to, if that can be true.
fn says_length(member: &[u8]) -> Option<u64> {
    let length = u64::from(u32::from_le_bytes(*member.last_chunk()?));
    (length <= member.len() as u64 * MOST_RATIO).then_some(length)
}

impl<R: Read> Read for Stored<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(into)?;
        self.consume(n);
        Ok(n)
    }
}

impl<R: Read> BufRead for Stored<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.look(1).is_empty()
            && let Some(error) = self.failure.take()
        {
            return Err(error);
        }
        let end = self.buffer.len().min(self.at + step(self.offset));
        let bytes = &self.buffer[self.at..end];
        self.watch.set_position(self.offset + bytes.len() as u64);
        Ok(bytes)
    }

    fn consume(&mut self, n: usize) {
        self.at += n;
        self.offset += n as u64;
    }
}

#[cfg(test)]
mod tests;
