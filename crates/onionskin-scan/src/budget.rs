//! What a scan does with its memory budget: the tables being written have a fixed part, and the
//! rest is for reading, in [`Shares`]. Where batches end leaves no trace in the atlas, nor does the
//! size above which a record is large.

use std::sync::{Condvar, Mutex, PoisonError};

use onionskin_corpus::Shares;
use onionskin_store::MemoryBudget;

/// The program, the open Parquet files and everything else that does not grow, measured.
const FIXED_BYTES: u64 = 72 << 20;

/// The shares of the budget of a scan.
pub(crate) fn shares(memory: MemoryBudget, threads: usize) -> Shares {
    let memory = memory.bytes();
    Shares::of(memory.saturating_sub(FIXED_BYTES).max(memory / 2), threads)
}

/// Whose turn it is to hold a large record: that of the task which is to be written next. All tasks
/// before it are done, so whoever has the turn waits for nobody, and everybody gets it in the end.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    next: Mutex<u64>,
    changed: Condvar,
}

impl Turn {
    /// Waits until it is the turn of a task.
    pub fn wait_for(&self, task: u64) {
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(next, |next| *next < task).unwrap_or_else(PoisonError::into_inner));
    }

    /// Gives the turn to a task.
    pub fn give(&self, task: u64) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = task;
        self.changed.notify_all();
    }

    /// Something that lets everybody go when it is dropped, however that comes.
    pub fn until_dropped(&self) -> impl Drop {
        struct Open<'a>(&'a Turn);
        impl Drop for Open<'_> {
            fn drop(&mut self) {
                self.0.give(u64::MAX);
            }
        }
        Open(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_in_order() {
        let (turn, order) = (Turn::default(), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for task in (0..4).rev() {
                let (turn, order) = (&turn, &order);
                scope.spawn(move || {
                    turn.wait_for(task);
                    order.lock().unwrap().push(task);
                    turn.give(task + 1);
                });
            }
        });
        assert_eq!(order.into_inner().unwrap(), [0, 1, 2, 3]);
        std::thread::scope(|scope| {
            scope.spawn(|| turn.wait_for(u64::MAX - 1));
            drop(turn.until_dropped());
        });
    }
}
