//! A report as files: one page, JSON, tables as CSV, figures as SVG and PNG.

use std::fs;
use std::path::{Path, PathBuf};

use crate::figure::Ink;
use crate::report::{Block, Document, csv, html, json};
use onionskin_store::{IoError, json as spelling};
use serde::Serialize;

use crate::study::ReportError;

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Written {
    /// The page.
    #[serde(serialize_with = "spelling::path")]
    pub page: PathBuf,
    /// Its length.
    pub page_bytes: u64,
    /// All files.
    pub files: u64,
}

/// Writes a report into a folder: `report.html`, `report.json`, `tables/*.csv`, `figures/*.svg`
/// and, where asked for, `figures/*.png`. Figures and tables of an earlier report in the same
/// folder go; other files stay.
pub fn write_report(document: &Document, folder: &Path, with_png: bool) -> Result<Written, ReportError> {
    let mut files = 0;
    let mut write = |path: PathBuf, bytes: &[u8]| -> Result<(), ReportError> {
        files += 1;
        Ok(fs::write(&path, bytes).map_err(|e| IoError::new("writing", &path, e))?)
    };
    for (name, endings) in [("tables", &["csv"][..]), ("figures", &["svg", "png"])] {
        let folder = folder.join(name);
        fs::create_dir_all(&folder).map_err(|e| IoError::new("creating", &folder, e))?;
        clear(&folder, endings)?;
    }
    for (name, text) in csv(document) {
        write(folder.join("tables").join(name), text.as_bytes())?;
    }
    let figures =
        document.sections.iter().flat_map(|section| &section.blocks).filter_map(|block| match block {
            Block::Figure { id, figure, .. } => Some((id, figure)),
            _ => None,
        });
    for (id, figure) in figures {
        let path = folder.join("figures").join(id);
        write(path.with_extension("svg"), figure.svg(Ink::File, id).as_bytes())?;
        if with_png {
            write(path.with_extension("png"), &figure.png()?)?;
        }
    }
    write(folder.join("report.json"), json(document).as_bytes())?;
    let page = folder.join("report.html");
    let text = html(document);
    write(page.clone(), text.as_bytes())?;
    Ok(Written { page, page_bytes: text.len() as u64, files })
}

/// Removes the files of a folder that end like this.
fn clear(folder: &Path, endings: &[&str]) -> Result<(), ReportError> {
    let entries = fs::read_dir(folder).map_err(|e| IoError::new("reading", folder, e))?;
    for entry in entries {
        let path = entry.map_err(|e| IoError::new("reading", folder, e))?.path();
        let ours = path.extension().is_some_and(|ending| endings.iter().any(|ours| ending == *ours));
        if ours && path.is_file() {
            fs::remove_file(&path).map_err(|e| IoError::new("removing", &path, e))?;
        }
    }
    Ok(())
}
