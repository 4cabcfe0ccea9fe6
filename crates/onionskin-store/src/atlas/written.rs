//! Files of tables that this process has written, so that its next stage need not read them to know
//! that they are what was written.
//!
//! A stage knows the checksum of a file from its bytes as they went out, or has compared it when it
//! took up the work of an earlier run. The naive way remembers the name; but between two stages
//! somebody else may write to a file, or damage it. So what is remembered is the file itself, its
//! length and its times, and only once the clock of the file system has moved on: whoever changes
//! it from then on gives it another time. A file whose times are whole seconds is not remembered,
//! since its file system cannot tell.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::time::{ClockId, clock_gettime};

use super::Stamp;

/// The clock that file systems take their times from, or the one that comes nearest.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::RealtimeCoarse;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Realtime;

/// By device and number of the file.
static WRITTEN: Mutex<BTreeMap<(u64, u64), (Stamp, u64)>> = Mutex::new(BTreeMap::new());

/// Remembers a file that is in its place and has this length and checksum.
pub(crate) fn remember(path: &Path, bytes: u64, xxh3: u64) {
    let Ok(stamp) = Stamp::of(path) else { return };
    let now = clock_gettime(CLOCK);
    let is_settled = |time: (i64, i64)| time.1 != 0 && time < (now.tv_sec, now.tv_nsec);
    if stamp.bytes == bytes && is_settled(stamp.modified) && is_settled(stamp.changed) {
        WRITTEN.lock().unwrap_or_else(PoisonError::into_inner).insert(stamp.file, (stamp, xxh3));
    }
}

/// Whether this very file was written with this checksum and is as it was then.
pub(super) fn is_known(stamp: &Stamp, xxh3: u64) -> bool {
    let written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    written.get(&stamp.file) == Some(&(*stamp, xxh3))
}
