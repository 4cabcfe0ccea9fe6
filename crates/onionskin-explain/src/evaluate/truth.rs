//! Known answers, read from a file.
//!
//! Three kinds of files are understood, told apart by their first line: JSON lines with facts as
//! `onionskin generate --truth` writes them, JSON lines of pairs and members, and CSV or TSV under
//! a header. The file is read twice from front to back (once for the names in it, once for what it
//! says of them), so that nothing of it is held in memory.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use csv_core::ReadRecordResult;
use serde::Deserialize;
use xxhash_rust::xxh3::xxh3_128;

use super::EvaluateError;

/// No line or record is longer.
const MAX_LINE: usize = 16 << 20;

/// What a document is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name<'a> {
    /// An address, an id, or a number: whatever fits first.
    Any(Cow<'a, str>),
    Url(Cow<'a, str>),
    Id(Cow<'a, str>),
    Doc(u64),
}

/// A cluster of the truth: a digest of what it is called.
pub(super) type Label = u128;

/// Which pairs of a cluster are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listed {
    /// Every pair, or every one that shares text: what is not listed is not a copy.
    Complete,
    /// Only those with the centre.
    Centre,
    /// The cluster itself says that all its members are copies.
    Members,
}

/// Something known.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Statement<'a> {
    /// Two documents are copies.
    Pair {
        a: Name<'a>,
        b: Name<'a>,
        resemblance: Option<f64>,
        /// Their texts are equal.
        exact: bool,
        cluster: Option<Label>,
    },
    /// A document is in a cluster.
    Member { name: Name<'a>, cluster: Label },
    /// Which pairs of a cluster are listed.
    Cluster { cluster: Label, listed: Listed },
    /// Resemblances are in shingles of so many words.
    Shingle(u32),
}

/// A line of JSON, whatever it is.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    a: Option<Value<'a>>,
    #[serde(borrow, default)]
    b: Option<Value<'a>>,
    #[serde(default)]
    resemblance: Option<f64>,
    #[serde(borrow, default)]
    cluster: Option<Value<'a>>,
    #[serde(borrow, default)]
    url: Option<Value<'a>>,
    #[serde(borrow, default)]
    id: Option<Value<'a>>,
    #[serde(default)]
    doc: Option<u64>,
}

/// Facts have other fields of the same name, so these are looked at only in lines that are known to
/// be such facts.
#[derive(Deserialize)]
struct CopyLine {
    kind: String,
}

#[derive(Deserialize)]
struct ClusterLine {
    pairs: String,
}

#[derive(Deserialize)]
struct SummaryLine {
    shingle: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Value<'a> {
    Number(u64),
    Text(#[serde(borrow)] Cow<'a, str>),
}

impl<'a> Value<'a> {
    fn any(self) -> Name<'a> {
        match self {
            Value::Number(doc) => Name::Doc(doc),
            Value::Text(text) => Name::Any(text),
        }
    }

    fn text(self) -> Cow<'a, str> {
        match self {
            Value::Number(number) => number.to_string().into(),
            Value::Text(text) => text,
        }
    }

    fn label(&self) -> Label {
        match self {
            Value::Number(number) => xxh3_128(number.to_string().as_bytes()),
            Value::Text(text) => xxh3_128(text.as_bytes()),
        }
    }
}

/// A file of known answers.
#[derive(Clone, Debug)]
pub(super) struct TruthFile {
    path: PathBuf,
}

type Visit<'v> = dyn FnMut(Statement<'_>) -> Result<(), EvaluateError> + 'v;

impl TruthFile {
    pub fn new(path: &Path) -> TruthFile {
        TruthFile { path: path.to_owned() }
    }

    fn io(&self, source: std::io::Error) -> EvaluateError {
        EvaluateError::Io { path: self.path.clone(), source }
    }

    fn bad(&self, line: u64, problem: impl Into<String>) -> EvaluateError {
        EvaluateError::Truth { path: self.path.clone(), line, problem: problem.into() }
    }

    /// Calls `visit` with everything that the file says, in order.
    pub fn read(&self, visit: &mut Visit<'_>) -> Result<(), EvaluateError> {
        let file = File::open(&self.path).map_err(|error| self.io(error))?;
        let mut input = BufReader::with_capacity(1 << 18, file);
        let head = input.fill_buf().map_err(|error| self.io(error))?;
        if head.starts_with(b"\x1f\x8b") || head.starts_with(b"\x28\xb5\x2f\xfd") {
            return Err(self.bad(1, "the file is compressed; unpack it first"));
        }
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        match head.iter().find(|byte| !byte.is_ascii_whitespace()) {
            None => Ok(()),
            Some(b'{') => self.read_json(input, visit),
            Some(_) => self.read_csv(input, visit),
        }
    }

    fn read_json(&self, mut input: impl BufRead, visit: &mut Visit<'_>) -> Result<(), EvaluateError> {
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let limit = MAX_LINE as u64 + 1;
            let read = input.by_ref().take(limit).read_until(b'\n', &mut line).map_err(|e| self.io(e))?;
            if read == 0 {
                break;
            }
            if read > MAX_LINE {
                return Err(self.bad(number, format!("longer than {MAX_LINE} bytes")));
            }
            let bytes = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| number == 1).unwrap_or(&line);
            if bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if let Some(statement) = statement(bytes).map_err(|problem| self.bad(number, problem))? {
                visit(statement)?;
            }
        }
        Ok(())
    }

    fn read_csv(&self, input: impl BufRead, visit: &mut Visit<'_>) -> Result<(), EvaluateError> {
        let mut records = Records::new(input).map_err(|error| self.io(error))?;
        let header = match records.next(self)? {
            Some(fields) => fields.iter().map(|field| field.trim().to_ascii_lowercase()).collect(),
            None => Vec::new(),
        };
        let column = |name: &str| header.iter().position(|column: &String| column == name);
        let (a, b, resemblance, cluster) =
            (column("a"), column("b"), column("resemblance"), column("cluster"));
        let names = [column("url"), column("id"), column("doc")];
        let pairs = a.zip(b);
        if pairs.is_none() && (cluster.is_none() || names.iter().all(Option::is_none)) {
            let found = header.join(", ");
            let problem =
                format!("the header must have a and b, or cluster and one of id, url, doc; it has {found}");
            return Err(self.bad(1, problem));
        }
        let mut number = 1;
        while let Some(fields) = records.next(self)? {
            number += 1;
            let field = |column: Option<usize>| {
                column
                    .and_then(|column| fields.get(column))
                    .map(|field| field.trim())
                    .filter(|f| !f.is_empty())
            };
            let number_of = |text: &str| {
                text.parse::<u64>()
                    .map_err(|_| self.bad(number, format!("{text:?} is not a document number")))
            };
            let statement = if pairs.is_some() {
                let (Some(a), Some(b)) = (field(a), field(b)) else {
                    return Err(self.bad(number, "a or b is empty"));
                };
                let resemblance = match field(resemblance) {
                    Some(text) => Some(resemblance_of(text).map_err(|problem| self.bad(number, problem))?),
                    None => None,
                };
                let (a, b) = (Name::Any(a.into()), Name::Any(b.into()));
                Statement::Pair { a, b, resemblance, exact: false, cluster: None }
            } else {
                let name = match names.map(field) {
                    [Some(url), _, _] => Name::Url(url.into()),
                    [_, Some(id), _] => Name::Id(id.into()),
                    [_, _, Some(doc)] => Name::Doc(number_of(doc)?),
                    _ => return Err(self.bad(number, "no id, url or doc")),
                };
                let Some(cluster) = field(cluster) else {
                    return Err(self.bad(number, "cluster is empty"));
                };
                Statement::Member { name, cluster: xxh3_128(cluster.as_bytes()) }
            };
            visit(statement)?;
        }
        Ok(())
    }
}

fn resemblance_of(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| (0.0..=1.0).contains(value));
    value.ok_or_else(|| format!("the resemblance {text:?} is not a number from 0 to 1"))
}

/// What a line of JSON says; `None` for facts about other things.
fn statement(bytes: &[u8]) -> Result<Option<Statement<'_>>, String> {
    fn parse<'l, T: Deserialize<'l>>(bytes: &'l [u8]) -> Result<T, String> {
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }
    let line: Line<'_> = parse(bytes)?;
    if let Some(resemblance) = line.resemblance
        && !(0.0..=1.0).contains(&resemblance)
    {
        return Err(format!("the resemblance {resemblance} is not from 0 to 1"));
    }
    let label = line.cluster.as_ref().map(Value::label);
    match line.kind.as_deref() {
        Some("copy") => {
            let (Some(a), Some(b)) = (line.a, line.b) else {
                return Err("a copy without a and b".to_owned());
            };
            let exact = parse::<CopyLine>(bytes)?.kind == "exact";
            let (a, b, resemblance) = (a.any(), b.any(), line.resemblance);
            Ok(Some(Statement::Pair { a, b, resemblance, exact, cluster: label }))
        }
        Some("cluster") => {
            let cluster = label.ok_or("a cluster without a number")?;
            let listed = match parse::<ClusterLine>(bytes)?.pairs.as_str() {
                "all" | "sharing" => Listed::Complete,
                "centre" => Listed::Centre,
                other => {
                    return Err(format!("a cluster that lists {other:?}; known are all, sharing, centre"));
                }
            };
            Ok(Some(Statement::Cluster { cluster, listed }))
        }
        Some("summary") => Ok(Some(Statement::Shingle(parse::<SummaryLine>(bytes)?.shingle))),
        None | Some("pair" | "member") => {
            if let (Some(a), Some(b)) = (line.a, line.b) {
                let (a, b, resemblance) = (a.any(), b.any(), line.resemblance);
                return Ok(Some(Statement::Pair { a, b, resemblance, exact: false, cluster: label }));
            }
            let cluster = label.ok_or("neither a pair (a, b) nor a member (id, url or doc, and cluster)")?;
            let name = match (line.url, line.id, line.doc) {
                (Some(url), _, _) => Name::Url(url.text()),
                (_, Some(id), _) => Name::Id(id.text()),
                (_, _, Some(doc)) => Name::Doc(doc),
                _ => return Err("a member without id, url or doc".to_owned()),
            };
            Ok(Some(Statement::Member { name, cluster }))
        }
        // Pages, mirrors, templates and the like.
        Some(_) => Ok(None),
    }
}

/// The records of a CSV or TSV file.
struct Records<R> {
    input: R,
    parser: csv_core::Reader,
    fields: Vec<String>,
    unpacked: Vec<u8>,
    ends: Vec<usize>,
    number: u64,
}

impl<R: BufRead> Records<R> {
    fn new(mut input: R) -> std::io::Result<Records<R>> {
        let head = input.fill_buf()?;
        let mark = if head.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let first_line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let delimiter = if first_line.contains(&b'\t') { b'\t' } else { b',' };
        input.consume(mark);
        let parser = csv_core::ReaderBuilder::new().delimiter(delimiter).build();
        let (unpacked, ends) = (vec![0; 4096], vec![0; 64]);
        Ok(Records { input, parser, fields: Vec::new(), unpacked, ends, number: 0 })
    }

    fn next(&mut self, file: &TruthFile) -> Result<Option<&[String]>, EvaluateError> {
        let (mut written, mut columns) = (0, 0);
        self.number += 1;
        loop {
            let input = self.input.fill_buf().map_err(|error| file.io(error))?;
            let (result, read, wrote, ended) =
                self.parser.read_record(input, &mut self.unpacked[written..], &mut self.ends[columns..]);
            self.input.consume(read);
            written += wrote;
            columns += ended;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull if self.unpacked.len() < MAX_LINE => {
                    self.unpacked.resize(self.unpacked.len() * 2, 0);
                }
                ReadRecordResult::OutputEndsFull if self.ends.len() < 4096 => {
                    self.ends.resize(self.ends.len() * 2, 0);
                }
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    return Err(file.bad(self.number, "the record is too long"));
                }
                ReadRecordResult::Record => break,
                ReadRecordResult::End => return Ok(None),
            }
        }
        self.fields.clear();
        let mut start = 0;
        for &end in &self.ends[..columns] {
            let field = std::str::from_utf8(&self.unpacked[start..end]);
            self.fields.push(field.map_err(|_| file.bad(self.number, "not UTF-8"))?.to_owned());
            start = end;
        }
        Ok(Some(&self.fields))
    }
}

#[cfg(test)]
mod tests;
