use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use onionskin_core::chunk::Chunking;
use onionskin_core::{Analyzer, DocId};
use onionskin_store::Atlas;
use onionskin_store::schema::ChunkingName;
use onionskin_testkit::{Composer, Preset, WarcOptions, Web, WebSpec};

use super::*;
use crate::testing::{CancelAfter, files};
use onionskin_store::progress::Quiet;

fn demo_web(pages: u64) -> Web {
    Web::new(&WebSpec::of(Preset::Demo, pages, 7)).unwrap()
}

/// A web in all shapes: WARC with a member for each record, JSON lines, a folder.
fn write_web(web: &Web, folder: &Path) -> Vec<String> {
    let n = web.n_pages();
    let warc = folder.join("a.warc.gz");
    let options = WarcOptions { gzip: true, ..WarcOptions::default() };
    web.write_warc(&mut fs::File::create(&warc).unwrap(), 0..n / 2, options, &mut |_, _| {}).unwrap();
    let jsonl = folder.join("b.jsonl");
    web.write_jsonl(&mut fs::File::create(&jsonl).unwrap(), n / 2..n, &mut |_, _| {}).unwrap();
    [warc, jsonl].map(|path| path.display().to_string()).to_vec()
}

fn params(inputs: &[String], atlas: &Path) -> ScanParams {
    let mut params = ScanParams::new(inputs.to_vec(), atlas.to_owned());
    params.threads = 2;
    params.memory = MemoryBudget::from_mib(256);
    // Many tasks and many commits in little data.
    params.options.task_bytes = 8 << 10;
    params.commit_bytes = 100 << 10;
    params
}

#[test]
fn threads_and_memory_do_not_change_a_byte() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = write_web(&demo_web(600), folder.path());
    let mut expected = None;
    for (threads, mib) in [(1, 128), (2, 256), (8, 1024), (3, 128)] {
        let atlas = folder.path().join(format!("atlas-{threads}-{mib}"));
        let mut params = params(&inputs, &atlas);
        params.threads = threads;
        params.memory = MemoryBudget::from_mib(mib);
        scan(&params, &Quiet).unwrap();
        let found = files(&atlas);
        assert!(found.len() > 20, "several parts of every table: {:?}", found.keys());
        let expected = expected.get_or_insert_with(|| found.clone());
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (name, bytes) in &found {
            assert!(bytes == &expected[name], "{name} differs with {threads} threads and {mib} MiB");
        }
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

fn warc_record(kind: &str, media_type: &str, nth: usize, block: &[u8]) -> Vec<u8> {
    let mut record = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.example/{nth}\r\n\
         Content-Type: {media_type}\r\nContent-Length: {}\r\n\r\n",
        block.len()
    )
    .into_bytes();
    record.extend_from_slice(block);
    record.extend_from_slice(b"\r\n\r\n");
    record
}

/// Many records in one member, pages that grow when they are unpacked, broken records, lines of all
/// sizes, and a compressed stream: much out of little.
fn write_bombs(folder: &Path) -> Vec<String> {
    let tiny: Vec<u8> =
        (0..400).flat_map(|nth| warc_record("resource", "text/plain", nth, b"a few words")).collect();
    let broken = b"WARC/1.0\r\nWARC-Type: resource\r\n\r\n".repeat(50);
    let mut pages = Vec::new();
    for nth in 0..6 {
        let body = gzip(&gzip("<p>much of the same ".repeat(1 + 900 * (nth % 3)).as_bytes()));
        let mut block =
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip, gzip\r\n\r\n".to_vec();
        block.extend_from_slice(&body);
        pages.extend(gzip(&warc_record("response", "application/http; msgtype=response", nth, &block)));
    }
    let lines: String = (0..300)
        .map(|nth| {
            let words = "one more line of text ".repeat(1 + if nth % 50 == 7 { 2000 } else { nth % 9 });
            let title = if nth % 90 == 3 { "i".repeat(40_000) } else { nth.to_string() };
            format!("{{\"id\":\"{title}\",\"text\":\"{words}{nth}\"}}\n")
        })
        .collect();
    let files = [
        ("tiny.warc.gz", gzip(&[tiny, broken].concat())),
        ("pages.warc.gz", pages),
        ("lines.jsonl", lines.clone().into_bytes()),
        ("lines.jsonl.gz", gzip(lines.as_bytes())),
    ];
    files
        .map(|(name, bytes)| {
            let path = folder.join(name);
            fs::write(&path, bytes).unwrap();
            path.display().to_string()
        })
        .to_vec()
}

/// Without bounds, or with bounds that are too small for anything.
fn shares(threads: usize, permits: usize, batch_bytes: usize, small_record_bytes: u64) -> Shares {
    let bounds = Shares::of(u64::MAX >> 1, threads);
    Shares { permits, threads, batch_bytes, small_record_bytes, ..bounds }
}

/// Where batches are cut, and which records wait for their turn, leaves no trace.
#[test]
fn batches_cut_anywhere_give_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = write_bombs(folder.path());
    let scan_with = |name: &str, shares: Shares| {
        let atlas = folder.path().join(name);
        let mut params = params(&inputs, &atlas);
        params.options.task_bytes = 4 << 10;
        let sources = discover(&params.inputs, &params.options).unwrap();
        let done = stage::run(&Scan::with_shares(params, sources.into(), shares), &Quiet).unwrap();
        assert_eq!(done.state.documents, 400 + 6 + 2 * 300, "{:?}", done.state.bad_records);
        let found = files(&atlas);
        fs::remove_dir_all(&atlas).unwrap();
        found
    };
    // The naive way: one thread, everything at once.
    let expected = scan_with("naive", shares(1, 1, 1 << 40, u64::MAX));
    let mut random = 7_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    for nth in 0..6 {
        // A thread that finds no more work keeps its permit.
        let threads = 1 + next(5) as usize;
        let permits = threads + next(3) as usize;
        let batch_bytes = if nth == 0 { 1 } else { 1 << next(18) };
        let small_record_bytes = if nth == 1 { 0 } else { 1 << next(16) };
        let shares = shares(threads, permits, batch_bytes, small_record_bytes);
        assert!(scan_with("cut", shares) == expected, "{shares:?}");
    }
}

/// What there is no room for is a record that is reported with the limit.
#[test]
fn a_text_whose_words_do_not_fit_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let text = "a ".repeat(20_000);
    fs::write(&path, format!("{{\"text\":\"{text}\"}}\n{{\"text\":\"short\"}}\n")).unwrap();
    let mut params = params(&[path.display().to_string()], &folder.path().join("atlas"));
    params.recipe = Some(Recipe::PAPERS.parse().unwrap());
    let sources = discover(&params.inputs, &params.options).unwrap();
    let mut shares = shares(2, 2, 1 << 20, 1000);
    shares.large_bytes = 500_000;
    let done = stage::run(&Scan::with_shares(params, sources.into(), shares), &Quiet).unwrap();
    assert_eq!((done.state.documents, done.state.bad_records["too_large"]), (1, 1));
    let (place, reason) = &done.state.bad_record_examples[0];
    assert!(place.ends_with("a.jsonl, byte 0"), "{place}");
    assert_eq!(reason, "its words need more than 500000 bytes of memory");
}

/// Stops the scan after some batches, as a kill would, and takes it up again.
#[test]
fn a_scan_that_was_stopped_ends_in_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = write_web(&demo_web(500), folder.path());
    let whole = folder.path().join("whole");
    scan(&params(&inputs, &whole), &Quiet).unwrap();

    struct StopAfter(Cell<u32>);
    impl Progress for StopAfter {
        fn event(&self, event: Event<'_>) {
            if let Event::Scanned { .. } | Event::Step { .. } = event {
                let left = self.0.get();
                assert!(left > 0, "stopped by the test");
                self.0.set(left - 1);
            }
        }
    }
    let atlas = folder.path().join("stopped");
    let mut stops = 0;
    for patience in [1, 3, 0, 9, 4, 14, 30, 25, 1000] {
        let stopper = StopAfter(Cell::new(patience));
        let outcome = catch_unwind(AssertUnwindSafe(|| scan(&params(&inputs, &atlas), &stopper)));
        match outcome {
            Err(_) => stops += 1,
            Ok(result) => {
                let summary = result.unwrap();
                assert!(summary.resumed_documents > 0 && stops >= 4, "{stops} stops");
                break;
            }
        }
    }
    assert_eq!(files(&atlas), files(&whole));
}

/// The same when it is told to stop, which is an error and no panic.
#[test]
fn a_scan_stops_when_it_is_told_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = write_web(&demo_web(500), folder.path());
    let whole = folder.path().join("whole");
    scan(&params(&inputs, &whole), &Quiet).unwrap();
    let atlas = folder.path().join("stopped");
    let mut stops = 0;
    for patience in [0, 2, 20, 60, 1000] {
        match CancelAfter::events(patience, |progress| scan(&params(&inputs, &atlas), progress)) {
            Ok(_) => break,
            Err(error) => assert!(error.to_string().starts_with("stopped on request"), "{error}"),
        }
        stops += 1;
        assert!(!atlas.join("manifest.json").exists());
    }
    assert!(stops >= 3, "{stops} stops");
    assert_eq!(files(&atlas), files(&whole));
}

#[test]
fn what_was_planted_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let web = demo_web(900);
    let warc = folder.path().join("a.warc");
    web.write_warc(
        &mut fs::File::create(&warc).unwrap(),
        0..web.n_pages(),
        WarcOptions::default(),
        &mut |_, _| {},
    )
    .unwrap();
    let atlas = folder.path().join("atlas");
    let seen = scan(&params(&[warc.display().to_string()], &atlas), &Quiet).unwrap();
    let planted = web.summary();
    assert_eq!(seen.documents, planted.documents);
    assert_eq!(seen.sites, planted.sites);
    assert_eq!(seen.empty_documents, planted.empty);
    assert_eq!(seen.links, planted.links);
    assert_eq!(seen.bad_record_count(), 0);

    let atlas = Atlas::open(&atlas).unwrap();
    let mut texts = vec![];
    let mut documents = atlas.documents().unwrap();
    let mut next = 0;
    while let Some(batch) = documents.next_batch().unwrap() {
        for row in batch.rows() {
            assert_eq!(row.doc, DocId(next), "dense and in order");
            assert_eq!(row.url, Some(web.url(u64::from(next)).as_str()));
            next += 1;
            texts.extend(row.text_fp);
        }
    }
    let all = texts.len() as u64;
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(all - texts.len() as u64, planted.exact_copies);
}

/// The tables against a program that does one thing after the other.
#[test]
fn tables_hold_what_the_analyzer_says() {
    let folder = tempfile::tempdir().unwrap();
    let web = demo_web(500);
    let jsonl = folder.path().join("a.jsonl");
    web.write_jsonl(&mut fs::File::create(&jsonl).unwrap(), 0..web.n_pages(), &mut |_, _| {}).unwrap();
    let atlas = folder.path().join("atlas");
    let recipe: Recipe = "papers".parse().unwrap();
    let params =
        ScanParams { recipe: Some(recipe.clone()), ..params(&[jsonl.display().to_string()], &atlas) };
    let summary = scan(&params, &Quiet).unwrap();

    let mut analyzer = Analyzer::new(&recipe, params.seed);
    let mut composer = Composer::new(&web);
    let kept: Vec<Chunking> = recipe.kept_chunks().to_vec();
    let (mut features, mut sketches) = (vec![], vec![]);
    let mut chunks: Vec<Vec<(DocId, u64)>> = vec![vec![]; kept.len()];
    for doc in DocId::range(0..web.n_pages() as u32) {
        let analysis = analyzer.analyze(composer.text(u64::from(doc)));
        if !analysis.features().is_empty() {
            features.push((doc, analysis.features().to_vec()));
            sketches.push((doc, analysis.sketch().to_vec()));
        }
        for (nth, column) in chunks.iter_mut().enumerate() {
            column.extend(analysis.chunks(nth).iter().map(|chunk| (doc, *chunk)));
        }
    }

    let atlas = Atlas::open(&atlas).unwrap();
    let mut reader = atlas.features().unwrap();
    for (doc, expected) in &features {
        assert_eq!(reader.next_row().unwrap(), Some((*doc, expected.as_slice())));
    }
    assert!(reader.next_row().unwrap().is_none());
    let mut reader = atlas.sketches().unwrap();
    for (doc, expected) in &sketches {
        assert_eq!(reader.next_row().unwrap(), Some((*doc, expected.as_slice())));
    }
    assert!(reader.next_row().unwrap().is_none());
    for (chunking, expected) in kept.iter().zip(&chunks) {
        let mut found = vec![];
        let mut reader = atlas.chunks(&ChunkingName::new(&chunking.to_string()).unwrap()).unwrap();
        while let Some((doc, group)) = reader.next_group().unwrap() {
            found.extend(group.iter().map(|chunk| (doc, *chunk)));
        }
        assert_eq!(&found, expected, "{chunking}");
        assert_eq!(summary.chunks[&chunking.to_string()], expected.len() as u64);
    }
}

#[test]
fn bad_records_are_counted_and_limited() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("a.jsonl");
    fs::write(
        &input,
        "{\"text\":\"one good line\"}\n{broken\n{\"text\":7}\n{\"text\":\"another good line\"}\n",
    )
    .unwrap();
    let inputs = [input.display().to_string()];
    let atlas = folder.path().join("atlas");
    let mut params = params(&inputs, &atlas);

    params.max_bad_records = Some(1);
    let error = scan(&params, &Quiet).unwrap_err().to_string();
    assert!(
        error.contains("2 bad records are more than the 1") && error.contains("a.jsonl, byte"),
        "{error}"
    );

    // The limit is not part of the job: the same scan with a higher one goes through.
    params.max_bad_records = Some(2);
    let summary = scan(&params, &Quiet).unwrap();
    assert_eq!((summary.documents, summary.bad_record_count()), (2, 2));
    assert_eq!(summary.bad_records.keys().collect::<Vec<_>>(), ["broken_json", "text_not_a_string"]);
    let manifest = Atlas::open(&atlas).unwrap().manifest().clone();
    assert_eq!(manifest.inputs[0].bad_records, 2);
    assert_eq!(manifest.counts["bad_records.broken_json"], 1);
}

#[test]
fn links_go_to_the_first_document_of_an_address() {
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("www.example.org");
    fs::create_dir(&site).unwrap();
    fs::write(
        site.join("a.html"),
        "<p>a <a href=b.html>b</a> <a href='b.html#x'>b</a> <a href=/c.html>gone</a>",
    )
    .unwrap();
    fs::write(site.join("b.html"), "<p>b <a href=a.html>a</a> <a href=b.html>itself</a>").unwrap();
    let tree = folder.path().display().to_string();
    let out = tempfile::tempdir().unwrap();
    let atlas = out.path().join("atlas");
    let summary = scan(&params(&[tree], &atlas), &Quiet).unwrap();
    assert_eq!((summary.documents, summary.sites, summary.links), (2, 1, 3));
    let links = Atlas::open(&atlas).unwrap().links().unwrap();
    let links: Vec<(u32, u32)> =
        links.map(|link| link.map(|(src, dest)| (src.get(), dest.get())).unwrap()).collect();
    assert_eq!(links, [(0, 1), (1, 0), (1, 1)]);
}

/// Links that do not fit in memory are sorted on disk, to the same end.
#[test]
fn many_links_spill() {
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("in/www.example.org");
    fs::create_dir_all(&site).unwrap();
    let pages = 300;
    let links: String = (0..pages).map(|page| format!("<a href=p{page}.html>page</a> ")).collect();
    for page in 0..pages {
        fs::write(site.join(format!("p{page}.html")), &links).unwrap();
    }
    let inputs = [folder.path().join("in").display().to_string()];
    let atlas = folder.path().join("atlas");
    let sources: Arc<[Source]> = discover(&inputs, &Options::default()).unwrap().into();
    let params = params(&inputs, &atlas);
    let scan = Scan::new(params, sources);
    let mut work = Work::open(&scan, &Quiet).unwrap();
    read(&mut work).unwrap();
    work.commit().unwrap();
    links::resolve(&mut work, MemoryBudget::from_bytes(400 << 10)).unwrap();
    assert!(work.state.spilled_bytes > 0, "four hundred kilobytes do not hold a megabyte of links");
    work.commit().unwrap();
    assert_eq!(work.publish().unwrap().links, pages * pages);
}

#[test]
fn nothing_to_read_is_an_error_and_too_little_memory_too() {
    let folder = tempfile::tempdir().unwrap();
    let atlas = folder.path().join("atlas");
    let missing = folder.path().join("missing.jsonl").display().to_string();
    assert!(matches!(scan(&params(&[missing], &atlas), &Quiet), Err(ScanError::Discover(_))));
    let mut params = params(&[], &atlas);
    params.memory = MemoryBudget::from_mib(1);
    assert!(matches!(scan(&params, &Quiet), Err(ScanError::TooLittleMemory { .. })));
}

#[test]
fn an_empty_input_makes_an_empty_atlas() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("a.jsonl");
    fs::write(&input, "").unwrap();
    let atlas = folder.path().join("atlas");
    let mut params = params(&[input.display().to_string()], &atlas);
    params.options.format = Some(Format::Jsonl);
    let summary = scan(&params, &Quiet).unwrap();
    assert_eq!(summary.documents, 0);
    let atlas = Atlas::open(&atlas).unwrap();
    assert!(atlas.documents().unwrap().next_batch().unwrap().is_none());
    assert!(atlas.features().unwrap().next_row().unwrap().is_none());
}

#[test]
fn another_job_does_not_take_over_unfinished_work() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = write_web(&demo_web(500), folder.path());
    let atlas = folder.path().join("atlas");
    scan(&params(&inputs, &atlas), &Quiet).unwrap();
    let again = scan(&params(&inputs, &atlas), &Quiet).unwrap_err().to_string();
    assert!(again.contains("already has a finished scan"), "{again}");
    let mut overwriting = params(&inputs, &atlas);
    overwriting.overwrite = true;
    overwriting.seed = 2;
    scan(&overwriting, &Quiet).unwrap();
    assert_eq!(Atlas::open(&atlas).unwrap().manifest().seed, 2);
}
