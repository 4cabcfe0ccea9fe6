use super::*;
use crate::testing::records;
use crate::{Item, Limits, Reader, format_date, parse_response};

const DATE: &str = "2014-01-26T20:06:24Z";

fn sample(compression: Compression) -> (Vec<u8>, Vec<Written>) {
    let mut writer = WarcWriter::new(Vec::new(), compression).unwrap();
    let id = RecordId::from_hash;
    let message = http_response(200, "text/html", &[("Server", "x")], b"<p>hi").unwrap();
    let visit = Revisit {
        refers_to: Some(id(2)),
        refers_to_uri: "http://a.example/",
        refers_to_date: DATE,
        payload_digest: "sha1:ABC",
        http_head: b"HTTP/1.1 200 OK\r\n\r\n",
    };
    let written = vec![
        writer.warcinfo(id(1), DATE, Some("f.warc"), &[("software", "test")]).unwrap(),
        writer.response(id(2), DATE, "http://a.example/", &message).unwrap(),
        writer.resource(id(3), DATE, "http://a.example/r", "text/plain", b"plain").unwrap(),
        writer.revisit(id(4), DATE, "http://b.example/", &visit).unwrap(),
        writer.metadata(id(5), DATE, "http://a.example/", id(2), &[("via", "http://c.example/")]).unwrap(),
    ];
    let end = writer.offset();
    let file = writer.finish().unwrap();
    assert_eq!(end, file.len() as u64);
    (file, written)
}

#[test]
fn what_is_written_is_read() {
    for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
        let (file, written) = sample(compression);
        let records = records(&file);
        let kinds: Vec<_> = records.iter().map(|record| record.kind.as_str()).collect();
        assert_eq!(kinds, ["warcinfo", "response", "resource", "revisit", "metadata"]);
        for (n, (record, written)) in records.iter().zip(&written).enumerate() {
            assert_eq!(record.offset, written.offset);
            assert_eq!(record.record_id(), Some(RecordId::from_hash(n as u128 + 1).to_string().as_str()));
            assert_eq!(record.date(), Some(DATE));
            if compression != Compression::None {
                assert_eq!(record.stored_len, Some(written.length));
            }
        }
        let response = parse_response(records[1].block.clone(), &Limits::default()).unwrap();
        assert_eq!((response.body.as_slice(), response.problems.as_slice()), (&b"<p>hi"[..], &[][..]));
        assert_eq!(records[3].refers_to(), records[1].record_id());
        assert_eq!(sample(compression).0, file, "the same calls give the same bytes");
    }
}

#[test]
fn record_ids_are_uuids() {
    assert_eq!(RecordId::from_hash(0).to_string(), "urn:uuid:00000000-0000-8000-8000-000000000000");
    assert_eq!(RecordId::from_hash(u128::MAX).to_string(), "urn:uuid:ffffffff-ffff-8fff-bfff-ffffffffffff");
    assert_ne!(RecordId::from_hash(1), RecordId::from_hash(2));
}

#[test]
fn fields_that_would_break_the_file_are_refused() {
    let mut writer = WarcWriter::new(Vec::new(), Compression::None).unwrap();
    let id = RecordId::from_hash(1);
    assert!(writer.response(id, DATE, "http://a/\r\nX: y", b"").is_err());
    assert!(writer.warcinfo(id, DATE, None, &[("a b", "c")]).is_err());
    assert!(http_response(200, "text/html\n", &[], b"").is_err());
    assert_eq!(writer.finish().unwrap(), b"");
    assert_eq!(format_date(1_390_766_784_000_000), DATE);
}

#[test]
fn copied_and_new_records_stand_side_by_side() {
    for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
        let mut first = WarcWriter::new(Vec::new(), compression).unwrap();
        first
            .response(
                RecordId::from_hash(1),
                "2024-05-01T12:00:00Z",
                "http://a.example/",
                b"HTTP/1.1 200 OK\r\n\r\na",
            )
            .unwrap();
        let stored = first.finish().unwrap();
        let mut second = WarcWriter::new(Vec::new(), compression).unwrap();
        let copied = second.copy(&mut stored.as_slice()).unwrap();
        assert_eq!(copied.length, stored.len() as u64);
        let fields = [("WARC-Type", "metadata"), ("WARC-Date", "2024-05-01T12:00:00Z")];
        let written = second.write_fields(&fields, b"via: x\r\n").unwrap();
        assert_eq!(written.offset, copied.length);
        assert!(second.write_fields(&[("WARC-Type", "a\r\nb")], b"").is_err(), "a line end ends a field");
        let file = second.finish().unwrap();
        assert!(file.starts_with(&stored));
        let items: Vec<Item> =
            Reader::new(file.as_slice(), Limits::default()).unwrap().map(Result::unwrap).collect();
        let [Item::Record(response), Item::Record(metadata)] = items.as_slice() else { panic!("{items:?}") };
        assert_eq!((response.kind, metadata.kind), (RecordKind::Response, RecordKind::Metadata));
        assert_eq!(metadata.block, b"via: x\r\n");
    }
}
