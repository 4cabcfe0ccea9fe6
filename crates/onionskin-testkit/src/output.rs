//! Webs as files: a folder of HTML, JSON lines, WARC.
//!
//! All of them stream: one page is in memory at a time. Since pages do not depend on each other, a
//! web can also be written in parts, by any number of threads, each with its own range of pages.

use std::{
    fs::{self, File},
    io::{self, Write},
    ops::Range,
    path::{Path, PathBuf},
};

use crate::{
    page::Composer,
    warc::{Records, WarcOptions},
    web::Web,
};

/// Told now and then how many pages and bytes have been written so far.
pub type Progress<'a> = dyn FnMut(u64, u64) + 'a;

/// Why a web could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A file or folder could not be made or written.
    #[error("{}", path.display())]
    At {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The writer that was given refused.
    #[error("writing page {page}")]
    Page {
        /// The page at which it happened.
        page: u64,
        /// Why.
        source: io::Error,
    },
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Pages.
    pub pages: u64,
    /// Bytes, before any compression that the receiver does.
    pub bytes: u64,
    /// Files.
    pub files: u64,
}

/// Receives a web in several files.
pub trait ShardSink {
    /// What a file is written to.
    type Out: Write;

    /// Opens file number `shard`, counted from 0.
    fn open(&mut self, shard: u32) -> io::Result<Self::Out>;

    /// Ends a file: flushes it, ends its compression.
    fn close(&mut self, out: Self::Out) -> io::Result<()> {
        let mut out = out;
        out.flush()
    }
}

/// What one page becomes in a file.
enum Format<'w> {
    Jsonl(Composer<'w>),
    Warc(Box<Records<'w>>),
}

impl Format<'_> {
    /// What a file opens with.
    fn push_opening(&mut self, shard: u32, out: &mut Vec<u8>) {
        if let Format::Warc(records) = self {
            records.push_info(shard, out);
        }
    }

    fn push_page(&mut self, page: u64, out: &mut Vec<u8>) {
        match self {
            Format::Jsonl(composer) => composer.push_json_line(page, out),
            Format::Warc(records) => records.push_page(page, out),
        }
    }
}

/// Writes one file after the other.
struct ShardWriter<'w> {
    format: Format<'w>,
    /// Still to be written.
    pages: Range<u64>,
    written: Written,
    buffer: Vec<u8>,
}

impl<'w> ShardWriter<'w> {
    fn new(web: &Web, format: Format<'w>, pages: Range<u64>) -> ShardWriter<'w> {
        let pages = pages.start..pages.end.min(web.n_pages());
        ShardWriter { format, pages, written: Written::default(), buffer: Vec::with_capacity(2 * BUFFER) }
    }

    fn failed(&self, source: io::Error) -> WriteError {
        WriteError::Page { page: self.pages.start, source }
    }

    /// Writes pages until the file has `shard_bytes`; at least one, if there are any, or there
    /// would be no end of files.
    fn fill<W: Write>(
        &mut self,
        out: &mut W,
        shard_bytes: u64,
        progress: &mut Progress<'_>,
    ) -> Result<(), WriteError> {
        self.format.push_opening(self.written.files as u32, &mut self.buffer);
        self.written.files += 1;
        let mut shard = 0;
        let mut full = false;
        while !full && let Some(page) = self.pages.next() {
            self.format.push_page(page, &mut self.buffer);
            self.written.pages += 1;
            full = shard + self.buffer.len() as u64 >= shard_bytes;
            if self.buffer.len() >= BUFFER {
                shard += self.hand_on(out)?;
            }
            if self.written.pages.is_multiple_of(REPORT_EVERY) {
                progress(self.written.pages, self.written.bytes + self.buffer.len() as u64);
            }
        }
        self.hand_on(out)?;
        progress(self.written.pages, self.written.bytes);
        Ok(())
    }

    fn hand_on<W: Write>(&mut self, out: &mut W) -> Result<u64, WriteError> {
        out.write_all(&self.buffer).map_err(|source| self.failed(source))?;
        let bytes = self.buffer.len() as u64;
        self.written.bytes += bytes;
        self.buffer.clear();
        Ok(bytes)
    }
}

/// Pages between two reports of progress.
const REPORT_EVERY: u64 = 1_000;
/// Bytes gathered before they are handed on.
const BUFFER: usize = 256 << 10;

impl Web {
    /// Writes JSON lines `{"id", "url", "text"}` for a range of pages; `0..n_pages()` is all of
    /// them.
    ///
    /// ```
    /// use onionskin_testkit::{Web, WebSpec};
    /// let web = Web::new(&WebSpec::preset("text", 100, 1)?)?;
    /// let mut out = Vec::new();
    /// web.write_jsonl(&mut out, 0..web.n_pages(), &mut |_pages, _bytes| {})?;
    /// assert_eq!(out.split(|&byte| byte == b'\n').count(), 101);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_jsonl<W: Write>(
        &self,
        out: &mut W,
        pages: Range<u64>,
        progress: &mut Progress<'_>,
    ) -> Result<Written, WriteError> {
        self.write_one(Format::Jsonl(Composer::new(self)), out, pages, progress)
    }

    /// Writes JSON lines into files of about `shard_bytes` each.
    pub fn write_jsonl_shards<S: ShardSink>(
        &self,
        sink: &mut S,
        pages: Range<u64>,
        shard_bytes: u64,
        progress: &mut Progress<'_>,
    ) -> Result<Written, WriteError> {
        self.write_shards(Format::Jsonl(Composer::new(self)), sink, pages, shard_bytes, progress)
    }

    /// Writes a third of the pages each in three shapes into a folder: `a.warc.gz`, `b.jsonl`, and
    /// a folder `c` with a text file per page.
    pub fn write_three_shapes(&self, folder: &Path) -> Result<[PathBuf; 3], WriteError> {
        let paths = ["a.warc.gz", "b.jsonl", "c"].map(|name| folder.join(name));
        let [warc, jsonl, texts] = &paths;
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| WriteError::At { path, source }
        };
        let third = self.n_pages() / 3;
        let options = WarcOptions { gzip: true, ..WarcOptions::default() };
        let mut out = File::create(warc).map_err(at(warc))?;
        self.write_warc(&mut out, 0..third, options, &mut |_, _| {})?;
        let mut out = File::create(jsonl).map_err(at(jsonl))?;
        self.write_jsonl(&mut out, third..2 * third, &mut |_, _| {})?;
        fs::create_dir(texts).map_err(at(texts))?;
        let mut composer = Composer::new(self);
        for page in 2 * third..self.n_pages() {
            let file = texts.join(format!("{page:05}.txt"));
            fs::write(&file, composer.text(page)).map_err(at(&file))?;
        }
        Ok(paths)
    }

    /// Writes a WARC file with a range of pages: a `warcinfo` record, then for each page a
    /// `request` (if wanted) and a `response`.
    pub fn write_warc<W: Write>(
        &self,
        out: &mut W,
        pages: Range<u64>,
        options: WarcOptions,
        progress: &mut Progress<'_>,
    ) -> Result<Written, WriteError> {
        self.write_one(Format::Warc(Box::new(Records::new(self, options))), out, pages, progress)
    }

    /// Writes WARC files of about `shard_bytes` each.
    pub fn write_warc_shards<S: ShardSink>(
        &self,
        sink: &mut S,
        pages: Range<u64>,
        options: WarcOptions,
        shard_bytes: u64,
        progress: &mut Progress<'_>,
    ) -> Result<Written, WriteError> {
        let format = Format::Warc(Box::new(Records::new(self, options)));
        self.write_shards(format, sink, pages, shard_bytes, progress)
    }

    fn write_one<W: Write>(
        &self,
        format: Format<'_>,
        out: &mut W,
        pages: Range<u64>,
        progress: &mut Progress<'_>,
    ) -> Result<Written, WriteError> {
        let mut writer = ShardWriter::new(self, format, pages);
        writer.fill(out, u64::MAX, progress)?;
        out.flush().map_err(|source| writer.failed(source))?;
        Ok(writer.written)
    }

    fn write_shards<S: ShardSink>(
        &self,
        format: Format<'_>,
        sink: &mut S,
        pages: Range<u64>,
        shard_bytes: u64,
        progress: &mut Progress<'_>,
    ) -> Result<Written, WriteError> {
        let mut writer = ShardWriter::new(self, format, pages);
        loop {
            let mut out = sink.open(writer.written.files as u32).map_err(|source| writer.failed(source))?;
            writer.fill(&mut out, shard_bytes, progress)?;
            sink.close(out).map_err(|source| writer.failed(source))?;
            if writer.pages.is_empty() {
                return Ok(writer.written);
            }
        }
    }

    /// Writes every page to `dir/host/path/page.html`.
    pub fn write_folder(&self, dir: &Path, progress: &mut Progress<'_>) -> Result<Written, WriteError> {
        let mut composer = Composer::new(self);
        let mut written = Written::default();
        let mut made = PathBuf::new();
        for page in 0..self.n_pages() {
            let url = self.url(page);
            let path = dir.join(url.trim_start_matches("http://"));
            let at = |path: &Path, source| WriteError::At { path: path.to_owned(), source };
            // Neighbouring pages mostly share a folder.
            if let Some(parent) = path.parent().filter(|&parent| parent != made) {
                fs::create_dir_all(parent).map_err(|source| at(parent, source))?;
                made = parent.to_owned();
            }
            let (html, _) = composer.html(page);
            let mut file = File::create(&path).map_err(|source| at(&path, source))?;
            file.write_all(html).map_err(|source| at(&path, source))?;
            written.pages += 1;
            written.files += 1;
            written.bytes += html.len() as u64;
            if written.pages.is_multiple_of(REPORT_EVERY) {
                progress(written.pages, written.bytes);
            }
        }
        progress(written.pages, written.bytes);
        Ok(written)
    }
}

#[cfg(test)]
mod tests;
