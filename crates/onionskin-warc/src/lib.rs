//! WARC, ARC and WACZ readers that survive what a crawl contains.
//!
//! A crawl is kept as very many small records in very few big files. The naive reader inflates a
//! file from its first byte and believes every length it is told: it works on the files of the
//! specification, and loses a gigabyte to the first flipped bit of a real one. This crate reads
//! records one at a time, in memory bounded by [`Limits`], and treats damage as data: what cannot
//! be read becomes an [`Item::Damage`] with its place in the file, and reading goes on at the next
//! record that can.
//!
//! - [`Reader`] reads WARC and ARC, plain, gzip (a member a record, or the whole file in one) and
//!   zstd (with or without a dictionary), from any [`Read`](std::io::Read).
//! - [`read_range`] reads one piece of a big gzip file, so that pieces can be read in parallel.
//! - [`parse_response`] takes the HTTP message out of a record and decodes its body.
//! - [`wacz`] finds the WARC files in a WACZ, [`writer`] writes WARC files.
//!
//! The crate knows nothing of text, markup or URLs.
//!
//! ```
//! use onionskin_warc::{Item, Limits, Reader, RecordKind};
//!
//! let file = b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a.example/\r\n\
//!              Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello\r\n\r\n";
//! let mut reader = Reader::new(&file[..], Limits::default())?;
//! let Some(Ok(Item::Record(record))) = reader.next() else { panic!("one record was written") };
//! assert_eq!(record.kind, RecordKind::Resource);
//! assert_eq!(record.target_uri(), Some("http://a.example/"));
//! assert_eq!(record.block, b"hello");
//! assert!(reader.next().is_none());
//! # Ok::<(), onionskin_warc::OpenError>(())
//! ```

mod date;
mod fuzz;
mod head;
mod headers;
mod http;
mod input;
mod range;
mod reader;
mod record;
mod segments;
mod sniff;
mod stream;
#[cfg(test)]
mod testing;
pub mod wacz;
pub mod writer;

pub use date::{format_date, parse_date};
pub use fuzz::{fuzz_http, fuzz_reader};
pub use headers::Headers;
pub use http::{HttpError, HttpProblem, HttpResponse, http_head_len, parse_response, parse_response_gently};
pub use range::{is_splittable_gzip, read_range};
pub use reader::{OpenError, Reader};
pub use record::{Damage, DamageKind, Item, Record, RecordKind};
pub use sniff::{Compression, ContainerKind, sniff, sniff_compressed};

/// What one record may cost in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Blocks above this are skipped and reported as [`DamageKind::TooLarge`]. Default 64 MiB.
    pub max_record_bytes: u64,
    /// Decoded HTTP bodies end here, with [`HttpProblem::OverLimit`]. Default 64 MiB.
    pub max_body_bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_record_bytes: 64 << 20, max_body_bytes: 64 << 20 }
    }
}

impl Limits {
    /// How many decoded bytes of one record are passed over before the rest of its member is given
    /// up. A member that inflates to more than this is a bomb or a mistake, and time is bounded as
    /// well as memory.
    pub(crate) fn max_skip_bytes(&self) -> u64 {
        self.max_record_bytes.max(1 << 16).saturating_mul(16)
    }
}
