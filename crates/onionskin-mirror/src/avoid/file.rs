//! The list's own file, `avoid.json`, and the same as CSV.
//!
//! The file is read back by later runs, so it has a version, and everything in it is checked: a
//! rule that was edited by hand into something wider than it looks is an error with its place, not
//! a rule.

use std::fmt;
use std::fmt::Write as _;

use onionskin_core::{CollectionId, ReplicaId, csv};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{AvoidEntry, AvoidList, RuleHost, SkipRule};

/// Version of `avoid.json` that is written, and the only one that is read.
pub const FORMAT_VERSION: u32 = 1;

/// What `format` says in the file.
const FORMAT_NAME: &str = "onionskin-avoid";

/// A file that is no list.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AvoidFileError {
    /// Not JSON, or not what a list has there.
    #[error("line {line}, column {column}: {message}")]
    At {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// JSON, but of another kind.
    #[error("this is no avoid list: its format is {found:?}, not {FORMAT_NAME:?}")]
    NotAList {
        /// What the file says that it is.
        found: String,
    },
    /// Written by another version of the program.
    #[error("avoid list of version {found}; this program reads version {FORMAT_VERSION}")]
    Version {
        /// The file's version.
        found: u64,
    },
    /// A list that cannot be written.
    #[error("entry {entry}: a coverage of {coverage} is not between 0 and 1")]
    Coverage {
        /// Which entry, from 0.
        entry: usize,
        /// Its coverage.
        coverage: f64,
    },
}

impl From<serde_json::Error> for AvoidFileError {
    fn from(error: serde_json::Error) -> AvoidFileError {
        let text = error.to_string();
        // The place is told apart from the message.
        let place = format!(" at line {} column {}", error.line(), error.column());
        let message = text.strip_suffix(&place).unwrap_or(&text).to_owned();
        AvoidFileError::At { line: error.line(), column: error.column(), message }
    }
}

/// What every version begins with.
#[derive(Deserialize)]
struct Head {
    format: Option<String>,
    version: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireList {
    format: String,
    version: u32,
    tool: Option<String>,
    recipe: Option<String>,
    threshold: Option<String>,
    crawl_from: Option<String>,
    crawl_to: Option<String>,
    entries: Vec<WireEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireEntry {
    group: CollectionId,
    replica: ReplicaId,
    kind: String,
    name: String,
    principal: String,
    root: String,
    host: WireHost,
    other_ports: bool,
    rules: Vec<WireRule>,
    pages: u64,
    bytes: u64,
    coverage: Share,
    similar: u64,
    unique: u64,
    checked: Option<String>,
    // Lists of before have neither.
    #[serde(default)]
    principal_reason: Option<String>,
    #[serde(default)]
    principal_evidence: Option<String>,
}

/// Texts and numbers that are checked while they are read, so that an error has their place.
struct Checked<F>(F);

impl<T, E: fmt::Display, F: FnOnce(&str) -> Result<T, E>> Visitor<'_> for Checked<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<D: de::Error>(self, text: &str) -> Result<T, D> {
        (self.0)(text).map_err(D::custom)
    }
}

struct WireHost(RuleHost);

impl<'de> Deserialize<'de> for WireHost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WireHost, D::Error> {
        deserializer.deserialize_str(Checked(|text: &str| RuleHost::new(text).map(WireHost)))
    }
}

impl Serialize for WireHost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

/// A number from 0 to 1.
#[derive(Serialize)]
struct Share(f64);

impl Share {
    fn new(value: f64) -> Option<Share> {
        (0.0..=1.0).contains(&value).then_some(Share(value))
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Share, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = Share;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number from 0 to 1")
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Share, E> {
                Share::new(value).ok_or_else(|| E::custom(format_args!("{value} is not between 0 and 1")))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Share, E> {
                self.visit_f64(value as f64)
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Share, E> {
                self.visit_f64(value as f64)
            }
        }

        deserializer.deserialize_f64(Number)
    }
}

/// `"host"`, `{"prefix": "/mirror/"}` or `{"exact": "/page?query"}`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WireRule {
    Host,
    Prefix(WirePrefix),
    Exact(WireExact),
}

struct WirePrefix(SkipRule);

struct WireExact(SkipRule);

impl<'de> Deserialize<'de> for WirePrefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WirePrefix, D::Error> {
        deserializer.deserialize_str(Checked(|text: &str| SkipRule::prefix(text).map(WirePrefix)))
    }
}

impl<'de> Deserialize<'de> for WireExact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WireExact, D::Error> {
        deserializer.deserialize_str(Checked(|text: &str| SkipRule::exact(text).map(WireExact)))
    }
}

impl Serialize for WirePrefix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(rule_path(&self.0))
    }
}

impl Serialize for WireExact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(rule_path(&self.0))
    }
}

/// The path of a rule; that of a whole host is its root.
fn rule_path(rule: &SkipRule) -> &str {
    match rule {
        SkipRule::Host => "/",
        SkipRule::Prefix(prefix) => prefix.as_str(),
        SkipRule::Exact(exact) => exact.as_str(),
    }
}

impl From<&SkipRule> for WireRule {
    fn from(rule: &SkipRule) -> WireRule {
        match rule {
            SkipRule::Host => WireRule::Host,
            SkipRule::Prefix(_) => WireRule::Prefix(WirePrefix(rule.clone())),
            SkipRule::Exact(_) => WireRule::Exact(WireExact(rule.clone())),
        }
    }
}

impl From<WireRule> for SkipRule {
    fn from(rule: WireRule) -> SkipRule {
        match rule {
            WireRule::Host => SkipRule::Host,
            WireRule::Prefix(prefix) => prefix.0,
            WireRule::Exact(exact) => exact.0,
        }
    }
}

impl AvoidList {
    /// The text of `avoid.json`. The same list gives the same text.
    pub fn to_json(&self) -> Result<String, AvoidFileError> {
        let entries = self.entries.iter().enumerate().map(|(n, entry)| checked_entry(n, entry));
        let wire = WireList {
            format: FORMAT_NAME.to_owned(),
            version: FORMAT_VERSION,
            tool: self.tool.clone(),
            recipe: self.recipe.clone(),
            threshold: self.threshold.clone(),
            crawl_from: self.crawl_from.clone(),
            crawl_to: self.crawl_to.clone(),
            entries: entries.collect::<Result<_, _>>()?,
        };
        let mut text = serde_json::to_string_pretty(&wire)?;
        text.push('\n');
        Ok(text)
    }

    /// Reads the text of `avoid.json`.
    pub fn from_json(text: &str) -> Result<AvoidList, AvoidFileError> {
        let head: Head = serde_json::from_str(text)?;
        match (head.format, head.version) {
            (Some(format), _) if format != FORMAT_NAME => {
                return Err(AvoidFileError::NotAList { found: format });
            }
            (None, _) => return Err(AvoidFileError::NotAList { found: String::new() }),
            (_, Some(found)) if found != u64::from(FORMAT_VERSION) => {
                return Err(AvoidFileError::Version { found });
            }
            _ => {}
        }
        let wire: WireList = serde_json::from_str(text)?;
        Ok(AvoidList {
            tool: wire.tool,
            recipe: wire.recipe,
            threshold: wire.threshold,
            crawl_from: wire.crawl_from,
            crawl_to: wire.crawl_to,
            entries: wire.entries.into_iter().map(AvoidEntry::from).collect(),
        })
    }

    /// One line a rule, with all that is known of its entry, after a line of names. Fields are
    /// quoted as in RFC 4180, and none is a formula to a spreadsheet.
    pub fn to_csv(&self) -> String {
        let mut text = String::from(
            "group,replica,kind,name,principal,root,host,rule,path,pages,bytes,coverage,similar,unique,checked,principal_reason,principal_evidence\r\n",
        );
        for entry in &self.entries {
            for rule in &entry.rules {
                let kind_of_rule = match rule {
                    SkipRule::Host => "host",
                    SkipRule::Prefix(_) => "prefix",
                    SkipRule::Exact(_) => "exact",
                };
                let texts = [
                    &entry.kind,
                    &entry.name,
                    &entry.principal,
                    &entry.root,
                    entry.host.as_str(),
                    kind_of_rule,
                    rule_path(rule),
                ];
                // Writing to a string does not fail.
                let _ = write!(text, "{},{}", entry.group, entry.replica);
                for field in texts {
                    text.push(',');
                    csv::push_text(&mut text, field);
                }
                let numbers = (entry.pages, entry.bytes, entry.coverage, entry.similar, entry.unique);
                let _ =
                    write!(text, ",{},{},{},{},{}", numbers.0, numbers.1, numbers.2, numbers.3, numbers.4);
                for field in [&entry.checked, &entry.principal_reason, &entry.principal_evidence] {
                    text.push(',');
                    csv::push_text(&mut text, field.as_deref().unwrap_or_default());
                }
                text.push_str("\r\n");
            }
        }
        text
    }
}

/// As in the file.
impl Serialize for AvoidEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        wire_entry(self, Share(self.coverage)).serialize(serializer)
    }
}

fn checked_entry(n: usize, entry: &AvoidEntry) -> Result<WireEntry, AvoidFileError> {
    let coverage =
        Share::new(entry.coverage).ok_or(AvoidFileError::Coverage { entry: n, coverage: entry.coverage })?;
    Ok(wire_entry(entry, coverage))
}

fn wire_entry(entry: &AvoidEntry, coverage: Share) -> WireEntry {
    WireEntry {
        group: entry.group,
        replica: entry.replica,
        kind: entry.kind.clone(),
        name: entry.name.clone(),
        principal: entry.principal.clone(),
        root: entry.root.clone(),
        host: WireHost(entry.host.clone()),
        other_ports: entry.other_ports,
        rules: entry.rules.iter().map(WireRule::from).collect(),
        pages: entry.pages,
        bytes: entry.bytes,
        coverage,
        similar: entry.similar,
        unique: entry.unique,
        checked: entry.checked.clone(),
        principal_reason: entry.principal_reason.clone(),
        principal_evidence: entry.principal_evidence.clone(),
    }
}

impl From<WireEntry> for AvoidEntry {
    fn from(entry: WireEntry) -> AvoidEntry {
        AvoidEntry {
            group: entry.group,
            replica: entry.replica,
            kind: entry.kind,
            name: entry.name,
            principal: entry.principal,
            root: entry.root,
            host: entry.host.0,
            other_ports: entry.other_ports,
            rules: entry.rules.into_iter().map(SkipRule::from).collect(),
            pages: entry.pages,
            bytes: entry.bytes,
            coverage: entry.coverage.0,
            similar: entry.similar,
            unique: entry.unique,
            checked: entry.checked,
            principal_reason: entry.principal_reason,
            principal_evidence: entry.principal_evidence,
        }
    }
}

#[cfg(test)]
mod tests;
