//! Who is kept: what the lists and the WARC records say of the centre of a cluster.
//!
//! A removed document may come long before or after its centre. What is known of all centres goes
//! into one file, in order of documents, and an entry is found again by its place in the file;
//! nothing is held in memory.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use onionskin_core::{DocId, SiteId};
use onionskin_store::table::DocumentRow;

/// The media type of a document that is only a note of another one.
pub(super) const REVISIT: &str = "warc/revisit";

/// No string of an entry is longer; the file is ours, and if it is damaged memory should not pay
/// for it.
const MAX_STRING: usize = 1 << 26;

/// A document that is kept, as others speak of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    pub doc: DocId,
    /// Index of its input.
    pub source: u32,
    pub offset: u64,
    pub site: Option<SiteId>,
    pub fetched_at: Option<i64>,
    pub payload_sha1: Option<[u8; 20]>,
    pub is_revisit: bool,
    pub id: Option<String>,
    pub url: Option<String>,
}

impl Kept {
    pub fn of(row: &DocumentRow<'_>, source: u32) -> Kept {
        Kept {
            doc: row.doc,
            source,
            offset: row.offset,
            site: row.site,
            fetched_at: row.fetched_at,
            payload_sha1: row.payload_sha1,
            is_revisit: row.media_type == REVISIT,
            id: row.id.map(str::to_owned),
            url: row.url.map(str::to_owned),
        }
    }

    /// The shortest true name: its id, else its address, else its number.
    pub fn name(&self) -> String {
        let given = self.id.as_ref().or(self.url.as_ref());
        given.cloned().unwrap_or_else(|| format!("doc:{}", self.doc))
    }
}

/// Appends entries.
pub(super) struct NamesWriter {
    output: BufWriter<File>,
    place: u64,
    scratch: Vec<u8>,
}

impl NamesWriter {
    pub fn create(path: &Path) -> io::Result<NamesWriter> {
        Ok(NamesWriter { output: BufWriter::new(File::create_new(path)?), place: 0, scratch: Vec::new() })
    }

    /// Gives the place of the entry.
    pub fn push(&mut self, kept: &Kept) -> io::Result<u64> {
        let out = &mut self.scratch;
        out.clear();
        out.extend_from_slice(&kept.doc.get().to_le_bytes());
        out.extend_from_slice(&kept.source.to_le_bytes());
        out.extend_from_slice(&kept.offset.to_le_bytes());
        out.extend_from_slice(&kept.site.unwrap_or_default().get().to_le_bytes());
        out.extend_from_slice(&kept.fetched_at.unwrap_or(0).to_le_bytes());
        out.extend_from_slice(&kept.payload_sha1.unwrap_or_default());
        let flags = [
            kept.site.is_some(),
            kept.fetched_at.is_some(),
            kept.payload_sha1.is_some(),
            kept.is_revisit,
            kept.id.is_some(),
            kept.url.is_some(),
        ];
        out.push(flags.iter().enumerate().fold(0, |bits, (nth, flag)| bits | u8::from(*flag) << nth));
        for text in [&kept.id, &kept.url] {
            let text = text.as_deref().unwrap_or_default().as_bytes();
            let length = u32::try_from(text.len()).ok().filter(|_| text.len() <= MAX_STRING);
            let length = length.ok_or_else(|| io::Error::other("the name of a document is too long"))?;
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(text);
        }
        self.output.write_all(out)?;
        let place = self.place;
        self.place += out.len() as u64;
        Ok(place)
    }

    pub fn finish(self) -> io::Result<()> {
        self.output.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(())
    }
}

/// Reads entries, in order or by place.
pub(super) struct Names {
    input: BufReader<File>,
    place: u64,
}

impl Names {
    pub fn open(path: &Path) -> io::Result<Names> {
        Ok(Names { input: BufReader::with_capacity(16 << 10, File::open(path)?), place: 0 })
    }

    /// The next entry and its place; `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<(u64, Kept)>> {
        use io::BufRead;
        if self.input.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let place = self.place;
        Ok(Some((place, self.read()?)))
    }

    pub fn get(&mut self, place: u64) -> io::Result<Kept> {
        // Both are file positions, so the distance fits; neighbours are found in the buffer.
        let distance = i64::try_from(i128::from(place) - i128::from(self.place));
        match distance {
            Ok(distance) => self.input.seek_relative(distance)?,
            Err(_) => {
                self.input.seek(SeekFrom::Start(place))?;
            }
        }
        self.place = place;
        self.read()
    }

    fn read(&mut self) -> io::Result<Kept> {
        let doc = DocId(u32::from_le_bytes(self.bytes()?));
        let source = u32::from_le_bytes(self.bytes()?);
        let offset = u64::from_le_bytes(self.bytes()?);
        let site = u32::from_le_bytes(self.bytes()?);
        let fetched_at = i64::from_le_bytes(self.bytes()?);
        let payload_sha1 = self.bytes::<20>()?;
        let [flags] = self.bytes::<1>()?;
        let flag = |nth: u8| flags >> nth & 1 == 1;
        let (id, url) = (self.text()?, self.text()?);
        Ok(Kept {
            doc,
            source,
            offset,
            site: flag(0).then_some(SiteId(site)),
            fetched_at: flag(1).then_some(fetched_at),
            payload_sha1: flag(2).then_some(payload_sha1),
            is_revisit: flag(3),
            id: flag(4).then_some(id),
            url: flag(5).then_some(url),
        })
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        self.place += N as u64;
        Ok(bytes)
    }

    fn text(&mut self) -> io::Result<String> {
        let length = u32::from_le_bytes(self.bytes()?) as usize;
        if length > MAX_STRING {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a work file is damaged"));
        }
        let mut bytes = vec![0; length];
        self.input.read_exact(&mut bytes)?;
        self.place += length as u64;
        String::from_utf8(bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a work file is damaged"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_in_order_and_by_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("names");
        let entries = [
            Kept { doc: DocId(3), id: Some("a".repeat(40_000)), ..Kept::default() },
            Kept {
                doc: DocId(5),
                url: Some("http://a.example/ä".to_owned()),
                site: Some(SiteId(0)),
                ..Kept::default()
            },
            Kept {
                doc: DocId(9),
                offset: 7,
                is_revisit: true,
                payload_sha1: Some([7; 20]),
                ..Kept::default()
            },
            Kept { doc: DocId(11), fetched_at: Some(-1), id: Some(String::new()), ..Kept::default() },
        ];
        let mut writer = NamesWriter::create(&path).unwrap();
        let places: Vec<u64> = entries.iter().map(|kept| writer.push(kept).unwrap()).collect();
        writer.finish().unwrap();

        let mut names = Names::open(&path).unwrap();
        for (place, kept) in places.iter().zip(&entries) {
            assert_eq!(names.next().unwrap(), Some((*place, kept.clone())));
        }
        assert_eq!(names.next().unwrap(), None);
        for nth in [2, 0, 3, 1, 1, 3, 0] {
            assert_eq!(names.get(places[nth]).unwrap(), entries[nth]);
        }
        assert!(names.get(1 << 40).is_err());
    }

    #[test]
    fn a_kept_document_is_called_by_what_it_has() {
        let mut kept = Kept { doc: DocId(7), ..Kept::default() };
        assert_eq!(kept.name(), "doc:7");
        kept.url = Some("http://a.example/".to_owned());
        assert_eq!(kept.name(), "http://a.example/");
        kept.id = Some("x".to_owned());
        assert_eq!(kept.name(), "x");
    }
}
