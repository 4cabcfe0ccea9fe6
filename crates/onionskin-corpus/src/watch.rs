//! Notices when an input fails while it is read.
//!
//! An error of a disk, a file that got shorter, a share that went away: none of them says anything
//! about the records, and decoders between the file and the reader of records make something else
//! of them, such as damaged data. So the failure is noted where it happens, below every decoder,
//! and whoever works on the input asks for it afterwards.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::source::position_after;

/// The first failure of an input, shared by everybody who reads it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch(Arc<Noted>);

#[derive(Debug, Default)]
struct Noted {
    failure: Mutex<Option<Noticed>>,
    /// How far an input that is read from its front has been read.
    position: AtomicU64,
}

/// Where an input failed, and what the system said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Noticed {
    /// The number of the file in a tree.
    pub(crate) file: Option<u64>,
    /// The byte of the file as it is stored.
    pub(crate) byte: u64,
    pub(crate) detail: String,
}

impl Watch {
    pub(crate) fn note(&self, file: Option<u64>, byte: u64, error: &io::Error) {
        let mut failure = self.0.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert_with(|| Noticed { file, byte, detail: error.to_string() });
    }

    pub(crate) fn failure(&self) -> Option<Noticed> {
        self.0.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says how far an input has been read, where it is read ahead of that.
    pub(crate) fn set_position(&self, position: u64) {
        self.0.position.store(position, Ordering::Relaxed);
    }

    /// Stored bytes that were read so far, of an input that is read from its front.
    pub(crate) fn position(&self) -> u64 {
        self.0.position.load(Ordering::Relaxed)
    }
}

/// A file, pipe or object under watch.
pub(crate) struct Watched<R> {
    input: R,
    position: u64,
    /// How long the input was when it was found; it is a failure if it ends before.
    len: Option<u64>,
    file: Option<u64>,
    watch: Watch,
}

impl<R> Watched<R> {
    pub(crate) fn new(input: R, len: Option<u64>, watch: &Watch) -> Watched<R> {
        Watched { input, position: 0, len, file: None, watch: watch.clone() }
    }

    /// A file of a tree.
    pub(crate) fn of_tree(input: R, len: u64, file: u64, watch: &Watch) -> Watched<R> {
        Watched { file: Some(file), ..Watched::new(input, Some(len), watch) }
    }
}

/// A file that fails, and does not end, where it is shorter than it was when it was opened.
///
/// # Errors
///
/// When the length of the file is not to be had.
pub fn watched(file: File) -> io::Result<impl Read + Seek + Send + 'static> {
    let meta = file.metadata()?;
    let len = meta.is_file().then_some(meta.len());
    Ok(Watched::new(file, len, &Watch::default()))
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let error = match self.input.read(into) {
            Ok(0) if !into.is_empty() && self.len.is_some_and(|len| self.position < len) => {
                let len = self.len.unwrap_or_default();
                let message = format!("it ends here and had {len} bytes when it was found");
                io::Error::new(io::ErrorKind::ConnectionAborted, message)
            }
            Ok(n) => {
                self.position += n as u64;
                self.watch.0.position.store(self.position, Ordering::Relaxed);
                return Ok(n);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(error) => error,
        };
        self.watch.note(self.file, self.position, &error);
        Err(error)
    }
}

impl<R: Seek> Seek for Watched<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        // A place outside the file comes from what is written in the file, and is no failure.
        let outside = position_after(to, self.position, || Ok(self.len.unwrap_or(u64::MAX >> 1))).is_err();
        match self.input.seek(to) {
            Ok(position) => {
                self.position = position;
                Ok(position)
            }
            Err(error) => {
                if !outside {
                    self.watch.note(self.file, self.position, &error);
                }
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Fails at an offset.
    struct Failing(u64);

    impl Read for Failing {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::Error::from_raw_os_error(5));
            }
            let n = into.len().min(self.0 as usize);
            self.0 -= n as u64;
            into[..n].fill(b'x');
            Ok(n)
        }
    }

    #[test]
    fn the_first_failure_stays_with_its_place() {
        let watch = Watch::default();
        let mut input = Watched::new(Failing(10), Some(100), &watch);
        assert!(input.read_to_end(&mut Vec::new()).is_err());
        let failure = watch.failure().unwrap();
        assert_eq!((failure.file, failure.byte), (None, 10));
        assert!(failure.detail.contains("os error 5"), "{}", failure.detail);
        watch.note(Some(1), 0, &io::Error::other("later"));
        assert_eq!(watch.failure(), Some(failure));
    }

    #[test]
    fn a_file_that_is_cut_after_it_was_opened_fails() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"abcd").unwrap();
        let mut input = watched(file.reopen().unwrap()).unwrap();
        file.as_file().set_len(2).unwrap();
        let mut read = Vec::new();
        let error = input.read_to_end(&mut read).unwrap_err();
        assert_eq!(read, b"ab");
        assert!(error.to_string().contains("had 4 bytes"), "{error}");
    }

    #[test]
    fn a_file_that_got_shorter_fails_and_one_that_grew_does_not() {
        for (len, failed) in [(Some(5), true), (Some(4), false), (Some(3), false), (None, false)] {
            let watch = Watch::default();
            let read = Watched::new(&b"abcd"[..], len, &watch).read_to_end(&mut Vec::new());
            assert_eq!((read.is_err(), watch.failure().is_some()), (failed, failed), "{len:?}");
        }
    }
}
