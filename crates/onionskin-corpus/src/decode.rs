//! Decompression of whole inputs.

use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;

use flate2::bufread::MultiGzDecoder;

use crate::options::Options;
use crate::sniff::Encoding;

/// Compressed bytes are fetched in pieces of this size.
pub(crate) const READ_BYTES: usize = 128 << 10;

/// Decoded bytes come in steps of this size.
const STEP_BYTES: usize = 64 << 10;

/// The first piece of a file that is read whole.
const FIRST_BYTES: u64 = 128 << 10;

/// A zstd frame may ask for a window of up to 2 to this many bytes; the frame's header is outside
/// data, and without a bound it could ask for gigabytes. 27 is what `zstd` itself accepts without
/// being told.
pub(crate) const ZSTD_WINDOW_LOG: u32 = 27;

/// A window that every reader has room for; that of `zstd` as it is.
const SMALL_WINDOW_LOG: u32 = 21;

/// Decodes a stream: every gzip member or zstd frame, one after the other.
///
/// # Errors
///
/// When the decoder cannot be set up. Damage in the stream is an error of the read that meets it.
pub fn decoder<'a, R: Read + Send + 'a>(
    input: R,
    encoding: Encoding,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    decoder_within(input, encoding, ZSTD_WINDOW_LOG)
}

/// As [`decoder`], with windows of at most 2 to this many bytes.
///
/// # Errors
///
/// As [`decoder`].
pub fn decoder_within<'a, R: Read + Send + 'a>(
    input: R,
    encoding: Encoding,
    window_log: u32,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    if encoding == Encoding::Plain {
        return Ok(Box::new(input));
    }
    decoder_of(BufReader::with_capacity(READ_BYTES, input), encoding, window_log)
}

/// As [`decoder_within`], of what is buffered already.
pub(crate) fn decoder_of<'a, R: BufRead + Send + 'a>(
    input: R,
    encoding: Encoding,
    window_log: u32,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    Ok(match encoding {
        Encoding::Plain => Box::new(input),
        Encoding::Gzip => Box::new(MultiGzDecoder::new(input)),
        Encoding::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(input)?;
            decoder.window_log_max(window_log)?;
            Box::new(decoder)
        }
    })
}

/// Decodes in steps whose borders depend on the decoded offset alone. A decoder that meets damage
/// drops what it has written in that call: with these steps, what comes out before a break does not
/// depend on who reads, and how much at a time.
pub(crate) struct Steps<R> {
    input: R,
    step: Vec<u8>,
    /// What is decoded and not yet handed out.
    left: Range<usize>,
    failure: Option<io::Error>,
}

impl<R: Read> Steps<R> {
    /// The input begins at an offset of what is decoded.
    pub(crate) fn new(input: R, offset: u64) -> Steps<R> {
        let at = (offset % STEP_BYTES as u64) as usize;
        Steps { input, step: vec![0; STEP_BYTES], left: at..at, failure: None }
    }

    fn fill(&mut self) {
        let start = self.left.end % STEP_BYTES;
        self.left = start..start;
        while self.left.end < STEP_BYTES && self.failure.is_none() {
            match self.input.read(&mut self.step[self.left.end..]) {
                Ok(0) => return,
                Ok(n) => self.left.end += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.failure = Some(error),
            }
        }
    }
}

impl<R: Read> Read for Steps<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left.is_empty() {
            if self.failure.is_none() {
                self.fill();
            }
            if self.left.is_empty()
                && let Some(error) = self.failure.take()
            {
                return Err(error);
            }
        }
        let n = self.left.len().min(into.len());
        into[..n].copy_from_slice(&self.step[self.left.start..self.left.start + n]);
        self.left.start += n;
        Ok(n)
    }
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

/// Whether a zstd frame asked for a larger window than was allowed.
pub(crate) fn asks_for_window(error: &io::Error) -> bool {
    error.raw_os_error().is_none() && error.to_string().contains("requires too much memory")
}

/// Unpacks what is in memory, up to a limit; `true` when there is more. `before_large` is called as
/// in [`read_gently`], and before there is a large window.
pub(crate) fn unpack_gently(
    packed: &[u8],
    encoding: Encoding,
    options: &Options,
    out: &mut Vec<u8>,
    before_large: &mut dyn FnMut(u64),
) -> io::Result<bool> {
    let limit = options.max_record_bytes;
    let small = SMALL_WINDOW_LOG.min(options.max_window_log);
    match read_gently(decoder_within(packed, encoding, small)?, limit, out, before_large) {
        Err(error) if asks_for_window(&error) => {
            before_large(1 << options.max_window_log.min(63));
            let input = decoder_within(packed, encoding, options.max_window_log)?;
            read_gently(input, limit, out, before_large)
        }
        read => read,
    }
}

/// Reads up to `limit` bytes; `true` when there is more. `before_large` is called with what the
/// buffer grows to, before it does.
pub(crate) fn read_gently(
    mut input: impl Read,
    limit: u64,
    out: &mut Vec<u8>,
    before_large: &mut dyn FnMut(u64),
) -> io::Result<bool> {
    out.clear();
    let mut room = FIRST_BYTES.min(limit.saturating_add(1));
    loop {
        before_large(out.len() as u64 + room);
        // A step of its own makes no more room than it needs.
        out.reserve_exact(usize::try_from(room).unwrap_or(usize::MAX));
        let read = input.by_ref().take(room).read_to_end(out)? as u64;
        let left = limit.saturating_add(1).saturating_sub(out.len() as u64);
        if read < room || left == 0 {
            break;
        }
        room = (out.len() as u64).min(left);
    }
    if out.len() as u64 > limit {
        out.clear();
        return Ok(true);
    }
    Ok(false)
}
