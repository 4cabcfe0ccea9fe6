//! What a stage tells while it works. Libraries send events; only an edge draws bars.

/// Something happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The inputs are known.
    Discovered {
        /// Inputs: files, pipes, folders.
        sources: usize,
        /// Their size, as far as it is known.
        bytes: u64,
    },
    /// Work of an earlier run is taken up.
    Resumed {
        /// Documents that run had finished.
        documents: u64,
        /// Input it had read.
        input_bytes: u64,
    },
    /// Some input was scanned.
    Scanned {
        /// Documents so far.
        documents: u64,
        /// Input so far, in the bytes that are stored; of a pipe, decoded ones.
        input_bytes: u64,
        /// Records so far that could not be read.
        bad_records: u64,
    },
    /// A record could not be read.
    BadRecord {
        /// Where it is: input and offset.
        place: &'a str,
        /// What is wrong with it.
        reason: &'a str,
    },
    /// Some input was copied.
    Copied {
        /// Input so far.
        input_bytes: u64,
    },
    /// A step after reading begins.
    Step {
        /// What is being done, as in "resolving links".
        name: &'static str,
    },
}

/// Receives events, on the thread that called the stage.
pub trait Progress {
    /// Something happened.
    fn event(&self, event: Event<'_>);
}

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn event(&self, _: Event<'_>) {}
}
