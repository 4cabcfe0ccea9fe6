//! Members that are on disk: atlases and lists of addresses.
//!
//! A sample that is uniform over different pages, whatever their number of copies, in one pass and
//! in memory of the sample: every page has a random number that depends on what it is (its address,
//! its text) and on the seed, and the pages with the smallest numbers are the sample. A copy has
//! the number of its original. Checking is one pass too, with the questions in memory and the
//! answers on disk, and not the other way round.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use crate::size::{By, Member, MemberFailure, Page, Presence, Sample, Sampled};
use flate2::bufread::MultiGzDecoder;
use onionskin_core::{DocId, scramble};
use onionskin_extract::url::normalize;
use onionskin_store::sort::{SortParams, Sorter};
use onionskin_store::table::document::{Doc, TextFp, Url};
use onionskin_store::{Atlas, MemoryBudget};
use xxhash_rust::xxh3::xxh3_64;

use super::near::NearIndex;

/// Different near copies of a page that are counted, at most.
const MOST_COPIES: usize = 10_000;

/// Where to spill and how much to hold.
#[derive(Clone, Debug)]
pub(super) struct Room {
    pub memory: MemoryBudget,
    pub work_dir: PathBuf,
}

/// The one spelling of an address; what is no address stays as it is.
fn spelled(url: &str) -> String {
    normalize(url).unwrap_or_else(|| url.to_owned())
}

/// The pages with the smallest random numbers, and how many there are in all.
pub(super) struct Bottom {
    wanted: usize,
    key: u64,
    smallest: BTreeMap<u64, Page>,
    all: Sorter<u64>,
}

impl Bottom {
    pub(super) fn new(wanted: usize, seed: u64, room: &Room) -> Result<Bottom, MemberFailure> {
        let params = SortParams::new(&room.work_dir, room.memory.share(1, 2)).dedup();
        Ok(Bottom {
            wanted,
            key: scramble(seed ^ 0x5a17),
            smallest: BTreeMap::new(),
            all: Sorter::new(params)?,
        })
    }

    /// A page that is known by `unit`.
    pub(super) fn push(&mut self, unit: u64, page: impl FnOnce() -> Page) -> Result<(), MemberFailure> {
        // A bijection: different pages have different numbers.
        let number = scramble(unit ^ self.key);
        self.all.push(number)?;
        let last = self.smallest.last_key_value().map(|(last, _)| *last);
        let room = self.smallest.len() < self.wanted;
        if (room || last.is_some_and(|last| number < last)) && !self.smallest.contains_key(&number) {
            self.smallest.insert(number, page());
            if self.smallest.len() > self.wanted {
                self.smallest.pop_last();
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<(Sample, u64), MemberFailure> {
        let mut count = 0;
        for number in self.all.finish()? {
            number?;
            count += 1;
        }
        let pages = self.smallest.into_values().map(|page| Sampled { page, weight: 1.0 }).collect();
        Ok((Sample { pages, is_whole: count <= self.wanted as u64 }, count))
    }
}

/// Answers by one key a page.
pub(super) struct Questions<'a> {
    by_key: HashMap<u64, Vec<u32>>,
    answers: Vec<Presence>,
    pages: &'a [Page],
}

impl<'a> Questions<'a> {
    pub(super) fn new(pages: &'a [Page], key: impl Fn(&Page) -> Option<u64>) -> Questions<'a> {
        let mut by_key: HashMap<u64, Vec<u32>> = HashMap::new();
        // A page that is not known by what is compared cannot be looked for.
        let mut answers = vec![Presence::Unknown; pages.len()];
        for (at, page) in pages.iter().enumerate() {
            if let Some(key) = key(page) {
                by_key.entry(key).or_default().push(at as u32);
                answers[at] = Presence::Absent;
            }
        }
        Questions { by_key, answers, pages }
    }

    pub(super) fn meet(&mut self, key: u64) {
        for at in self.by_key.get(&key).into_iter().flatten() {
            self.answers[*at as usize] = Presence::Present;
        }
    }

    pub(super) fn finish(self) -> Vec<Presence> {
        debug_assert_eq!(self.answers.len(), self.pages.len());
        self.answers
    }
}

pub(super) fn url_key(page: &Page) -> Option<u64> {
    page.url.as_ref().map(|url| xxh3_64(url.as_bytes()))
}

/// What a member is read from.
pub(super) trait Source {
    /// Draws a sample, and counts the pages where they are counted one by one. `name` is for
    /// messages.
    fn draw(&mut self, name: &str, bottom: Bottom) -> Result<(Sample, Option<u64>), MemberFailure>;

    /// See [`Member::contains`].
    fn contains(&mut self, pages: &[Page]) -> Result<Vec<Presence>, MemberFailure>;
}

/// A member that is on disk. It is counted when a sample is drawn.
pub(super) struct Stored<S> {
    name: String,
    room: Room,
    count: Option<u64>,
    source: S,
}

impl<S: Source> Stored<S> {
    pub(super) fn new(name: &str, room: &Room, source: S) -> Stored<S> {
        Stored { name: name.to_owned(), room: room.clone(), count: None, source }
    }
}

impl<S: Source> Member for Stored<S> {
    fn name(&self) -> &str {
        &self.name
    }

    fn count(&mut self) -> Result<Option<u64>, MemberFailure> {
        Ok(self.count)
    }

    fn sample(&mut self, wanted: usize, seed: u64) -> Result<Sample, MemberFailure> {
        let bottom = Bottom::new(wanted, seed, &self.room)?;
        let (sample, count) = self.source.draw(&self.name, bottom)?;
        self.count = count.or(self.count);
        Ok(sample)
    }

    fn contains(&mut self, pages: &[Page]) -> Result<Vec<Presence>, MemberFailure> {
        self.source.contains(pages)
    }
}

/// An atlas.
pub(super) struct AtlasMember {
    atlas: Atlas,
    by: By,
    /// The bits of a text's fingerprint that are compared.
    text_bits: u64,
}

impl AtlasMember {
    pub(super) fn new(atlas: Atlas, by: By) -> AtlasMember {
        AtlasMember { atlas, by, text_bits: u64::MAX }
    }

    /// Compares texts by these bits of their fingerprints, since another member knows no others.
    pub(super) fn with_text_bits(self, text_bits: u64) -> AtlasMember {
        AtlasMember { text_bits, ..self }
    }

    /// Every document with its sketch, in order; documents without a text do not come.
    fn sketched(&self, each: &mut dyn FnMut(Page)) -> Result<(), MemberFailure> {
        let mut sketches = self.atlas.sketches()?;
        let mut documents = self.atlas.documents()?.select::<(Doc, TextFp)>();
        let mut next = owned(sketches.next_row()?);
        while let Some(batch) = documents.next_batch()? {
            for (here, text_fp) in batch.rows() {
                while next.as_ref().is_some_and(|(doc, _)| *doc < here) {
                    next = owned(sketches.next_row()?);
                }
                let Some((_, sketch)) = next.take_if(|(doc, _)| *doc == here) else { continue };
                each(Page { url: None, text_fp, sketch: Some(sketch) });
                next = owned(sketches.next_row()?);
            }
        }
        Ok(())
    }

    /// Gives the sampled pages their sketches, and weighs each by how many different texts of the
    /// atlas are near copies of it.
    fn weigh(&self, sample: &mut Sample, threshold: f64) -> Result<(), MemberFailure> {
        let mut wanted: HashMap<u64, usize> = HashMap::new();
        for (at, sampled) in sample.pages.iter().enumerate() {
            wanted.extend(sampled.page.text_fp.map(|text| (text, at)));
        }
        self.sketched(&mut |page| {
            if let Some(at) = page.text_fp.and_then(|text| wanted.get(&text)) {
                sample.pages[*at].page.sketch = page.sketch;
            }
        })?;
        let pages: Vec<Page> = sample.pages.iter().map(|sampled| sampled.page.clone()).collect();
        let mut index = NearIndex::new(&pages, threshold);
        let mut copies: Vec<HashSet<u64>> = vec![HashSet::new(); pages.len()];
        self.sketched(&mut |page| {
            for at in index.copies(&page) {
                let copies = &mut copies[*at as usize];
                if copies.len() < MOST_COPIES {
                    copies.extend(page.text_fp);
                }
            }
        })?;
        for (sampled, copies) in sample.pages.iter_mut().zip(copies) {
            sampled.weight = 1.0 / copies.len().max(1) as f64;
        }
        Ok(())
    }
}

fn owned(row: Option<(DocId, &[u32])>) -> Option<(DocId, Vec<u32>)> {
    row.map(|(doc, sketch)| (doc, sketch.to_vec()))
}

impl Source for AtlasMember {
    fn draw(&mut self, _: &str, mut bottom: Bottom) -> Result<(Sample, Option<u64>), MemberFailure> {
        let mut documents = self.atlas.documents()?.select::<(Url, TextFp)>();
        while let Some(batch) = documents.next_batch()? {
            for (url, text_fp) in batch.rows() {
                let url = url.map(spelled);
                let text_fp = text_fp.map(|fp| fp & self.text_bits);
                let unit = match self.by {
                    By::Url => url.as_ref().map(|url| xxh3_64(url.as_bytes())),
                    _ => text_fp,
                };
                if let Some(unit) = unit {
                    bottom.push(unit, || Page { url, text_fp, sketch: None })?;
                }
            }
        }
        let (mut sample, count) = bottom.finish()?;
        let By::Near { threshold } = self.by else { return Ok((sample, Some(count))) };
        self.weigh(&mut sample, threshold)?;
        // Near copies are not counted one by one: how many contents there are is an estimate like
        // the others, except that there are none where there are no texts.
        Ok((sample, (count == 0).then_some(0)))
    }

    fn contains(&mut self, pages: &[Page]) -> Result<Vec<Presence>, MemberFailure> {
        if let By::Near { threshold } = self.by {
            let mut answers: Vec<Presence> = pages
                .iter()
                .map(|page| if page.text_fp.is_some() { Presence::Absent } else { Presence::Unknown })
                .collect();
            let mut index = NearIndex::new(pages, threshold);
            self.sketched(&mut |page| {
                for at in index.copies(&page) {
                    answers[*at as usize] = Presence::Present;
                }
            })?;
            return Ok(answers);
        }
        let by_url = self.by == By::Url;
        let text = |fp: Option<u64>| fp.map(|fp| fp & self.text_bits);
        let mut questions =
            Questions::new(pages, |page| if by_url { url_key(page) } else { text(page.text_fp) });
        let documents = self.atlas.documents()?;
        if by_url {
            for batch in documents.select::<(Url,)>() {
                for (url,) in batch?.rows() {
                    url.into_iter().for_each(|url| questions.meet(xxh3_64(spelled(url).as_bytes())));
                }
            }
        } else {
            for batch in documents.select::<(TextFp,)>() {
                for (text_fp,) in batch?.rows() {
                    text(text_fp).into_iter().for_each(|key| questions.meet(key));
                }
            }
        }
        Ok(questions.finish())
    }
}

/// A list of addresses, one a line.
pub(super) struct ListMember {
    path: PathBuf,
    /// Lines that are no addresses.
    pub(super) bad_lines: u64,
}

impl ListMember {
    /// The list in a file, plain or gzipped; `-` is standard input, which is kept in a file since
    /// it is read twice.
    pub(super) fn new(name: &str, room: &Room) -> io::Result<ListMember> {
        let mut path = PathBuf::from(name);
        if name == "-" {
            path = room.work_dir.join("addresses.txt");
            let mut file = File::create(&path)?;
            io::copy(&mut io::stdin().lock(), &mut file)?;
            file.flush()?;
        }
        // Found out now and not after hours of sampling others.
        File::open(&path)?;
        Ok(ListMember { path, bad_lines: 0 })
    }

    fn each(
        &self,
        address: &mut dyn FnMut(String) -> Result<(), MemberFailure>,
    ) -> Result<u64, MemberFailure> {
        let mut bad = 0;
        let mut lines = open_lines(&self.path)?;
        let mut line = Vec::new();
        loop {
            line.clear();
            if lines.read_until(b'\n', &mut line)? == 0 {
                return Ok(bad);
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            match normalize(text) {
                Some(url) => address(url)?,
                None => bad += 1,
            }
        }
    }
}

/// A text file, gunzipped where it needs to be.
pub(super) fn open_lines(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::new(File::open(path)?);
    let is_gzip = file.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    let plain: Box<dyn Read> = if is_gzip { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    Ok(Box::new(BufReader::with_capacity(256 << 10, plain)))
}

impl Source for ListMember {
    fn draw(&mut self, name: &str, mut bottom: Bottom) -> Result<(Sample, Option<u64>), MemberFailure> {
        self.bad_lines = self.each(&mut |url| {
            bottom.push(xxh3_64(url.as_bytes()), || Page { url: Some(url), ..Page::default() })
        })?;
        if self.bad_lines > 0 {
            tracing::warn!(
                list = name,
                lines = self.bad_lines,
                "lines that are no addresses were passed over"
            );
        }
        let (sample, count) = bottom.finish()?;
        Ok((sample, Some(count)))
    }

    fn contains(&mut self, pages: &[Page]) -> Result<Vec<Presence>, MemberFailure> {
        let mut questions = Questions::new(pages, url_key);
        self.each(&mut |url| {
            questions.meet(xxh3_64(url.as_bytes()));
            Ok(())
        })?;
        Ok(questions.finish())
    }
}
