//! The small files that measurements are given: lexicons, query logs, results of address studies.

use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use crate::size::addresses::AddressStudy;
use crate::size::engine::Lexicon;
use serde_json::Value;

use super::stored::open_lines;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system said no.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// A line is not what it should be.
    #[error("{}, line {line}: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        problem: String,
    },
    /// Something is not said anywhere.
    #[error("{}: {problem}", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// What.
        problem: &'static str,
    },
}

/// Every line that is not empty and no comment, with its number.
fn each_line(path: &Path, take: &mut dyn FnMut(u64, &str) -> Result<(), String>) -> Result<(), FileError> {
    let failed = |source| FileError::Io { path: path.to_owned(), source };
    for (line, text) in (1..).zip(open_lines(path).map_err(failed)?.lines()) {
        let text = text.map_err(failed)?;
        let text = text.trim();
        if !text.is_empty() && !text.starts_with('#') {
            take(line, text).map_err(|problem| FileError::Line { path: path.to_owned(), line, problem })?;
        }
    }
    Ok(())
}

/// Words, one a line, each with the number of documents that have it after white space, where that
/// is known. Plain or gzipped.
///
/// # Errors
///
/// When the file cannot be read, or a number is none.
pub fn read_lexicon(path: &Path) -> Result<Lexicon, FileError> {
    let mut words = Vec::new();
    each_line(path, &mut |_, text| {
        let mut parts = text.split_whitespace();
        let word = parts.next().unwrap_or_default().to_lowercase();
        let count = match parts.next() {
            Some(count) => count.parse().map_err(|_| format!("{count:?} is not a number of documents"))?,
            None => 0,
        };
        words.push((word, count));
        Ok(())
    })?;
    Ok(Lexicon::new(words))
}

/// Queries, one a line, each once, in the order of the file. Plain or gzipped.
///
/// # Errors
///
/// When the file cannot be read.
pub fn read_queries(path: &Path) -> Result<Vec<String>, FileError> {
    let mut seen = std::collections::HashSet::new();
    let mut queries = Vec::new();
    each_line(path, &mut |_, text| {
        let query = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if seen.insert(query.clone()) {
            queries.push(query);
        }
        Ok(())
    })?;
    Ok(queries)
}

/// The results of a study of random addresses, as CSV or JSON lines.
///
/// CSV has the columns `what,number`: a row `space` with the addresses that there are, a row
/// `tried` with those that were tried, and a row `server` for each server that was found, with its
/// pages, or with nothing where they were not counted. A header `what,number` may come first, and
/// further columns are not looked at. JSON lines have the keys `space` and `tried` in one object or
/// two, and `pages` in an object for each server, `null` where they were not counted.
///
/// # Errors
///
/// When the file cannot be read or does not say what is needed.
pub fn read_addresses(path: &Path) -> Result<AddressStudy, FileError> {
    let (mut space, mut tried) = (None, None);
    let mut study = AddressStudy::default();
    each_line(path, &mut |_, text| {
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text:?} is not a whole number"));
        if text.starts_with('{') {
            let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
            let whole = |key: &str| match value.get(key) {
                None => Ok(None),
                Some(found) => found.as_u64().map(Some).ok_or_else(|| format!("{key} is not a whole number")),
            };
            space = whole("space")?.or(space);
            tried = whole("tried")?.or(tried);
            if let Some(pages) = value.get("pages") {
                study.found += 1;
                if !pages.is_null() {
                    study.pages.extend(whole("pages")?);
                }
            }
            return Ok(());
        }
        let mut columns = text.split(',').map(str::trim);
        let (what, value) = (columns.next().unwrap_or_default(), columns.next().unwrap_or_default());
        match what {
            "what" => {}
            "space" => space = Some(number(value)?),
            "tried" => tried = Some(number(value)?),
            "server" => {
                study.found += 1;
                if !value.is_empty() {
                    study.pages.push(number(value)?);
                }
            }
            other => return Err(format!("{other:?} is none of space, tried and server")),
        }
        Ok(())
    })?;
    let missing = |problem| FileError::Missing { path: path.to_owned(), problem };
    study.space = space.ok_or_else(|| missing("no row says how many addresses there are (space)"))?;
    study.tried = tried.ok_or_else(|| missing("no row says how many addresses were tried (tried)"))?;
    Ok(study)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn a_study_in_both_spellings() {
        let csv = file("what,number\nspace,4294967296\ntried,1000\nserver,12,a.example\nserver,\nserver,7\n");
        let lines = file(
            "{\"space\":4294967296,\"tried\":1000}\n{\"pages\":12}\n{\"pages\":null}\n\n{\"pages\":7}\n",
        );
        let study = read_addresses(csv.path()).unwrap();
        assert_eq!((study.space, study.tried, study.found), (1 << 32, 1000, 3));
        assert_eq!(study.pages, [12, 7]);
        assert_eq!(study, read_addresses(lines.path()).unwrap());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let problem = |text: &str| read_addresses(file(text).path()).unwrap_err().to_string();
        assert!(problem("space,10\ntried,x\n").ends_with("line 2: \"x\" is not a whole number"));
        assert!(problem("space,10\nhosts,3\n").contains("line 2: \"hosts\" is none of"));
        assert!(problem("tried,3\n").ends_with("(space)"));
        assert!(problem("{\"space\":\n").contains("line 1: "));
    }

    #[test]
    fn lexicons_and_logs() {
        let lexicon = read_lexicon(file("# words\nCat 12\nsat\n").path()).unwrap();
        assert_eq!(lexicon.words(), [("cat".to_owned(), 12), ("sat".to_owned(), 0)]);
        assert!(read_lexicon(file("cat many\n").path()).is_err());
        assert_eq!(
            read_queries(file("gamma  mlp\n\ndvi2pdf\ngamma mlp\n").path()).unwrap(),
            ["gamma mlp", "dvi2pdf"]
        );
    }
}
