//! The inputs of an atlas, opened again: for looking at a text, and for writing filtered copies.
//!
//! A scan leaves in the manifest the names of its inputs and how it read them. With both, the stream of documents is the same
//! as it was, and a document is found again by its source and offset.

use std::path::Path;

use onionskin_corpus::{DiscoverError, ExtractOptions, Options, PdfTool, Source, discover};
use onionskin_store::Manifest;
use serde_json::{Value, json};

/// How inputs were read, for the manifest.
pub(crate) fn to_json(options: &Options) -> Value {
    json!({
        "text_field": options.text_field,
        "id_field": options.id_field,
        "url_field": options.url_field,
        "text_is_html": options.text_is_html,
        "text_digests": options.text_digests,
        "any_status": options.any_status,
        "format": options.format.map(|format| format.as_str()),
        "max_record_bytes": options.max_record_bytes,
        "max_text_bytes": options.extract.max_text_bytes,
        "task_bytes": options.task_bytes,
        "pdf": match options.extract.pdf { PdfTool::Pdftotext => "pdftotext", _ => "built-in" },
    })
}

/// How the inputs of an atlas were read. What the manifest does not say is as in a scan that was told nothing.
pub fn reading_options(manifest: &Manifest) -> Options {
    options_of(&manifest.stages.get("scan").cloned().unwrap_or_default())
}

/// The same from what the manifest says of the scan.
pub fn options_of(scan: &Value) -> Options {
    let text = |key: &str| scan.get(key).and_then(Value::as_str).map(str::to_owned);
    let number = |key: &str| scan.get(key).and_then(Value::as_u64);
    let flag = |key: &str| scan.get(key).and_then(Value::as_bool).unwrap_or(false);
    let default = Options::default();
    let pdf =
        if text("pdf").as_deref() == Some("pdftotext") { PdfTool::Pdftotext } else { default.extract.pdf };
    let max_text_bytes = number("max_text_bytes").unwrap_or(default.extract.max_text_bytes);
    Options {
        text_field: text("text_field").unwrap_or(default.text_field),
        id_field: text("id_field").unwrap_or(default.id_field),
        url_field: text("url_field").unwrap_or(default.url_field),
        text_is_html: flag("text_is_html"),
        text_digests: flag("text_digests"),
        any_status: flag("any_status"),
        format: text("format").and_then(|format| format.parse().ok()),
        max_record_bytes: number("max_record_bytes").unwrap_or(default.max_record_bytes),
        task_bytes: number("task_bytes").unwrap_or(default.task_bytes),
        extract: ExtractOptions { pdf, max_text_bytes, ..default.extract },
    }
}

/// Opens an input of an atlas again, by its name in the manifest and in the column `source` of its documents. A name that is
/// not absolute is looked for below `base` where that is given.
pub fn reopen(name: &str, base: Option<&Path>, options: &Options) -> Result<Source, DiscoverError> {
    let place = match base {
        Some(base) if Path::new(name).is_relative() => base.join(name).display().to_string(),
        _ => name.to_owned(),
    };
    let mut sources = discover(&[place], options)?;
    let at = sources.iter().position(|source| source.name == name).unwrap_or(0);
    Ok(sources.swap_remove(at))
}
