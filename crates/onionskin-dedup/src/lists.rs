//! The lists of kept and removed documents, one JSON object a line. Lists are passed on, so URLs
//! are without user names and passwords. An id is what its owner matches by, and stays as it is.

use std::borrow::Cow;
use std::io::{self, Write};

use onionskin_core::{ClusterId, DocId};
use onionskin_extract::url::without_user;
use onionskin_store::table::{CopyKind, DocumentRow};
use serde::Serialize;

use super::decide::Entry;
use super::names::Kept;

/// The document of a line.
#[derive(Serialize)]
struct Document<'a> {
    doc: DocId,
    id: Option<&'a str>,
    url: Option<Cow<'a, str>>,
    source: &'a str,
    offset: u64,
}

impl<'a> Document<'a> {
    fn of(row: &DocumentRow<'a>) -> Document<'a> {
        let url = row.url.map(without_user);
        Document { doc: row.doc, id: row.id, url, source: row.source, offset: row.offset }
    }
}

/// A line of `kept.jsonl`.
#[derive(Serialize)]
struct KeptLine<'a> {
    #[serde(flatten)]
    document: Document<'a>,
    /// There when it has copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<ClusterId>,
    /// Members of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u32>,
}

/// A line of `removed.jsonl`.
#[derive(Serialize)]
struct RemovedLine<'a> {
    #[serde(flatten)]
    document: Document<'a>,
    cluster: ClusterId,
    size: u32,
    kind: &'static str,
    kept_doc: DocId,
    kept_id: Option<&'a str>,
    kept_url: Option<Cow<'a, str>>,
    same_site: bool,
    resemblance: f64,
    /// There when a pair row says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    containment: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    containment_of_kept: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'static str>,
    reason: String,
}

/// Writes that a document is kept.
pub(super) fn kept(out: &mut impl Write, row: &DocumentRow<'_>, entry: Option<&Entry>) -> io::Result<()> {
    line(
        out,
        &KeptLine {
            document: Document::of(row),
            cluster: entry.map(|entry| entry.cluster),
            size: entry.map(|entry| entry.size),
        },
    )
}

/// Writes that a document is removed, and why.
pub(super) fn removed(
    out: &mut impl Write,
    row: &DocumentRow<'_>,
    entry: &Entry,
    kept: &Kept,
) -> io::Result<()> {
    let evidence = entry.evidence();
    line(
        out,
        &RemovedLine {
            document: Document::of(row),
            cluster: entry.cluster,
            size: entry.size,
            kind: entry.kind().as_str(),
            kept_doc: kept.doc,
            kept_id: kept.id.as_deref(),
            kept_url: kept.url.as_deref().map(without_user),
            same_site: same_site(row, kept),
            resemblance: entry.resemblance(),
            containment: evidence.map(|evidence| evidence.containment),
            containment_of_kept: evidence.map(|evidence| evidence.containment_of_kept),
            method: evidence.map(|evidence| evidence.method.as_str()),
            reason: reason(row, entry, kept),
        },
    )
}

/// Documents without a site are taken to be of one.
pub(super) fn same_site(row: &DocumentRow<'_>, kept: &Kept) -> bool {
    row.site == kept.site
}

/// Why a document is removed, in words.
fn reason(row: &DocumentRow<'_>, entry: &Entry, kept: &Kept) -> String {
    let name = kept.name();
    let name = without_user(&name);
    match entry.kind() {
        CopyKind::Exact => match (row.payload_sha1, kept.payload_sha1) {
            (Some(payload), Some(other)) if payload == other => format!("the same payload as {name}"),
            (Some(_), Some(_)) => format!("the same text as {name}, in another payload"),
            _ => format!("the same text as {name}"),
        },
        CopyKind::Near => match entry.evidence() {
            Some(evidence) => format!(
                "resemblance {:.4} to {name}, which has {:.1} % of it",
                entry.resemblance(),
                100.0 * evidence.containment
            ),
            None => format!("resemblance {:.4} to {name}", entry.resemblance()),
        },
    }
}

fn line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}
