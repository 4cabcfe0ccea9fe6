//! Golden files: comparing, rewriting, and showing what differs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Unchanged lines that are shown around a difference.
const CONTEXT: usize = 2;

fn blessing() -> bool {
    std::env::var_os("ONIONSKIN_BLESS").is_some_and(|value| value == "1")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Compares texts with the files of a directory, by file name. A file without a text is a
/// difference too.
pub fn check(directory: &str, texts: &BTreeMap<String, String>) {
    let directory = root().join(directory);
    if blessing() {
        bless(&directory, texts);
        return;
    }
    let mut problems = String::new();
    let golden = read(&directory);
    for (name, found) in texts {
        match golden.get(name) {
            Some(golden) if golden == found => {}
            Some(golden) => writeln!(problems, "{name} differs:\n{}", diff(golden, found)).unwrap(),
            None => writeln!(problems, "{name} is missing; it would be:\n{found}").unwrap(),
        }
    }
    for name in golden.keys().filter(|name| !texts.contains_key(*name)) {
        writeln!(problems, "{name}: the program no longer prints this").unwrap();
    }
    assert!(
        problems.is_empty(),
        "{}: `-` is the file, `+` is the program\n\n{problems}\n\
         hint: ONIONSKIN_BLESS=1 rewrites the files",
        directory.display()
    );
}

fn bless(directory: &Path, texts: &BTreeMap<String, String>) {
    std::fs::create_dir_all(directory).unwrap();
    for (name, text) in texts {
        std::fs::write(directory.join(name), text).unwrap();
    }
    for name in read(directory).into_keys().filter(|name| !texts.contains_key(name)) {
        std::fs::remove_file(directory.join(name)).unwrap();
    }
}

fn read(directory: &Path) -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return BTreeMap::new() };
    let files = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    files
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect()
}

/// The lines that differ, with a few that do not around them.
///
/// The longest common subsequence by the quadratic table: golden files have some hundred lines.
fn diff(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut common = vec![vec![0usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = if old[i] == new[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let mut lines: Vec<(char, &str)> = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            lines.push(('-', old[i]));
            i += 1;
        } else {
            lines.push(('+', new[j]));
            j += 1;
        }
    }
    let mut text = String::new();
    let mut skipped = false;
    for (at, (mark, line)) in lines.iter().enumerate() {
        let near = &lines[at.saturating_sub(CONTEXT)..lines.len().min(at + CONTEXT + 1)];
        if near.iter().all(|(mark, _)| *mark == ' ') {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            text.push_str("  ...\n");
        }
        writeln!(text, "{mark} {line}").unwrap();
    }
    text
}

#[test]
fn a_difference_shows_its_lines_and_little_else() {
    let old = "a\nb\nc\nd\ne\nf\ng\n";
    assert_eq!(diff(old, &old.replace("f\n", "F\nFF\n")), "  ...\n  d\n  e\n- f\n+ F\n+ FF\n  g\n");
    assert_eq!(diff(old, old), "");
}
