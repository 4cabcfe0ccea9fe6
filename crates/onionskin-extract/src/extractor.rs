//! One door for every kind of document.

use crate::charset::{self, SelfDeclaration};
use crate::html::HtmlExtractor;
use crate::media::{self, MediaType};
use crate::text::{self, TextWriter};
use crate::tool::ToolLimits;
use crate::{Hints, Page, office, pdf};
use std::process::ExitStatus;
use std::time::Duration;

/// Who reads PDF. Part of what an atlas is made of: texts by two readers are not to be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PdfTool {
    /// The reader that is part of this program.
    #[default]
    BuiltIn,
    /// The program `pdftotext`, three times faster where it is installed.
    Pdftotext,
}

/// How documents are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtractOptions {
    /// Who reads PDF.
    pub pdf: PdfTool,
    /// The command, program first, of a process that calls [`pdf_worker`](crate::pdf_worker) on its
    /// standard input and output. With it the built-in reader runs outside this process, and a file
    /// that makes it hang or overflow its stack is a failed document. Empty: it runs in a thread.
    pub pdf_worker: Vec<String>,
    /// Whether PostScript is read. It is a program, which Ghostscript runs: without access to
    /// files, and still more than the bytes of strangers should be given unasked.
    pub postscript: bool,
    /// How many seconds a document may take that is read by a tool, or by the built-in reader of
    /// PDF.
    pub tool_seconds: u32,
    /// The most text that is taken from one document that is not HTML or plain text, which are
    /// never longer than what they are made from.
    pub max_text_bytes: u64,
    /// Memory that a program which reads a document may ask for, in bytes. Only Linux keeps it.
    pub tool_memory_bytes: u64,
    /// The same two for a first attempt, which [`Extractor::extract_gently`] makes.
    pub small_text_bytes: u64,
    /// See `small_text_bytes`; zero is no attempt.
    pub small_tool_memory_bytes: u64,
}

impl Default for ExtractOptions {
    fn default() -> Self {
        ExtractOptions {
            pdf: PdfTool::BuiltIn,
            pdf_worker: Vec::new(),
            postscript: false,
            tool_seconds: 60,
            max_text_bytes: 64 << 20,
            tool_memory_bytes: 4 << 30,
            small_text_bytes: u64::MAX,
            small_tool_memory_bytes: u64::MAX,
        }
    }
}

/// Why a document has no text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtractError {
    /// The tool ended without an answer, perhaps for want of memory.
    #[error("{tool}: {status}")]
    Ended {
        /// The tool.
        tool: &'static str,
        /// How it ended.
        status: ExitStatus,
    },
    /// Not a document, or not of a kind that is read: to be counted and passed over.
    #[error("no text is read from {media_type}")]
    Unsupported {
        /// What it is.
        media_type: String,
    },
    /// A program is needed that is not installed. Never taken for an empty text: all such documents
    /// would be copies of each other.
    #[error("{tool} is not installed")]
    ToolMissing {
        /// Its name.
        tool: &'static str,
    },
    /// The document is damaged, or its reader is.
    #[error("{tool}: {reason}")]
    Failed {
        /// Who read it.
        tool: &'static str,
        /// What it said.
        reason: String,
    },
    /// More text, or more to unpack, than is allowed.
    #[error("more than {limit} bytes")]
    TooLarge {
        /// How much is allowed.
        limit: u64,
    },
    /// The reader was stopped.
    #[error("{tool} was not done after {seconds} s")]
    TimedOut {
        /// Who read it.
        tool: &'static str,
        /// How long it was given.
        seconds: u64,
    },
}

/// Extracts documents of every kind, one after another, in buffers of its own.
#[derive(Debug)]
pub struct Extractor {
    options: ExtractOptions,
    html: HtmlExtractor,
    decoded: String,
}

impl Extractor {
    /// An extractor with empty buffers.
    pub fn new(options: ExtractOptions) -> Self {
        Extractor { options, html: HtmlExtractor::new(), decoded: String::new() }
    }

    /// Fills `page` with what a document says, and tells which kind of document it was taken for,
    /// by its declared type (an HTTP `Content-Type`) and by its bytes.
    ///
    /// After an error the page is empty.
    pub fn extract(
        &mut self,
        bytes: &[u8],
        declared: Option<&str>,
        hints: &Hints<'_>,
        page: &mut Page,
    ) -> Result<MediaType, ExtractError> {
        self.extract_gently(bytes, declared, hints, page, &mut |_| {})
    }

    /// As [`Extractor::extract`]. What may grow while it is read, or is read by a program, is first
    /// tried within the small limits of the options; `before_large` is called before it is tried
    /// again within the others, and may wait until there is memory.
    pub fn extract_gently(
        &mut self,
        bytes: &[u8],
        declared: Option<&str>,
        hints: &Hints<'_>,
        page: &mut Page,
        before_large: &mut dyn FnMut(u64),
    ) -> Result<MediaType, ExtractError> {
        page.clear();
        let kind =
            media::decide(bytes, declared).map_err(|media_type| ExtractError::Unsupported { media_type })?;
        // A charset in the declared type counts when no better one was handed over.
        let declared_charset = declared
            .and_then(|declared| charset::charset_parameter(declared.as_bytes()))
            .and_then(|charset| std::str::from_utf8(charset).ok());
        let hints = Hints { charset: hints.charset.or(declared_charset), ..*hints };
        let ExtractOptions { tool_memory_bytes, small_tool_memory_bytes, .. } = self.options;
        let ExtractOptions { max_text_bytes, small_text_bytes, .. } = self.options;
        let limits = |text_bytes, tool_memory_bytes| ToolLimits {
            time: Duration::from_secs(u64::from(self.options.tool_seconds)),
            output_bytes: text_bytes,
            memory_bytes: tool_memory_bytes,
        };
        let all = limits(max_text_bytes, tool_memory_bytes);
        let small =
            limits(small_text_bytes.min(max_text_bytes), small_tool_memory_bytes.min(tool_memory_bytes));
        let (grows, least) = match kind {
            MediaType::Html | MediaType::Xhtml | MediaType::Text => (false, 0),
            MediaType::Pdf | MediaType::PostScript => (true, 1),
            _ => (true, 0),
        };
        let is_small = small.output_bytes < all.output_bytes || small.memory_bytes < all.memory_bytes;
        let result = if grows && is_small {
            let first = if small.memory_bytes >= least {
                self.extract_as(kind, bytes, &hints, small, page)
            } else {
                Err(ExtractError::TooLarge { limit: 0 })
            };
            match first {
                Err(ExtractError::TooLarge { .. } | ExtractError::Ended { .. }) => {
                    before_large(u64::MAX);
                    page.clear();
                    self.extract_as(kind, bytes, &hints, all, page)
                }
                other => other,
            }
        } else {
            self.extract_as(kind, bytes, &hints, all, page)
        };
        if result.is_err() {
            page.clear();
        }
        result.map(|()| kind)
    }

    fn extract_as(
        &mut self,
        kind: MediaType,
        bytes: &[u8],
        hints: &Hints<'_>,
        limits: ToolLimits,
        page: &mut Page,
    ) -> Result<(), ExtractError> {
        match kind {
            MediaType::Html => self.html.extract_declared(bytes, hints, SelfDeclaration::Meta, page),
            MediaType::Xhtml => self.html.extract_declared(bytes, hints, SelfDeclaration::XmlOrMeta, page),
            MediaType::Text => {
                let (decoded, charset) =
                    charset::decode(bytes, hints, SelfDeclaration::None, &mut self.decoded);
                text::copy_plain(decoded, &mut page.text);
                page.charset = charset;
            }
            MediaType::Pdf => {
                let text = match (self.options.pdf, self.options.pdf_worker.as_slice()) {
                    (PdfTool::Pdftotext, _) => pdf::by_pdftotext(bytes, limits)?,
                    (PdfTool::BuiltIn, []) => pdf::built_in(bytes.to_vec(), limits)?.into_bytes(),
                    (PdfTool::BuiltIn, worker) => pdf::by_worker(worker, bytes, limits)?,
                };
                set_lines(&text, page);
            }
            MediaType::PostScript if !self.options.postscript => {
                return Err(ExtractError::Unsupported { media_type: kind.as_str().to_owned() });
            }
            MediaType::PostScript => set_lines(&pdf::from_postscript(bytes, limits)?, page),
            MediaType::Docx
            | MediaType::Pptx
            | MediaType::Xlsx
            | MediaType::Odt
            | MediaType::Odp
            | MediaType::Ods => office::extract(kind, bytes, limits.output_bytes, page)?,
        }
        Ok(())
    }

    /// What reads each kind of document, with a version that changes when the text it gives does.
    /// Two atlases made under different names are not to be compared.
    pub fn names(&self) -> Vec<(&'static str, String)> {
        let pdf = match self.options.pdf {
            PdfTool::BuiltIn => pdf::BUILT_IN_NAME,
            PdfTool::Pdftotext => "pdftotext",
        };
        let mut names =
            vec![("html", "html/1".to_owned()), ("text", "text/1".to_owned()), ("pdf", pdf.to_owned())];
        if self.options.postscript {
            names.push(("postscript", "gs+pdftotext".to_owned()));
        }
        names.push(("office", "office/1".to_owned()));
        names
    }
}

/// Takes text that a reader laid out in lines.
fn set_lines(text: &[u8], page: &mut Page) {
    let mut writer = TextWriter::new(std::mem::take(&mut page.text));
    writer.push_lines(&String::from_utf8_lossy(text));
    page.text = writer.finish();
}

#[cfg(test)]
mod tests;
