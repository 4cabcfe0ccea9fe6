//! WACZ: a zip file with WARC files in it.
//!
//! The WARC files lie in `archive/`, as a rule stored and not compressed a second time, so that
//! they can be read in pieces where they are: [`Member::stored_at`] says where. Indexes and page
//! lists are left alone; everything they say is in the records.

use std::io::{self, Read, Seek};
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

/// Why a WACZ cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaczError {
    /// The zip directory at the end of the file is missing or broken, as when a download was cut
    /// off.
    #[error("not a whole zip file: {0}")]
    BadZip(String),
    /// There is no WARC file in `archive/`.
    #[error("no WARC file in its archive folder")]
    NoArchive,
    /// The input failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<ZipError> for WaczError {
    fn from(error: ZipError) -> WaczError {
        match error {
            // The end of the file where the directory should be is a broken zip, not a broken disk.
            ZipError::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof => WaczError::Io(error),
            other => WaczError::BadZip(other.to_string()),
        }
    }
}

/// One WARC file in a WACZ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its path in the zip, such as `archive/data.warc.gz`.
    pub name: String,
    /// Its size, as the zip's directory says.
    pub bytes: u64,
    /// Where its bytes begin in the zip file, if they are stored as they are.
    pub stored_at: Option<u64>,
    index: usize,
}

/// An open WACZ.
pub struct Wacz<R> {
    zip: ZipArchive<R>,
    members: Vec<Member>,
}

impl<R: Read + Seek> Wacz<R> {
    /// Reads the directory of the zip.
    pub fn open(input: R) -> Result<Wacz<R>, WaczError> {
        let mut zip = ZipArchive::new(input)?;
        let mut members = Vec::new();
        for index in 0..zip.len() {
            let file = zip.by_index_raw(index)?;
            let name = String::from_utf8_lossy(file.name_raw()).into_owned();
            if file.is_file() && is_archive(&name) {
                let stored = file.compression() == CompressionMethod::Stored && !file.encrypted();
                let stored_at = if stored { file.data_start() } else { None };
                members.push(Member { name, bytes: file.size(), stored_at, index });
            }
        }
        if members.is_empty() {
            return Err(WaczError::NoArchive);
        }
        // The order in a zip is an accident of its writer.
        members.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Wacz { zip, members })
    }

    /// The WARC files, by name.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The bytes of one of [`Wacz::members`], for a [`Reader`](crate::Reader). A member with a
    /// wrong checksum fails at its end, after all records were read.
    pub fn read(&mut self, member: &Member) -> Result<impl Read + use<'_, R>, WaczError> {
        Ok(self.zip.by_index(member.index)?)
    }
}

fn is_archive(name: &str) -> bool {
    const ENDINGS: [&str; 6] = [".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz", ".arc.zst"];
    let name = name.to_ascii_lowercase();
    name.starts_with("archive/") && ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Does a file that begins so look like a zip, and so perhaps like a WACZ?
pub fn is_zip(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06")
}

#[cfg(test)]
mod tests;
