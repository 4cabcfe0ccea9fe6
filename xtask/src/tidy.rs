//! Rules that a machine can check.

mod rules;
mod source;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::shell::root;
use rules::{Complaint, File};

/// Crates from the ground up. A crate may depend on those of a lower level only.
const LEVELS: &[(&str, u32)] = &[
    ("onionskin-core", 0),
    ("onionskin-store", 1),
    ("onionskin-warc", 1),
    ("onionskin-extract", 1),
    ("onionskin-testkit", 1),
    ("onionskin-corpus", 2),
    ("onionskin-scan", 3),
    ("onionskin-seen", 3),
    ("onionskin-similar", 4),
    ("onionskin-mirror", 5),
    ("onionskin-dedup", 6),
    ("onionskin-explain", 6),
    ("onionskin-search", 6),
    ("onionskin-study", 6),
    ("onionskin", 7),
    ("onionskin-serve", 8),
    ("onionskin-cli", 9),
    ("onionskin-py", 9),
];

/// Past this a newcomer does not find the way.
const MOST_LINES: usize = 1000;

/// A rule about single lines.
type Rule = fn(&File<'_>) -> Vec<Complaint>;

/// The rules about lines.
const RULES: &[Rule] = &[
    rules::no_unsafe_code,
    rules::nothing_unfinished,
    rules::no_flags_in_libraries,
    rules::narrow_comments,
    rules::narrow_markdown,
    rules::no_string_keys,
    rules::no_sentinels,
];

pub(crate) fn run() -> anyhow::Result<()> {
    let mut complaints = Vec::new();
    check_arrows(&mut complaints)?;
    for path in files(&root())? {
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let name = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        let file = File::new(&name, &text);
        complaints.extend(check_length(&file));
        for rule in RULES {
            complaints.extend(rule(&file).iter().map(|(number, words)| format!("{name}:{number}: {words}")));
        }
    }
    if !complaints.is_empty() {
        bail!("not tidy:\n{}", complaints.join("\n"))
    }
    println!("tidy");
    Ok(())
}

fn check_arrows(complaints: &mut Vec<String>) -> anyhow::Result<()> {
    let levels: BTreeMap<&str, u32> = LEVELS.iter().copied().collect();
    let folder = root().join("crates");
    for entry in std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path().join("Cargo.toml");
        let Ok(manifest) = std::fs::read_to_string(&path) else { continue };
        let name = path
            .parent()
            .and_then(Path::file_name)
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let Some(level) = levels.get(name.as_str()) else {
            complaints.push(format!("crates/{name}: has no level in xtask/src/tidy.rs"));
            continue;
        };
        for dependency in dependencies(&manifest) {
            match levels.get(dependency) {
                None => {}
                Some(below) if below < level => {}
                Some(_) => complaints
                    .push(format!("crates/{name}: must not depend on {dependency}; arrows point down")),
            }
        }
        if !manifest.contains("[lints]\nworkspace = true") {
            complaints.push(format!("crates/{name}: does not use the lints of the workspace"));
        }
    }
    Ok(())
}

/// Names under `[dependencies]`; what tests use may point anywhere.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    manifest.lines().filter_map(move |line| {
        if line.starts_with('[') {
            inside = line == "[dependencies]";
            return None;
        }
        inside.then(|| line.split(['.', ' ', '=']).next()).flatten().filter(|name| !name.is_empty())
    })
}

/// A file that is too long. Tables are as long as what they list.
fn check_length(file: &File<'_>) -> Option<String> {
    let lines = file.text.lines().count();
    let table = file.name.ends_with("unicode/tables.rs");
    (file.name.ends_with(".rs") && lines > MOST_LINES && !table)
        .then(|| format!("{}: {lines} lines, split it", file.name))
}

/// Everything that people write: programs, manifests and documents.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if [".rs", ".md", ".toml", ".py"].iter().any(|end| name.ends_with(end)) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_tidy() {
        run().unwrap();
    }

    #[test]
    fn only_dependencies_are_arrows() {
        let manifest = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\nb = \"1\"\n\n[dev-dependencies]\nc = \"1\"\n";
        assert_eq!(dependencies(manifest).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn long_files_are_seen() {
        let text = "x\n".repeat(MOST_LINES + 1);
        assert!(check_length(&File::new("a.rs", &text)).is_some());
        assert!(check_length(&File::new("a.rs", &text[2..])).is_none());
        assert!(check_length(&File::new("src/unicode/tables.rs", &text)).is_none());
    }
}
