use std::fs;

use onionskin_store::table::Method;
use onionskin_testkit::{Composer, Preset, WarcOptions, Web, WebSpec, naive};

use super::*;
use onionskin_scan::testing::{pair, scan_into, write_similar};
use onionskin_similar::Search;
use onionskin_similar::{SimilarParams, similar};
use onionskin_store::Quiet;

fn params(atlas: &Path, a: &str, b: &str) -> ExplainParams {
    let [a, b] = [a, b].map(|text| text.parse().unwrap());
    ExplainParams { atlas: atlas.to_owned(), a, b, base: None, pdf_worker: vec![], limits: None }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const ROSES: &str = concat!(
    "{\"id\":\"7\",\"url\":\"http://a.example/one\",\"text\":\"a rose is a rose is a rose and so it goes\"}\n",
    "{\"id\":\"b\",\"url\":\"http://b.example/two/\",\"text\":\"A rose is a rose is a rose, and so it ends\"}\n",
    "{\"id\":\"c\",\"url\":\"http://a.example/three\",\"text\":\"\"}\n",
);

#[test]
fn every_format_gives_its_texts_back() {
    let web = Web::new(&WebSpec::of(Preset::Demo, 500, 7)).unwrap();
    let n = web.n_pages();
    let folder = tempfile::tempdir().unwrap();
    let mut jsonl = Vec::new();
    web.write_jsonl(&mut jsonl, 0..n, &mut |_, _| {}).unwrap();
    let warc = |gzip: bool| {
        let mut bytes = Vec::new();
        let options = WarcOptions { gzip, ..WarcOptions::default() };
        web.write_warc(&mut bytes, 0..n, options, &mut |_, _| {}).unwrap();
        bytes
    };
    let csv: Vec<u8> = std::iter::once("url,text\n".to_owned())
        .chain((0..n).map(|page| {
            format!("{},\"{}\"\n", web.url(page), Composer::new(&web).text(page).replace('"', "\"\""))
        }))
        .collect::<String>()
        .into_bytes();
    web.write_folder(&folder.path().join("tree"), &mut |_, _| {}).unwrap();
    for (name, bytes) in [
        ("a.jsonl", jsonl.clone()),
        ("b.jsonl.gz", gzip(&jsonl)),
        ("c.warc", warc(false)),
        ("d.warc.gz", warc(true)),
        // All records in one member: they share an offset.
        ("e.warc.gz", gzip(&warc(false))),
        ("f.csv", csv),
        ("tree", vec![]),
    ] {
        let input = folder.path().join(name);
        if name != "tree" {
            fs::write(&input, bytes).unwrap();
        }
        let atlas = folder.path().join(format!("atlas-{name}"));
        scan_into(&[&input], &atlas, Recipe::DEFAULT);
        for (a, b) in (0..n).step_by(37).zip((0..n).rev().step_by(29)) {
            let explained = explain(&params(&atlas, &format!("doc:{a}"), &format!("doc:{b}"))).unwrap();
            let texts = explained.texts.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(texts.changed, [false, false], "{name}, {a} and {b}");
            let main = &explained.overlaps[0];
            let truth = naive::text_resemblance(&texts.comparison.text_a, &texts.comparison.text_b, 4);
            assert!(main.is_main && (main.resemblance() - truth).abs() < 1e-12, "{name}: {main:?}, {truth}");
        }
    }
}

#[test]
fn numbers_of_a_pair() {
    let folder = tempfile::tempdir().unwrap();
    let (input, atlas) = (folder.path().join("in.jsonl"), folder.path().join("atlas"));
    fs::write(&input, ROSES).unwrap();
    scan_into(&[&input], &atlas, Recipe::DEFAULT);
    write_similar(&atlas, Some(0.5), &[pair(0, 1, 0.75, Method::Resemblance)], &[vec![0, 1]]);
    let explained = explain(&params(&atlas, "1", "http://a.example/one")).unwrap();
    assert_eq!((explained.a.doc, explained.b.doc), (DocId(1), DocId(0)));
    let main = &explained.overlaps[0];
    assert_eq!((main.chunking.as_str(), main.size_a, main.size_b, main.shared), ("w4", 7, 7, 6));
    assert_eq!((main.resemblance(), main.containment_a()), (0.75, 6.0 / 7.0));
    let others: Vec<&str> = explained.overlaps.iter().map(|overlap| overlap.chunking.as_str()).collect();
    assert_eq!(others, ["w4", "l2", "l4", "sp"]);
    assert_eq!((explained.payload_equal, explained.text_equal), (Some(false), Some(false)));
    assert_eq!((explained.same_site, explained.same_domain), (Some(false), Some(false)));
    assert_eq!(explained.pair.map(|pair| (pair.a, pair.b)), Some((DocId(0), DocId(1))));
    assert!(explained.clusters.iter().all(|row| row.is_some_and(|row| row.cluster == ClusterId(0))));
    let sketch = explained.sketch.unwrap();
    assert_eq!(sketch.length, 84);
    assert!((sketch.estimate.value - 0.75).abs() < 4.0 * sketch.estimate.standard_error);
    assert_eq!(explained.features.unwrap().filter.to_string(), "6x14r2");
    assert_eq!(explained.texts.unwrap().comparison.shared_words(), 11);
    // An empty document is like nothing, and has no sketch.
    let explained = explain(&params(&atlas, "0", "id:c")).unwrap();
    assert_eq!(
        (explained.overlaps[0].resemblance(), explained.sketch, explained.text_equal),
        (0.0, None, None)
    );
    assert_eq!(explained.clusters[1], None);
}

#[test]
fn features_are_those_of_the_last_search() {
    let web = Web::new(&WebSpec::of(Preset::Text, 1000, 3)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (input, atlas) = (folder.path().join("in.jsonl"), folder.path().join("atlas"));
    web.write_jsonl(&mut fs::File::create(&input).unwrap(), 0..web.n_pages(), &mut |_, _| {}).unwrap();
    scan_into(&[&input], &atlas, Recipe::DEFAULT);
    // By minima, by the recipe's own features, and by these with another number that must agree.
    for (threshold, wanted, expected) in
        [(0.6, None, "28x3r1"), (0.9, Some("6x14r2"), "6x14r2"), (0.9, Some("6x14r1"), "6x14r1")]
    {
        let mut search = SimilarParams::new(atlas.clone());
        let filter = wanted.map(|filter| filter.parse().unwrap());
        search.search = Search::Resemblance { threshold, filter, exact: false };
        similar(&search, &Quiet).unwrap();
        let pairs = Atlas::open(&atlas).unwrap().pairs().unwrap().map(Result::unwrap);
        let near: Vec<PairRow> = pairs.filter(|pair| pair.method == Method::Resemblance).collect();
        assert!(near.len() > 20, "{}", near.len());
        for pair in near.iter().step_by(5) {
            let names = [pair.a, pair.b].map(|doc| format!("doc:{doc}"));
            let features = explain(&params(&atlas, &names[0], &names[1])).unwrap().features.unwrap();
            assert_eq!(features.filter.to_string(), expected);
            assert!(features.equal >= features.filter.r(), "{pair:?} {features:?}");
        }
    }
}

#[test]
fn what_the_scan_did_not_keep_is_counted_in_the_texts() {
    let folder = tempfile::tempdir().unwrap();
    let (input, atlas) = (folder.path().join("in.jsonl"), folder.path().join("atlas"));
    fs::write(&input, ROSES).unwrap();
    scan_into(&[&input], &atlas, "w4-rabin64-6x14r2+l2");
    let explained = explain(&params(&atlas, "0", "1")).unwrap();
    let main = &explained.overlaps[0];
    assert!(main.is_main && main.from_text && (main.shared, main.size_a) == (6, 7));
    // As a scan that keeps them has them.
    let whole = folder.path().join("whole");
    scan_into(&[&input], &whole, Recipe::PAPERS);
    let numbers = |atlas: &Path| {
        let overlaps = explain(&params(atlas, "0", "1")).unwrap().overlaps.into_iter();
        overlaps.map(|overlap| (overlap.chunking, overlap.size_a, overlap.size_b, overlap.shared)).collect()
    };
    let counted: Vec<_> = numbers(&atlas);
    assert_eq!((counted.len(), &counted), (4, &numbers(&whole)));
    fs::remove_file(input).unwrap();
    let explained = explain(&params(&atlas, "0", "1")).unwrap();
    assert_eq!(explained.overlaps.len(), 1);
    let error = explained.texts.unwrap_err().to_string();
    assert!(error.contains("in.jsonl: no such file"), "{error}");
}

#[test]
fn names_are_found_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let (input, atlas) = (folder.path().join("in.jsonl"), folder.path().join("atlas"));
    fs::write(&input, ROSES).unwrap();
    scan_into(&[&input], &atlas, Recipe::DEFAULT);
    let find = |name: &str| explain(&params(&atlas, name, "doc:0")).map(|explained| explained.a.doc.get());
    for (name, doc) in [
        ("2", 2),
        ("doc:1", 1),
        // Out of range, so it is an id.
        ("7", 0),
        ("id:7", 0),
        ("b", 1),
        ("HTTP://A.example:80/one", 0),
        ("url:http://b.example/two/", 1),
    ] {
        assert_eq!(find(name).unwrap(), doc, "{name}");
    }
    let error = |name: &str| find(name).unwrap_err().to_string();
    assert!(error("doc:9").contains("no document is called doc:9; there are 3"), "{}", error("doc:9"));
    assert!(error("id:http://a.example/one").contains("no document"));
    let near = error("http://b.example/two");
    assert!(near.contains("did you mean http://b.example/two/?"), "{near}");
    assert!(error("https://www.a.example/three/").contains("http://a.example/three"));
    assert!(!error("http://c.example/").contains("hint"));
}

#[test]
fn inputs_are_found_beneath_another_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (input, atlas) = (folder.path().join("in.jsonl"), folder.path().join("atlas"));
    fs::write(&input, ROSES).unwrap();
    scan_into(&[&input], &atlas, Recipe::DEFAULT);
    // A text that changed is told.
    fs::write(&input, ROSES.replace("is a rose and", "is a tulip and")).unwrap();
    let texts = explain(&params(&atlas, "0", "0")).unwrap().texts.unwrap();
    assert_eq!(texts.changed, [true, true]);
    // A document that is not there any more, too.
    fs::write(&input, "").unwrap();
    assert!(explain(&params(&atlas, "0", "0")).unwrap().texts.is_err());
    let mut moved = params(&atlas, "0", "1");
    let facts = DocumentFacts { source: "in.jsonl".into(), ..DocumentFacts::default() };
    fs::create_dir(folder.path().join("moved")).unwrap();
    fs::write(folder.path().join("moved/in.jsonl"), ROSES).unwrap();
    moved.base = Some(folder.path().join("moved"));
    let options = onionskin_corpus::Options::default();
    let text = text::read_text(&facts, moved.base.as_deref(), &options, &mut Scratch::new(&options));
    assert!(text.unwrap().starts_with("a rose is"));
}

#[test]
fn files_of_folders_and_archives_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    fs::create_dir_all(tree.join("sub")).unwrap();
    for (name, text) in
        [("a.txt", "first file of the tree"), ("sub/b.txt", "second file"), ("z.html", "<p>third")]
    {
        fs::write(tree.join(name), text).unwrap();
    }
    // Cuts the tree into two sources of one name.
    fs::write(tree.join("m.jsonl"), ROSES).unwrap();
    fs::write(tree.join("n.txt"), "between").unwrap();
    let atlas = folder.path().join("atlas");
    scan_into(&[&tree, &tree.join("a.txt"), &tree.join("sub/b.txt")], &atlas, Recipe::DEFAULT);
    let all: Vec<DocId> = Atlas::open(&atlas)
        .unwrap()
        .documents()
        .unwrap()
        .flat_map(|batch| batch.unwrap().rows().map(|row| row.doc).collect::<Vec<_>>())
        .collect();
    assert_eq!(all.len(), 9);
    for doc in all {
        let name = format!("doc:{doc}");
        let texts = explain(&params(&atlas, &name, &name)).unwrap().texts;
        assert_eq!(
            texts.map(|texts| texts.changed).map_err(|error| error.to_string()),
            Ok([false; 2]),
            "{doc}"
        );
    }
}

#[test]
fn members_of_a_cluster_come_with_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let (input, atlas) = (folder.path().join("in.jsonl"), folder.path().join("atlas"));
    fs::write(&input, ROSES.repeat(4000)).unwrap();
    scan_into(&[&input], &atlas, "w4-rabin64-6x14r2");
    write_similar(&atlas, None, &[], &[vec![0, 1], vec![5, 3, 11_999]]);
    let atlas = Atlas::open(&atlas).unwrap();
    let mut seen = Vec::new();
    let stats = explain_cluster::<ExplainError>(&atlas, ClusterId(1), &mut |member| {
        seen.push((member.row.doc.get(), member.row.is_centre, member.id.unwrap().to_owned()));
        Ok(())
    });
    assert_eq!(stats.unwrap().map(|stats| (stats.centre, stats.documents)), Some((DocId(5), 3)));
    assert_eq!(seen, [(3, false, "7".into()), (5, true, "c".into()), (11_999, false, "c".into())]);
    let none =
        explain_cluster::<ExplainError>(&atlas, ClusterId(2), &mut |_| Ok(())).unwrap_err().to_string();
    assert_eq!(none, "there is no cluster 2; there are 2");
}

/// Where others wait, long texts are not even read.
#[test]
fn what_is_too_long_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let (input, atlas) = (folder.path().join("in.jsonl"), folder.path().join("atlas"));
    fs::write(&input, ROSES).unwrap();
    scan_into(&[&input], &atlas, Recipe::DEFAULT);
    let limited = |words, bytes| {
        let limits = Some(ExplainLimits { words, bytes, tool_seconds: 60 });
        explain(&ExplainParams { limits, ..params(&atlas, "doc:0", "doc:1") }).unwrap()
    };
    let whole = explain(&params(&atlas, "doc:0", "doc:1")).unwrap();
    let words = whole.a.tokens + whole.b.tokens;
    let explained = limited(words, 1000);
    assert_eq!(explained.overlaps, whole.overlaps);
    assert_eq!(explained.texts.unwrap().comparison, whole.texts.unwrap().comparison);
    let refused = limited(words - 1, 1000);
    assert!(matches!(refused.texts, Err(TextError::TooLong { words: told, .. }) if told == words));
    assert!(refused.overlaps.is_empty(), "chunks are as many as words");
    assert_eq!((refused.sketch, refused.features), (whole.sketch, whole.features));
    let refused = limited(words, 10);
    assert!(matches!(refused.texts, Err(TextError::TooLarge { doc: DocId(0), most: 10, .. })));
    // The input has grown since: the atlas says that it is short.
    let long = ROSES.replace("A rose is a rose is a rose", &"a rose is ".repeat(100));
    fs::write(&input, long).unwrap();
    assert!(matches!(limited(words, 100_000).texts, Err(TextError::TooLong { .. })));
    let longer = ROSES.replace("A rose is a rose is a rose", &"a rose is ".repeat(100_000));
    fs::write(&input, longer).unwrap();
    assert!(matches!(limited(words, 100).texts, Err(TextError::Lookup(_))));
}

/// A server that opened the atlas anew compared every file with its checksum for each question.
#[test]
fn files_of_an_open_atlas_are_compared_once() {
    let folder = tempfile::tempdir().unwrap();
    let (input, dir) = (folder.path().join("in.jsonl"), folder.path().join("atlas"));
    fs::write(&input, ROSES).unwrap();
    scan_into(&[&input], &dir, Recipe::PAPERS);
    let (atlas, params) = (Atlas::open(&dir).unwrap(), params(&dir, "doc:0", "doc:1"));
    // Not the file that this process has written.
    let documents = atlas.paths(&TableName::Documents).unwrap().pop().unwrap();
    fs::write(&documents, fs::read(&documents).unwrap()).unwrap();
    let first = explain_in(&atlas, &params).unwrap();
    let checked = atlas.checked_bytes();
    assert!(checked > 0);
    let second = explain_in(&atlas, &params).unwrap();
    assert_eq!(atlas.checked_bytes(), checked);
    assert_eq!((first.overlaps, first.a), (second.overlaps, second.a));
}

#[test]
fn what_nobody_wants_any_more_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let (input, atlas) = (folder.path().join("in.jsonl.gz"), folder.path().join("atlas"));
    fs::write(&input, gzip(ROSES.as_bytes())).unwrap();
    scan_into(&[&input], &atlas, Recipe::DEFAULT);
    let stop = cancel::Cancel::default();
    stop.cancel();
    let explained = cancel::with(&stop, || explain(&params(&atlas, "doc:0", "doc:1")));
    assert!(explained.is_err(), "{explained:?}");
}
