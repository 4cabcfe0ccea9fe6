//! Rules that a machine can check.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::shell::root;

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

/// Files that may have unsafe code, by the end of their path.
const UNSAFE_PLACES: &[&str] = &[
    "onionskin-cli/src/allocator.rs",
    "onionskin-core/src/simd.rs",
    "onionskin-core/src/simd/avx512.rs",
    "onionskin-core/src/simd/x86.rs",
    "onionskin-py/src/arrow.rs",
];

/// Past this a newcomer does not find the way.
const MOST_LINES: usize = 1000;

pub(crate) fn run() -> anyhow::Result<()> {
    let mut complaints = Vec::new();
    check_arrows(&mut complaints)?;
    for file in rust_files(&root())? {
        let text = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let name = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
        complaints.extend(check_file(&name, &text));
    }
    if complaints.is_empty() {
        println!("tidy");
        return Ok(());
    }
    bail!("not tidy:\n{}", complaints.join("\n"))
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

fn check_file(name: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.lines().count() > MOST_LINES && !name.ends_with("tables.rs") && !name.ends_with("entities.rs") {
        complaints.push(format!("{name}: {} lines, split it", text.lines().count()));
    }
    let tidy_itself = name.ends_with("xtask/src/tidy.rs");
    for (number, line) in (1..).zip(text.lines()) {
        let code = line.split("//").next().unwrap_or_default();
        if tidy_itself {
            break;
        }
        if code.contains("unsafe {") && !UNSAFE_PLACES.iter().any(|place| name.ends_with(place)) {
            complaints.push(format!("{name}:{number}: unsafe code outside the places that may have it"));
        }
        if ["todo!(", "unimplemented!(", "dbg!("].iter().any(|mark| code.contains(mark)) {
            complaints.push(format!("{name}:{number}: unfinished"));
        }
    }
    complaints
}

fn rust_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
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
            } else if name.ends_with(".rs") {
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
    fn unfinished_and_unsafe_are_seen() {
        assert_eq!(check_file("a.rs", "fn f() { todo!() }\n// todo!() in words\n").len(), 1);
        assert_eq!(check_file("a.rs", "unsafe { g() }").len(), 1);
        assert_eq!(check_file("crates/onionskin-core/src/simd.rs", "unsafe { g() }").len(), 0);
    }
}
