//! Decompression of whole inputs.

use std::io::{self, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use crate::sniff::Encoding;

/// Compressed bytes are fetched in pieces of this size.
const READ_BYTES: usize = 128 << 10;

/// A zstd frame may ask for a window of up to 2 to this many bytes; the frame's header is outside
/// data, and without a bound it could ask for gigabytes. 27 is what `zstd` itself accepts without
/// being told.
const ZSTD_WINDOW_LOG: u32 = 27;

/// Decodes a stream: every gzip member or zstd frame, one after the other.
///
/// # Errors
///
/// When the decoder cannot be set up. Damage in the stream is an error of the read that meets it.
pub fn decoder<'a, R: Read + Send + 'a>(
    input: R,
    encoding: Encoding,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    Ok(match encoding {
        Encoding::Plain => Box::new(input),
        Encoding::Gzip => Box::new(MultiGzDecoder::new(BufReader::with_capacity(READ_BYTES, input))),
        Encoding::Zstd => {
            let mut decoder =
                zstd::stream::read::Decoder::with_buffer(BufReader::with_capacity(READ_BYTES, input))?;
            decoder.window_log_max(ZSTD_WINDOW_LOG)?;
            Box::new(decoder)
        }
    })
}

/// The beginning of what `head`, the beginning of a compressed file, decodes to: at most `limit`
/// bytes, as many as come out before the head ends or turns out to be broken.
pub(crate) fn decode_head(head: &[u8], encoding: Encoding, limit: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let Ok(mut input) = decoder(head, encoding) else { return out };
    let mut piece = [0; 1024];
    while out.len() < limit {
        match input.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(n) => out.extend_from_slice(&piece[..n]),
        }
    }
    out.truncate(limit);
    out
}

/// Reads up to `limit` bytes; `true` when there is more.
pub(crate) fn read_bounded(input: impl Read, limit: u64, out: &mut Vec<u8>) -> io::Result<bool> {
    out.clear();
    input.take(limit.saturating_add(1)).read_to_end(out)?;
    if out.len() as u64 > limit {
        out.clear();
        return Ok(true);
    }
    Ok(false)
}
