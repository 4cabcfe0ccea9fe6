//! Files that are as they should be, in every form there is.

use super::*;

const COUNT: usize = 12;

fn check_numbered(file: &[u8]) -> Vec<Record> {
    let records = records(file);
    let expected: Vec<Vec<u8>> = (0..COUNT).map(numbered_block).collect();
    assert_eq!(blocks(&records), expected);
    assert!(records.iter().all(|record| record.kind == RecordKind::Response && !record.truncated));
    records
}

#[test]
fn plain() {
    let file: Vec<u8> = (0..COUNT).flat_map(numbered).collect();
    let mut offset = 0;
    for (n, record) in check_numbered(&file).iter().enumerate() {
        assert_eq!(record.offset, offset);
        offset += numbered(n).len() as u64;
    }
}

#[test]
fn gzip_member_per_record() {
    let file: Vec<u8> = (0..COUNT).flat_map(|n| gzip(&numbered(n))).collect();
    let mut offset = 0;
    for (n, record) in check_numbered(&file).iter().enumerate() {
        let len = gzip(&numbered(n)).len() as u64;
        assert_eq!((record.offset, record.stored_len), (offset, Some(len)));
        offset += len;
    }
}

#[test]
fn gzip_whole_file() {
    let plain: Vec<u8> = (0..COUNT).flat_map(numbered).collect();
    for record in check_numbered(&gzip(&plain)) {
        assert_eq!((record.offset, record.stored_len), (0, None));
    }
    check_numbered(&gzip_at(&plain, 0));
}

#[test]
fn members_and_frames_of_any_size() {
    // As bgzip and pigz write them: borders anywhere, also inside heads.
    let plain: Vec<u8> = (0..COUNT).flat_map(numbered).collect();
    for size in [7, 100, 1000, 4096] {
        let file: Vec<u8> = plain.chunks(size).flat_map(gzip).collect();
        check_numbered(&file);
        let file: Vec<u8> = plain.chunks(size).flat_map(|piece| zstd(piece, b"")).collect();
        check_numbered(&file);
    }
}

#[test]
fn gzip_heads_with_everything_in_them() {
    let mut file = Vec::new();
    for n in 0..COUNT {
        let builder = flate2::GzBuilder::new().filename("data.warc").comment("why not").extra(vec![7; 300]);
        let mut encoder = builder.write(Vec::new(), flate2::Compression::new(6));
        io::Write::write_all(&mut encoder, &numbered(n)).unwrap();
        file.extend(encoder.finish().unwrap());
    }
    check_numbered(&file);
}

#[test]
fn empty_members_and_padding_mean_nothing() {
    let mut file = gzip(b"");
    for n in 0..COUNT {
        file.extend(gzip(&numbered(n)));
        file.extend(gzip(b""));
        file.extend([0; 100]);
    }
    check_numbered(&file);
}

#[test]
fn zstd_frame_per_record_and_whole_file() {
    let frames: Vec<u8> = (0..COUNT).flat_map(|n| zstd(&numbered(n), b"")).collect();
    let records = check_numbered(&frames);
    assert_eq!(records[0].stored_len, Some(zstd(&numbered(0), b"").len() as u64));
    assert_eq!(records[1].offset, zstd(&numbered(0), b"").len() as u64);
    let plain: Vec<u8> = (0..COUNT).flat_map(numbered).collect();
    check_numbered(&zstd(&plain, b""));
}

#[test]
fn zstd_with_a_dictionary_raw_and_compressed() {
    let dictionary: Vec<u8> = (100..110).flat_map(numbered).collect();
    let frames: Vec<u8> = (0..COUNT).flat_map(|n| zstd(&numbered(n), &dictionary)).collect();
    for content in [dictionary.clone(), zstd(&dictionary, b"")] {
        let first = skippable(0xd, &content);
        let records = check_numbered(&[first.as_slice(), &frames].concat());
        assert_eq!(records[0].offset, first.len() as u64);
    }
    // Without it they cannot be read, and it is said so.
    assert!(matches!(Reader::new(&frames[..], SMALL), Err(OpenError::Unrecognized)));
    let cut = &skippable(0xd, &dictionary)[..100];
    assert!(matches!(Reader::new(cut, SMALL), Err(OpenError::Dictionary(_))));
    let bad = skippable(0xd, &[&zstd(&dictionary, b"")[..50], &[0; 50][..]].concat());
    assert!(matches!(Reader::new(&bad[..], SMALL), Err(OpenError::Dictionary(_))));
}

#[test]
fn zstd_skippable_frames_anywhere() {
    let mut file = skippable(0, b"hello");
    for n in 0..COUNT {
        file.extend(zstd(&numbered(n), b""));
        file.extend(skippable(n as u8, &noise(n * 1000, 1)));
    }
    check_numbered(&file);
}

fn arc_file(version: u8, gz: bool) -> Vec<u8> {
    let columns = match version {
        1 => "1 0 Test\nURL IP-address Archive-date Content-type Archive-length\n",
        _ => {
            "2 0 Test\nURL IP-address Archive-date Content-type Result-code Checksum Location Offset Filename \
             Archive-length\n"
        }
    };
    let more = if version == 1 { "" } else { " 200 - - 1234 f.arc" };
    let mut file = Vec::new();
    let mut push = |url: &str, media_type: &str, block: &[u8]| {
        let mut record =
            format!("{url} 1.2.3.4 20140126200624 {media_type}{more} {}\n", block.len()).into_bytes();
        record.extend_from_slice(block);
        record.push(b'\n');
        file.extend(if gz { gzip(&record) } else { record });
    };
    push("filedesc://f.arc", "text/plain", columns.as_bytes());
    push("http://a.example/with space", "text/html", b"HTTP/1.0 200 OK\r\n\r\n<p>one</p>\n");
    push("dns:a.example", "text/dns", b"20140126200624\na.example. 300 IN A 1.2.3.4\n");
    push("http://a.example/3", "text/html", b"HTTP/1.0 200 OK\r\n\r\nthree");
    file
}

#[test]
fn arc_both_versions_plain_and_gzip() {
    use RecordKind::{Resource, Response, WarcInfo};
    for (version, gz) in [(1, false), (1, true), (2, false), (2, true)] {
        let records = records(&arc_file(version, gz));
        let kinds: Vec<_> = records.iter().map(|record| record.kind).collect();
        assert_eq!(kinds, [WarcInfo, Response, Resource, Response], "version {version}, gzip {gz}");
        assert_eq!(records[1].target_uri(), Some("http://a.example/with space"));
        assert_eq!(records[1].date(), Some("2014-01-26T20:06:24Z"));
        assert!(records[1].is_http_response());
        assert_eq!(records[1].headers.get("WARC-Type"), Some("response"));
        assert_eq!(records[2].content_type(), Some("text/dns"));
        assert_eq!(records[3].block, b"HTTP/1.0 200 OK\r\n\r\nthree");
    }
    assert_eq!(records(&gzip(&arc_file(1, false))).len(), 4);
}

#[test]
fn arc_damage() {
    let text = String::from_utf8(arc_file(1, false)).unwrap();
    let from = "text/html 30\n";
    assert!(text.contains(from));
    // A length that is too short, and one that is too long.
    for to in ["text/html 20\n", "text/html 60\n"] {
        let (records, damage) = split(items(text.replace(from, to).as_bytes(), SMALL));
        assert_eq!((records.len(), damage.len()), (4, 1), "{to}");
        assert_eq!(damage[0].kind, DamageKind::WrongLength, "{to}");
        assert_eq!(records[3].block, b"HTTP/1.0 200 OK\r\n\r\nthree");
    }
    let mut gz = arc_file(2, true);
    let middle = gz.len() / 2;
    gz[middle] ^= 0xff;
    let (records, damage) = split(items(&gz, SMALL));
    assert!(records.len() >= 3);
    assert_eq!(damage.len(), 1);
}

#[test]
fn bare_line_feeds_and_folding() {
    let file =
        "WARC/1.0\nWARC-Type: resource\nWARC-Target-URI:\n http://a.example/\nContent-Length: 2\n\nhi\n\n";
    let records = records(file.repeat(2).as_bytes());
    assert_eq!(records.len(), 2);
    assert_eq!(records[1].target_uri(), Some("http://a.example/"));
    assert_eq!(records[1].block, b"hi");
}

#[test]
fn target_uris_in_brackets_and_with_spaces() {
    for (written, read) in
        [("<http://a.example/>", "http://a.example/"), ("http://a.example/a b", "http://a.example/a b")]
    {
        let file = warc_record(&[("WARC-Type", "resource"), ("WARC-Target-URI", written)], b"x");
        assert_eq!(records(&file)[0].target_uri(), Some(read));
    }
}

#[test]
fn every_kind() {
    let names = ["response", "resource", "conversion", "revisit", "metadata", "request", "warcinfo", "other"];
    let file: Vec<u8> = names.iter().flat_map(|name| warc_record(&[("warc-type", name)], b"x")).collect();
    let kinds: Vec<_> = records(&file).iter().map(|record| record.kind.as_str()).collect();
    assert_eq!(kinds, names);
    assert_eq!(records(&warc_record(&[], b"x"))[0].kind, RecordKind::Other);
}

#[test]
fn revisits_with_and_without_a_head() {
    let fields = [
        ("WARC-Type", "revisit"),
        ("WARC-Profile", "http://netpreserve.org/warc/1.0/revisit/identical-payload-digest"),
        ("WARC-Refers-To-Target-URI", "<http://a.example/>"),
        ("WARC-Refers-To", "<urn:uuid:7>"),
        ("WARC-Truncated", "length"),
        ("Content-Type", "application/http; msgtype=response"),
    ];
    let mut file = warc_record(&fields, b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    file.extend(warc_record(&fields, b""));
    let records = records(&file);
    assert_eq!(records[0].refers_to(), Some("urn:uuid:7"));
    assert_eq!(records[0].refers_to_target_uri(), Some("http://a.example/"));
    assert_eq!(records[0].declared_truncation(), Some("length"));
    assert!(!records[0].truncated, "the writer's choice is not damage");
    assert!(records[0].is_http_response());
    assert!(!records[1].is_http_response());
    let response = parse_response(records[0].block.clone(), &SMALL).unwrap();
    assert_eq!((response.status, response.body.len()), (200, 0));
}

#[test]
fn conversion_records_of_a_wet_file() {
    let fields = [
        ("WARC-Type", "conversion"),
        ("WARC-Target-URI", "http://a.example/"),
        ("WARC-Refers-To", "<urn:uuid:7>"),
        ("Content-Type", "text/plain"),
    ];
    let file = gzip(&warc_record(&fields, "Grüße\nzwei".as_bytes()));
    let record = &records(&file)[0];
    assert_eq!((record.kind, record.content_type()), (RecordKind::Conversion, Some("text/plain")));
    assert_eq!(record.block, "Grüße\nzwei".as_bytes());
}

fn segment(number: usize, is_last: bool, block: &[u8]) -> Vec<u8> {
    let number = number.to_string();
    let mut fields = vec![("WARC-Segment-Number", number.as_str())];
    if number == "1" {
        fields.extend([
            ("WARC-Type", "response"),
            ("WARC-Record-ID", "<urn:uuid:1>"),
            ("WARC-Target-URI", "x:/s"),
        ]);
    } else {
        fields.extend([("WARC-Type", "continuation"), ("WARC-Segment-Origin-ID", "<urn:uuid:1>")]);
    }
    if is_last {
        fields.push(("WARC-Segment-Total-Length", "9"));
    }
    warc_record(&fields, block)
}

fn check_segments(pieces: &[Vec<u8>], expected: &str) -> Vec<Record> {
    let file: Vec<u8> = pieces.iter().flat_map(|piece| gzip(piece)).collect();
    let items = items(&file, SMALL);
    assert_eq!(outline(&items), expected);
    split(items).0
}

#[test]
fn segments_that_follow_each_other_are_joined() {
    let pieces = [
        numbered(0),
        segment(1, false, b"one"),
        segment(2, false, b"two"),
        segment(3, true, b"six"),
        numbered(4),
    ];
    let records = check_segments(&pieces, "0 s 4");
    assert_eq!(records[1].block, b"onetwosix");
    assert_eq!(records[1].kind, RecordKind::Response);
}

#[test]
fn segments_that_do_not_are_damage() {
    let records = check_segments(&[segment(1, false, b"one"), numbered(4)], "s- !missing-segment 4");
    assert_eq!(records[0].block, b"one");
    check_segments(&[segment(1, false, b"one")], "s- !missing-segment");
    check_segments(&[segment(2, true, b"two"), numbered(4)], "!missing-segment 4");
    let skipping = [segment(1, false, b"one"), segment(3, true, b"three")];
    check_segments(&skipping, "s- !missing-segment !missing-segment");
    let big = noise(40_000, 1);
    let records = check_segments(&[segment(1, false, &big), segment(2, true, &big)], "s- !too-large");
    assert_eq!(records[0].block.len(), 40_000);
}

#[test]
fn empty_files_are_empty_archives() {
    assert_eq!(items(b"", SMALL), []);
    assert_eq!(items(b"\r\n", SMALL), []);
    assert_eq!(items(&gzip(b""), SMALL), []);
    assert_eq!(items(&warc_record(&[("WARC-Type", "resource")], b""), SMALL).len(), 1);
}

#[test]
fn other_files_are_refused() {
    for file in
        [&b"<html>"[..], b"x", &gzip(b"{\"text\": 1}\n"), &zstd(b"{}", b""), b"PK\x03\x04", &noise(5000, 3)]
    {
        assert!(matches!(Reader::new(file, SMALL), Err(OpenError::Unrecognized)));
    }
}

#[test]
fn large_blocks_arrive_whole() {
    let block = noise(3_000_000, 5);
    let record = warc_record(&[("WARC-Type", "resource")], &block);
    for file in [record.clone(), gzip(&record), zstd(&record, b"")] {
        assert!(records(&[file.clone(), file].concat()).iter().all(|record| record.block == block));
    }
}
