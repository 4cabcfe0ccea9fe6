use super::*;
use crate::testing::{SMALL, gzip, noise, zstd};
use proptest::collection::vec;
use proptest::prelude::*;
use std::io::Write;

const TEXT: &[u8] = b"<html><title>t</title><p>some text that repeats, some text that repeats</p></html>";

/// `fields` are lines without line ends.
fn message(fields: &[&str], body: &[u8]) -> Vec<u8> {
    let mut message = b"HTTP/1.1 200 OK\r\n".to_vec();
    for field in fields {
        message.extend_from_slice(field.as_bytes());
        message.extend_from_slice(b"\r\n");
    }
    message.extend_from_slice(b"\r\n");
    message.extend_from_slice(body);
    message
}

fn check(fields: &[&str], body: &[u8], expected: &[u8], problems: &[HttpProblem]) {
    let response = parse_response(message(fields, body), &SMALL).unwrap();
    assert_eq!(response.status, 200);
    assert_eq!(response.problems, problems, "{fields:?}");
    assert_eq!(String::from_utf8_lossy(&response.body), String::from_utf8_lossy(expected), "{fields:?}");
}

fn chunk(body: &[u8], size: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in body.chunks(size) {
        out.extend_from_slice(format!("{:x};ext=1\r\n", piece.len()).as_bytes());
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\nTrailer: x\r\n\r\n");
    out
}

fn deflate(body: &[u8], zlib: bool) -> Vec<u8> {
    let level = flate2::Compression::new(6);
    if zlib {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    } else {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), level);
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    }
}

/// Brotli can carry bytes as they are: a window, then meta-blocks flagged as uncompressed, then an
/// empty last one.
fn brotli(body: &[u8]) -> Vec<u8> {
    let mut bits = Bits::default();
    bits.push(0, 1); // window of 64 KiB
    for piece in body.chunks(1 << 16) {
        bits.push(0, 1); // not the last
        bits.push(0, 2); // four nibbles of length
        bits.push(piece.len() as u64 - 1, 16);
        bits.push(1, 1); // uncompressed
        bits.align();
        bits.bytes.extend_from_slice(piece);
    }
    bits.push(3, 2); // last, and empty
    bits.align();
    bits.bytes
}

#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    held: u64,
    count: u32,
}

impl Bits {
    fn push(&mut self, value: u64, count: u32) {
        self.held |= value << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push(self.held as u8);
            self.held >>= 8;
            self.count -= 8;
        }
    }

    fn align(&mut self) {
        if self.count > 0 {
            self.push(0, 8 - self.count);
        }
    }
}

#[test]
fn plain_bodies() {
    check(&["Content-Type: text/html"], TEXT, TEXT, &[]);
    check(&["Content-Encoding: identity"], TEXT, TEXT, &[]);
    check(&[&format!("Content-Length: {}", TEXT.len())], TEXT, TEXT, &[]);
    check(&["Content-Length: 3"], TEXT, TEXT, &[]);
    check(&["Content-Length: 1000"], TEXT, TEXT, &[HttpProblem::Truncated]);
    check(&[], b"", b"", &[]);
}

#[test]
fn chunked_bodies() {
    let te = "Transfer-Encoding: chunked";
    for size in [1, 7, 1000] {
        check(&[te], &chunk(TEXT, size), TEXT, &[]);
    }
    check(&[te], b"5\nhello\n0\n\n", b"hello", &[]);
    check(&[te], TEXT, TEXT, &[HttpProblem::ChunkedAbsent]);
    check(&[te], b"", b"", &[HttpProblem::Truncated]);
    check(&[te], b"5\r\nhel", b"hel", &[HttpProblem::Truncated]);
    check(&[te], b"5\r\nhello\r\n", b"hello", &[HttpProblem::Truncated]);
    check(&[te], b"5\r\nhello", b"hello", &[HttpProblem::Truncated]);
    check(&[te], b"5\r\nhello\r\nxyz\r\n", b"hello", &[HttpProblem::BadChunk]);
    check(&[te], b"3\r\nhello\r\n0\r\n\r\n", b"hel", &[HttpProblem::BadChunk]);
    check(&[te], b"ffffffffffffffff\r\nhello", b"hello", &[HttpProblem::Truncated]);
    check(&[te], b"fffffffffffffffff\r\nhello", b"fffffffffffffffff\r\nhello", &[HttpProblem::ChunkedAbsent]);
    // A length says nothing about a chunked body.
    check(&[te, "Content-Length: 9999"], &chunk(TEXT, 10), TEXT, &[]);
}

#[test]
fn encoded_bodies() {
    check(&["Content-Encoding: gzip"], &gzip(TEXT), TEXT, &[]);
    check(&["content-encoding: X-GZIP"], &gzip(TEXT), TEXT, &[]);
    check(&["Content-Encoding: gzip"], &[gzip(TEXT), gzip(TEXT)].concat(), &TEXT.repeat(2), &[]);
    check(&["Content-Encoding: gzip"], &[gzip(TEXT), b"\r\njunk".to_vec()].concat(), TEXT, &[]);
    check(&["Content-Encoding: deflate"], &deflate(TEXT, true), TEXT, &[]);
    check(&["Content-Encoding: deflate"], &deflate(TEXT, false), TEXT, &[]);
    check(&["Content-Encoding: br"], &brotli(TEXT), TEXT, &[]);
    check(&["Content-Encoding: zstd"], &zstd(TEXT, b""), TEXT, &[]);
    check(&["Content-Encoding: zstd"], &[zstd(TEXT, b""), zstd(TEXT, b"")].concat(), &TEXT.repeat(2), &[]);
}

#[test]
fn stacked_encodings() {
    check(&["Content-Encoding: gzip, br"], &brotli(&gzip(TEXT)), TEXT, &[]);
    check(&["Content-Encoding: br", "Content-Encoding: gzip"], &gzip(&brotli(TEXT)), TEXT, &[]);
    check(&["Transfer-Encoding: gzip, chunked"], &chunk(&gzip(TEXT), 9), TEXT, &[]);
    let fields = ["Transfer-Encoding: chunked", "Content-Encoding: deflate, identity, gzip"];
    check(&fields, &chunk(&gzip(&deflate(TEXT, true)), 20), TEXT, &[]);
    let many = format!("Content-Encoding: {}", "gzip,".repeat(1000));
    check(&[&many], TEXT, TEXT, &[HttpProblem::UnknownEncoding]);
}

#[test]
fn encodings_that_are_not_there() {
    for name in ["gzip", "deflate", "br", "zstd"] {
        check(&[&format!("Content-Encoding: {name}")], TEXT, TEXT, &[HttpProblem::EncodingAbsent]);
        check(&[&format!("Content-Encoding: {name}")], b"", b"", &[]);
    }
    check(&["Content-Encoding: utf-8"], TEXT, TEXT, &[HttpProblem::UnknownEncoding]);
    check(&["Content-Encoding: compress, gzip"], &gzip(TEXT), TEXT, &[HttpProblem::UnknownEncoding]);
}

#[test]
fn encoded_bodies_cut_off_or_corrupt() {
    let text = TEXT.repeat(200);
    let noisy: Vec<u8> = [text, noise(3000, 1).iter().map(|byte| b' ' + byte % 90).collect()].concat();
    for (name, encoded) in [
        ("gzip", gzip(&noisy)),
        ("deflate", deflate(&noisy, true)),
        ("deflate", deflate(&noisy, false)),
        ("br", brotli(&noisy)),
    ] {
        let cut = &encoded[..encoded.len() - 1000];
        let response = parse_response(message(&[&format!("Content-Encoding: {name}")], cut), &SMALL).unwrap();
        assert_eq!(response.problems, [HttpProblem::BadEncoding], "{name}");
        assert!(response.body.len() > 1000 && noisy.starts_with(&response.body), "{name}");
    }
    // Without its checksum, all of the text is there.
    let whole = gzip(TEXT);
    check(&["Content-Encoding: gzip"], &whole[..whole.len() - 8], TEXT, &[]);
}

#[test]
fn bodies_above_the_limit_end_there() {
    let big = vec![b'x'; 1 << 20];
    for (fields, body) in [
        (vec![], big.clone()),
        (vec!["Content-Encoding: gzip"], gzip(&big)),
        (vec!["Content-Encoding: deflate"], deflate(&big, true)),
        (vec!["Content-Encoding: br"], brotli(&big)),
        (vec!["Content-Encoding: zstd"], zstd(&big, b"")),
        (vec!["Content-Encoding: gzip, gzip"], gzip(&gzip(&big))),
    ] {
        check(&fields, &body, &big[..SMALL.max_body_bytes as usize], &[HttpProblem::OverLimit]);
    }
    let exact = vec![b'x'; SMALL.max_body_bytes as usize];
    for (name, body) in [("gzip", gzip(&exact)), ("br", brotli(&exact)), ("zstd", zstd(&exact, b""))] {
        check(&[&format!("Content-Encoding: {name}")], &body, &exact, &[]);
    }
}

#[test]
fn heads() {
    let parse = |text: &str| parse_response(text.as_bytes().to_vec(), &SMALL);
    let response = parse("HTTP/1.1 404 Not Found\nServer: x\n y\nbad line\n\nbody").unwrap();
    assert_eq!((response.status, response.body.as_slice()), (404, &b"body"[..]));
    assert_eq!(response.headers.get("server"), Some("x y"));
    assert_eq!(response.problems, [HttpProblem::BadHeaderLine]);
    assert_eq!(parse("HTTP/2 200\r\n\r\nx").unwrap().body, b"x");
    assert_eq!(parse("http/1.0 301\r\n\r\n").unwrap().status, 301);
    let continued = parse("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n\r\nx").unwrap();
    assert_eq!((continued.status, continued.body.as_slice()), (200, &b"x"[..]));
    let cut = parse("HTTP/1.1 200 OK\r\nContent-Type: te").unwrap();
    assert_eq!((cut.problems.as_slice(), cut.body.len()), (&[HttpProblem::HeadCutOff][..], 0));
    assert_eq!(parse("HTTP/1.1 200 OK").unwrap().problems, [HttpProblem::HeadCutOff]);
    for bad in
        ["", "x", "HTTP/1.1", "HTTP/1.1 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "<html>", "HTTPS/1 200 OK\n"]
    {
        assert_eq!(parse(bad), Err(HttpError::NotHttp), "{bad}");
    }
    let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(MAX_HEAD_BYTES));
    assert_eq!(parse(&endless), Err(HttpError::HeadTooLong));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn encodings_and_chunks_are_undone(body in vec(any::<u8>(), 1..2000), stack in vec(0usize..5, 0..4), size in 1usize..500) {
        let mut encoded = body.clone();
        let mut names = Vec::new();
        for kind in stack {
            let (name, next) = match kind {
                0 => ("gzip", gzip(&encoded)),
                1 => ("deflate", deflate(&encoded, true)),
                2 => ("deflate", deflate(&encoded, false)),
                3 => ("br", brotli(&encoded)),
                _ => ("zstd", zstd(&encoded, b"")),
            };
            names.push(name);
            encoded = next;
        }
        let field = format!("Content-Encoding: {}", names.join(", "));
        let response = parse_response(
            message(&[&field, "Transfer-Encoding: chunked"], &chunk(&encoded, size)), &SMALL).unwrap();
        prop_assert_eq!(response.problems, []);
        prop_assert_eq!(response.body, body);
    }

    #[test]
    fn any_body_is_taken(body in vec(any::<u8>(), 0..2000), name in "gzip|deflate|br|zstd|gzip, br|br, deflate", is_chunked: bool) {
        let transfer = if is_chunked { "Transfer-Encoding: chunked" } else { "X: y" };
        crate::fuzz_http(&message(&[&format!("Content-Encoding: {name}"), transfer], &body));
    }
}

#[test]
fn the_length_of_a_head() {
    let check = |block: &[u8], wanted: Result<usize, HttpError>| {
        assert_eq!(http_head_len(block), wanted, "{:?}", String::from_utf8_lossy(block));
    };
    check(b"HTTP/1.1 200 OK\r\nA: 1\r\n\r\nbody", Ok(25));
    check(b"HTTP/1.0 200 OK\n\nbody", Ok(17));
    check(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nbody", Ok(44));
    check(b"HTTP/1.1 200 OK\r\nA: cut", Ok(23));
    check(b"GET / HTTP/1.1\r\n\r\n", Err(HttpError::NotHttp));
    check(b"", Err(HttpError::NotHttp));
}
