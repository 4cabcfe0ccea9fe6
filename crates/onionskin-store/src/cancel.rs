//! Stopping a stage from outside, at the next moment at which it can stop.
//!
//! A stage is a deep stack of loops over tables and sorts. Handing a flag through all of them would
//! put it into the parameters of every function of five crates that have nothing to do with it, so
//! the flag belongs to the thread that runs the stage ([`with`]): tables ask it at every batch,
//! sorts at every block, and the few loops that use neither ask it themselves ([`check`]). What was
//! committed stays; the same stage begun again goes on from there, as after a kill.
//!
//! ```
//! use onionskin_store::cancel::{self, Cancel};
//! let cancel = Cancel::default();
//! cancel.cancel();
//! assert!(cancel::check().is_ok());
//! assert!(cancel::with(&cancel, cancel::check).is_err());
//! ```

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that says stop. Clones are the same flag.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

/// Somebody said stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped on request\nhint: what was committed is kept; the same call goes on from there")]
pub struct Cancelled;

impl Cancel {
    /// Says stop. It cannot be taken back.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has said stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An error when somebody has said stop.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Cancel>> = const { RefCell::new(None) };
}

/// Does the work on this thread; while it lasts, the flag is [`current`].
pub fn with<T>(cancel: &Cancel, work: impl FnOnce() -> T) -> T {
    /// Puts back what was there, also when the work panics.
    struct Restore(Option<Cancel>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _restore = Restore(CURRENT.replace(Some(cancel.clone())));
    work()
}

/// The flag of this thread, to hand on to other threads; one that nobody sets when there is none.
pub fn current() -> Cancel {
    CURRENT.with_borrow(|current| current.clone()).unwrap_or_default()
}

/// An error when the work on this thread is to stop.
pub fn check() -> Result<(), Cancelled> {
    CURRENT.with_borrow(|current| current.as_ref().map_or(Ok(()), Cancel::check))
}

#[cfg(test)]
mod tests;
