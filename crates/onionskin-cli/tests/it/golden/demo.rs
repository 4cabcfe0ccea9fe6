//! A transcript of `onionskin demo`.

use std::collections::BTreeMap;

use crate::util::Dir;

use super::file;

/// What differs from run to run gives way to a word. Bytes and times have a unit of their own.
fn filtered(text: &str, dir: &Dir) -> String {
    let mut text = text.replace(&dir.path("").display().to_string(), "[DIR]/");
    for (pattern, word) in [
        ("[0-9.]+ [kMGT]?B of memory", "[BYTES] of memory"),
        ("[0-9.]+ (ms|s|min|h|days)(?-u:\\b)", "[TIME]"),
    ] {
        text = regex::Regex::new(pattern).unwrap().replace_all(&text, word).into_owned();
    }
    text
}

#[test]
fn demo() {
    let dir = Dir::new();
    let output = dir.onionskin(&["demo"]).env("TMPDIR", dir.path("")).output().unwrap();
    let text = |bytes: &[u8]| filtered(std::str::from_utf8(bytes).unwrap(), &dir);
    let transcript = format!(
        "$ onionskin demo\nexit code {}\n\n-- stdout --\n{}\n-- stderr --\n{}",
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr)
    );
    file::check("transcripts", &BTreeMap::from([("demo.txt".to_owned(), transcript)]));
}
