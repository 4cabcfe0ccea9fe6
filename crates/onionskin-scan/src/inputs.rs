//! The inputs of an atlas, opened again: for looking at a text, and for writing filtered copies.
//!
//! A scan leaves in the manifest the names of its inputs and how it read them. With both, the
//! stream of documents is the same as it was, and a document is found again by its source and
//! offset.

use std::path::Path;

use onionskin_corpus::{
    BadReason, DiscoverError, ExtractOptions, Format, Options, PdfTool, Shares, Source, discover,
};
use onionskin_store::manifest::InputEntry;
use onionskin_store::{Atlas, AtlasError, MemoryBudget, StageName, StageRecord, spelled};
use serde::{Deserialize, Serialize};

use crate::budget;

/// How the inputs of an atlas were read. What a manifest does not say is as by default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScanRecord {
    /// Names of fields are with commas between them.
    text_field: String,
    id_field: String,
    url_field: String,
    /// Absent from atlases of versions that read no dates.
    date_field: String,
    text_is_html: bool,
    text_digests: bool,
    any_status: bool,
    /// Absent from atlases of versions that followed all links.
    #[serde(default)]
    follow_links: Option<bool>,
    /// Absent from atlases of versions that read all PostScript.
    #[serde(default)]
    postscript: Option<bool>,
    /// Absent from atlases of versions that took robots.txt and CDX indexes for documents.
    #[serde(default)]
    crawl_files: Option<bool>,
    hosts: bool,
    base_url: Option<String>,
    #[serde(with = "spelled")]
    format: Option<Format>,
    max_record_bytes: u64,
    max_text_bytes: u64,
    task_bytes: u64,
    pdf: Pdf,
}

/// What took the text out of PDF files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Pdf {
    #[serde(rename = "pdftotext")]
    Pdftotext,
    #[serde(rename = "built-in")]
    BuiltIn,
}

impl StageRecord for ScanRecord {
    const STAGE: StageName = StageName::Scan;
}

impl Default for ScanRecord {
    /// As versions read that recorded nothing.
    fn default() -> ScanRecord {
        ScanRecord {
            text_field: "text".to_owned(),
            id_field: "id".to_owned(),
            url_field: "url".to_owned(),
            date_field: String::new(),
            follow_links: None,
            postscript: None,
            crawl_files: None,
            ..ScanRecord::from(&Options::default())
        }
    }
}

impl From<&Options> for ScanRecord {
    fn from(options: &Options) -> ScanRecord {
        ScanRecord {
            text_field: options.text_field.to_string(),
            id_field: options.id_field.to_string(),
            url_field: options.url_field.to_string(),
            date_field: options.date_field.to_string(),
            text_is_html: options.text_is_html,
            text_digests: options.text_digests,
            any_status: options.any_status,
            follow_links: Some(options.follow_links),
            postscript: Some(options.extract.postscript),
            crawl_files: Some(options.crawl_files),
            hosts: options.hosts,
            base_url: options.base_url.as_ref().map(ToString::to_string),
            format: options.format,
            max_record_bytes: options.max_record_bytes,
            max_text_bytes: options.extract.max_text_bytes,
            task_bytes: options.task_bytes,
            pdf: match options.extract.pdf {
                PdfTool::Pdftotext => Pdf::Pdftotext,
                _ => Pdf::BuiltIn,
            },
        }
    }
}

impl ScanRecord {
    /// The record of a scan with these options, as far as this one says.
    pub(crate) fn comparable(&self, options: &Options) -> ScanRecord {
        let mut other = ScanRecord::from(options);
        if self.follow_links.is_none() {
            other.follow_links = None;
        }
        if self.postscript.is_none() {
            other.postscript = None;
        }
        if self.crawl_files.is_none() {
            other.crawl_files = None;
        }
        other
    }
}

impl From<ScanRecord> for Options {
    fn from(record: ScanRecord) -> Options {
        let default = Options::default();
        let pdf = match record.pdf {
            Pdf::Pdftotext => PdfTool::Pdftotext,
            Pdf::BuiltIn => default.extract.pdf,
        };
        Options {
            text_field: record.text_field.as_str().into(),
            id_field: record.id_field.as_str().into(),
            url_field: record.url_field.as_str().into(),
            date_field: record.date_field.as_str().into(),
            text_is_html: record.text_is_html,
            text_digests: record.text_digests,
            any_status: record.any_status,
            follow_links: record.follow_links.unwrap_or(true),
            crawl_files: record.crawl_files.unwrap_or(true),
            hosts: record.hosts,
            base_url: record.base_url.and_then(|base| base.parse().ok()),
            format: record.format,
            max_record_bytes: record.max_record_bytes,
            task_bytes: record.task_bytes,
            extract: ExtractOptions {
                pdf,
                postscript: record.postscript.unwrap_or(true),
                max_text_bytes: record.max_text_bytes,
                ..default.extract
            },
            ..default
        }
    }
}

/// How the inputs of an atlas were read.
pub fn reading_options(atlas: &Atlas) -> Result<Options, AtlasError> {
    Ok(atlas.record::<ScanRecord>()?.unwrap_or_default().into())
}

/// The shares of a memory budget for reading inputs, as a scan has them.
pub fn shares_of(memory: MemoryBudget, threads: usize) -> Shares {
    budget::shares(memory, threads)
}

/// Lets programs that read documents have no more memory than in a scan with this budget.
pub fn limit_tools(options: &mut Options, memory: MemoryBudget) {
    options.extract.tool_memory_bytes = shares_of(memory, 1).limit(options).extract.tool_memory_bytes;
}

/// An input that cannot be read again as it was scanned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{input}: {reason}\nhint: put the input back as it was when it was scanned, or scan again with the recipe `papers`, which keeps all chunks"
)]
pub struct ChangedInput {
    /// Its name.
    pub input: String,
    /// What is wrong.
    pub reason: String,
}

impl ChangedInput {
    /// A document is not what it was. `unread` is why its record could not be read, if that is so.
    pub fn document(source: &Source, offset: u64, unread: Option<&BadReason>) -> ChangedInput {
        let (input, document) = match source.format {
            Format::Tree => (source.place(offset), "the document".to_owned()),
            _ => (source.name.clone(), format!("the document at offset {offset}")),
        };
        let reason = match unread {
            Some(reason) => format!("{document} cannot be read any more: {reason}"),
            None => format!("{document} is not what it was when it was scanned"),
        };
        ChangedInput { input, reason }
    }

    /// The manifest does not list an input that the table of documents names.
    pub fn unlisted(name: &str) -> ChangedInput {
        let reason = "the atlas has documents of it, but does not list it".to_owned();
        ChangedInput { input: name.to_owned(), reason }
    }
}

/// Opens an input again if it is there and has the length that it had.
pub fn reopen_unchanged(
    input: &InputEntry,
    base: Option<&Path>,
    options: &Options,
) -> Result<Source, ChangedInput> {
    let changed = |reason: String| ChangedInput { input: input.name.clone(), reason };
    match reopen(input, base, options) {
        Err(error) => Err(changed(error.to_string())),
        Ok(source) if source.is_stream() => Err(changed("it was a pipe".to_owned())),
        Ok(source) if source.bytes != input.bytes => {
            Err(changed(format!("it has {} bytes, not {} as when it was scanned", source.bytes, input.bytes)))
        }
        Ok(source) => Ok(source),
    }
}

/// Opens an input of an atlas again, by its name in the manifest and in the column `source` of its
/// documents, or by those of its files. A name that is not absolute is looked for below `base`
/// where that is given.
pub fn reopen(input: &InputEntry, base: Option<&Path>, options: &Options) -> Result<Source, DiscoverError> {
    let place = |name: &String| match base {
        Some(base) if Path::new(name).is_relative() => base.join(name).display().to_string(),
        _ => name.clone(),
    };
    let names = if input.files.is_empty() { std::slice::from_ref(&input.name) } else { &input.files };
    let mut sources = discover(&names.iter().map(place).collect::<Vec<_>>(), options)?;
    let at = sources.iter().position(|source| source.name == input.name).unwrap_or(0);
    Ok(sources.swap_remove(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a version wrote that knew one name for each field and skipped nothing of a crawl.
    #[test]
    fn older_records_are_read_as_they_were_written() {
        let old = r#"{"text_field":"text","id_field":"name","url_field":"url","any_status":true,"follow_links":false}"#;
        let options: Options = serde_json::from_str::<ScanRecord>(old).unwrap().into();
        assert_eq!(options.text_field.to_string(), "text");
        assert_eq!(options.id_field.to_string(), "name");
        assert!(options.date_field.is_empty() && options.any_status && options.crawl_files);
        assert!(!options.hosts && options.base_url.is_none() && !options.follow_links);
    }

    #[test]
    fn programs_that_read_documents_are_limited_as_in_a_scan() {
        let scanning = Options::default();
        for (mib, expected) in [(128, 32), (1024, 476), (64 << 10, 4 << 10)] {
            let mut options = scanning.clone();
            limit_tools(&mut options, MemoryBudget::from_mib(mib));
            assert_eq!(options.extract.tool_memory_bytes, expected << 20, "{mib}");
            // What the scan has taken is taken again.
            assert_eq!(options.max_record_bytes, scanning.max_record_bytes);
            assert_eq!(options.extract.max_text_bytes, scanning.extract.max_text_bytes);
        }
    }

    #[test]
    fn records_come_back() {
        let base_url = "http://wiki.test/docs".parse().ok();
        let options = Options {
            text_field: "a,b.c".into(),
            date_field: "day".into(),
            hosts: true,
            base_url,
            ..Options::default()
        };
        let record = ScanRecord::from(&options);
        let spelled = serde_json::to_string(&record).unwrap();
        let read: ScanRecord = serde_json::from_str(&spelled).unwrap();
        assert_eq!(read, record);
        assert_eq!(ScanRecord::from(&Options::from(read)), record);
    }
}
