use std::io::Write;

use super::*;

fn format(head: &[u8], name: &str) -> Option<Format> {
    sniff(head, name).format
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn content_wins_over_the_name() {
    assert_eq!(format(b"WARC/1.0\r\n", "page.html"), Some(Format::Warc));
    assert_eq!(format(b"filedesc://x.arc 0.0.0.0", "x"), Some(Format::Warc));
    assert_eq!(format(b"PAR1....", "x.jsonl"), Some(Format::Parquet));
    assert_eq!(format(b"{\"text\": \"a\"}\n", "x.txt"), Some(Format::Jsonl));
    assert_eq!(format(b"\xef\xbb\xbf{\"text\": \"a\"}\n", "x"), Some(Format::Jsonl));
    assert_eq!(format(b"%PDF-1.4", "x.html"), Some(Format::Tree));
    assert_eq!(format(b"<html>", "x.parquet"), Some(Format::Tree));
    assert_eq!(format(b"plain words", "README"), Some(Format::Tree));
}

#[test]
fn the_name_decides_where_content_cannot() {
    assert_eq!(format(b"text,url\na,b\n", "x.csv"), Some(Format::Csv));
    assert_eq!(format(b"text\turl\na\tb\n", "x.TSV"), Some(Format::Tsv));
    assert_eq!(format(b"text,url\na,b\n", "x.txt"), Some(Format::Tree));
    assert_eq!(format(b"not json\n{}\n", "x.jsonl"), Some(Format::Jsonl));
    assert_eq!(format(b"", "x.jsonl"), Some(Format::Jsonl));
    assert_eq!(format(b"", "x"), Some(Format::Tree));
}

#[test]
fn compressed_files_are_looked_into() {
    let jsonl = gzip(b"{\"text\": \"a\"}\n");
    assert_eq!(sniff(&jsonl, "x"), Sniffed { encoding: Encoding::Gzip, format: Some(Format::Jsonl) });
    assert_eq!(format(&gzip(b"text,url\n"), "x.csv.gz"), Some(Format::Csv));
    assert_eq!(format(&gzip(b"WARC/1.1\r\n"), "x.gz"), Some(Format::Warc));
    assert_eq!(format(&gzip(b"<html>"), "x.html.gz"), Some(Format::Tree));
    let zst = zstd::encode_all(&b"{\"text\": \"a\"}\n"[..], 1).unwrap();
    assert_eq!(sniff(&zst, "x"), Sniffed { encoding: Encoding::Zstd, format: Some(Format::Jsonl) });
    assert_eq!(format(b"\x5d\x2a\x4d\x18\x04\0\0\0abcd", "x"), Some(Format::Warc));
    // A head that ends inside the compressed data still tells.
    assert_eq!(format(&jsonl[..jsonl.len() - 9], "x"), Some(Format::Jsonl));
}

#[test]
fn zips_by_first_entry() {
    let entry = |name: &str| [b"PK\x03\x04".as_slice(), &[0; 26], name.as_bytes()].concat();
    assert_eq!(format(&entry("archive/data.warc.gz"), "x.zip"), Some(Format::Wacz));
    assert_eq!(format(&entry("fuzzy.json"), "x.wacz"), Some(Format::Wacz));
    assert_eq!(format(&entry("[Content_Types].xml"), "x"), Some(Format::Tree));
    assert_eq!(format(&entry("mimetypeapplication/vnd.oasis"), "x"), Some(Format::Tree));
    assert_eq!(format(&entry("src/main.rs"), "x.zip"), None);
}

#[test]
fn binary_is_unknown() {
    assert_eq!(format(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "x.html"), None);
    assert_eq!(format(b"\x7fELF\x02\x01\x01\0", "x"), None);
    assert_eq!(format(b"\xff\xfeh\0i\0", "x.txt"), Some(Format::Tree));
}

#[test]
fn a_nul_does_not_hide_a_text() {
    assert_eq!(format(b"<p>a page with a \0 in it", "x.html"), Some(Format::Tree));
    assert_eq!(format(b"{\"text\":\"a\"}\n{\"te\0xt\":\"b\"}\n", "x"), Some(Format::Jsonl));
    assert_eq!(format(b"\0{\"text\":\"a\"}\n{\"text\":\"b\"}\n", "x.jsonl"), Some(Format::Jsonl));
    assert_eq!(format(b"id,text\n1,some words and a \0\n", "x.csv"), Some(Format::Csv));
    assert_eq!(format(b"some words and a \0 in them", "x.bin"), None);
    let noise: Vec<u8> = (0..2000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    assert_eq!(format(&noise, "x.html"), None);
}

#[test]
fn json_that_is_not_lines_is_a_text() {
    assert_eq!(format(b"{\n  \"text\": \"a\"\n}\n", "x.json"), Some(Format::Tree));
    assert_eq!(format(b"[1, 2]\n", "x.json"), Some(Format::Tree));
}

proptest::proptest! {
    #[test]
    fn no_head_makes_it_panic(head in proptest::collection::vec(proptest::num::u8::ANY, 0..600), magic in 0_usize..6) {
        let magics: [&[u8]; 6] = [b"", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"{\"", b"WARC/"];
        sniff(&[magics[magic], &head].concat(), "x.html");
    }
}
