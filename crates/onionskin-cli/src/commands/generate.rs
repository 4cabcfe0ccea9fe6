//! `generate`: webs with known answers.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use onionskin_store::MemoryBudget;
use onionskin_testkit::{ShardSink, Summary, TruthOptions, WarcOptions, Web, WebSpec, Written};
use serde::Serialize;

use crate::Exit;
use crate::args::{Compression, GenerateArgs, Global, OutputFormat};
use crate::output::{bytes, grouped, print_tagged, tell};
use crate::progress::Bar;

#[derive(Serialize)]
struct GenerateWire<'a> {
    pages: u64,
    bytes: u64,
    files: u64,
    summary: Option<&'a Summary>,
}

pub(crate) fn run(args: &GenerateArgs, global: &Global) -> anyhow::Result<Exit> {
    let pages = args.pages.unwrap_or_else(|| args.preset.usual_pages());
    let mut spec = WebSpec::of(args.preset, pages, args.seed);
    if let Some(mean) = args.mean_words {
        spec = spec.with_mean_words(mean);
    }
    let web = Web::new(&spec)?;
    let to_stdout = args.output.as_os_str() == "-";
    if to_stdout && (args.format != OutputFormat::Jsonl || args.shard_bytes.is_some()) {
        bail!("only one stream of JSON lines can go to standard output; name a folder");
    }
    if args.format == OutputFormat::Folder && (args.compress.is_some() || args.shard_bytes.is_some()) {
        bail!("a folder of pages is neither compressed nor cut");
    }
    let bar = Bar::pages(global, web.n_pages());
    let written = write(args, &web, to_stdout, &bar)?;
    let summary = match &args.truth {
        None => None,
        Some(path) => Some(write_truth(&web, path, &bar)?),
    };
    bar.finish();
    if global.json && !to_stdout {
        let Written { pages, bytes, files } = written;
        print_tagged("generate", &GenerateWire { pages, bytes, files, summary: summary.as_ref() })?;
    } else if !global.quiet {
        told(&written);
    }
    Ok(Exit::Done)
}

fn told(written: &Written) {
    tell(&format!(
        "{} pages, {} in {} files",
        grouped(written.pages),
        bytes(written.bytes),
        grouped(written.files)
    ));
}

/// Writes what is true of a web.
pub(crate) fn write_truth(web: &Web, path: &Path, bar: &Bar) -> anyhow::Result<Summary> {
    let naming = || format!("writing {}", path.display());
    let mut file = File::create(path).with_context(naming)?;
    let summary = web
        .write_truth(&mut file, TruthOptions::default(), &mut |pages, _| bar.set(pages, "writing the truth"))
        .with_context(naming)?;
    Ok(summary)
}

fn write(args: &GenerateArgs, web: &Web, to_stdout: bool, bar: &Bar) -> anyhow::Result<Written> {
    let mut progress = |pages: u64, written: u64| bar.set(pages, bytes(written));
    let all = 0..web.n_pages();
    if to_stdout {
        let mut out = Encoder::new(io::stdout().lock(), args.compress)?;
        let written = web.write_jsonl(&mut out, all, &mut progress).map_err(unwrap_page)?;
        out.finish()?;
        return Ok(written);
    }
    let naming = || format!("writing {}", args.output.display());
    if args.format == OutputFormat::Folder {
        return web.write_folder(&args.output, &mut progress).with_context(naming);
    }
    let shard_bytes = args.shard_bytes.map_or(u64::MAX, MemoryBudget::bytes);
    // JSON lines in one piece may be given the name of a file.
    let one_file =
        args.format == OutputFormat::Jsonl && args.shard_bytes.is_none() && args.output.extension().is_some();
    let folder = if one_file { args.output.parent() } else { Some(args.output.as_path()) };
    if let Some(folder) = folder.filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).with_context(naming)?;
    }
    // In WARC files gzip goes around each record, which the generator does itself.
    let inner_gzip = args.format == OutputFormat::Warc && args.compress == Some(Compression::Gz);
    let mut sink = Files {
        place: if one_file { Place::File(args.output.clone()) } else { Place::Folder(args.output.clone()) },
        stem: if args.format == OutputFormat::Warc { "pages.warc" } else { "pages.jsonl" },
        ending: args.compress,
        compress: args.compress.filter(|_| !inner_gzip),
    };
    let written = match args.format {
        OutputFormat::Warc => {
            let options = WarcOptions { gzip: inner_gzip, ..WarcOptions::default() };
            web.write_warc_shards(&mut sink, all, options, shard_bytes, &mut progress)
        }
        _ => web.write_jsonl_shards(&mut sink, all, shard_bytes, &mut progress),
    };
    written.with_context(naming)
}

/// A closed pipe must be seen as one.
fn unwrap_page(error: onionskin_testkit::WriteError) -> anyhow::Error {
    match error {
        onionskin_testkit::WriteError::Page { source, .. } => source.into(),
        other => other.into(),
    }
}

enum Place {
    File(PathBuf),
    Folder(PathBuf),
}

struct Files {
    place: Place,
    stem: &'static str,
    ending: Option<Compression>,
    compress: Option<Compression>,
}

impl ShardSink for Files {
    type Out = Encoder<BufWriter<File>>;

    fn open(&mut self, shard: u32) -> io::Result<Self::Out> {
        let path = match &self.place {
            Place::File(path) => path.clone(),
            Place::Folder(folder) => {
                let (name, kind) = self.stem.split_once('.').unwrap_or((self.stem, "jsonl"));
                let ending = match self.ending {
                    None => "",
                    Some(Compression::Gz) => ".gz",
                    Some(Compression::Zst) => ".zst",
                };
                folder.join(format!("{name}-{shard:05}.{kind}{ending}"))
            }
        };
        Encoder::new(BufWriter::with_capacity(1 << 20, File::create(path)?), self.compress)
    }

    fn close(&mut self, out: Self::Out) -> io::Result<()> {
        out.finish()
    }
}

/// Plain, gzip or zstd.
enum Encoder<W: Write> {
    Plain(W),
    Gz(flate2::write::GzEncoder<W>),
    Zst(zstd::Encoder<'static, W>),
}

impl<W: Write> Encoder<W> {
    fn new(out: W, compression: Option<Compression>) -> io::Result<Encoder<W>> {
        Ok(match compression {
            None => Encoder::Plain(out),
            Some(Compression::Gz) => {
                Encoder::Gz(flate2::write::GzEncoder::new(out, flate2::Compression::fast()))
            }
            Some(Compression::Zst) => Encoder::Zst(zstd::Encoder::new(out, 3)?),
        })
    }

    fn out(&mut self) -> &mut dyn Write {
        match self {
            Encoder::Plain(out) => out,
            Encoder::Gz(out) => out,
            Encoder::Zst(out) => out,
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Encoder::Plain(mut out) => out.flush(),
            Encoder::Gz(out) => out.finish()?.flush(),
            Encoder::Zst(out) => out.finish()?.flush(),
        }
    }
}

impl<W: Write> Write for Encoder<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out().flush()
    }
}
