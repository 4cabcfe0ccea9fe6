use crate::testing::*;
use crate::*;
use std::io::{self, Read};

mod damage;
mod forms;
mod properties;

/// Gives one byte at a time, as the slowest pipe would.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.0.len().min(out.len()).min(1);
        out[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

/// Fails when it reaches its end.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.0.read(out)? {
            0 => Err(io::Error::other("the disk is on fire")),
            n => Ok(n),
        }
    }
}

#[test]
fn a_trickle_reads_like_a_flood() {
    let mut gz: Vec<u8> = (0..20).flat_map(|n| gzip(&numbered(n))).collect();
    gz[700] ^= 0x55;
    let zst: Vec<u8> = (0..20).flat_map(|n| zstd(&numbered(n), b"")).collect();
    let plain: Vec<u8> = (0..20).flat_map(numbered).collect();
    for file in [gz, zst, plain] {
        let trickled: Vec<_> = Reader::new(Trickle(&file), SMALL).unwrap().map(Result::unwrap).collect();
        assert_eq!(trickled, items(&file, SMALL));
    }
}

#[test]
fn an_input_that_fails_is_an_error_once() {
    let file: Vec<u8> = (0..4000).flat_map(|n| gzip(&numbered(n))).collect();
    let mut reader = Reader::new(Failing(&file[..file.len() - 5]), SMALL).unwrap();
    let read = reader.by_ref().take_while(Result::is_ok).count();
    assert_eq!(read, 3999);
    assert!(reader.next().is_none());
    assert!(matches!(Reader::new(Failing(b""), SMALL), Err(OpenError::Io(_))));
}

#[test]
fn fields_of_a_record() {
    let fields = [
        ("WARC-Type", "response"),
        ("WARC-Record-ID", "<urn:uuid:1>"),
        ("WARC-Date", "2014-01-26T20:06:24Z"),
        ("WARC-Target-URI", "http://a.example/"),
        ("WARC-Payload-Digest", "sha1:ABC"),
        ("Content-Type", "application/http; msgtype=response"),
    ];
    let file = warc_record(&fields, b"HTTP/1.1 200 OK\r\n\r\n");
    let record = &records(&file)[0];
    assert_eq!(record.record_id(), Some("urn:uuid:1"));
    assert_eq!(record.timestamp_micros(), Some(1_390_766_784_000_000));
    assert_eq!(record.payload_digest(), Some("sha1:ABC"));
    assert_eq!(record.declared_truncation(), None);
    assert!(record.is_http_response());
}

#[test]
fn readers_can_be_sent_to_other_threads() {
    fn check<T: Send>() {}
    check::<Reader<std::fs::File>>();
    check::<Item>();
    check::<OpenError>();
}
