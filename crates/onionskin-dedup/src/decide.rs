//! Which documents go, with the evidence for each.
//!
//! A verdict on a document needs three things that lie elsewhere: what is known of its centre, the
//! pair of the two if there is one, and its own row. The naive way keeps all of them in maps. Here
//! they are brought together by sorting:
//!
//! ```text
//! memberships + documents ──▶ names of centres (file)      copies
//!                                     │                       │ sort by pair, meet `pairs`
//!                                     │                       ▼
//!                                     └──── meet ◀─── sort by centre
//!                                             │ sort by document
//!                                             ▼
//!                          documents, once more, with a verdict each
//! ```

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use onionskin_core::{ClusterId, DocId};
use onionskin_store::join::SortedCursor;
use onionskin_store::manifest::InputEntry;
use onionskin_store::sort::{Record, SortParams, SortedStream, Sorter};
use onionskin_store::table::{CopyKind, DocumentBatch, DocumentRow, DocumentsReader, Method, PairRow};
use onionskin_store::{Atlas, IoError, MemoryBudget, TableName};

use super::DedupError;
use super::names::{Kept, Names, NamesWriter};
use onionskin_similar::membership::Membership;

/// A document in a cluster, and what is known of it and its centre. In integers, so that its order
/// is total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub doc: DocId,
    pub cluster: ClusterId,
    pub size: u32,
    pub centre: DocId,
    is_near: bool,
    /// Zero, or one more than the index of a method.
    method: u8,
    resemblance: u64,
    /// Of the document in its centre and of the centre in it; there when there is a method.
    containment: u64,
    containment_of_kept: u64,
    /// Where the centre's name is.
    pub name: u64,
}

/// What a pair says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Evidence {
    pub method: Method,
    /// The share of the copy's chunks that the kept document has.
    pub containment: f64,
    /// The share of the kept document's chunks that the copy has.
    pub containment_of_kept: f64,
}

impl Entry {
    fn new(member: &Membership) -> Entry {
        Entry {
            doc: member.doc,
            cluster: member.cluster,
            size: member.size,
            centre: member.centre,
            is_near: member.kind == CopyKind::Near,
            method: 0,
            resemblance: member.resemblance.to_bits(),
            containment: 0,
            containment_of_kept: 0,
            name: 0,
        }
    }

    /// Takes over what a pair of the document and its centre says.
    fn note(&mut self, pair: &PairRow) {
        let method = Method::ALL.iter().position(|method| *method == pair.method);
        self.method = method.and_then(|nth| u8::try_from(nth + 1).ok()).unwrap_or(0);
        let (of_a, of_b) = (pair.containment_a.to_bits(), pair.containment_b.to_bits());
        let (own, other) = if self.doc == pair.a { (of_a, of_b) } else { (of_b, of_a) };
        (self.containment, self.containment_of_kept) = (own, other);
    }

    pub fn kind(&self) -> CopyKind {
        if self.is_near { CopyKind::Near } else { CopyKind::Exact }
    }

    pub fn is_centre(&self) -> bool {
        self.doc == self.centre
    }

    pub fn resemblance(&self) -> f64 {
        f64::from_bits(self.resemblance)
    }

    pub fn evidence(&self) -> Option<Evidence> {
        let method = *Method::ALL.get(usize::from(self.method).checked_sub(1)?)?;
        Some(Evidence {
            method,
            containment: f64::from_bits(self.containment),
            containment_of_kept: f64::from_bits(self.containment_of_kept),
        })
    }
}

impl Record for Entry {
    const BYTES: usize = 50;

    fn put(&self, out: &mut [u8]) {
        let ids = [self.doc.get(), self.cluster.get(), self.size, self.centre.get()];
        for (id, place) in ids.iter().zip(out.chunks_exact_mut(4)) {
            place.copy_from_slice(&id.to_le_bytes());
        }
        out[16] = u8::from(self.is_near);
        out[17] = self.method;
        let longs = [self.resemblance, self.containment, self.containment_of_kept, self.name];
        for (long, place) in longs.iter().zip(out[18..].chunks_exact_mut(8)) {
            place.copy_from_slice(&long.to_le_bytes());
        }
    }

    fn get(bytes: &[u8]) -> Entry {
        let id = |nth: usize| u32::get(&bytes[4 * nth..4 * nth + 4]);
        let long = |nth: usize| u64::get(&bytes[18 + 8 * nth..26 + 8 * nth]);
        Entry {
            doc: DocId(id(0)),
            cluster: ClusterId(id(1)),
            size: id(2),
            centre: DocId(id(3)),
            is_near: bytes[16] != 0,
            method: bytes[17],
            resemblance: long(0),
            containment: long(1),
            containment_of_kept: long(2),
            name: long(3),
        }
    }
}

/// Walks through the documents, telling the input of each.
pub(super) struct Walk<'a> {
    reader: DocumentsReader,
    batch: Option<DocumentBatch>,
    row: usize,
    next_doc: u64,
    inputs: &'a [InputEntry],
    input: usize,
    /// Documents of that input that are still to come.
    left: u64,
}

impl<'a> Walk<'a> {
    pub fn new(atlas: &'a Atlas) -> Result<Walk<'a>, DedupError> {
        let inputs = &atlas.manifest().inputs;
        let left = inputs.first().map_or(0, |input| input.documents);
        Ok(Walk { reader: atlas.documents()?, batch: None, row: 0, next_doc: 0, inputs, input: 0, left })
    }

    /// The next document with the index of its input.
    pub fn next(&mut self) -> Result<Option<(u32, DocumentRow<'_>)>, DedupError> {
        while self.batch.as_ref().is_none_or(|batch| self.row >= batch.len()) {
            self.row = 0;
            self.batch = self.reader.next_batch()?;
            if self.batch.is_none() {
                return match self.inputs.iter().skip(self.input + 1).any(|input| input.documents > 0)
                    || self.left > 0
                {
                    true => Err(DedupError::Documents { doc: self.next_doc }),
                    false => Ok(None),
                };
            }
        }
        while self.left == 0 {
            self.input += 1;
            match self.inputs.get(self.input) {
                Some(input) => self.left = input.documents,
                None => return Err(DedupError::Documents { doc: self.next_doc }),
            }
        }
        let Some(batch) = &self.batch else { return Ok(None) };
        let row = batch.row(self.row);
        if u64::from(row.doc) != self.next_doc || self.inputs[self.input].name != row.source {
            return Err(DedupError::Documents { doc: self.next_doc });
        }
        self.row += 1;
        self.left -= 1;
        self.next_doc += 1;
        Ok(Some((self.input as u32, row)))
    }
}

/// Entries ascending by document, and where their names are.
pub(super) struct Gathered {
    pub entries: SortedStream<Entry>,
    pub names: PathBuf,
    pub spilled_bytes: u64,
}

/// Brings memberships, centres and pairs together.
pub(super) fn gather<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    atlas: &Atlas,
    memberships: impl Iterator<Item = Result<Membership, E>>,
    memory: MemoryBudget,
    work_dir: &Path,
) -> Result<Gathered, DedupError> {
    let names_path = work_dir.join("names");
    // Two sorts are open at a time, one being read and one being filled.
    let share = memory.share(1, 4);
    let sort = || SortParams::new(work_dir, share);
    let has_pairs = atlas.has(&TableName::Pairs);

    let mut by_pair = Sorter::<(DocId, DocId, Entry)>::new(sort())?;
    let mut names = NamesWriter::create(&names_path).map_err(|e| IoError::new("writing", &names_path, e))?;
    let mut documents = Walk::new(atlas)?;
    let mut last = None;
    for member in memberships {
        let member = member.map_err(|error| DedupError::Memberships(error.into()))?;
        if last.is_some_and(|last| last >= member.doc) {
            return Err(DedupError::Disorder { doc: member.doc });
        }
        last = Some(member.doc);
        let mut entry = Entry::new(&member);
        if entry.is_centre() {
            let row = loop {
                match documents.next()? {
                    Some((source, row)) if row.doc == member.doc => break Kept::of(&row, source),
                    Some(_) => {}
                    None => return Err(DedupError::UnknownDocument { doc: member.doc }),
                }
            };
            entry.name = names.push(&row).map_err(|e| IoError::new("writing", &names_path, e))?;
        }
        by_pair.push((member.doc.min(member.centre), member.doc.max(member.centre), entry))?;
    }
    names.finish().map_err(|e| IoError::new("writing", &names_path, e))?;
    drop(documents);

    let mut spilled_bytes = 0;
    let by_pair = by_pair.finish()?;
    spilled_bytes += by_pair.stats().spilled_bytes;
    let mut pairs = if has_pairs { Some(SortedCursor::new(atlas.pairs()?)) } else { None };
    let mut by_centre = Sorter::<(DocId, Entry)>::new(sort())?;
    for record in by_pair {
        let (a, b, mut entry) = record?;
        if let Some(pairs) = &mut pairs
            && !entry.is_centre()
            && let Some(pair) = pairs.at((a, b), |pair| (pair.a, pair.b))?
        {
            entry.note(&pair);
        }
        by_centre.push((entry.centre, entry))?;
    }
    drop(pairs);

    let by_centre = by_centre.finish()?;
    spilled_bytes += by_centre.stats().spilled_bytes;
    let mut by_doc = Sorter::<Entry>::new(sort())?;
    let broken = |error| IoError::new("reading", &names_path, error);
    let mut names = Names::open(&names_path).map_err(broken)?;
    let mut at: Option<(u64, Kept)> = None;
    for record in by_centre {
        let (centre, mut entry) = record?;
        while at.as_ref().is_none_or(|(_, kept)| kept.doc < centre) {
            at = names.next().map_err(broken)?;
            if at.is_none() {
                break;
            }
        }
        match &at {
            Some((place, kept)) if kept.doc == centre => entry.name = *place,
            // Without its centre nobody would stand for this document.
            _ => return Err(DedupError::CentreMissing { doc: entry.doc, centre }),
        }
        by_doc.push(entry)?;
    }
    let entries = by_doc.finish()?;
    spilled_bytes += entries.stats().spilled_bytes;
    Ok(Gathered { entries, names: names_path, spilled_bytes })
}

/// What is known of a document that is found by its offset in its input.
pub(super) trait Placed: Record {
    fn offset(&self) -> u64;
}

/// What happens to a document of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Verdict {
    pub offset: u64,
    pub is_removed: bool,
    pub entry: Entry,
}

impl Record for Verdict {
    const BYTES: usize = 9 + Entry::BYTES;

    fn put(&self, out: &mut [u8]) {
        self.offset.put(&mut out[..8]);
        out[8] = u8::from(self.is_removed);
        self.entry.put(&mut out[9..]);
    }

    fn get(bytes: &[u8]) -> Verdict {
        let (offset, entry) = (u64::get(&bytes[..8]), Entry::get(&bytes[9..]));
        Verdict { offset, is_removed: bytes[8] != 0, entry }
    }
}

impl Placed for Verdict {
    fn offset(&self) -> u64 {
        self.offset
    }
}

/// A document that its input must still have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Scanned {
    pub offset: u64,
    /// The fingerprint of its text; `None` when it has no words.
    pub text_fp: Option<u64>,
}

impl Record for Scanned {
    const BYTES: usize = 17;

    fn put(&self, out: &mut [u8]) {
        self.offset.put(&mut out[..8]);
        out[8] = u8::from(self.text_fp.is_some());
        self.text_fp.unwrap_or(0).put(&mut out[9..]);
    }

    fn get(bytes: &[u8]) -> Scanned {
        let text_fp = (bytes[8] != 0).then(|| u64::get(&bytes[9..]));
        Scanned { offset: u64::get(&bytes[..8]), text_fp }
    }
}

impl Placed for Scanned {
    fn offset(&self) -> u64 {
        self.offset
    }
}

/// Records on their way to those who copy the inputs: all of them in one file, those of an input in
/// one stretch of it.
pub(super) struct StretchesWriter<R> {
    output: BufWriter<File>,
    made: Stretches<R>,
    count: u64,
    scratch: Vec<u8>,
}

impl<R: Placed> StretchesWriter<R> {
    pub fn create(path: PathBuf, inputs: usize) -> Result<StretchesWriter<R>, IoError> {
        let file = File::create_new(&path).map_err(|e| IoError::new("creating", &path, e))?;
        let made = Stretches { path, each: vec![(0, 0); inputs], of: PhantomData };
        Ok(StretchesWriter { output: BufWriter::new(file), made, count: 0, scratch: vec![0; R::BYTES] })
    }

    pub fn push(&mut self, input: u32, record: &R) -> Result<(), IoError> {
        record.put(&mut self.scratch);
        let written = self.output.write_all(&self.scratch);
        written.map_err(|e| IoError::new("writing", &self.made.path, e))?;
        let stretch = &mut self.made.each[input as usize];
        if stretch.1 == 0 {
            stretch.0 = self.count;
        }
        stretch.1 += 1;
        self.count += 1;
        Ok(())
    }

    pub fn finish(self) -> Result<Stretches<R>, IoError> {
        let flushed = self.output.into_inner().map_err(io::IntoInnerError::into_error);
        flushed.map_err(|e| IoError::new("writing", &self.made.path, e))?;
        Ok(self.made)
    }
}

/// Where the records of each input are.
pub(super) struct Stretches<R> {
    path: PathBuf,
    /// For each input the first of its records, and how many it has.
    each: Vec<(u64, u64)>,
    of: PhantomData<fn() -> R>,
}

impl<R: Placed> Stretches<R> {
    pub fn open(&self, input: usize) -> Result<Stretch<R>, IoError> {
        let (first, left) = self.each.get(input).copied().unwrap_or_default();
        let open = || {
            let mut input = BufReader::with_capacity(64 << 10, File::open(&self.path)?);
            input.seek(SeekFrom::Start(first * R::BYTES as u64))?;
            let mut stretch = Stretch { input, left, ahead: None, scratch: vec![0; R::BYTES] };
            stretch.advance()?;
            Ok(stretch)
        };
        open().map_err(|e| IoError::new("reading", &self.path, e))
    }
}

/// The records of one input, in order.
pub(super) struct Stretch<R> {
    input: BufReader<File>,
    left: u64,
    ahead: Option<R>,
    scratch: Vec<u8>,
}

/// The verdicts on one input.
pub(super) type Verdicts = Stretch<Verdict>;

impl<R: Placed> Stretch<R> {
    /// The next record, which stays.
    pub fn peek(&self) -> Option<&R> {
        self.ahead.as_ref()
    }

    /// Takes the next record if it is on what is at this offset.
    pub fn take_at(&mut self, offset: u64) -> io::Result<Option<R>> {
        match self.ahead {
            Some(record) if record.offset() == offset => {
                self.advance()?;
                Ok(Some(record))
            }
            _ => Ok(None),
        }
    }

    fn advance(&mut self) -> io::Result<()> {
        self.ahead = None;
        if self.left > 0 {
            self.left -= 1;
            self.input.read_exact(&mut self.scratch)?;
            self.ahead = Some(R::get(&self.scratch));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
