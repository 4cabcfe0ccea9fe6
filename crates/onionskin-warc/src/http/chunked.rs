//! Chunked transfer encoding, undone in place.

use super::HttpProblem;

/// Longest line before a chunk: sixteen digits and extensions.
const MAX_SIZE_LINE: usize = 4096;

/// Joins the chunks of a body, in the memory it has. A body without chunks is left alone.
pub(super) fn unchunk(body: &mut Vec<u8>) -> Option<HttpProblem> {
    let mut read = 0;
    let mut write = 0;
    let problem = loop {
        let Some(chunk) = chunk_size(&body[read..]) else {
            break match (read, body.len() - read) {
                (0, 0) => Some(HttpProblem::Truncated),
                (0, _) => return Some(HttpProblem::ChunkedAbsent),
                (_, rest) if rest < MAX_SIZE_LINE && could_be_size(&body[read..]) => {
                    Some(HttpProblem::Truncated)
                }
                _ => Some(HttpProblem::BadChunk),
            };
        };
        read += chunk.line_len;
        if chunk.size == 0 {
            break None;
        }
        let available = body.len() - read;
        let size = usize::try_from(chunk.size).unwrap_or(usize::MAX).min(available);
        body.copy_within(read..read + size, write);
        write += size;
        read += size;
        if (size as u64) < chunk.size {
            break Some(HttpProblem::Truncated);
        }
        match body[read..] {
            [b'\r', b'\n', ..] => read += 2,
            [b'\n', ..] => read += 1,
            [] | [b'\r'] => break Some(HttpProblem::Truncated),
            _ => break Some(HttpProblem::BadChunk),
        }
    };
    body.truncate(write);
    problem
}

struct ChunkLine {
    size: u64,
    line_len: usize,
}

/// `1a2b ;extension` and a line end.
fn chunk_size(bytes: &[u8]) -> Option<ChunkLine> {
    let line_end = memchr::memchr(b'\n', &bytes[..bytes.len().min(MAX_SIZE_LINE)])?;
    let line = &bytes[..line_end];
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let rest = line[digits..].trim_ascii();
    if !(1..=16).contains(&digits) || !(rest.is_empty() || rest.starts_with(b";")) {
        return None;
    }
    let text = std::str::from_utf8(&line[..digits]).ok()?;
    let size = u64::from_str_radix(text, 16).ok()?;
    Some(ChunkLine { size, line_len: line_end + 1 })
}

/// Is this the beginning of a size line that was cut off?
fn could_be_size(rest: &[u8]) -> bool {
    rest.iter().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b'\r' | b' '))
}
