//! For tests of this crate and of those above it: a storage that fails at the nth operation, and
//! tables that are not what a stage writes.
//!
//! Behind the feature `test-support`, so that no program has it.
#![allow(clippy::unwrap_used, reason = "only tests use it")]

mod rewrite;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use onionskin_core::SplitMix64;

use crate::storage::{Disk, Storage, StorageFile};
pub use rewrite::{Rewrite, copy_folder, numbers_of, rewrite};

/// What happens at the nth operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The disk is full, for this operation; half of a write gets through.
    Full,
    /// An input/output error, for this operation.
    Broken,
    /// The process dies: no operation from here on has any effect.
    Kill,
    /// A sync fails, and with it goes what it was to make safe: the system has thrown the pages
    /// away. Operations that are no syncs fail as [`Fault::Broken`] does.
    LostSync,
    /// The machine dies: as before, and everything that was not synced is lost.
    PowerCut,
    /// The machine dies, and of what was not synced anything may be lost: changes of a folder one
    /// by one, the ends of files, sectors in the midst of them, which are zeros then. By this seed.
    TornCut(u64),
}

/// A test for every fault: `$check` fails one operation after the other in this way. Files are torn
/// by as many seeds as `$tears` says.
#[macro_export]
macro_rules! fault_tests {
    ($check:ident, tears: $tears:expr) => {
        $crate::fault_tests! {
            $check:
            a_full_disk_at_any_operation_loses_nothing => Full,
            an_input_output_error_at_any_operation_loses_nothing => Broken,
            a_sync_that_fails_and_takes_its_pages_along_loses_nothing => LostSync,
            a_kill_at_any_operation_loses_nothing => Kill,
            a_power_cut_at_any_operation_loses_nothing => PowerCut,
        }

        /// Anything that was not synced may be there or not, in parts.
        #[test]
        fn a_power_cut_that_keeps_some_of_what_was_not_synced_loses_nothing() {
            for seed in 0..$tears {
                $check($crate::testing::Fault::TornCut(seed));
            }
        }
    };
    ($check:ident: $($name:ident => $fault:ident,)+) => {$(
        #[test]
        fn $name() {
            $check($crate::testing::Fault::$fault);
        }
    )+};
}

impl Fault {
    /// No operation has any effect from here on.
    fn is_final(self) -> bool {
        matches!(self, Fault::Kill | Fault::PowerCut | Fault::TornCut(_))
    }
}

/// What a disk writes at once.
const SECTOR: u64 = 512;

/// The disk, but for one operation that fails, and nothing waits for it.
///
/// Only a sync makes bytes safe, and only the sync of a directory makes its changes safe: after a
/// power cut ([`Faulty::power_cut`]) the rest is undone.
#[derive(Clone, Debug)]
pub struct Faulty {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    left: u64,
    /// Operations that worked.
    steps: u64,
    fault: Fault,
    failures: u64,
    /// How often files of each name were synced.
    syncs: BTreeMap<OsString, u64>,
    /// Length of each file that is safe.
    synced: BTreeMap<PathBuf, u64>,
    /// Changes of folders that are not safe yet, oldest first.
    pending: Vec<Pending>,
}

#[derive(Debug)]
enum Pending {
    Created(PathBuf),
    Renamed { from: PathBuf, to: PathBuf, replaced: Option<Vec<u8>> },
}

impl Pending {
    fn folder(&self) -> Option<&Path> {
        match self {
            Pending::Created(path) => path.parent(),
            // Both folders are synced in the order of the code under test; the new name is what
            // counts.
            Pending::Renamed { to, .. } => to.parent(),
        }
    }
}

impl Faulty {
    /// Fails at operation `nth`, counted from 0.
    pub fn new(nth: u64, fault: Fault) -> Arc<Faulty> {
        let state = State {
            left: nth,
            steps: 0,
            fault,
            failures: 0,
            syncs: BTreeMap::new(),
            synced: BTreeMap::new(),
            pending: Vec::new(),
        };
        Arc::new(Faulty { state: Arc::new(Mutex::new(state)) })
    }

    /// A storage that works, without waiting for the disk.
    pub fn never() -> Arc<Faulty> {
        Faulty::new(u64::MAX, Fault::Kill)
    }

    /// Operations that failed.
    pub fn failures(&self) -> u64 {
        self.state.lock().unwrap().failures
    }

    /// How often files of this name were synced.
    pub fn syncs_of(&self, name: &str) -> u64 {
        self.state.lock().unwrap().syncs.get(OsStr::new(name)).copied().unwrap_or(0)
    }

    /// Undoes what was not synced, or some of it, if the fault was a power cut.
    pub fn power_cut(&self) {
        let mut state = self.state.lock().unwrap();
        let mut lottery = match state.fault {
            Fault::TornCut(seed) => Some(SplitMix64::new(seed ^ state.steps)),
            Fault::PowerCut => None,
            _ => return,
        };
        if state.failures == 0 {
            return;
        }
        let pending = std::mem::take(&mut state.pending);
        // A file that has its new name was made under the old one.
        let mut made = BTreeSet::new();
        for change in pending.into_iter().rev() {
            if lottery.as_mut().is_some_and(|rng| rng.next_u64() % 2 == 0) {
                if let Pending::Renamed { from, .. } = change {
                    made.insert(from);
                }
                continue;
            }
            match change {
                Pending::Created(path) if made.contains(&path) => {}
                Pending::Created(path) => {
                    let _ = fs::remove_file(&path);
                }
                Pending::Renamed { from, to, replaced } => {
                    if fs::rename(&to, &from).is_ok() {
                        let synced = state.synced.remove(&to).unwrap_or(0);
                        state.synced.insert(from, synced);
                    }
                    if let Some(bytes) = replaced {
                        state.synced.insert(to.clone(), bytes.len() as u64);
                        fs::write(&to, bytes).unwrap();
                    }
                }
            }
        }
        for (path, synced) in &state.synced {
            let Ok(file) = OpenOptions::new().write(true).open(path) else { continue };
            let len = file.metadata().unwrap().len();
            if len <= *synced {
                continue;
            }
            let Some(rng) = &mut lottery else {
                file.set_len(*synced).unwrap();
                continue;
            };
            let end = synced + rng.next_u64() % (len - synced + 1);
            file.set_len(end).unwrap();
            let mut at = *synced;
            while at < end {
                let next = (at / SECTOR + 1) * SECTOR;
                if rng.next_u64() % 4 == 0 {
                    file.write_all_at(&vec![0; (next.min(end) - at) as usize], at).unwrap();
                }
                at = next;
            }
        }
    }

    /// Counts an operation; an error when it is the one to fail.
    fn step(&self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        let error = match state.fault {
            Fault::Full => rustix::io::Errno::NOSPC,
            _ => rustix::io::Errno::IO,
        };
        if state.left == 0 && (state.failures == 0 || state.fault.is_final()) {
            state.failures += 1;
            return Err(error.into());
        }
        state.left = state.left.saturating_sub(1);
        state.steps += 1;
        Ok(())
    }
}

struct FaultyFile {
    inner: Box<dyn StorageFile>,
    path: PathBuf,
    storage: Faulty,
}

impl Write for FaultyFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if let Err(error) = self.storage.step() {
            // Part of a write that fails may have reached the disk.
            let first = self.storage.state.lock().unwrap().failures == 1;
            if first {
                self.inner.write_all(&buf[..buf.len() / 2])?;
            }
            return Err(error);
        }
        self.inner.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl StorageFile for FaultyFile {
    fn sync(&mut self) -> io::Result<()> {
        let result = self.storage.step();
        let len = fs::metadata(&self.path)?.len();
        let mut state = self.storage.state.lock().unwrap();
        if result.is_err() && state.fault == Fault::LostSync {
            let synced = state.synced.get(&self.path).copied().unwrap_or(0);
            OpenOptions::new().write(true).open(&self.path)?.set_len(synced)?;
        }
        result?;
        state.synced.insert(self.path.clone(), len);
        *state.syncs.entry(self.path.file_name().unwrap_or_default().to_owned()).or_default() += 1;
        Ok(())
    }
}

impl Storage for Faulty {
    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        self.step()?;
        let is_new = !path.exists();
        let inner = Disk.create(path)?;
        let mut state = self.state.lock().unwrap();
        state.synced.insert(path.to_owned(), 0);
        if is_new {
            state.pending.push(Pending::Created(path.to_owned()));
        }
        Ok(Box::new(FaultyFile { inner, path: path.to_owned(), storage: self.clone() }))
    }

    fn append(&self, path: &Path, len: u64) -> io::Result<Box<dyn StorageFile>> {
        self.step()?;
        let inner = Disk.append(path, len)?;
        // What was there before this storage is safe.
        self.state.lock().unwrap().synced.entry(path.to_owned()).or_insert(len);
        Ok(Box::new(FaultyFile { inner, path: path.to_owned(), storage: self.clone() }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        Disk.create_dir_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        let replaced = fs::read(to).ok();
        Disk.rename(from, to)?;
        let mut state = self.state.lock().unwrap();
        let synced = state.synced.remove(from).unwrap_or_else(|| fs::metadata(to).map_or(0, |m| m.len()));
        state.synced.insert(to.to_owned(), synced);
        state.pending.push(Pending::Renamed { from: from.to_owned(), to: to.to_owned(), replaced });
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        Disk.remove_file(path)?;
        let mut state = self.state.lock().unwrap();
        state.synced.remove(path);
        state.pending.retain(|change| !matches!(change, Pending::Created(created) if created == path));
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        Disk.remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        let mut state = self.state.lock().unwrap();
        state.pending.retain(|change| change.folder() != Some(path));
        Ok(())
    }
}
