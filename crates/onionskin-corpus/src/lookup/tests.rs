//! That every format finds every document again is checked by `testing::read`, in the tests of each
//! format.

use super::*;
use crate::testing::{Folder, gzip};

fn look(source: &Source, offset: u64) -> Result<Vec<String>, LookupError> {
    let options = Options::default();
    let mut texts = Vec::new();
    let mut scratch = Scratch::new(&options);
    source.read_at(offset, &options, &mut scratch, &mut |document| texts.push(document.text.to_owned()))?;
    Ok(texts)
}

const LINES: &str = "{\"text\":\"one\"}\n{\"text\":\"two\"}\nnonsense\n{\"text\":\"three\"}\n";

#[test]
fn places_between_documents_are_told() {
    let folder = Folder::new();
    folder.file("a.jsonl", LINES);
    folder.file("b.jsonl.gz", gzip(LINES.as_bytes()));
    folder.file("c.csv", "id,text\n1,one\n2,two\n");
    for name in ["a.jsonl", "b.jsonl.gz"] {
        let source = &folder.sources(&[name], &Options::default())[0];
        assert_eq!(look(source, 15).unwrap(), ["two"], "{name}");
        assert_eq!(look(source, 39).unwrap(), ["three"], "{name}");
        assert!(matches!(look(source, 30), Err(LookupError::Bad { .. })), "{name}: {:?}", look(source, 30));
        for outside in [1, 14, 16, 500, u64::MAX] {
            let looked = look(source, outside);
            assert!(
                matches!(looked, Err(LookupError::NotThere { .. } | LookupError::Bad { .. })),
                "{name}: {looked:?}"
            );
        }
    }
    let source = &folder.sources(&["c.csv"], &Options::default())[0];
    assert_eq!(
        (look(source, 8).unwrap(), look(source, 14).unwrap()),
        (vec!["one".into()], vec!["two".into()])
    );
    assert!(matches!(look(source, 9), Err(LookupError::NotThere { .. })));
}

#[test]
fn an_input_that_is_gone_is_told() {
    let folder = Folder::new();
    let path = folder.file("a.jsonl", LINES);
    let source = folder.sources(&["a.jsonl"], &Options::default()).remove(0);
    std::fs::remove_file(path).unwrap();
    let error = look(&source, 0).unwrap_err().to_string();
    assert!(error.contains("a.jsonl"), "{error}");
}

#[test]
fn after_the_place_nothing_is_read() {
    let folder = Folder::new();
    // Cut off in the middle: whoever reads on meets the damage.
    let mut bytes = gzip(LINES.repeat(20_000).as_bytes());
    bytes.truncate(bytes.len() / 2);
    folder.file("a.jsonl.gz", bytes);
    let options = Options { task_bytes: 1000, ..Options::default() };
    let source = &folder.sources(&["a.jsonl.gz"], &options)[0];
    let mut scratch = Scratch::new(&options);
    let mut texts = 0;
    source.read_at(15, &options, &mut scratch, &mut |_| texts += 1).unwrap();
    assert_eq!(texts, 1);
}

/// A source that is read from the front is asked at every block whether anybody still wants it.
#[test]
fn a_search_that_nobody_waits_for_is_given_up() {
    let folder = Folder::new();
    let lines: String = (0..5000).map(|n| format!("{{\"text\":\"line {n:05}\"}}\n")).collect();
    folder.file("a.jsonl.gz", gzip(lines.as_bytes()));
    let options = Options { task_bytes: 1000, ..Options::default() };
    let source = &folder.sources(&["a.jsonl.gz"], &options)[0];
    let last = (lines.len() - lines.len() / 5000) as u64;
    let look = |most: u32| {
        let (asked, mut found) = (std::cell::Cell::new(0), 0);
        let stop = || asked.replace(asked.get() + 1) >= most;
        let mut scratch = Scratch::new(&options);
        let looked = source.read_at_until(last, &options, &mut scratch, &stop, &mut |_| found += 1);
        (looked, found, asked.get())
    };
    let (looked, found, asked) = look(u32::MAX);
    assert!(looked.is_ok() && found == 1 && asked > 5, "{looked:?}, {found}, {asked}");
    let (looked, found, asked) = look(3);
    assert!(looked == Err(LookupError::Stopped) && found == 0 && asked <= 5, "{looked:?}, {found}, {asked}");
}
