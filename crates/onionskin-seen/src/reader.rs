//! Those who read beside the writer.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onionskin_store::{IoError, MemoryBudget};

use crate::catalogue::{Catalogue, Params};
use crate::error::SeenError;
use crate::run::Run;
use crate::view::{Match, Probe, Stats, View};
use crate::wal::{self, Position};

/// An index as it is at one time. Checks can be made from several threads at once.
#[derive(Debug)]
pub struct Reader {
    dir: PathBuf,
    memory: MemoryBudget,
    catalogue: Catalogue,
    view: View,
    wal_at: Position,
}

/// How often a reader tries to open files that the writer is replacing.
const ATTEMPTS: u32 = 100;

impl Reader {
    /// Opens an index for reading. It needs no lock, and sees whole batches only.
    pub fn open(dir: &Path, memory: MemoryBudget) -> Result<Reader, SeenError> {
        Reader::open_with(dir, memory, &[])
    }

    fn open_with(dir: &Path, memory: MemoryBudget, open: &[Arc<Run>]) -> Result<Reader, SeenError> {
        let mut attempt = 0;
        loop {
            let catalogue = Catalogue::read(dir)?;
            match Reader::open_catalogue(dir, memory, &catalogue, open) {
                Err(error) if attempt < ATTEMPTS && is_gone(&error) && Catalogue::read(dir)? != catalogue => {
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    fn open_catalogue(
        dir: &Path,
        memory: MemoryBudget,
        catalogue: &Catalogue,
        open: &[Arc<Run>],
    ) -> Result<Reader, SeenError> {
        let view = View::open(dir, catalogue, memory, open)?;
        let catalogue = catalogue.clone();
        let mut reader = Reader { dir: dir.to_owned(), memory, catalogue, view, wal_at: Position::start() };
        reader.read_log()?;
        Ok(reader)
    }

    fn read_log(&mut self) -> Result<(), SeenError> {
        let path = wal::path(&self.dir, self.catalogue.wal);
        let bytes = std::fs::read(&path).map_err(|e| IoError::new("reading", &path, e))?;
        let view = &mut self.view;
        // A batch that is being written looks torn.
        self.wal_at = wal::replay(&path, self.catalogue.wal, &bytes, self.wal_at, |change| {
            view.apply(&change);
            Ok(())
        })?;
        Ok(())
    }

    /// Sees what has been committed since. After an error the reader is as it was, or has seen some batches more.
    pub fn refresh(&mut self) -> Result<(), SeenError> {
        let now = Catalogue::read(&self.dir)?;
        if now == self.catalogue {
            match self.read_log() {
                Err(error) if is_gone(&error) => {}
                result => return result,
            }
        }
        *self = Reader::open_with(&self.dir, self.memory, &self.view.runs)?;
        Ok(())
    }

    /// What the index is of.
    pub fn params(&self) -> &Params {
        &self.catalogue.params
    }

    /// Whether a document, or one nearly like it, is there.
    pub fn check(&self, probe: &Probe<'_>) -> Result<Option<Match>, SeenError> {
        self.view.check(probe)
    }

    /// How large it is.
    pub fn stats(&self) -> Stats {
        self.view.stats(&self.dir)
    }
}

/// A file was removed because the catalogue has changed.
pub(crate) fn is_gone(error: &SeenError) -> bool {
    matches!(error, SeenError::Io(error) if error.source.kind() == io::ErrorKind::NotFound)
}
