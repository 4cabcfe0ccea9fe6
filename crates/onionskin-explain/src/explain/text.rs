//! The text of a document, read again from its input.

use std::io;
use std::path::Path;

use onionskin_core::DocId;
use onionskin_core::format::grouped;
use onionskin_corpus::{DiscoverError, Document, LookupError, Options, Scratch, Source, discover};
use onionskin_store::AtlasError;
use onionskin_store::cancel::{self, Cancelled};

use super::DocumentFacts;

/// Why a text cannot be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The manifest does not say how inputs were read.
    #[error(transparent)]
    Atlas(#[from] Box<AtlasError>),
    /// The input cannot be opened.
    #[error(transparent)]
    Input(#[from] DiscoverError),
    /// The document is not in its place.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The input was a pipe.
    #[error("{name}: a pipe cannot be read again")]
    Pipe {
        /// The input.
        name: String,
    },
    /// There was no text in the first place: the record says only that a page was met again.
    #[error("document {doc} is a revisit and has no text of its own")]
    Revisit {
        /// The document.
        doc: DocId,
    },
    /// More words than may be compared.
    #[error("the two documents have {} words, and at most {} are compared here", grouped(*words), grouped(*most))]
    TooLong {
        /// Words of both.
        words: u64,
        /// How many may be compared.
        most: u64,
    },
    /// A document takes more bytes in its input than may be read.
    #[error("document {doc} takes {} bytes in its input, and at most {} are read here", grouped(*bytes), grouped(*most))]
    TooLarge {
        /// The document.
        doc: DocId,
        /// Its bytes.
        bytes: u64,
        /// How many may be read.
        most: u64,
    },
    /// Nobody wants to know any more.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The operating system said no.
    #[error("{name}")]
    Io {
        /// The input.
        name: String,
        /// What it said.
        #[source]
        source: io::Error,
    },
}

/// Finds the document in its input again. Of several candidates the one with the same payload is
/// taken (or one as long, where no digest is known), then the one with the same id or address, then
/// the first.
pub(super) fn read_text(
    facts: &DocumentFacts,
    base: Option<&Path>,
    options: &Options,
    scratch: &mut Scratch,
) -> Result<String, TextError> {
    if facts.media_type == "warc/revisit" {
        return Err(TextError::Revisit { doc: facts.doc });
    }
    let mut best: Option<(u8, String)> = None;
    let mut failure = None;
    for candidate in candidates(facts, base, options) {
        let (source, offset) = match candidate {
            Ok(candidate) => candidate,
            Err(error) => {
                failure.get_or_insert(error);
                continue;
            }
        };
        cancel::check()?;
        let stop = || cancel::check().is_err();
        let read = source.read_at_until(offset, options, scratch, &stop, &mut |document| {
            let rank = rank(&document, facts);
            if best.as_ref().is_none_or(|(found, _)| rank > *found) {
                best = Some((rank, document.text.to_owned()));
            }
        });
        if let Err(error) = read {
            failure.get_or_insert(error.into());
        }
        if best.as_ref().is_some_and(|(rank, _)| *rank == SURE) {
            break;
        }
    }
    match (best, failure) {
        (Some((_, text)), _) => Ok(text),
        (None, Some(failure)) => Err(failure),
        (None, None) => Err(DiscoverError::NotFound { input: facts.source.clone() }.into()),
    }
}

const SURE: u8 = 3;

fn rank(document: &Document<'_>, facts: &DocumentFacts) -> u8 {
    let same_name = document.id == facts.id.as_deref() && document.url == facts.url.as_deref();
    match (document.payload_sha1, facts.payload_sha1) {
        (Some(here), Some(there)) if here == there => 2 + u8::from(same_name),
        (None, None) if document.bytes == facts.bytes => 2 + u8::from(same_name),
        _ => u8::from(same_name),
    }
}

type Candidate = Result<(Source, u64), TextError>;

/// Where the document may be: usually one place. A file of a folder is opened without walking
/// through the folder.
fn candidates(
    facts: &DocumentFacts,
    base: Option<&Path>,
    options: &Options,
) -> impl Iterator<Item = Candidate> {
    let beneath = |name: &str| match base {
        Some(base) if !name.contains("://") => base.join(name).display().to_string(),
        // A leading @ would be taken for a list of inputs.
        _ if name.starts_with('@') => format!("./{name}"),
        _ => name.to_owned(),
    };
    let name = beneath(&facts.source);
    let mut quick = Vec::new();
    if facts.format.as_deref() == Some("tree")
        && let Some(id) = &facts.id
    {
        let inside = Path::new(&name).join(id);
        let alone = beneath(id);
        let file = [inside.as_path(), Path::new(&alone)].into_iter().find(|path| path.is_file());
        if let Some(file) = file
            && let Ok(sources) = discover(&[file.display().to_string()], options)
        {
            quick.extend(sources.into_iter().take(1).map(|source| Ok((source, 0))));
        }
    }
    let (name, offset, pipe) = (name, facts.offset, facts.source == "-");
    let slow = std::iter::once(()).flat_map(move |()| -> Vec<Candidate> {
        if pipe {
            return vec![Err(TextError::Pipe { name: "-".to_owned() })];
        }
        match sources_named(&name, options) {
            Ok(sources) => sources.into_iter().map(|source| Ok((source, offset))).collect(),
            Err(error) => vec![Err(error)],
        }
    });
    quick.into_iter().chain(slow)
}

/// The sources of a name. One inside a WACZ has the name of the archive in front of its own.
fn sources_named(name: &str, options: &Options) -> Result<Vec<Source>, TextError> {
    let remote = name.contains("://");
    let mut place = Path::new(name);
    if !remote {
        while !place.exists() {
            match place.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                // Only a file can have more sources inside.
                Some(parent) if !parent.is_dir() => place = parent,
                _ => return Err(DiscoverError::NotFound { input: name.to_owned() }.into()),
            }
        }
        let meta =
            std::fs::metadata(place).map_err(|source| TextError::Io { name: name.to_owned(), source })?;
        if !meta.is_file() && !meta.is_dir() {
            return Err(TextError::Pipe { name: name.to_owned() });
        }
    }
    let input = place.to_str().unwrap_or(name).to_owned();
    let mut sources = discover(&[input], options)?;
    // A folder may have several sources of its own name: a tree is cut where another kind of file
    // stands between.
    let whole: Vec<Source> = sources.iter().filter(|source| source.name == name).cloned().collect();
    if !whole.is_empty() {
        return Ok(whole);
    }
    sources.truncate(1);
    Ok(sources)
}
