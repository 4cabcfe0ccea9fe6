//! Which inputs are copied, from where and to where. Everything that can be known to fail fails
//! here, before a byte is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use onionskin_corpus::{Encoding, Format, Options, Source};
use onionskin_store::manifest::{InputEntry, Manifest};
use onionskin_store::{Atlas, TableName};

use super::output::{ATTRIBUTES, SHARDS};
use super::{Copying, DedupError, DedupParams};
use onionskin_scan::inputs;

/// Why a compressed WARC file cannot be copied.
pub(super) const SHARED_MEMBER: &str = "its records share a member of the compressed file; write it anew with one for each record, as `warcio recompress` does";

/// A file to write.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// Index of the input.
    pub input: usize,
    /// Its name.
    pub name: String,
    /// Where it is now.
    pub path: PathBuf,
    pub bytes: u64,
    pub encoding: Encoding,
    /// The same, to read documents from.
    pub source: Source,
    /// The documents are compared with the atlas first; once is enough for all that is written of
    /// an input.
    pub is_checked: bool,
    pub what: What,
    /// Where the file goes, below the folder of results.
    pub to: String,
    /// Documents the scan found in the input.
    pub documents: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Filter(Kind),
    Annotate(Kind),
    /// Attributes of a file of JSON lines.
    Dolma,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Jsonl,
    Csv { delimiter: u8 },
    Parquet,
    Warc,
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub jobs: Vec<Job>,
    /// Inputs with documents that nothing is written of, by format.
    pub left_out: BTreeMap<String, u64>,
}

impl Plan {
    pub fn new(params: &DedupParams, manifest: &Manifest, options: &Options) -> Result<Plan, DedupError> {
        let mut plan = Plan::default();
        let mut wanted = Vec::new();
        for (nth, input) in manifest.inputs.iter().enumerate() {
            let kinds = what(params, input);
            if kinds.is_empty() {
                *plan.left_out.entry(input.format.clone()).or_default() += 1;
            }
            wanted.extend(kinds.into_iter().map(|what| (nth, what)));
        }
        let names = wanted.iter().map(|(nth, _)| parts(&manifest.inputs[*nth].name)).collect::<Vec<_>>();
        let common = common_folder(&names);
        let places = wanted.iter().zip(&names).map(|((_, what), name)| match (what, &params.dolma) {
            (What::Dolma, Some(attribute)) => attributes_path(name, common, attribute),
            _ => format!("{SHARDS}/{}", name[common..].join("/")),
        });
        for ((nth, what), to) in wanted.iter().zip(distinct(places.collect())) {
            let input = &manifest.inputs[*nth];
            let (path, source) = find(input, *what, params.base.as_deref(), options)?;
            let is_checked = plan.jobs.last().is_none_or(|last| last.input != *nth);
            plan.jobs.push(Job {
                input: *nth,
                name: input.name.clone(),
                path,
                bytes: input.bytes,
                encoding: source.encoding(),
                source,
                is_checked,
                what: *what,
                to,
                documents: input.documents,
            });
        }
        Ok(plan)
    }

    /// Bytes of the inputs that will be read.
    pub fn bytes(&self) -> u64 {
        self.jobs.iter().fold(0, |sum, job| sum.saturating_add(job.bytes))
    }
}

/// What is written of an input.
fn what(params: &DedupParams, input: &InputEntry) -> Vec<What> {
    let Ok(format) = input.format.parse::<Format>() else { return Vec::new() };
    let kind = match format {
        Format::Jsonl => Kind::Jsonl,
        Format::Csv => Kind::Csv { delimiter: b',' },
        Format::Tsv => Kind::Csv { delimiter: b'\t' },
        Format::Parquet => Kind::Parquet,
        Format::Warc => Kind::Warc,
        _ => return Vec::new(),
    };
    let mut wanted = Vec::new();
    if params.formats.contains(&format) {
        match params.copying {
            Copying::Filter => wanted.push(What::Filter(kind)),
            // A table without types has no good place for a number.
            Copying::Annotate if matches!(kind, Kind::Csv { .. }) => {}
            Copying::Annotate => wanted.push(What::Annotate(kind)),
            Copying::None => {}
        }
    }
    if params.dolma.is_some() && kind == Kind::Jsonl {
        wanted.push(What::Dolma);
    }
    wanted
}

/// The parts of an input's name that can be a path below another folder.
fn parts(name: &str) -> Vec<&str> {
    let name = name.split_once("://").map_or(name, |(_, rest)| rest);
    name.split('/').filter(|part| !matches!(*part, "" | "." | "..")).collect()
}

/// How many parts all names begin with, the last part of each not counted. A part `documents` is
/// where a Dolma corpus begins, and a part `key=value` holds a column of a Hive table: both are
/// kept, with all that follows.
fn common_folder(names: &[Vec<&str>]) -> usize {
    let Some((first, others)) = names.split_first() else { return 0 };
    let mut common = first.len().saturating_sub(1);
    for other in others {
        let same = first.iter().zip(other).take_while(|(a, b)| a == b).count();
        common = common.min(same).min(other.len().saturating_sub(1));
    }
    let is_kept = |part: &&str| *part == "documents" || part.find('=').is_some_and(|at| at > 0);
    first[..common].iter().position(is_kept).unwrap_or(common)
}

/// The places, each once: one that came before gets a number in front of its extensions.
fn distinct(places: Vec<String>) -> Vec<String> {
    let mut taken: BTreeSet<String> = places.iter().cloned().collect();
    let mut met = BTreeSet::new();
    let mut one = |place: String| {
        if met.insert(place.clone()) {
            return place;
        }
        let file = place.rfind('/').map_or(0, |slash| slash + 1);
        // A name may begin with a dot.
        let dot = place[file..].char_indices().skip(1).find(|(_, c)| *c == '.');
        let (stem, extensions) = place.split_at(dot.map_or(place.len(), |(at, _)| file + at));
        let numbered = (2_u64..).map(|number| format!("{stem}-{number}{extensions}"));
        let free = numbered.into_iter().find(|numbered| taken.insert(numbered.clone()));
        free.unwrap_or(place)
    };
    places.into_iter().map(&mut one).collect()
}

/// `documents` gives way to `attributes/<name>`; where there is none, that is put in front.
fn attributes_path(name: &[&str], common: usize, attribute: &str) -> String {
    let below = &name[common..];
    let folders = &below[..below.len().saturating_sub(1)];
    match folders.iter().position(|part| *part == "documents") {
        Some(at) => {
            let own = [ATTRIBUTES, attribute];
            let parts: Vec<&str> = below[..at].iter().chain(&own).chain(&below[at + 1..]).copied().collect();
            parts.join("/")
        }
        None => format!("{ATTRIBUTES}/{attribute}/{}", below.join("/")),
    }
}

impl Plan {
    /// For each input: `None` if it is not copied, else whether somebody has written to it since
    /// the scan. A scan writes its first documents before it has read all its inputs, so what was
    /// written to before these is what the scan has read.
    pub fn copied(&self, atlas: &Atlas) -> Result<Vec<Option<bool>>, DedupError> {
        let modified = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
        let tables = atlas.paths(&TableName::Documents)?;
        let scanned = tables.iter().map(|path| modified(path)).collect::<Option<Vec<_>>>();
        let scanned = scanned.and_then(|times| times.into_iter().min());
        let mut copied = vec![None; atlas.manifest().inputs.len()];
        for job in &self.jobs {
            // Where the system does not know, it may have been.
            let before = scanned.zip(modified(&job.path)).is_some_and(|(scanned, written)| written < scanned);
            copied[job.input] = Some(!before);
        }
        Ok(copied)
    }
}

/// Finds an input again and checks that it is what it was.
fn find(
    input: &InputEntry,
    what: What,
    base: Option<&Path>,
    options: &Options,
) -> Result<(PathBuf, Source), DedupError> {
    let name = || input.name.clone();
    let not_copied = |why: &'static str| DedupError::NotCopied { name: name(), why };
    if input.name == "-" {
        return Err(not_copied("it was a pipe and is gone"));
    }
    let place = match base {
        Some(base) if Path::new(&input.name).is_relative() => base.join(&input.name),
        _ => PathBuf::from(&input.name),
    };
    if input.name.contains("://") {
        return Err(not_copied("it is in an object store; only files can be copied"));
    }
    if input.name.contains(".wacz/") {
        return Err(not_copied("it is inside a WACZ; unpack that first"));
    }
    match fs::metadata(&place) {
        Err(source) => return Err(DedupError::Gone { name: name(), path: place, source }),
        // Opening a pipe would wait for somebody to write to it.
        Ok(meta) if !meta.is_file() => return Err(not_copied("it is not a file any more")),
        Ok(meta) if meta.len() != input.bytes => {
            return Err(DedupError::Changed { name: name(), was: input.bytes, now: meta.len() });
        }
        Ok(_) => {}
    }
    let source = inputs::reopen(input, base, options)
        .map_err(|error| DedupError::Reopen { name: name(), reason: error.to_string() })?;
    let Some(path) = source.path().filter(|_| source.format.as_str() == input.format) else {
        let found = source.format.as_str();
        return Err(DedupError::OtherFormat { name: name(), was: input.format.clone(), now: found });
    };
    if matches!(what, What::Filter(Kind::Warc) | What::Annotate(Kind::Warc)) {
        check_warc(path, source.encoding()).map_err(|problem| match problem {
            Problem::Io(source) => DedupError::Gone { name: name(), path: place, source },
            Problem::Why(why) => not_copied(why),
        })?;
    }
    Ok((path.to_owned(), source))
}

enum Problem {
    Io(std::io::Error),
    Why(&'static str),
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Problem {
        Problem::Io(error)
    }
}

/// Whether single records can be exchanged in a file.
fn check_warc(path: &Path, encoding: Encoding) -> Result<(), Problem> {
    let mut file = File::open(path)?;
    let mut head = Vec::new();
    (&mut file).take(4).read_to_end(&mut head)?;
    match encoding {
        Encoding::Gzip => {
            if !onionskin_warc::is_splittable_gzip(&mut file)? {
                return Err(Problem::Why(SHARED_MEMBER));
            }
        }
        // A frame that was made without the dictionary is not sure to decode with it.
        Encoding::Zstd if head == [0x5d, 0x2a, 0x4d, 0x18] => {
            return Err(Problem::Why(
                "its records were compressed with a dictionary; write it anew without one, or with gzip",
            ));
        }
        Encoding::Zstd | Encoding::Plain => {}
    }
    let mut file = File::open(path)?;
    let mut head = vec![0; 16 << 10];
    let n = file.read(&mut head)?;
    let kind = onionskin_warc::sniff_compressed(&head[..n]).map(|(_, container)| container);
    if kind == Some(onionskin_warc::ContainerKind::Arc) {
        return Err(Problem::Why("it is an ARC file, which has no revisit records; convert it to WARC"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str], shards: &[&str], attributes: &[&str]) {
        let parts: Vec<Vec<&str>> = names.iter().map(|name| parts(name)).collect();
        let common = common_folder(&parts);
        assert_eq!(parts.iter().map(|name| name[common..].join("/")).collect::<Vec<_>>(), shards);
        let found: Vec<String> = parts.iter().map(|name| attributes_path(name, common, "dup")).collect();
        assert_eq!(found, attributes);
    }

    #[test]
    fn paths_of_results() {
        check(&["a.jsonl"], &["a.jsonl"], &["attributes/dup/a.jsonl"]);
        check(&["/data/c4/a.jsonl"], &["a.jsonl"], &["attributes/dup/a.jsonl"]);
        check(
            &["/data/c4/x/a.jsonl", "/data/c4/y/a.jsonl"],
            &["x/a.jsonl", "y/a.jsonl"],
            &["attributes/dup/x/a.jsonl", "attributes/dup/y/a.jsonl"],
        );
        check(
            &["../web/documents/2020/a.jsonl.gz", "../web/documents/b.jsonl.gz"],
            &["documents/2020/a.jsonl.gz", "documents/b.jsonl.gz"],
            &["attributes/dup/2020/a.jsonl.gz", "attributes/dup/b.jsonl.gz"],
        );
        check(
            &["s1/documents/a.gz", "s2/documents/a.gz"],
            &["s1/documents/a.gz", "s2/documents/a.gz"],
            &["s1/attributes/dup/a.gz", "s2/attributes/dup/a.gz"],
        );
        // Partitions of Hive are columns, also where all inputs are in one.
        check(
            &["/data/c4/date=2024/lang=en/p.parquet"],
            &["date=2024/lang=en/p.parquet"],
            &["attributes/dup/date=2024/lang=en/p.parquet"],
        );
        check(
            &["c4/date=2024/lang=en/p.parquet", "c4/date=2024/lang=de/p.parquet"],
            &["date=2024/lang=en/p.parquet", "date=2024/lang=de/p.parquet"],
            &["attributes/dup/date=2024/lang=en/p.parquet", "attributes/dup/date=2024/lang=de/p.parquet"],
        );
        check(&["c4/=x/p=1.parquet"], &["p=1.parquet"], &["attributes/dup/p=1.parquet"]);
        // A file of that name is not a folder.
        check(&["x/documents"], &["documents"], &["attributes/dup/documents"]);
        // Never above the folder, whatever a name says.
        check(&["../../etc/passwd"], &["passwd"], &["attributes/dup/passwd"]);
    }

    #[test]
    fn no_two_files_go_to_one_place() {
        let check = |places: &[&str], wanted: &[&str]| {
            assert_eq!(distinct(places.iter().map(|place| (*place).to_owned()).collect()), wanted);
        };
        check(&["s/a.jsonl.gz", "s/b", "s/a.jsonl.gz"], &["s/a.jsonl.gz", "s/b", "s/a-2.jsonl.gz"]);
        check(&["a.x", "a.x", "a-2.x", "a.x", "a-2.x"], &["a.x", "a-3.x", "a-2.x", "a-4.x", "a-2-2.x"]);
        check(&["s.d/.a", "s.d/.a", "s.d/é", "s.d/é"], &["s.d/.a", "s.d/.a-2", "s.d/é", "s.d/é-2"]);
    }
}
