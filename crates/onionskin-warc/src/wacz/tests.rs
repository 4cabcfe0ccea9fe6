use super::*;
use crate::testing::{SMALL, gzip, numbered};
use crate::{Reader, read_range};
use std::io::{Cursor, Write};
use zip::write::SimpleFileOptions;

fn sample(method: CompressionMethod, zip64: bool) -> Vec<u8> {
    let warc: Vec<u8> = (0..5).flat_map(|n| gzip(&numbered(n))).collect();
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method).large_file(zip64);
    for (name, bytes) in [
        ("datapackage.json", &b"{}"[..]),
        ("archive/b.warc.gz", &warc),
        ("archive/a.warc", &numbered(9)),
        ("archive/readme.txt", b"no archive"),
        ("indexes/index.cdx.gz", b"none"),
        ("pages/pages.jsonl", b"{}"),
    ] {
        zip.start_file(name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn members_are_found_and_read() {
    for (method, zip64) in [
        (CompressionMethod::Stored, false),
        (CompressionMethod::Stored, true),
        (CompressionMethod::Deflated, false),
    ] {
        let file = sample(method, zip64);
        assert!(is_zip(&file));
        let mut wacz = Wacz::open(Cursor::new(&file)).unwrap();
        let members = wacz.members().to_vec();
        let names: Vec<_> = members.iter().map(|member| member.name.as_str()).collect();
        assert_eq!(names, ["archive/a.warc", "archive/b.warc.gz"]);
        for (member, expected) in members.iter().zip([1, 5]) {
            let count = Reader::new(wacz.read(member).unwrap(), SMALL).unwrap().map(Result::unwrap).count();
            assert_eq!(count, expected);
        }
        let stored_at = members[1].stored_at;
        assert_eq!(stored_at.is_some(), method == CompressionMethod::Stored);
        if let Some(at) = stored_at {
            let bytes = &file[at as usize..at as usize + members[1].bytes as usize];
            assert_eq!(read_range(Cursor::new(bytes), 0, u64::MAX, SMALL).unwrap().count(), 5);
        }
    }
}

#[test]
fn files_that_are_no_wacz() {
    let file = sample(CompressionMethod::Stored, false);
    for cut in [0, 10, file.len() / 2, file.len() - 30] {
        assert!(matches!(Wacz::open(Cursor::new(&file[..cut])), Err(WaczError::BadZip(_))), "cut at {cut}");
    }
    assert!(matches!(Wacz::open(Cursor::new(b"hello")), Err(WaczError::BadZip(_))));
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("other.txt", SimpleFileOptions::default()).unwrap();
    let empty = zip.finish().unwrap().into_inner();
    assert!(matches!(Wacz::open(Cursor::new(empty)), Err(WaczError::NoArchive)));
}
