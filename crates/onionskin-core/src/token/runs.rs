//! Where words begin and end, and the remainders of those that are ASCII.
//!
//! The naive way asks of every byte whether it belongs to a word. Here 64 bytes are classified at
//! once, and the places where the mask of classes changes are written down in whole batches: more
//! than there are, so that nothing has to be guessed, the surplus being written over by the next
//! block. Both steps are inlined into a copy for each kind of processor (see [`crate::simd`]).

use crate::simd::ByteClasses;

/// Blocks of 64 bytes in a window: the text and what is written down about it stay in the nearest
/// cache.
pub(crate) const WINDOW_BLOCKS: usize = 32;

/// At most every second byte begins a run.
pub(crate) const RUNS_OF_BLOCK: usize = 32;

/// Runs that are written down without asking. Plain text has about eleven in a block.
const BATCH: usize = 12;

/// Bit 5 of every byte: letters and digits stay what they are when it is set, capitals become
/// small.
const SMALL: u64 = 0x2020_2020_2020_2020;

/// The runs of letters, digits and characters outside ASCII in one window of a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    /// Where runs begin, with room for a batch more than there can be once a text has begun.
    pub starts: Vec<u64>,
    /// Where they end; there is one less while a run is open.
    pub ends: Vec<u64>,
    /// Runs that have ended.
    pub n_ends: usize,
    n_starts: usize,
    /// Numbers of the runs that have a character outside ASCII.
    pub beyond_ascii: Vec<usize>,
    /// For every line feed the number of runs that have ended before it, if that was asked for.
    pub newlines: Vec<usize>,
    lines: bool,
}

impl Runs {
    /// Before a text, of which line feeds may matter.
    pub fn begin(&mut self, lines: bool) {
        self.lines = lines;
        // A run that was open before, the window, the end of the text, and what is written too
        // much.
        let room = 1 + RUNS_OF_BLOCK * (WINDOW_BLOCKS + 2);
        self.starts.resize(room, 0);
        self.ends.resize(room, 0);
        self.forget();
    }

    fn forget(&mut self) {
        (self.n_starts, self.n_ends) = (0, 0);
        self.beyond_ascii.clear();
        self.newlines.clear();
    }

    /// Keeps the run that is open, as the first of the next window.
    pub fn next_window(&mut self) {
        let open = self.n_starts > self.n_ends;
        let beyond_ascii = open && self.beyond_ascii.last() == Some(&self.n_ends);
        self.starts[0] = self.starts[self.n_ends];
        self.forget();
        self.n_starts = usize::from(open);
        if beyond_ascii {
            self.beyond_ascii.push(0);
        }
    }

    /// Where the runs that have ended begin and end.
    #[cfg(test)]
    pub fn ended(&self) -> (&[u64], &[u64]) {
        (&self.starts[..self.n_ends], &self.ends[..self.n_ends])
    }

    /// Writes down the runs of at most [`WINDOW_BLOCKS`] blocks that begin at `base`, as
    /// [`write_places`] does.
    #[inline(always)]
    pub fn find(
        &mut self,
        blocks: &[[u8; 64]],
        base: usize,
        classify: impl Fn(&[u8; 64]) -> ByteClasses,
        write_places: impl Fn(&mut [u64; RUNS_OF_BLOCK], u64, u64),
    ) {
        assert!(blocks.len() <= WINDOW_BLOCKS, "a window is as long as there is room for");
        // What the next block waits for is one bit, and not how many runs there were.
        let mut open = u64::from(self.n_starts > self.n_ends);
        let (mut n_starts, mut n_ends) = (self.n_starts, self.n_ends);
        let room = "there is room for a block more";
        for (base, block) in (base as u64..).step_by(64).zip(blocks) {
            let ByteClasses { alphanumeric, high, newline } = classify(block);
            let runs = alphanumeric | high;
            let before = runs << 1 | open;
            open = runs >> 63;
            let (starts, ends) = (runs & !before, !runs & before);
            if high != 0 {
                find_beyond_ascii(high, starts, ends, n_starts, &mut self.beyond_ascii);
            }
            if self.lines {
                find_newlines(newline, ends, n_ends, &mut self.newlines);
            }
            write_places(self.starts[n_starts..].first_chunk_mut().expect(room), base, starts);
            n_starts += starts.count_ones() as usize;
            write_places(self.ends[n_ends..].first_chunk_mut().expect(room), base, ends);
            n_ends += ends.count_ones() as usize;
        }
        (self.n_starts, self.n_ends) = (n_starts, n_ends);
    }
}

/// Adds the numbers of the runs of a block, the first of which to begin has the number `first`,
/// that have a character outside ASCII.
#[cold]
fn find_beyond_ascii(mut high: u64, starts: u64, ends: u64, first: usize, beyond_ascii: &mut Vec<usize>) {
    while high != 0 {
        let through = high ^ (high - 1);
        let run = first + (starts & through).count_ones() as usize - 1;
        if beyond_ascii.last() != Some(&run) {
            beyond_ascii.push(run);
        }
        // On to the next run.
        let later_ends = ends & !through;
        if later_ends == 0 {
            return;
        }
        high &= !(later_ends ^ (later_ends - 1));
    }
}

/// Adds for every line feed of a block how many runs have ended before it; `ended` had before the
/// block.
#[inline(always)]
fn find_newlines(mut bits: u64, ends: u64, ended: usize, newlines: &mut Vec<usize>) {
    while bits != 0 {
        let through = bits ^ (bits - 1);
        bits &= bits - 1;
        newlines.push(ended + (ends & through).count_ones() as usize);
    }
}

/// Writes the places of the bits in front of `out`, and behind them what is written over later.
#[inline(always)]
pub(crate) fn write_places(out: &mut [u64; RUNS_OF_BLOCK], base: u64, mut bits: u64) {
    let count = bits.count_ones() as usize;
    for place in &mut out[..BATCH] {
        *place = base + u64::from(bits.trailing_zeros());
        bits &= bits.wrapping_sub(1);
    }
    if count > BATCH {
        for place in &mut out[BATCH..count] {
            *place = base + u64::from(bits.trailing_zeros());
            bits &= bits.wrapping_sub(1);
        }
    }
}

/// The remainders of runs of ASCII letters and digits, as [`crate::rabin::Rabin::word`] has them
/// after lower-casing. `load` gives the eight bytes of the text at a place, whatever they are
/// beyond its end; `advance` multiplies by t⁶⁴.
#[inline(always)]
pub(crate) fn ascii_words(
    starts: &[u64],
    ends: &[u64],
    out: &mut [u64],
    load: impl Fn(u64) -> u64,
    advance: impl Fn(u64) -> u64,
) {
    let groups = out.chunks_mut(64).zip(starts.chunks(64).zip(ends.chunks(64)));
    for (out, (starts, ends)) in groups {
        let n = out.len().min(starts.len()).min(ends.len());
        let (out, starts, ends) = (&mut out[..n], &starts[..n], &ends[..n]);
        // Every word as if it were short, and a bit for those that are not: nothing to guess.
        let mut long = 0;
        for i in 0..n {
            let length = ends[i] - starts[i];
            out[i] = stopped(load(starts[i]) | SMALL, length % 8);
            long |= u64::from(length >= 8) << i;
        }
        while long != 0 {
            let i = long.trailing_zeros() as usize;
            long &= long - 1;
            let (start, end) = (starts[i], ends[i]);
            let mut at = start + 8;
            let mut remainder = load(start) | SMALL;
            while end - at >= 8 {
                remainder = advance(remainder) ^ (load(at) | SMALL);
                at += 8;
            }
            out[i] = advance(remainder) ^ stopped(load(at) | SMALL, end - at);
        }
    }
}

/// Eight bytes of a text, zeros beyond its end.
#[inline(always)]
pub(crate) fn load_block(text: &[u8], at: u64) -> u64 {
    let rest = text.get(at as usize..).unwrap_or_default();
    u64::from_le_bytes(rest.first_chunk::<8>().copied().unwrap_or_else(|| short_block(rest)))
}

#[cold]
#[inline(never)]
fn short_block(rest: &[u8]) -> [u8; 8] {
    let mut block = [0; 8];
    block[..rest.len()].copy_from_slice(rest);
    block
}

/// The first bytes of a block, fewer than eight, with a one above them.
#[inline(always)]
fn stopped(block: u64, length: u64) -> u64 {
    let stop = 1 << (8 * length);
    (block & (stop - 1)) | stop
}
