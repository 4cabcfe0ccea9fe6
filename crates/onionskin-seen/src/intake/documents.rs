//! Documents as they come in: lines of JSON, rows of Parquet or whatever else a scan reads, each
//! with a name and a text or HTML.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};

use onionskin_corpus::{
    BadReason, DiscoverError, Encoding, FieldNames, Format as InputFormat, JsonField, JsonLineReader,
    ParquetTexts, decoder_within, discover, watched,
};
use onionskin_extract::{Hints, HtmlExtractor, Page};
use onionskin_store::IoError;

use super::features::Features;
use super::limits::Limits;
use super::scanned::Scanned;

/// A document that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// Its name, or its place where it has none.
    pub name: String,
    /// Its text, or why it is bad.
    pub text: Result<String, String>,
}

/// A document with all that an index wants to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Its name, or its place where it has none.
    pub name: String,
    /// What is known of its text, or why it is bad.
    pub features: Result<Features, String>,
}

/// The fields of a document. A dot goes into a nested object: `metadata.text`.
///
/// A request has the fields that it is documented to have ([`Fields::default`]). A file was written
/// for somebody else, and may have those of any layout that a scan knows ([`Fields::of_files`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    /// Plain text.
    pub text: FieldNames,
    /// HTML, whose text is extracted as a scan does it. A document has a text or HTML.
    pub html: String,
    /// The text field holds HTML too.
    pub text_is_html: bool,
    /// The document's own name. A field `name` is the same.
    pub id: FieldNames,
    /// The URL, which is the name where there is no id.
    pub url: FieldNames,
    /// What becomes of documents with other fields.
    pub others: OtherFields,
}

/// What becomes of documents with fields that nobody reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OtherFields {
    /// They are bad: a misspelled field would be lost in silence.
    #[default]
    Refused,
    /// They are taken. An id is preferred to a `name`, and a text to HTML.
    Ignored,
}

/// The name of a document, whatever the other fields are called.
const NAME: &str = "name";

impl Default for Fields {
    fn default() -> Fields {
        Fields {
            text: FieldNames::one("text"),
            html: "html".to_owned(),
            text_is_html: false,
            id: FieldNames::one("id"),
            url: FieldNames::one("url"),
            others: OtherFields::Refused,
        }
    }
}

impl Fields {
    /// The fields of files: those that Dolma, FineWeb, RedPajama, C4 and others use.
    pub fn of_files() -> Fields {
        Fields {
            text: FieldNames::TEXT.into(),
            id: FieldNames::ID.into(),
            url: FieldNames::URL.into(),
            others: OtherFields::Ignored,
            ..Fields::default()
        }
    }

    fn known(&self) -> String {
        let Fields { text, html, id, url, .. } = self;
        let names = [NAME].into_iter().chain(id.iter()).chain(url.iter()).chain(text.iter());
        names.chain([html.as_str()]).collect::<Vec<_>>().join(", ")
    }

    /// How a scan reads the same documents.
    fn options(&self, limits: &Limits) -> onionskin_corpus::Options {
        limits.apply(onionskin_corpus::Options {
            text_field: self.text.clone(),
            text_is_html: self.text_is_html,
            id_field: self.id.clone(),
            url_field: self.url.clone(),
            date_field: FieldNames::default(),
            ..onionskin_corpus::Options::default()
        })
    }

    fn unknown(&self, key: &str) -> String {
        format!("unknown field {key:?}; known: {}", self.known())
    }
}

/// Which fields an object has.
#[derive(Debug, Default)]
struct Found {
    id: bool,
    name: bool,
    unknown: Option<String>,
}

impl Found {
    fn note(&mut self, key: &str, fields: &Fields) {
        // A field, or an object that it is in.
        let is =
            |path: &str| path.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let is_id = fields.id.iter().any(is);
        self.id |= is_id;
        let known = is_id || fields.url.iter().chain(fields.text.iter()).any(is) || is(&fields.html);
        if !known && key == NAME {
            self.name = true;
        } else if !known && self.unknown.is_none() && fields.others == OtherFields::Refused {
            self.unknown = Some(fields.unknown(key));
        }
    }

    fn problem(&self, fields: &Fields) -> Option<String> {
        let twice = || format!("both {NAME:?} and {}", fields.id.spoken());
        self.unknown.clone().or_else(|| (self.is_named_twice(fields)).then(twice))
    }

    fn is_named_twice(&self, fields: &Fields) -> bool {
        self.name && self.id && fields.others == OtherFields::Refused
    }

    /// Whether the document is named by [`NAME`]: always where an id beside it is refused.
    fn is_by_name(&self, fields: &Fields) -> bool {
        self.name && (!self.id || self.is_named_twice(fields))
    }
}

/// Reads documents from lines of JSON.
#[derive(Debug)]
pub struct LineReader {
    fields: Fields,
    html_field: FieldNames,
    name_field: FieldNames,
    reader: JsonLineReader,
    html: HtmlText,
}

impl Default for LineReader {
    fn default() -> LineReader {
        LineReader::new(Fields::default())
    }
}

impl LineReader {
    /// For documents with these fields.
    pub fn new(fields: Fields) -> LineReader {
        LineReader {
            html_field: FieldNames::one(&fields.html),
            name_field: FieldNames::one(NAME),
            fields,
            reader: JsonLineReader::default(),
            html: HtmlText::default(),
        }
    }

    /// The document in one object of JSON. `place` names it where it has no name of its own. A text
    /// that is null is a document without words.
    pub fn read(&mut self, line: &[u8], place: impl FnOnce() -> String) -> Incoming {
        let (name, text) = self.parts(line);
        Incoming { name: name.unwrap_or_else(place), text }
    }

    fn parts(&mut self, line: &[u8]) -> (Option<String>, Result<String, String>) {
        let fields = &self.fields;
        let mut found = Found::default();
        if let Err(reason) = self.reader.keys(line, |key| found.note(key, fields)) {
            return (None, Err(reason.to_string()));
        }
        let id = if found.is_by_name(fields) { &self.name_field } else { &fields.id };
        let read = self.reader.fields(line, [&fields.text, &self.html_field, id, &fields.url]);
        let [text, html, id, url] = match read {
            Ok(found) => found,
            Err(reason) => return (None, Err(reason.to_string())),
        };
        // What has no text is called by its place, where somebody will look for it.
        let has_text = [text, html].iter().any(|field| matches!(field, JsonField::Text(_) | JsonField::Null));
        let name = has_text.then(|| id.name().or(url.text())).flatten().map(str::to_owned);
        if let Some(problem) = found.problem(fields) {
            return (name, Err(problem));
        }
        let (text_field, html_field) = (fields.text.spoken(), &fields.html);
        let of_html = |html: &mut HtmlText, text: &str| html.of(text.as_bytes(), Some("utf-8"));
        let text = match (text, html) {
            (JsonField::Text(_), JsonField::Text(_)) if fields.others == OtherFields::Refused => {
                Err(format!("both {text_field} and {html_field:?}"))
            }
            (JsonField::Text(text), _) if fields.text_is_html => Ok(of_html(&mut self.html, text)),
            (JsonField::Text(text), _) => Ok(text.to_owned()),
            (_, JsonField::Text(html)) => Ok(of_html(&mut self.html, html)),
            (JsonField::Null, JsonField::Null | JsonField::Absent) | (JsonField::Absent, JsonField::Null) => {
                Ok(String::new())
            }
            _ => Err(format!("no text: neither {text_field} nor {html_field:?} has a string")),
        };
        (name, text)
    }
}

/// Makes text of HTML, as a scan does.
#[derive(Debug, Default)]
struct HtmlText {
    extractor: HtmlExtractor,
    page: Page,
}

impl HtmlText {
    /// Without a charset, the page says what it has.
    fn of(&mut self, html: &[u8], charset: Option<&str>) -> String {
        let hints = Hints { charset, ..Hints::default() };
        self.extractor.extract(html, &hints, &mut self.page);
        std::mem::take(&mut self.page.text)
    }
}

/// Why an input cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The file system failed, or compressed data is damaged.
    #[error(transparent)]
    Io(#[from] IoError),
    /// A Parquet file that cannot be read.
    #[error("{input}: {reason}")]
    Parquet {
        /// The input.
        input: String,
        /// What is wrong with it.
        reason: BadReason,
    },
    /// An input that is not there, or of no format that is known.
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    /// A pipe that has neither lines of JSON nor another format that is known.
    #[error("{input}: neither lines of JSON nor a format that is known")]
    Binary {
        /// The input.
        input: String,
    },
    /// The input failed while it was read.
    #[error("{place}: the input failed: {reason}")]
    Failed {
        /// The input and where in it.
        place: String,
        /// What the system said.
        reason: String,
    },
    /// A line that names nothing.
    #[error("{place}: {problem}")]
    Name {
        /// The input and the line.
        place: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl InputError {
    /// Whether it needs more memory than is allowed.
    pub fn is_too_large(&self) -> bool {
        matches!(self, InputError::Parquet { reason: BadReason::LargePage { .. }, .. })
    }
}

/// Documents of one input, in order.
pub struct Documents<'a> {
    input: String,
    reader: LineReader,
    max_record_bytes: u64,
    format: Format<'a>,
}

enum Format<'a> {
    Lines { input: BufReader<Box<dyn Read + Send + 'a>>, line: Vec<u8>, number: u64 },
    Parquet { rows: Box<ParquetTexts>, ready: VecDeque<Incoming> },
    Scanned(Box<Scanned>),
}

/// The byte order mark of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// What is read of an input at a time.
const BUFFER: usize = 1 << 18;

impl<'a> Documents<'a> {
    /// Opens an input of a scan: a file of JSON lines, Parquet, WARC, CSV, HTML and so on, or a
    /// folder of files. The format is detected from the content. A pipe has JSON lines; `-` is JSON
    /// lines from standard input.
    pub fn open(input: &str, fields: Fields, limits: &Limits) -> Result<Documents<'a>, InputError> {
        if input == "-" {
            return Ok(Documents::lines(input, io::stdin(), fields, limits));
        }
        let options = fields.options(limits);
        let is_pipe = std::fs::metadata(input).is_ok_and(|meta| !meta.is_file() && !meta.is_dir());
        if !is_pipe {
            let sources = discover(&[input.to_owned()], &options)?;
            let lines_or_rows = matches!(
                sources.as_slice(),
                [one] if one.path().is_some() && matches!(one.format, InputFormat::Jsonl | InputFormat::Parquet)
            );
            if !lines_or_rows {
                let scanned = Scanned::new(input, sources, options, limits)?;
                return Ok(Documents::of(input, fields, limits, Format::Scanned(Box::new(scanned))));
            }
        }
        match open_file(input, options.max_window_log)? {
            Opened::Lines(decoded) => Ok(Documents::lines(input, decoded, fields, limits)),
            Opened::Parquet(file) => Documents::parquet(input, file, fields, limits),
        }
    }

    fn of(name: &str, fields: Fields, limits: &Limits, format: Format<'a>) -> Documents<'a> {
        let max_record_bytes = fields.options(limits).max_record_bytes;
        Documents { input: name.to_owned(), reader: LineReader::new(fields), max_record_bytes, format }
    }

    /// Lines of JSON.
    pub fn lines(name: &str, input: impl Read + Send + 'a, fields: Fields, limits: &Limits) -> Documents<'a> {
        let input: Box<dyn Read + Send + 'a> = Box::new(input);
        let input = BufReader::with_capacity(BUFFER, input);
        let format = Format::Lines { input, line: Vec::new(), number: 0 };
        Documents::of(name, fields, limits, format)
    }

    /// Rows of Parquet. Columns that are not asked for are not read, whatever [`Fields::others`]
    /// says; where there are a text and HTML, the text is taken.
    pub fn parquet(
        name: &str,
        input: impl Read + Seek + Send + 'static,
        fields: Fields,
        limits: &Limits,
    ) -> Result<Documents<'a>, InputError> {
        let rows = ParquetTexts::open(input, &fields.options(limits), &fields.html)
            .map_err(|reason| InputError::Parquet { input: name.to_owned(), reason })?;
        let format = Format::Parquet { rows: Box::new(rows), ready: VecDeque::new() };
        Ok(Documents::of(name, fields, limits, format))
    }

    /// The next document; those that cannot be taken are there with the reason.
    pub fn next_document(&mut self) -> Result<Option<Incoming>, InputError> {
        let name = &self.input;
        match &mut self.format {
            Format::Lines { input, line, number } => loop {
                let failed = |e| IoError::new("reading", name.clone(), e);
                if *number == 0 && is_binary(input.fill_buf().map_err(failed)?) {
                    return Err(InputError::Binary { input: name.clone() });
                }
                let read = read_line(input, self.max_record_bytes, line);
                let Some(fits) = read.map_err(|e| IoError::new("reading", name, e))? else {
                    return Ok(None);
                };
                *number += 1;
                if !fits {
                    let reason = BadReason::TooLarge { limit: self.max_record_bytes };
                    return Ok(Some(Incoming::bad(place(name, *number), &reason)));
                }
                // The mark in front of a file is no part of its first line.
                let bytes = line.strip_prefix(MARK).filter(|_| *number == 1).unwrap_or(line);
                if !bytes.trim_ascii().is_empty() {
                    return Ok(Some(self.reader.read(bytes, || place(name, *number))));
                }
            },
            Format::Parquet { rows, ready } => loop {
                if let Some(document) = ready.pop_front() {
                    return Ok(Some(document));
                }
                let is_html = rows.is_html() || self.reader.fields.text_is_html;
                let html = &mut self.reader.html;
                let more = rows.next_rows(|row| {
                    let at = row.id.or(row.url).map_or_else(|| place(name, row.row + 1), str::to_owned);
                    ready.push_back(match row.text {
                        Ok(text) if is_html => {
                            Incoming { name: at, text: Ok(html.of(text.as_bytes(), Some("utf-8"))) }
                        }
                        Ok(text) => Incoming { name: at, text: Ok(text.to_owned()) },
                        Err(BadReason::MissingText) => Incoming { name: at, text: Ok(String::new()) },
                        Err(reason) => Incoming::bad(at, &reason),
                    });
                });
                if !more.map_err(|reason| InputError::Parquet { input: name.clone(), reason })? {
                    return Ok(None);
                }
            },
            Format::Scanned(scanned) => scanned.next_document(),
        }
    }

    /// The line of JSON that the last document was; `None` in other formats.
    pub fn line(&self) -> Option<&[u8]> {
        match &self.format {
            Format::Lines { line, .. } => Some(line.strip_prefix(MARK).unwrap_or(line)),
            Format::Parquet { .. } | Format::Scanned(_) => None,
        }
    }

    /// Whether the next document has to be waited for, as far as that can be known without waiting.
    pub fn is_waiting(&self) -> bool {
        match &self.format {
            Format::Lines { input, .. } => !input.buffer().contains(&b'\n'),
            Format::Parquet { .. } | Format::Scanned(_) => false,
        }
    }
}

/// Whether lines of JSON cannot begin like this. A NUL in a line is a broken line; in front of the
/// first it is something else.
fn is_binary(head: &[u8]) -> bool {
    !head.trim_ascii_start().starts_with(b"{") && head.contains(&0)
}

impl Incoming {
    /// A document that is HTML as it was fetched; the page says which charset it has.
    pub fn of_html(name: String, html: &[u8]) -> Incoming {
        Incoming { name, text: Ok(HtmlText::default().of(html, None)) }
    }

    fn bad(name: String, reason: &BadReason) -> Incoming {
        Incoming { name, text: Err(reason.to_string()) }
    }
}

/// What names a document that has no name: the input and the number of the line or row, from 1.
pub fn place(input: &str, number: u64) -> String {
    format!("{input}:{number}")
}

enum Opened {
    Lines(Box<dyn Read + Send>),
    Parquet(Box<dyn ReadSeek>),
}

trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// Opens a file by what it begins with. One that gets shorter meanwhile fails.
fn open_file(input: &str, window_log: u32) -> Result<Opened, InputError> {
    let failed = |action| move |e| IoError::new(action, input, e);
    let mut file = File::open(input).and_then(watched).map_err(failed("opening"))?;
    let mut head = Vec::new();
    (&mut file).take(4).read_to_end(&mut head).map_err(failed("reading"))?;
    let encoding = match head.as_slice() {
        b"PAR1" => {
            file.seek(SeekFrom::Start(0)).map_err(failed("reading"))?;
            return Ok(Opened::Parquet(Box::new(file)));
        }
        [0x1f, 0x8b, ..] => Encoding::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd] => Encoding::Zstd,
        _ => Encoding::Plain,
    };
    let input = Cursor::new(head).chain(file);
    let decoded = decoder_within(input, encoding, window_log).map_err(failed("reading"))?;
    Ok(Opened::Lines(decoded))
}

/// Reads a line without its end; false for one that is too long, whose rest is passed over. `None`
/// at the end of the input.
fn read_line(input: &mut impl BufRead, limit: u64, line: &mut Vec<u8>) -> io::Result<Option<bool>> {
    line.clear();
    let n = input.by_ref().take(limit.saturating_add(1)).read_until(b'\n', line)?;
    if n == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Some(true));
    }
    if n as u64 <= limit {
        return Ok(Some(true));
    }
    line.clear();
    input.skip_until(b'\n')?;
    Ok(Some(false))
}

/// The window of zstd that every reader has.
const NAMES_WINDOW_LOG: u32 = 27;

/// The names in a file, one per line: a JSON string, a number, or an object that has one in the
/// fields of a document. `-` is standard input.
pub fn read_names(input: &str, fields: &Fields) -> Result<Vec<String>, InputError> {
    let decoded: Box<dyn Read + Send> = match input {
        "-" => Box::new(io::stdin()),
        _ => match open_file(input, NAMES_WINDOW_LOG)? {
            Opened::Lines(decoded) => decoded,
            Opened::Parquet(_) => {
                let problem = "names are read from lines of JSON, not from Parquet".to_owned();
                return Err(InputError::Name { place: input.to_owned(), problem });
            }
        },
    };
    let mut names = Vec::new();
    for (number, line) in (1..).zip(BufReader::with_capacity(BUFFER, decoded).lines()) {
        let line = line.map_err(|e| IoError::new("reading", input, e))?;
        if !line.trim().is_empty() {
            let named = name_of(&line, fields);
            names.push(named.map_err(|problem| InputError::Name { place: place(input, number), problem })?);
        }
    }
    Ok(names)
}

fn name_of(line: &str, fields: &Fields) -> Result<String, String> {
    use serde_json::Value;
    let value: Value = serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
    let named = match &value {
        Value::Object(object) => {
            let mut found = Found::default();
            object.keys().for_each(|key| found.note(key, fields));
            if let Some(problem) = found.problem(fields) {
                return Err(problem);
            }
            let field = |name: &str| value_at(object, name).filter(|value| !value.is_null());
            let by_name = field(NAME).filter(|_| found.is_by_name(fields));
            by_name.or_else(|| fields.id.iter().find_map(field)).or_else(|| fields.url.iter().find_map(field))
        }
        other => Some(other),
    };
    match named {
        Some(Value::String(name)) => Ok(name.clone()),
        Some(Value::Number(number)) => Ok(number.to_string()),
        _ => Err(format!("no {}, {NAME} or {}", fields.id, fields.url)),
    }
}

/// A field, or one in an object where its name has a dot.
fn value_at<'v>(
    object: &'v serde_json::Map<String, serde_json::Value>,
    name: &str,
) -> Option<&'v serde_json::Value> {
    object.get(name).or_else(|| {
        let (outer, inner) = name.split_once('.')?;
        value_at(object.get(outer)?.as_object()?, inner)
    })
}
