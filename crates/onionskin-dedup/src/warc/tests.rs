use onionskin_corpus::Format;
use onionskin_store::{Atlas, TableName};
use onionskin_warc::writer::http_response;

use super::super::testing::{Bench, Cluster, exact, near, pair};
use super::super::{Copying, DedupParams, DedupSummary};
use super::*;

const DATE: &str = "2024-05-01T12:00:00Z";

fn page(words: &str) -> Vec<u8> {
    let body = format!("<html><body><p>{words}</p></body></html>");
    http_response(200, "text/html", &[("Server", "test")], body.as_bytes()).unwrap()
}

/// A record of a test: its address and its message.
fn response(writer: &mut WarcWriter<Vec<u8>>, nth: u128, message: &[u8], digest: Option<&str>) {
    let id = format!("<{}>", RecordId::from_hash(nth));
    let uri = format!("http://www.example.org/{nth}");
    let mut fields = vec![
        ("WARC-Type", "response"),
        ("WARC-Record-ID", &id),
        ("WARC-Date", DATE),
        ("WARC-Target-URI", &uri),
        ("WARC-IP-Address", "192.0.2.7"),
        ("WARC-Block-Digest", "sha1:WHATEVER"),
        ("Content-Type", "application/http; msgtype=response"),
    ];
    fields.extend(digest.map(|digest| ("WARC-Payload-Digest", digest)));
    writer.write_fields(&fields, message).unwrap();
}

/// Five pages: 0, 1 the same; 2 the same text in other markup; 3 nearly; 4 alone.
fn file(compression: Compression) -> Vec<u8> {
    let mut writer = WarcWriter::new(Vec::new(), compression).unwrap();
    writer.warcinfo(RecordId::from_hash(99), DATE, None, &[("software", "test")]).unwrap();
    let words = "a rose is a rose is a rose and nothing else";
    response(&mut writer, 0, &page(words), None);
    response(&mut writer, 1, &page(words), None);
    response(&mut writer, 2, &page(&format!("<b>{words}</b>")), None);
    response(&mut writer, 3, &page(&format!("{words} but")), None);
    writer
        .metadata(
            RecordId::from_hash(98),
            DATE,
            "http://www.example.org/3",
            RecordId::from_hash(3),
            &[("a", "b")],
        )
        .unwrap();
    response(&mut writer, 4, &page("something quite different"), None);
    writer.finish().unwrap()
}

fn clusters() -> Vec<Cluster> {
    let (centre, mut copies) = exact(0, &[1, 2]);
    copies.extend(near(0, &[(3, 0.875)]).1);
    vec![(centre, copies)]
}

fn with_warc(params: &mut DedupParams) {
    params.formats = [Format::Warc].into();
}

fn run(name: &str, bytes: &[u8], clusters: &[Cluster]) -> (Bench, DedupSummary) {
    let bench = Bench::new();
    bench.write(&format!("in/{name}"), bytes);
    bench.scan(|_| {});
    // Some of the files have fewer documents.
    let documents = Atlas::open(bench.path("atlas")).unwrap().rows(&TableName::Documents);
    let pairs: Vec<_> = (documents > 3).then(|| pair(0, 3, 0.875, 1.0, 0.75)).into_iter().collect();
    bench.clusters(clusters, &pairs, "centred");
    let summary = bench.dedup(with_warc).unwrap();
    (bench, summary)
}

fn records(bytes: &[u8]) -> Vec<Record> {
    let reader = Reader::new(bytes, Limits::default()).unwrap();
    reader
        .map(|item| match item.unwrap() {
            Item::Record(record) => record,
            Item::Damage(damage) => panic!("{damage:?}"),
        })
        .collect()
}

#[test]
fn exact_copies_become_revisits_and_near_ones_get_a_note() {
    for (name, compression) in
        [("a.warc", Compression::None), ("a.warc.gz", Compression::Gzip), ("a.warc.zst", Compression::Zstd)]
    {
        let bytes = file(compression);
        let (bench, summary) = run(name, &bytes, &clusters());
        assert_eq!((summary.revisits, summary.metadata, summary.untouched), (1, 2, 0), "{name}");
        let copy = bench.out(&format!("shards/{name}"));
        let (before, after) = (records(&bytes), records(&copy));
        use RecordKind::{Metadata, Response, Revisit, WarcInfo};
        let kinds = [WarcInfo, Response, Revisit, Response, Metadata, Response, Metadata, Metadata, Response];
        assert_eq!(after.iter().map(|record| record.kind).collect::<Vec<_>>(), kinds, "{name}");

        // What was not changed is the same, byte for byte.
        let start = before[2].offset as usize;
        assert_eq!(copy[..start], bytes[..start], "{name}");
        let (from, to) = (before[5].offset as usize, after[7].offset as usize);
        assert_eq!(copy[to..], bytes[from..], "{name}");

        let revisit = &after[2];
        let naive = before[2].block.len() - revisit.block.len();
        assert_eq!(summary.removed_record_bytes, naive as u64, "{name}");
        let page = "<html><body><p>a rose is a rose is a rose and nothing else</p></body></html>";
        assert_eq!(naive, page.len(), "{name}");
        let original = before[1].record_id().unwrap();
        let get = |field: &str| revisit.headers.get(field);
        assert_eq!(
            get("WARC-Profile"),
            Some("http://netpreserve.org/warc/1.1/revisit/identical-payload-digest")
        );
        assert_eq!(revisit.refers_to(), Some(original));
        assert_eq!(revisit.refers_to_target_uri(), Some("http://www.example.org/0"));
        assert_eq!(get("WARC-Refers-To-Date"), Some(DATE));
        assert_eq!(get("WARC-Truncated"), Some("length"));
        assert_eq!(get("WARC-IP-Address"), Some("192.0.2.7"));
        assert_eq!(
            (revisit.record_id(), revisit.target_uri()),
            (before[2].record_id(), before[2].target_uri())
        );
        let head = http_head_len(&before[2].block).unwrap();
        assert_eq!(revisit.block, before[2].block[..head]);
        assert_eq!(get("WARC-Payload-Digest"), Some(sha1_digest(&before[2].block[head..]).as_str()));
        assert_eq!(get("WARC-Block-Digest"), Some(sha1_digest(&revisit.block).as_str()));

        // Equal text, other payload: the payload stays.
        assert_eq!(after[3].block, before[3].block);
        let note = String::from_utf8(after[4].block.clone()).unwrap();
        assert!(note.contains("resemblance: 1\r\n") && note.contains("method: exact\r\n"), "{note}");
        assert_eq!(after[6].refers_to(), before[4].record_id());
        assert_eq!(after[6].target_uri(), before[4].target_uri());
        let note = String::from_utf8(after[6].block.clone()).unwrap();
        let expected = format!(
            "near-duplicate-of-uri: http://www.example.org/0\r\nnear-duplicate-of-date: {DATE}\r\n\
             near-duplicate-of-record-id: <{original}>\r\nresemblance: 0.875\r\ncontainment: 0.75\r\n\
             method: resemblance\r\ncluster: 0\r\n"
        );
        assert_eq!(note, expected);

        // A scan of the copy sees the revisit as one.
        std::fs::copy(bench.path(&format!("out/shards/{name}")), bench.path(&format!("in/{name}"))).unwrap();
        bench.scan(|_| {});
        let atlas = Atlas::open(bench.path("atlas")).unwrap();
        assert_eq!((atlas.manifest().counts["documents"], atlas.manifest().counts["revisits"]), (5, 1));
    }
}

#[test]
fn annotating_takes_nothing_away() {
    let bytes = file(Compression::Gzip);
    let bench = Bench::new();
    bench.write("in/a.warc.gz", &bytes);
    bench.atlas(&clusters());
    let summary = bench
        .dedup(|params| {
            with_warc(params);
            params.copying = Copying::Annotate;
        })
        .unwrap();
    assert_eq!((summary.revisits, summary.metadata), (0, 3));
    let after = records(&bench.out("shards/a.warc.gz"));
    let before = records(&bytes);
    let same: Vec<_> =
        after.iter().filter(|a| before.iter().any(|b| a.record_id() == b.record_id())).collect();
    assert!(same.iter().zip(&before).all(|(a, b)| a.block == b.block) && same.len() == before.len());
}

#[test]
fn notes_of_an_earlier_copy_are_replaced() {
    for (name, compression) in
        [("a.warc", Compression::None), ("a.warc.gz", Compression::Gzip), ("a.warc.zst", Compression::Zstd)]
    {
        let bench = Bench::new();
        let copy = |clusters: &[Cluster]| {
            bench.scan(|_| {});
            bench.clusters(clusters, &[], "centred");
            bench.clear();
            let summary = bench.dedup(|params| {
                with_warc(params);
                params.copying = Copying::Annotate;
            });
            let notes = summary.unwrap().metadata;
            (bench.out(&format!("shards/{name}")), notes)
        };
        bench.write(&format!("in/{name}"), file(compression));
        let (annotated, notes) = copy(&clusters());
        assert_eq!(notes, 3, "{name}");
        // The same clusters give the same bytes.
        bench.write(&format!("in/{name}"), &annotated);
        assert!(copy(&clusters()) == (annotated.clone(), 3), "{name}");
        // None give the first file, whose own metadata record stays.
        assert!(copy(&[]) == (file(compression), 0), "{name}");
        let (after, notes) = copy(&[exact(0, &[1])]);
        assert_eq!((notes, records(&after).len()), (1, records(&file(compression)).len() + 1), "{name}");
    }
}

#[test]
fn digests_that_lie_do_not_cost_a_payload() {
    let mut writer = WarcWriter::new(Vec::new(), Compression::Gzip).unwrap();
    let digest = Some("sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    response(&mut writer, 0, &page("one thing"), digest);
    response(&mut writer, 1, &page("quite another thing"), digest);
    // The same bytes, of which one writer says another digest.
    response(&mut writer, 2, &page("one thing"), Some("sha1:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"));
    // The same bytes and the same digest, though no true one.
    response(&mut writer, 3, &page("one thing"), digest);
    let (bench, summary) = run("a.warc.gz", &writer.finish().unwrap(), &[exact(0, &[1, 2, 3])]);
    assert_eq!((summary.revisits, summary.metadata), (1, 2));
    let after = records(&bench.out("shards/a.warc.gz"));
    assert_eq!(after.last().unwrap().payload_digest(), digest);
    assert_eq!(after.last().unwrap().kind, RecordKind::Revisit);
}

#[test]
fn the_same_payload_in_other_chunks_is_the_same() {
    let chunked = |chunks: &[&str]| {
        let mut message =
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        for chunk in chunks.iter().chain([&""]) {
            message.extend_from_slice(format!("{:x}\r\n{chunk}\r\n", chunk.len()).as_bytes());
        }
        message
    };
    let mut writer = WarcWriter::new(Vec::new(), Compression::Gzip).unwrap();
    response(&mut writer, 0, &chunked(&["<p>a rose ", "is a rose"]), None);
    response(&mut writer, 1, &chunked(&["<p>a", " rose is a rose"]), None);
    let (_, summary) = run("a.warc.gz", &writer.finish().unwrap(), &[exact(0, &[1])]);
    assert_eq!((summary.revisits, summary.metadata), (1, 0));
}

#[test]
fn a_page_is_not_given_up_for_a_revisit_of_it() {
    let digest = sha1_digest(b"<html><body><p>a rose</p></body></html>");
    let mut writer = WarcWriter::new(Vec::new(), Compression::Gzip).unwrap();
    let visit = onionskin_warc::writer::Revisit {
        refers_to: None,
        refers_to_uri: "http://www.example.org/1",
        refers_to_date: DATE,
        payload_digest: &digest,
        http_head: b"HTTP/1.1 200 OK\r\n\r\n",
    };
    writer.revisit(RecordId::from_hash(0), DATE, "http://www.example.org/0", &visit).unwrap();
    response(&mut writer, 1, &page("a rose"), Some(&digest));
    writer.revisit(RecordId::from_hash(2), DATE, "http://www.example.org/2", &visit).unwrap();
    let bytes = writer.finish().unwrap();
    let (bench, summary) = run("a.warc.gz", &bytes, &[exact(0, &[1, 2])]);
    assert_eq!((summary.kept_for_payload, summary.kept.documents, summary.removed.documents), (1, 2, 1));
    assert_eq!((summary.revisits, summary.metadata), (0, 1));
    let after = records(&bench.out("shards/a.warc.gz"));
    assert_eq!(after[1].block, page("a rose"));
    // With the page as the centre, revisits of it stay what they are.
    let (bench, summary) = run("a.warc.gz", &bytes, &[exact(1, &[0, 2])]);
    assert_eq!((summary.removed.documents, summary.revisits, summary.metadata), (2, 0, 0));
    assert_eq!(bench.out("shards/a.warc.gz"), bytes);
}

#[test]
fn copies_in_two_files_and_a_kept_page_that_is_no_warc() {
    let bench = Bench::new();
    let mut writer = WarcWriter::new(Vec::new(), Compression::Gzip).unwrap();
    response(&mut writer, 0, &page("a rose is a rose"), None);
    bench.write("in/b/1.warc.gz", writer.finish().unwrap());
    let mut writer = WarcWriter::new(Vec::new(), Compression::None).unwrap();
    response(&mut writer, 1, &page("a rose is a rose"), None);
    response(&mut writer, 2, &page("another rose"), None);
    bench.write("in/b/2.warc", writer.finish().unwrap());
    bench.write("in/a.jsonl", "{\"id\":\"x\\r\\ny\",\"text\":\"another rose\"}\n");
    // Documents: 0 the line, 1 the first file, 2 and 3 the second.
    bench.atlas(&[exact(1, &[2]), exact(0, &[3])]);
    let summary = bench.dedup(with_warc).unwrap();
    assert_eq!((summary.revisits, summary.metadata, summary.files), (1, 1, 2));
    let after = records(&bench.out("shards/2.warc"));
    assert_eq!(after[0].refers_to_target_uri(), Some("http://www.example.org/0"));
    let note = String::from_utf8(after[2].block.clone()).unwrap();
    assert!(note.starts_with("near-duplicate-of: x  y\r\nresemblance: 1\r\n"), "{note}");
}

#[test]
fn damaged_places_are_left_alone() {
    // Cut off inside the last record, whose copy is then nobody's.
    let bytes = file(Compression::Gzip);
    let (bench, summary) = run("a.warc.gz", &bytes[..bytes.len() - 20], &clusters());
    assert_eq!((summary.revisits, summary.metadata), (1, 2));
    assert!(bench.out("shards/a.warc.gz").ends_with(&bytes[bytes.len() - 60..bytes.len() - 20]));
    // A plain file that ends behind the block of a near copy: the note stands apart from it.
    let mut writer = WarcWriter::new(Vec::new(), Compression::None).unwrap();
    response(&mut writer, 0, &page("a rose is a rose"), None);
    response(&mut writer, 1, &page("a rose is a rose is"), None);
    let bytes = writer.finish().unwrap();
    let (bench, summary) = run("a.warc", &bytes[..bytes.len() - 4], &[near(0, &[(1, 0.9)])]);
    assert_eq!(summary.metadata, 1);
    assert_eq!(records(&bench.out("shards/a.warc")).len(), 3);
}

fn check_refused(name: &str, bytes: &[u8], wanted: &str) {
    let bench = Bench::new();
    bench.write(&format!("in/{name}"), bytes);
    bench.atlas(&[]);
    let error = bench.dedup(with_warc).unwrap_err().to_string();
    assert!(error.contains(name) && error.contains(wanted), "{error}");
}

#[test]
fn files_whose_records_cannot_be_exchanged_are_refused() {
    let plain = file(Compression::None);
    let check = |name: &str, bytes: &[u8], wanted: &str| {
        let bench = Bench::new();
        bench.write(&format!("in/{name}"), bytes);
        bench.atlas(&clusters());
        let error = bench.dedup(with_warc).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(wanted), "{error}");
        assert!(!bench.path("out").exists());
        // The lists can be had.
        bench.dedup(|params| params.copying = Copying::None).unwrap();
    };
    check("a.warc.gz", &super::super::testing::gzip(&plain), "share a member");
    check("a.warc.zst", &zstd::encode_all(plain.as_slice(), 3).unwrap(), "share a member");
    // A skippable frame in front holds a dictionary.
    let mut dictionary = vec![0x5d, 0x2a, 0x4d, 0x18, 8, 0, 0, 0, 0x37, 0xa4, 0x30, 0xec, 1, 2, 3, 4];
    dictionary.extend(file(Compression::Zstd));
    check_refused("b.warc.zst", &dictionary, "dictionary");
    let arc = "filedesc://a.arc 0.0.0.0 20240501120000 text/plain 69\n1 0 test\nURL IP-address Archive-date Content-type Archive-length\n\n\
               http://www.example.org/ 192.0.2.7 20240501120000 text/html 6\n<p>abc\n";
    check_refused("c.arc", arc.as_bytes(), "ARC file");
}

#[test]
fn base_32() {
    // RFC 4648, and the digest of nothing as crawls have it.
    assert_eq!(sha1_digest(b""), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
}
