//! The text of Office and OpenDocument files.
//!
//! All of them are zips of XML, and all their text is in a few known elements of a few known
//! members, so the members are read one after another and everything but those elements is passed
//! over. Sizes are bounded by what was really inflated, never by what the file says; a document
//! type declaration, which none of these formats has, is refused.

use crate::text::{Break, TextWriter};
use crate::{ExtractError, MediaType, Page};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::io::{Cursor, Read};
use zip::ZipArchive;

/// How many bytes of XML may be inflated for one document.
const MAX_XML_BYTES: u64 = 256 << 20;

/// The largest member that is read; it is in memory as a whole.
const MAX_MEMBER_BYTES: u64 = 64 << 20;

type Archive<'a> = ZipArchive<Cursor<&'a [u8]>>;

/// Which kind of document a zip is; `None` when it is just a zip.
pub(crate) fn kind(bytes: &[u8]) -> Option<MediaType> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).ok()?;
    let has = |archive: &Archive<'_>, name: &str| archive.index_for_name(name).is_some();
    if has(&archive, "word/document.xml") {
        return Some(MediaType::Docx);
    }
    if has(&archive, "ppt/presentation.xml") {
        return Some(MediaType::Pptx);
    }
    if has(&archive, "xl/workbook.xml") {
        return Some(MediaType::Xlsx);
    }
    let mut mimetype = String::new();
    archive.by_name("mimetype").ok()?.take(128).read_to_string(&mut mimetype).ok()?;
    [MediaType::Odt, MediaType::Odp, MediaType::Ods]
        .into_iter()
        .find(|kind| mimetype.trim_ascii() == kind.as_str())
        .filter(|_| has(&archive, "content.xml"))
}

/// Fills `page` with the text of a document of that kind.
pub(crate) fn extract(
    kind: MediaType,
    bytes: &[u8],
    max_text_bytes: u64,
    page: &mut Page,
) -> Result<(), ExtractError> {
    let archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| failed(kind, error))?;
    let mut document = Document {
        kind,
        archive,
        inflated: 0,
        max_text_bytes,
        text: TextWriter::new(std::mem::take(&mut page.text)),
    };
    match kind {
        MediaType::Docx => document.word()?,
        MediaType::Pptx => document.slides()?,
        MediaType::Xlsx => document.workbook()?,
        _ => document.open_document()?,
    }
    let properties = match kind {
        MediaType::Odt | MediaType::Odp | MediaType::Ods => "meta.xml",
        _ => "docProps/core.xml",
    };
    page.title = document.title(properties)?;
    page.text = document.text.finish();
    Ok(())
}

fn failed(kind: MediaType, error: impl std::fmt::Display) -> ExtractError {
    ExtractError::Failed { tool: "office", reason: format!("{}: {error}", kind.as_str()) }
}

struct Document<'a> {
    kind: MediaType,
    archive: Archive<'a>,
    /// How many bytes were inflated so far.
    inflated: u64,
    max_text_bytes: u64,
    text: TextWriter,
}

impl Document<'_> {
    /// A whole member; `None` when there is no such member.
    fn member(&mut self, name: &str) -> Result<Option<String>, ExtractError> {
        let Some(index) = self.archive.index_for_name(name) else { return Ok(None) };
        let file = self.archive.by_index(index).map_err(|error| failed(self.kind, error))?;
        let limit = MAX_MEMBER_BYTES.min(self.max_text_bytes).min(MAX_XML_BYTES - self.inflated);
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| failed(self.kind, error))?;
        if bytes.len() as u64 > limit {
            return Err(ExtractError::TooLarge { limit });
        }
        self.inflated += bytes.len() as u64;
        let hints = crate::Hints::default();
        let mut scratch = String::new();
        let (text, _) =
            crate::charset::decode(&bytes, &hints, crate::charset::SelfDeclaration::XmlOrMeta, &mut scratch);
        // Without another copy, where that is the text.
        if !bytes.as_ptr_range().contains(&text.as_ptr()) {
            return Ok(Some(scratch));
        }
        let mark = bytes.len() - text.len();
        bytes.drain(..mark);
        String::from_utf8(bytes).map(Some).map_err(|error| failed(self.kind, error))
    }

    /// The members `prefix1.xml`, `prefix2.xml` and so on, in the order of their numbers.
    fn numbered(&self, prefix: &str) -> Vec<String> {
        let mut members: Vec<(u32, String)> = self
            .archive
            .file_names()
            .filter_map(|name| {
                let name = name.ok()?;
                let number = name.strip_prefix(prefix)?.strip_suffix(".xml")?.parse().ok()?;
                Some((number, name.into_owned()))
            })
            .collect();
        members.sort_unstable();
        members.into_iter().map(|(_, name)| name).collect()
    }

    fn check_size(&self) -> Result<(), ExtractError> {
        if self.text.len() as u64 > self.max_text_bytes {
            return Err(ExtractError::TooLarge { limit: self.max_text_bytes });
        }
        Ok(())
    }

    fn word(&mut self) -> Result<(), ExtractError> {
        for name in ["word/document.xml", "word/footnotes.xml", "word/endnotes.xml"] {
            let Some(xml) = self.member(name)? else { continue };
            self.text.break_at_least(Break::Paragraph);
            let mut depth_in_text = 0u32;
            self.read(&xml, |text, token| match token {
                Token::Start("t") => depth_in_text += 1,
                Token::End("t") => depth_in_text = depth_in_text.saturating_sub(1),
                Token::Start("tab") => text.break_at_least(Break::Tab),
                Token::Start("br" | "cr") | Token::End("p") => text.end_line(),
                Token::End("tc") => text.replace_break(Break::Tab),
                Token::End("tr") => text.replace_break(Break::Line),
                Token::Text(piece) if depth_in_text > 0 => text.push(piece),
                _ => {}
            })?;
        }
        Ok(())
    }

    fn slides(&mut self) -> Result<(), ExtractError> {
        for name in self.numbered("ppt/slides/slide") {
            let Some(xml) = self.member(&name)? else { continue };
            self.text.break_at_least(Break::Paragraph);
            let mut in_text = false;
            self.read(&xml, |text, token| match token {
                Token::Start("t") => in_text = true,
                Token::End("t") => in_text = false,
                Token::Start("br") | Token::End("p") => text.break_at_least(Break::Line),
                Token::Text(piece) if in_text => text.push(piece),
                _ => {}
            })?;
        }
        Ok(())
    }

    fn workbook(&mut self) -> Result<(), ExtractError> {
        let strings = match self.member("xl/sharedStrings.xml")? {
            Some(xml) => self.shared_strings(&xml)?,
            None => SharedStrings::default(),
        };
        let max_text_bytes = self.max_text_bytes;
        for name in self.numbered("xl/worksheets/sheet") {
            let Some(xml) = self.member(&name)? else { continue };
            self.text.break_at_least(Break::Paragraph);
            let (mut shared, mut in_value) = (false, false);
            let mut number = String::new();
            self.read(&xml, |text, token| match token {
                Token::StartWith("c", element) => shared = attribute_is(element, "t", "s"),
                Token::Start("v" | "t") => {
                    in_value = true;
                    number.clear();
                }
                Token::Text(piece) if in_value && shared => number.push_str(piece),
                Token::Text(piece) if in_value => text.push(piece),
                Token::End("v") if shared => {
                    in_value = false;
                    // One long string may stand in a million cells; past the limit it is not
                    // written out any more.
                    if text.len() as u64 <= max_text_bytes
                        && let Some(string) = number.trim_ascii().parse().ok().and_then(|n| strings.get(n))
                    {
                        text.push(string);
                    }
                }
                Token::End("v" | "t") => in_value = false,
                Token::End("c") => text.break_at_least(Break::Tab),
                Token::End("row") => text.break_at_least(Break::Line),
                _ => {}
            })?;
        }
        Ok(())
    }

    fn shared_strings(&self, xml: &str) -> Result<SharedStrings, ExtractError> {
        let mut strings = SharedStrings::default();
        let mut unused = TextWriter::new(String::new());
        let (mut in_text, mut phonetic) = (false, false);
        read_xml(self.kind, xml, &mut unused, |_, token| match token {
            Token::Start("t") => in_text = true,
            Token::End("t") => in_text = false,
            // How a Japanese word is read, written beside it.
            Token::Start("rPh") => phonetic = true,
            Token::End("rPh") => phonetic = false,
            Token::Text(piece) if in_text && !phonetic => strings.bytes.push_str(piece),
            Token::End("si") => strings.ends.push(strings.bytes.len()),
            _ => {}
        })?;
        Ok(strings)
    }

    fn open_document(&mut self) -> Result<(), ExtractError> {
        let Some(xml) = self.member("content.xml")? else {
            return Err(failed(self.kind, "content.xml is missing"));
        };
        // Paragraphs being open, and elements whose text is not the document's: notes of reviewers,
        // deleted text.
        let (mut paragraphs, mut aside) = (0u32, 0u32);
        self.read(&xml, |text, token| match token {
            Token::Start("annotation" | "tracked-changes") => aside += 1,
            Token::End("annotation" | "tracked-changes") => aside = aside.saturating_sub(1),
            _ if aside > 0 => {}
            Token::Start("p" | "h") => {
                // A box of text inside a paragraph. Others begin where one has ended, or a cell,
                // whose break stays.
                if paragraphs > 0 {
                    text.break_at_least(Break::Line);
                }
                paragraphs += 1;
            }
            Token::End("p" | "h") => {
                text.break_at_least(Break::Line);
                paragraphs = paragraphs.saturating_sub(1);
            }
            Token::Start("s") => text.break_at_least(Break::Space),
            Token::Start("tab") => text.break_at_least(Break::Tab),
            Token::Start("line-break") => text.end_line(),
            Token::Start("page" | "table") => text.break_at_least(Break::Paragraph),
            Token::End("table-cell") => text.replace_break(Break::Tab),
            Token::End("table-row") => text.replace_break(Break::Line),
            Token::Text(piece) if paragraphs > 0 => text.push(piece),
            _ => {}
        })
    }

    fn title(&mut self, member: &str) -> Result<String, ExtractError> {
        let Some(xml) = self.member(member)? else { return Ok(String::new()) };
        let mut title = TextWriter::new(String::new());
        let mut in_title = false;
        read_xml(self.kind, &xml, &mut title, |text, token| match token {
            Token::Start("title") => in_title = true,
            Token::End("title") => in_title = false,
            Token::Text(piece) if in_title => text.push(piece),
            _ => {}
        })?;
        Ok(title.finish())
    }

    fn read(
        &mut self,
        xml: &str,
        mut handle: impl FnMut(&mut TextWriter, Token<'_>),
    ) -> Result<(), ExtractError> {
        read_xml(self.kind, xml, &mut self.text, &mut handle)?;
        self.check_size()
    }
}

/// The strings of a workbook, which its cells name by number.
#[derive(Default)]
struct SharedStrings {
    bytes: String,
    ends: Vec<usize>,
}

impl SharedStrings {
    fn get(&self, index: usize) -> Option<&str> {
        let begin = if index == 0 { 0 } else { *self.ends.get(index - 1)? };
        self.bytes.get(begin..*self.ends.get(index)?)
    }
}

/// What the readers look at. Names are without their prefix.
#[derive(Clone, Copy)]
enum Token<'a> {
    Start(&'a str),
    /// Comes before the `Start` of the same element, with its attributes.
    StartWith(&'a str, &'a BytesStart<'a>),
    End(&'a str),
    Text(&'a str),
}

fn read_xml(
    kind: MediaType,
    xml: &str,
    text: &mut TextWriter,
    mut handle: impl FnMut(&mut TextWriter, Token<'_>),
) -> Result<(), ExtractError> {
    let mut reader = Reader::from_str(xml);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    loop {
        match reader.read_event().map_err(|error| failed(kind, error))? {
            Event::Start(element) => {
                let name = element.local_name();
                handle(text, Token::StartWith(name.as_ref(), &element));
                handle(text, Token::Start(name.as_ref()));
            }
            Event::Empty(element) => {
                let name = element.local_name();
                handle(text, Token::StartWith(name.as_ref(), &element));
                handle(text, Token::Start(name.as_ref()));
                handle(text, Token::End(name.as_ref()));
            }
            Event::End(element) => handle(text, Token::End(element.local_name().as_ref())),
            Event::Text(piece) => handle(text, Token::Text(&piece)),
            Event::CData(piece) => handle(text, Token::Text(&piece)),
            Event::GeneralRef(reference) => {
                let mut buffer = [0; 4];
                let piece = match reference.resolve_char_ref() {
                    Ok(Some(character)) => &*character.encode_utf8(&mut buffer),
                    _ => match &*reference {
                        "amp" => "&",
                        "lt" => "<",
                        "gt" => ">",
                        "quot" => "\"",
                        "apos" => "'",
                        // There is no declaration that could name others.
                        _ => "",
                    },
                };
                handle(text, Token::Text(piece));
            }
            Event::DocType(_) => return Err(failed(kind, "has a document type declaration")),
            Event::Eof => return Ok(()),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

fn attribute_is(element: &BytesStart<'_>, name: &str, value: &str) -> bool {
    element
        .attributes()
        .with_checks(false)
        .flatten()
        .any(|attribute| attribute.key.as_ref() == name && &*attribute.value == value)
}

#[cfg(test)]
mod tests;
