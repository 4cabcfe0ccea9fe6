//! The journal of a stage: one line for the job, one for each commit.
//!
//! A line is the CRC-32C of its JSON in eight hexadecimal digits, a space, the JSON, and a line
//! feed. A line that was not written whole is the last one, and is dropped; a bad line with good
//! ones after it is damage.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::hex64;
use crate::schema::TableName;
use crate::stage::StageName;

/// Version of the journal's format.
pub(super) const JOURNAL_VERSION: u32 = 2;

/// The first line: whose work this is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) journal: u32,
    pub(super) stage: StageName,
    pub(super) recipe: String,
    pub(super) tables: Vec<TableDecl>,
    pub(super) job: Value,
}

/// A table that the stage makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TableDecl {
    pub(super) name: TableName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) list_len: Option<u32>,
}

/// Every other line: what is safe since the line before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Commit {
    pub(super) commit: u64,
    pub(super) state: Value,
    pub(super) parts: Vec<PartEntry>,
    pub(super) raw: Vec<RawEntry>,
}

/// A part of a table; its name follows from the table and the commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartEntry {
    pub(super) table: TableName,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    #[serde(with = "hex64")]
    pub(super) xxh3: u64,
}

/// A part of a work file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RawEntry {
    pub(super) name: String,
    pub(super) records: u64,
    pub(super) bytes: u64,
    #[serde(with = "hex64")]
    pub(super) xxh3: u64,
}

/// What is wrong with a journal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// A line is bad, and good ones follow it.
    #[error("line {line} is damaged")]
    Damaged {
        /// Number of the line, from 1.
        line: u64,
    },
    /// The checksum is right but the contents make no sense.
    #[error("line {line}: {reason}")]
    Contents {
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong.
        reason: String,
    },
    /// Written by a version that we do not know.
    #[error("journal of version {found}, this program writes {JOURNAL_VERSION}")]
    Version {
        /// Version of the journal.
        found: u32,
    },
}

/// A journal as read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Journal {
    /// `None` when not even the first line is whole: then nothing was committed.
    pub(super) header: Option<Header>,
    pub(super) commits: Vec<Commit>,
    /// Bytes of the lines that are whole.
    pub(super) valid_bytes: u64,
}

/// A line of the journal.
fn line(value: &impl Serialize) -> Result<Vec<u8>, JournalError> {
    let contents = |e: serde_json::Error| JournalError::Contents { line: 0, reason: e.to_string() };
    let json = serde_json::to_vec(value).map_err(contents)?;
    let mut line = format!("{:08x} ", crc32c::crc32c(&json)).into_bytes();
    line.extend_from_slice(&json);
    line.push(b'\n');
    Ok(line)
}

pub(super) fn header_line(header: &Header) -> Result<Vec<u8>, JournalError> {
    line(header)
}

pub(super) fn commit_line(commit: &Commit) -> Result<Vec<u8>, JournalError> {
    line(commit)
}

/// The JSON of a line, when its checksum is right.
fn checked(line: &[u8]) -> Option<&[u8]> {
    let (crc, json) = (line.get(..8)?, line.get(9..)?);
    let crc = u32::from_str_radix(std::str::from_utf8(crc).ok()?, 16).ok()?;
    (line.get(8) == Some(&b' ') && crc32c::crc32c(json) == crc).then_some(json)
}

/// Reads a journal.
pub(super) fn parse(bytes: &[u8]) -> Result<Journal, JournalError> {
    let mut journal = Journal::default();
    let mut bad_line = None;
    for (number, line) in (1u64..).zip(bytes.split_inclusive(|b| *b == b'\n')) {
        let Some(json) = line.strip_suffix(b"\n").and_then(checked) else {
            bad_line.get_or_insert(number);
            continue;
        };
        if let Some(line) = bad_line {
            return Err(JournalError::Damaged { line });
        }
        let contents = |reason: String| JournalError::Contents { line: number, reason };
        if number == 1 {
            let header: Header = serde_json::from_slice(json).map_err(|e| contents(e.to_string()))?;
            if header.journal != JOURNAL_VERSION {
                return Err(JournalError::Version { found: header.journal });
            }
            journal.header = Some(header);
        } else {
            let commit: Commit = serde_json::from_slice(json).map_err(|e| contents(e.to_string()))?;
            let expected = journal.commits.len() as u64;
            if commit.commit != expected {
                return Err(contents(format!("commit {} where {expected} should be", commit.commit)));
            }
            journal.commits.push(commit);
        }
        journal.valid_bytes += line.len() as u64;
    }
    Ok(journal)
}

/// Reads a journal from bytes, and says how many commits it has; for fuzzing.
pub fn parse_journal_bytes(bytes: &[u8]) -> Result<u64, JournalError> {
    parse(bytes).map(|journal| journal.commits.len() as u64)
}

/// The first difference between two JSON values, as a path and both sides.
pub(crate) fn first_difference(before: &Value, now: &Value) -> Option<String> {
    // A stack in place of recursion; children are pushed in reverse, so that the first in order
    // comes first.
    let mut stack = vec![(String::new(), Some(before), Some(now))];
    while let Some((path, before, now)) = stack.pop() {
        match (before, now) {
            (Some(a), Some(b)) if a == b => {}
            (Some(Value::Object(a)), Some(Value::Object(b))) => {
                let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
                keys.sort();
                keys.dedup();
                let dot = if path.is_empty() { "" } else { "." };
                stack.extend(
                    keys.iter().rev().map(|key| (format!("{path}{dot}{key}"), a.get(*key), b.get(*key))),
                );
            }
            (Some(Value::Array(a)), Some(Value::Array(b))) => {
                let longest = a.len().max(b.len());
                stack.extend((0..longest).rev().map(|i| (format!("{path}[{i}]"), a.get(i), b.get(i))));
            }
            (a, b) => {
                let path = if path.is_empty() { "the job".to_owned() } else { path };
                return Some(format!("{path} was {}, is now {}", shown(a), shown(b)));
            }
        }
    }
    None
}

/// A JSON value, short enough for an error message.
fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "absent".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
