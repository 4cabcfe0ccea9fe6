use std::fs;

use onionskin_store::Atlas;
use onionskin_testkit::{Preset, Web, WebSpec};

use super::*;
use crate::testing::scan_into;

const RECIPE: &str = "w4-rabin64-6x14r2+sketch+w4+l2";

/// What both ways tell of a document.
type Told = (String, Option<String>, u64, u64, Option<u64>);

fn told(name: &str, document: &Scanned<'_>) -> Told {
    (name.to_owned(), document.url.map(str::to_owned), document.offset, document.tokens, document.text_fp)
}

#[test]
fn units_in_any_order_are_the_scan() {
    let folder = tempfile::tempdir().unwrap();
    let web = Web::new(&WebSpec::of(Preset::Demo, 300, 1)).unwrap();
    let inputs = folder.path().join("in");
    fs::create_dir_all(inputs.join("pages")).unwrap();
    let mut warc = fs::File::create(inputs.join("a.warc")).unwrap();
    web.write_warc(&mut warc, 0..web.n_pages(), Default::default(), &mut |_, _| {}).unwrap();
    let lines: String =
        (0..200).map(|n| format!("{{\"text\": \"line {n} of a file that is cut\"}}\n")).collect();
    fs::write(inputs.join("b.jsonl"), lines + "{broken\n").unwrap();
    for n in 0..20 {
        fs::write(inputs.join(format!("pages/{n}.html")), format!("<p>page {n} of a folder</p>")).unwrap();
    }
    let atlas = folder.path().join("atlas");
    scan_into(&[&inputs], &atlas, RECIPE);
    let mut expected: Vec<Told> = Vec::new();
    for batch in Atlas::open(&atlas).unwrap().documents().unwrap() {
        expected.extend(batch.unwrap().rows().map(|row| {
            (row.source.to_owned(), row.url.map(str::to_owned), row.offset, row.tokens, row.text_fp)
        }));
    }

    let options = Options { task_bytes: 512, ..Options::default() };
    let mut units = plan(&[inputs.display().to_string()], &options, 3).unwrap();
    assert!(units.iter().filter(|unit| unit.name.ends_with("b.jsonl")).count() > 2, "large files are split");
    units.reverse();
    let mut worker = Worker::new(RECIPE.parse().unwrap(), 1, options);
    let mut found = Vec::new();
    let mut bad = Vec::new();
    for unit in &units {
        let mut reading = worker.unit((&unit.inputs, unit.nth), &unit.name, unit.tasks).unwrap();
        while let Some(task) = worker.next(&mut reading).unwrap() {
            let number = task.task;
            bad.extend(task.bad_records());
            task.documents(|document| {
                assert_eq!(document.chunks().count(), 2);
                assert_eq!(document.sketch.map(<[u32]>::len), document.text_fp.map(|_| 84));
                found.push(((unit.source, number, document.row()), told(&unit.name, &document)));
            });
        }
    }
    found.sort();
    assert_eq!(found.into_iter().map(|(_, told)| told).collect::<Vec<_>>(), expected);
    assert_eq!(bad.len(), 1);
    assert!(bad[0].place.contains("b.jsonl"), "{}", bad[0].place);
}

#[test]
fn bytes_are_read_like_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jsonl");
    let lines = "{\"text\": \"a rose is a rose\", \"url\": \"http://a.org/x\"}\n{\"text\": 7}\n";
    fs::write(&path, lines).unwrap();
    let mut worker = Worker::new(RECIPE.parse().unwrap(), 1, Options::default());
    let name = path.display().to_string();
    let mut results = Vec::new();
    for from_bytes in [false, true] {
        let mut reading = match from_bytes {
            false => worker.unit((std::slice::from_ref(&name), 0), &name, (0, None)).unwrap(),
            true => worker.bytes(&name, lines.as_bytes().into()).unwrap(),
        };
        let (mut documents, mut bad) = (Vec::new(), Vec::new());
        while let Some(task) = worker.next(&mut reading).unwrap() {
            bad.extend(task.bad_records());
            task.documents(|document| documents.push(told(&name, &document)));
        }
        results.push((documents, bad));
    }
    assert_eq!(results[0], results[1]);
    assert_eq!((results[0].0.len(), results[0].1.len()), (1, 1));
    assert!(worker.bytes("x.bin", [0u8, 159, 146, 150, 0, 0].as_slice().into()).is_err());
}

#[test]
fn rows_of_a_table_follow_the_rules_of_parquet() {
    let mut worker = Worker::new(RECIPE.parse().unwrap(), 1, Options::default());
    let rows = [Some("four words are here"), None, Some("")];
    let rows = rows.map(|text| TextRow { text, id: Some("n"), url: Some("HTTP://A.org:80/x") });
    let result = worker.rows("table", 7, rows.into_iter());
    assert_eq!((result.bad_records().count(), result.no_text()), (0, 1));
    let mut seen = Vec::new();
    result.documents(|document| {
        seen.push((document.offset, document.tokens, document.host.map(str::to_owned)))
    });
    assert_eq!(seen, [(7, 4, Some("a.org".to_owned())), (9, 0, Some("a.org".to_owned()))]);
}

#[test]
fn what_is_gone_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let worker = Worker::new(RECIPE.parse().unwrap(), 1, Options::default());
    let name = folder.path().join("gone.jsonl").display().to_string();
    let inputs = [name.clone()];
    assert!(worker.unit((&inputs, 0), &name, (0, None)).is_err());
    fs::write(&name, "{\"text\": \"x\"}\n").unwrap();
    assert!(matches!(worker.unit((&inputs, 4), &name, (0, None)), Err(UnitError::Gone { .. })));
    assert!(plan(&[], &Options::default(), 1).is_err());
}
