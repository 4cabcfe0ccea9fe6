//! The rows of one file, from the first to the last, for readers that are no scan.

use std::io::{Read, Seek, SeekFrom};

use super::{Batches, Chunks, ParquetFile, RowGroup, Unusable};
use crate::document::BadReason;
use crate::fields::FieldNames;
use crate::options::Options;

/// Reads the wanted columns of a Parquet file, some rows at a time.
pub struct ParquetTexts {
    file: ParquetFile,
    groups: std::vec::IntoIter<RowGroup>,
    batches: Option<Batches>,
    options: Options,
    is_html: bool,
}

/// The wanted columns of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParquetText<'a> {
    /// The number of the row, from 0.
    pub row: u64,
    /// The text, or why there is none.
    pub text: Result<&'a str, BadReason>,
    /// The document's own name.
    pub id: Option<&'a str>,
    /// Its URL, as it is stored.
    pub url: Option<&'a str>,
}

impl ParquetTexts {
    /// Reads the metadata and finds the columns: that of the text, or that of HTML where there is
    /// no text. Those of id and URL need not be there.
    pub fn open(
        mut input: impl Read + Seek + Send + 'static,
        options: &Options,
        html_field: &str,
    ) -> Result<ParquetTexts, BadReason> {
        let len = input.seek(SeekFrom::End(0)).map_err(|error| BadReason::from_io(&error))?;
        let chunks = Chunks::new(Box::new(input), len, options);
        let (file, is_html) = match ParquetFile::of(chunks.clone(), options) {
            Err(Unusable { reason: missing @ BadReason::MissingColumn { .. }, .. }) => {
                let options = Options { text_field: FieldNames::one(html_field), ..options.clone() };
                (ParquetFile::of(chunks, &options).map_err(|_| missing)?, true)
            }
            file => (file.map_err(|unusable| unusable.reason)?, false),
        };
        let groups = file.row_groups(options).into_iter();
        Ok(ParquetTexts { file, groups, batches: None, options: options.clone(), is_html })
    }

    /// Whether the texts are HTML.
    pub fn is_html(&self) -> bool {
        self.is_html
    }

    /// Visits the next rows, about a megabyte of them; false at the end of the file.
    pub fn next_rows(&mut self, mut visit: impl FnMut(ParquetText<'_>)) -> Result<bool, BadReason> {
        let rows = loop {
            if let Some(rows) = self.batches.as_mut().and_then(|batches| batches.next(&mut |_| {})) {
                break rows?;
            }
            let Some(group) = self.groups.next() else { return Ok(false) };
            self.batches = Some(self.file.batches(group.group, group.first_row, &self.options));
        };
        let limit = self.options.max_record_bytes;
        for at in rows.range.clone() {
            let text = match rows.text.get(at) {
                Some(text) if text.len() as u64 > limit => Err(BadReason::TooLarge { limit }),
                Some(text) => Ok(text),
                None if rows.text.is_stored(at) => Err(BadReason::InvalidUtf8),
                None => Err(BadReason::MissingText),
            };
            let id = rows.id.as_ref().and_then(|column| column.get(at));
            let url = rows.url.as_ref().and_then(|column| column.get(at));
            visit(ParquetText { row: rows.first_row + at as u64, text, id, url });
        }
        Ok(true)
    }
}
