//! Pages as WARC records.
//!
//! Each page is a `response` record with a whole HTTP message, as a crawler would have stored it,
//! preceded by its `request` if wanted. Compressed, every record is a gzip member of its own.
//! Record ids, dates and digests follow from the page, so the same web gives the same bytes.

use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use sha1::{Digest, Sha1};

use crate::{
    draft::push_number,
    page::Composer,
    rng::{below, mix},
    web::Web,
};

/// How a WARC file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarcOptions {
    /// One gzip member for each record.
    pub gzip: bool,
    /// A `request` record before each `response`.
    pub requests: bool,
}

impl Default for WarcOptions {
    fn default() -> WarcOptions {
        WarcOptions { gzip: true, requests: true }
    }
}

/// The first second of the crawl: 2000-06-01.
const EPOCH: u64 = 959_817_600;

pub(crate) struct Records<'w> {
    web: &'w Web,
    composer: Composer<'w>,
    options: WarcOptions,
    deflate: Compress,
    url: Vec<u8>,
    message: Vec<u8>,
    record: Vec<u8>,
}

impl<'w> Records<'w> {
    pub(crate) fn new(web: &'w Web, options: WarcOptions) -> Records<'w> {
        Records {
            web,
            composer: Composer::new(web),
            options,
            // The first level that fits its codes to the text, as real archives do.
            deflate: Compress::new(Compression::new(2), false),
            url: Vec::new(),
            message: Vec::new(),
            record: Vec::new(),
        }
    }

    /// Appends the record that opens a file.
    pub(crate) fn push_info(&mut self, shard: u32, out: &mut Vec<u8>) {
        let block = "software: onionskin generate\r\nformat: WARC File Format 1.1\r\n";
        let id = record_id(mix(self.web.spec.seed, 1), u64::from(shard));
        self.record.clear();
        self.record.extend_from_slice(
            format!(
                "WARC/1.1\r\nWARC-Type: warcinfo\r\nWARC-Record-ID: {id}\r\nWARC-Date: {}\r\nWARC-Filename: {}-{shard:05}.warc\r\nContent-Type: application/warc-fields\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
                date(EPOCH),
                self.web.spec.name,
                block.len(),
            )
            .as_bytes(),
        );
        self.finish(out);
    }

    /// Appends the records of a page.
    pub(crate) fn push_page(&mut self, page: u64, out: &mut Vec<u8>) {
        let location = self.web.locate(page);
        self.url.clear();
        self.web.push_url(location, &mut self.url);
        let seed = self.web.spec.seed;
        let date = date(EPOCH + page);
        let response_id = record_id(mix(seed, 2), page);
        if self.options.requests {
            self.message.clear();
            self.message.extend_from_slice(b"GET ");
            self.web.push_path(location, &mut self.message);
            self.message.extend_from_slice(b" HTTP/1.1\r\nHost: ");
            self.web.push_host(location.place, &mut self.message);
            self.message.extend_from_slice(b"\r\nUser-Agent: onionskin-generate\r\nAccept: */*\r\n\r\n");
            let id = record_id(mix(seed, 3), page);
            self.open("request", &id, &date);
            self.field("WARC-Concurrent-To", response_id.as_bytes());
            self.close("request", out);
        }

        let (html, charset) = self.composer.html(page);
        let digest = base32(&Sha1::digest(html));
        self.message.clear();
        self.message.extend_from_slice(b"HTTP/1.1 200 OK\r\nServer: testkit\r\nContent-Type: text/html");
        // Half of the servers name the charset; the page says it too.
        if below(mix(mix(seed, 4), page), 2) == 0 {
            self.message.extend_from_slice(b"; charset=");
            self.message.extend_from_slice(charset.as_str().as_bytes());
        }
        self.message.extend_from_slice(b"\r\nContent-Length: ");
        push_number(&mut self.message, html.len() as u64);
        self.message.extend_from_slice(b"\r\n\r\n");
        self.message.extend_from_slice(html);
        self.open("response", &response_id, &date);
        self.field("WARC-Payload-Digest", format!("sha1:{digest}").as_bytes());
        self.close("response", out);
    }

    fn open(&mut self, kind: &str, id: &str, date: &str) {
        self.record.clear();
        self.record.extend_from_slice(b"WARC/1.1\r\n");
        self.field("WARC-Type", kind.as_bytes());
        self.field("WARC-Record-ID", id.as_bytes());
        self.field("WARC-Date", date.as_bytes());
        let url = std::mem::take(&mut self.url);
        self.field("WARC-Target-URI", &url);
        self.url = url;
    }

    fn field(&mut self, name: &str, value: &[u8]) {
        self.record.extend_from_slice(name.as_bytes());
        self.record.extend_from_slice(b": ");
        self.record.extend_from_slice(value);
        self.record.extend_from_slice(b"\r\n");
    }

    fn close(&mut self, message: &str, out: &mut Vec<u8>) {
        self.field("Content-Type", format!("application/http; msgtype={message}").as_bytes());
        let mut length = Vec::new();
        push_number(&mut length, self.message.len() as u64);
        self.field("Content-Length", &length);
        self.record.extend_from_slice(b"\r\n");
        self.record.extend_from_slice(&self.message);
        self.record.extend_from_slice(b"\r\n\r\n");
        self.finish(out);
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        if self.options.gzip {
            push_gzip_member(&mut self.deflate, &self.record, out);
        } else {
            out.extend_from_slice(&self.record);
        }
    }
}

/// Appends a gzip member. The compressor is reused: setting one up for each record costs more than
/// a short record.
fn push_gzip_member(deflate: &mut Compress, data: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
    deflate.reset();
    loop {
        out.reserve(data.len() / 2 + 1024);
        let done = deflate.total_in() as usize;
        match deflate.compress_vec(&data[done..], out, FlushCompress::Finish) {
            Ok(Status::StreamEnd) => break,
            Ok(_) => {}
            Err(error) => unreachable!("deflating from memory into memory cannot fail: {error}"),
        }
    }
    let mut crc = Crc::new();
    crc.update(data);
    out.extend_from_slice(&crc.sum().to_le_bytes());
    out.extend_from_slice(&(data.len() as u32).to_le_bytes());
}

/// `<urn:uuid:…>`, version 4 in form.
fn record_id(key: u64, number: u64) -> String {
    let (high, low) = (mix(key, number), mix(key ^ 1, number));
    let high = (high & !0xf000) | 0x4000;
    let low = (low & !(3 << 62)) | (2 << 62);
    format!(
        "<urn:uuid:{:08x}-{:04x}-{:04x}-{:04x}-{:012x}>",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

/// A date as WARC writes it, from seconds since 1970.
fn date(seconds: u64) -> String {
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    // Years of March to February, so that the leap day comes last; 719,468 days lie between
    // 0000-03-01 and 1970.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = 400 * era + year_of_era + u64::from(month < 3);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", time / 3600, time / 60 % 60, time % 60)
}

/// Twenty bytes as 32 letters and digits.
fn base32(digest: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut text = String::with_capacity(32);
    for five in digest.chunks(5) {
        let bits = five.iter().fold(0u64, |bits, &byte| (bits << 8) | u64::from(byte));
        for shift in (0..8).rev() {
            text.push(char::from(ALPHABET[((bits >> (5 * shift)) & 31) as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
        assert_eq!(date(EPOCH), "2000-06-01T00:00:00Z");
        assert_eq!(date(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(date(1_709_210_096), "2024-02-29T12:34:56Z");
    }

    #[test]
    fn digests_are_base32() {
        // The digest of nothing, as every archive knows it.
        assert_eq!(base32(&Sha1::digest(b"")), "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
    }

    #[test]
    fn members_unpack() {
        use std::io::Read;
        let mut deflate = Compress::new(Compression::fast(), false);
        let mut out = Vec::new();
        let long = "a rose is a rose ".repeat(10_000);
        for text in ["", "a rose", &long] {
            push_gzip_member(&mut deflate, text.as_bytes(), &mut out);
        }
        let mut unpacked = String::new();
        flate2::read::MultiGzDecoder::new(&out[..]).read_to_string(&mut unpacked).unwrap();
        assert_eq!(unpacked, format!("a rose{long}"));
    }
}
