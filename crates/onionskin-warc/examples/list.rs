//! Lists the records of archives: `cargo run -p onionskin-warc --example list FILE...`
//!
//! One line a record: offset, stored length, type, URI, decoded body size and status. Damage goes
//! to the same list.

#![expect(clippy::print_stdout, reason = "an example talks to its user")]

use onionskin_warc::{Item, Limits, Reader, parse_response};
use std::error::Error;
use std::fs::File;

fn main() -> Result<(), Box<dyn Error>> {
    let limits = Limits::default();
    for path in std::env::args().skip(1) {
        for item in Reader::new(File::open(&path)?, limits)? {
            match item? {
                Item::Record(record) => {
                    let stored = record.stored_len.map_or("-".to_owned(), |len| len.to_string());
                    let uri = record.target_uri().unwrap_or("-").to_owned();
                    let (offset, kind) = (record.offset, record.kind.as_str());
                    let body = if record.is_http_response() {
                        let response = parse_response(record.block, &limits)?;
                        for problem in &response.problems {
                            println!("{offset} problem: {problem}");
                        }
                        response.body
                    } else {
                        record.block
                    };
                    println!("{offset} {stored} {kind} {uri} {} {:016x}", body.len(), fnv(&body));
                }
                Item::Damage(damage) => {
                    println!("{} damage: {}, {} bytes", damage.offset, damage.kind, damage.lost_bytes)
                }
            }
        }
    }
    Ok(())
}

/// FNV-1a, to compare bodies with other programs.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
