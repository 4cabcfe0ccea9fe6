//! The text of PDF and PostScript files.
//!
//! Two readers of PDF agree on the words of a document and not on their order, so which one is used
//! is an option, part of the names an atlas is made under, and never a fallback: documents read by
//! two of them cannot be compared. PostScript is a program, not a document; it is turned into PDF
//! by Ghostscript and then read by `pdftotext`, because the direct ways lose the spaces between
//! words.
//!
//! The built-in reader panics on some damaged files, and could be led into endless recursion by
//! hostile ones. Panics are caught; the two known ways into recursion are looked for beforehand;
//! and the clock is looked at whenever text comes out. What is left, a loop without output, costs a
//! thread that is given up, and those are counted. A program that wants more gives
//! [`ExtractOptions::pdf_worker`](crate::ExtractOptions::pdf_worker), and the reader runs in a
//! process of its own, where nothing it does can hurt.

use crate::ExtractError;
use crate::tool::{self, ToolLimits};
use pdf_extract::{
    ColorSpace, Dictionary, Document, MediaBox, Object, OutputDev, OutputError, Path, PlainTextOutput,
    Stream, Transform,
};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The name of the threads the built-in reader runs in, for panic hooks that want to be silent
/// about them.
pub const PDF_THREAD_NAME: &str = "onionskin-pdf";

const BUILT_IN: &str = "pdf-extract";

/// What the manifest calls the built-in reader.
pub(crate) const BUILT_IN_NAME: &str = "pdf-extract/0.12";

/// Threads that were given up before the built-in reader is taken to be unusable in this process.
const MAX_LOST_THREADS: u32 = 8;

/// The stack of the built-in reader's thread, of which little is touched as a rule.
const STACK_BYTES: usize = 32 << 20;

/// How deep forms may stand in one another, and pages in the tree of pages.
const MAX_DEPTH: usize = 32;

static LOST_THREADS: AtomicU32 = AtomicU32::new(0);

/// Reads a PDF by `pdftotext`.
pub(crate) fn by_pdftotext(bytes: &[u8], limits: ToolLimits) -> Result<Vec<u8>, ExtractError> {
    let mut command = Command::new("pdftotext");
    command.args(["-q", "-enc", "UTF-8", "-nopgbrk", "-", "-"]);
    tool::run("pdftotext", command, bytes, limits)
}

/// Reads PostScript by way of PDF.
pub(crate) fn from_postscript(bytes: &[u8], limits: ToolLimits) -> Result<Vec<u8>, ExtractError> {
    let begin = Instant::now();
    let mut command = Command::new("gs");
    command.args(["-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", "-sDEVICE=pdfwrite", "-sOutputFile=-", "-"]);
    let pdf_limits = ToolLimits { output_bytes: limits.output_bytes.saturating_mul(8), ..limits };
    let pdf = tool::run("gs", command, bytes, pdf_limits)?;
    let left = ToolLimits { time: limits.time.saturating_sub(begin.elapsed()), ..limits };
    by_pdftotext(&pdf, left)
}

/// Reads a PDF by the built-in reader in a process of its own.
pub(crate) fn by_worker(
    worker: &[String],
    bytes: &[u8],
    limits: ToolLimits,
) -> Result<Vec<u8>, ExtractError> {
    let Some((program, arguments)) = worker.split_first() else {
        return Err(ExtractError::ToolMissing { tool: BUILT_IN });
    };
    let mut command = Command::new(program);
    command.args(arguments);
    let memory_bytes = limits.memory_bytes.saturating_add(STACK_BYTES as u64);
    let mut answer = tool::run(BUILT_IN, command, bytes, ToolLimits { memory_bytes, ..limits })?;
    match answer.first() {
        Some(b'T') => {
            answer.remove(0);
            Ok(answer)
        }
        Some(b'E') => Err(ExtractError::Failed {
            tool: BUILT_IN,
            reason: String::from_utf8_lossy(&answer[1..]).into_owned(),
        }),
        _ => Err(ExtractError::Failed { tool: BUILT_IN, reason: "its process gave no answer".to_owned() }),
    }
}

/// The other side of [`ExtractOptions::pdf_worker`](crate::ExtractOptions::pdf_worker): reads one
/// PDF and writes `T` and its text, or `E` and what went wrong. For a process that does nothing
/// else. Its parent limits its memory, its time and its output.
pub fn pdf_worker(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let limits = ToolLimits {
        time: Duration::from_secs(24 * 60 * 60),
        output_bytes: u64::MAX >> 1,
        memory_bytes: u64::MAX,
    };
    match built_in(bytes, limits) {
        Ok(text) => {
            output.write_all(b"T")?;
            output.write_all(text.as_bytes())?;
        }
        // The parent says who read it.
        Err(ExtractError::Failed { reason, .. }) => write!(output, "E{reason}")?,
        Err(error) => write!(output, "E{error}")?,
    }
    output.flush()
}

/// Reads a PDF by the built-in reader, in a thread that is given up when its time is over.
pub(crate) fn built_in(bytes: Vec<u8>, limits: ToolLimits) -> Result<String, ExtractError> {
    let fail = |reason: String| ExtractError::Failed { tool: BUILT_IN, reason };
    if LOST_THREADS.load(Ordering::Relaxed) >= MAX_LOST_THREADS {
        return Err(fail(format!("{MAX_LOST_THREADS} readers hang already")));
    }
    let deadline = Instant::now() + limits.time;
    let (send, receive) = mpsc::channel();
    std::thread::Builder::new()
        .name(PDF_THREAD_NAME.to_owned())
        // The reader's recursion over nested objects is bounded, but not by a small number.
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(|| read(&bytes, deadline, limits.output_bytes)));
            let _ = send.send(result);
        })
        .map_err(|error| fail(error.to_string()))?;
    // The reader looks at the clock itself: it gets a little longer, so that a thread is only lost
    // if it really hangs.
    match receive.recv_timeout(limits.time.saturating_add(Duration::from_secs(2))) {
        Ok(Ok(Ok(text))) => Ok(text),
        Ok(Ok(Err(Stop::TooLarge))) => Err(ExtractError::TooLarge { limit: limits.output_bytes }),
        Ok(Ok(Err(Stop::TimedOut))) => {
            Err(ExtractError::TimedOut { tool: BUILT_IN, seconds: limits.time.as_secs() })
        }
        Ok(Ok(Err(Stop::Failed(reason)))) => Err(fail(reason)),
        Ok(Err(_)) => Err(fail("the reader could not make sense of the file and gave up".to_owned())),
        Err(_) => {
            let lost = LOST_THREADS.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::warn!(lost, "a PDF reader hangs and was given up");
            Err(ExtractError::TimedOut { tool: BUILT_IN, seconds: limits.time.as_secs() })
        }
    }
}

enum Stop {
    TooLarge,
    TimedOut,
    Failed(String),
}

fn read(bytes: &[u8], deadline: Instant, max_bytes: u64) -> Result<String, Stop> {
    let mut document = Document::load_mem(bytes).map_err(|error| Stop::Failed(error.to_string()))?;
    if document.is_encrypted() {
        document.decrypt("").map_err(|error| Stop::Failed(error.to_string()))?;
    }
    if let Some(reason) = endless(&document) {
        return Err(Stop::Failed(reason.to_owned()));
    }
    let mut text = String::new();
    let mut device =
        LimitedDevice { inner: PlainTextOutput::new(&mut text), written: 0, max_bytes, deadline, stop: None };
    let result = pdf_extract::output_doc(&document, &mut device);
    let stop = device.stop.take();
    match (result, stop) {
        (_, Some(stop)) => Err(stop),
        (Err(error), None) => Err(Stop::Failed(error.to_string())),
        (Ok(()), None) => Ok(text),
    }
}

/// Passes everything on, until there is too much of it or it is too late.
struct LimitedDevice<'a> {
    inner: PlainTextOutput<&'a mut String>,
    written: u64,
    max_bytes: u64,
    deadline: Instant,
    stop: Option<Stop>,
}

impl LimitedDevice<'_> {
    fn check(&mut self) -> Result<(), OutputError> {
        self.stop = if self.written > self.max_bytes {
            Some(Stop::TooLarge)
        } else if Instant::now() > self.deadline {
            Some(Stop::TimedOut)
        } else {
            return Ok(());
        };
        Err(OutputError::FormatError(fmt::Error))
    }
}

impl OutputDev for LimitedDevice<'_> {
    fn begin_page(
        &mut self,
        page_num: u32,
        media_box: &MediaBox,
        art_box: Option<(f64, f64, f64, f64)>,
    ) -> Result<(), OutputError> {
        self.check()?;
        self.inner.begin_page(page_num, media_box, art_box)
    }

    fn end_page(&mut self) -> Result<(), OutputError> {
        self.inner.end_page()
    }

    fn output_character(
        &mut self,
        trm: &Transform,
        width: f64,
        spacing: f64,
        font_size: f64,
        char: &str,
    ) -> Result<(), OutputError> {
        self.written += char.len() as u64;
        if self.written > self.max_bytes {
            return self.check();
        }
        self.inner.output_character(trm, width, spacing, font_size, char)
    }

    fn begin_word(&mut self) -> Result<(), OutputError> {
        self.check()?;
        self.inner.begin_word()
    }

    fn end_word(&mut self) -> Result<(), OutputError> {
        self.inner.end_word()
    }

    fn end_line(&mut self) -> Result<(), OutputError> {
        self.inner.end_line()
    }

    fn stroke(&mut self, _: &Transform, _: &ColorSpace, _: &[f64], _: &Path) -> Result<(), OutputError> {
        self.check()
    }

    fn fill(&mut self, _: &Transform, _: &ColorSpace, _: &[f64], _: &Path) -> Result<(), OutputError> {
        self.check()
    }
}

/// Why reading the document would not come to an end, if it would not: pages that are their own
/// parents, or forms that draw themselves, which the reader follows by recursion.
fn endless(document: &Document) -> Option<&'static str> {
    for page in document.page_iter() {
        let mut dictionary = document.get_dictionary(page).ok();
        for depth in 0.. {
            let Some(current) = dictionary else { break };
            if depth > MAX_DEPTH * 4 {
                return Some("its tree of pages is too deep");
            }
            dictionary = current
                .get(b"Parent")
                .and_then(Object::as_reference)
                .and_then(|parent| document.get_dictionary(parent))
                .ok();
        }
    }
    // The forms each form may draw. One without resources of its own may draw what its caller can,
    // itself included.
    let mut draws: BTreeMap<(u32, u16), Vec<(u32, u16)>> = BTreeMap::new();
    for (&id, object) in &document.objects {
        let Object::Stream(stream) = object else { continue };
        if stream.dict.get(b"Subtype").and_then(Object::as_name).ok() != Some(b"Form") {
            continue;
        }
        match resources(document, stream) {
            Some(resources) => {
                draws.insert(id, forms(document, resources));
            }
            None if may_draw(stream) => return Some("a form draws what is not its own"),
            None => {
                draws.insert(id, Vec::new());
            }
        }
    }
    // Forms that draw none that is left go; what is left after as many rounds as forms may be deep
    // goes in circles.
    for _ in 0..MAX_DEPTH {
        let before = draws.len();
        let leaves: Vec<_> = draws
            .iter()
            .filter(|(_, drawn)| !drawn.iter().any(|form| draws.contains_key(form)))
            .map(|(&id, _)| id)
            .collect();
        for leaf in leaves {
            draws.remove(&leaf);
        }
        if draws.len() == before {
            break;
        }
    }
    (!draws.is_empty()).then_some("its forms draw one another without end")
}

fn resources<'a>(document: &'a Document, stream: &'a Stream) -> Option<&'a Dictionary> {
    let resources = stream.dict.get(b"Resources").ok()?;
    document.dereference(resources).ok()?.1.as_dict().ok()
}

/// The objects that a dictionary of resources lets be drawn.
fn forms(document: &Document, resources: &Dictionary) -> Vec<(u32, u16)> {
    let Some(drawable) = resources
        .get(b"XObject")
        .and_then(|object| document.dereference(object))
        .and_then(|(_, object)| object.as_dict())
        .ok()
    else {
        return Vec::new();
    };
    drawable.iter().filter_map(|(_, object)| document.dereference(object).ok()?.0).collect()
}

fn may_draw(stream: &Stream) -> bool {
    let content = stream.decompressed_content();
    memchr::memmem::find(content.as_deref().unwrap_or(&stream.content), b"Do").is_some()
}

#[cfg(test)]
mod tests;
