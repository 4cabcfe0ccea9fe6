//! K-way merge of sorted runs by a tree of losers.
//!
//! The naive way looks at the head of every run for each record, k comparisons. In a tree of losers
//! every inner node keeps the run that lost there; after the winner is taken and replaced by its
//! successor, only the nodes on its way up are played again: log2 k comparisons and no moves of
//! records.

use super::{Run, SortError};
use crate::cancel;
use crate::raw::{RawReader, Record};

/// A merge of several runs, which are removed when it is dropped.
#[derive(Debug)]
pub(super) struct Merge<R: Record> {
    inputs: Vec<Input<R>>,
    /// `losers[0]` is the winner of all; the others are inner nodes. Leaves are implied: input `i`
    /// is leaf `i + k`.
    losers: Vec<u32>,
    bytes: Vec<u8>,
    dedup: bool,
    last: Option<R>,
}

/// One run and the block of it that is in memory.
#[derive(Debug)]
struct Input<R: Record> {
    reader: RawReader<R>,
    block: Vec<R>,
    at: usize,
    /// The next record of this run; `None` when it is used up.
    head: Option<R>,
    /// Keeps the file until the merge is done.
    _run: Run,
}

impl<R: Record> Input<R> {
    #[inline]
    fn advance(&mut self, bytes: &mut Vec<u8>) -> Result<(), SortError> {
        if self.at == self.block.len() {
            self.at = 0;
            cancel::check()?;
            if !self.reader.next_block(bytes, &mut self.block)? {
                self.head = None;
                return Ok(());
            }
        }
        self.head = self.block.get(self.at).copied();
        self.at += 1;
        Ok(())
    }
}

impl<R: Record> Merge<R> {
    pub(super) fn new(runs: Vec<Run>, block_records: usize, dedup: bool) -> Result<Merge<R>, SortError> {
        let mut bytes = Vec::new();
        let mut inputs = Vec::with_capacity(runs.len());
        for run in runs {
            let reader = RawReader::open(&run.path)?;
            let block = Vec::with_capacity(block_records);
            let mut input = Input { reader, block, at: 0, head: None, _run: run };
            input.advance(&mut bytes)?;
            inputs.push(input);
        }
        let losers = vec![0; inputs.len().max(1)];
        let mut merge = Merge { inputs, losers, bytes, dedup, last: None };
        merge.play_all();
        Ok(merge)
    }

    pub(super) fn fan_in(&self) -> usize {
        self.inputs.len()
    }

    /// Whether input `a` goes before input `b`. Runs that are used up go last; equal records by
    /// number of input.
    #[inline]
    fn before(&self, a: u32, b: u32) -> bool {
        match (self.inputs[a as usize].head, self.inputs[b as usize].head) {
            (Some(x), Some(y)) => (x, a) < (y, b),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => a < b,
        }
    }

    /// Plays every match once, from the leaves up.
    fn play_all(&mut self) {
        let k = self.inputs.len();
        let mut winners = vec![0u32; 2 * k.max(1)];
        for i in 0..k {
            winners[k + i] = i as u32;
        }
        for node in (1..k).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let (winner, loser) = if self.before(left, right) { (left, right) } else { (right, left) };
            winners[node] = winner;
            self.losers[node] = loser;
        }
        self.losers[0] = if k > 1 { winners[1] } else { 0 };
    }

    /// The smallest record of all runs.
    #[inline]
    pub(super) fn next_record(&mut self) -> Result<Option<R>, SortError> {
        loop {
            let Some(record) = self.pop()? else { return Ok(None) };
            if !self.dedup || self.last != Some(record) {
                self.last = Some(record);
                return Ok(Some(record));
            }
        }
    }

    #[inline]
    fn pop(&mut self) -> Result<Option<R>, SortError> {
        let k = self.inputs.len();
        let mut winner = self.losers[0];
        let Some(input) = self.inputs.get_mut(winner as usize) else { return Ok(None) };
        let Some(record) = input.head else { return Ok(None) };
        input.advance(&mut self.bytes)?;
        let mut node = (winner as usize + k) / 2;
        while node > 0 {
            let loser = self.losers[node];
            if self.before(loser, winner) {
                self.losers[node] = winner;
                winner = loser;
            }
            node /= 2;
        }
        self.losers[0] = winner;
        Ok(Some(record))
    }
}
