//! HTTP responses, as crawls kept them.
//!
//! What a server says about its answer and what the answer is are two things. A crawler may have
//! undone the chunking or the compression and kept the headers that announce it; servers announce
//! gzip and send plain text; connections break. So every announcement is checked against the bytes,
//! the most is made of them, and what did not fit is listed in [`HttpResponse::problems`]. Only a
//! block that is no HTTP message at all is an error.

use crate::{Headers, Limits};

mod chunked;
mod coding;

/// Why a block is not an HTTP response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// It does not begin with `HTTP/` and a status.
    #[error("the block does not begin with an HTTP status line")]
    NotHttp,
    /// The head does not end within 256 KiB.
    #[error("the HTTP head is too long")]
    HeadTooLong,
}

/// What a response announced and did not keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum HttpProblem {
    /// The block ends inside the head.
    #[error("the head is cut off")]
    HeadCutOff,
    /// A line of the head is no field.
    #[error("a line of the head is not a header")]
    BadHeaderLine,
    /// Chunks were announced; the body has none, and is kept as it is.
    #[error("chunked encoding declared but absent")]
    ChunkedAbsent,
    /// A chunk has no length where one must be; the body ends before it.
    #[error("bad chunk")]
    BadChunk,
    /// The body is shorter than `Content-Length` or its last chunk says.
    #[error("the body is truncated")]
    Truncated,
    /// An encoding was announced; the body is not in it, and is kept as it is.
    #[error("content encoding declared but absent")]
    EncodingAbsent,
    /// The encoded body is damaged or cut off; the body ends where decoding did.
    #[error("bad encoded body")]
    BadEncoding,
    /// An encoding that nobody knows; the body is kept as it is.
    #[error("unknown content encoding")]
    UnknownEncoding,
    /// The body goes on beyond [`Limits::max_body_bytes`], where it was ended.
    #[error("the body is above the size limit")]
    OverLimit,
}

/// A parsed HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    /// The fields of the head.
    pub headers: Headers,
    /// The body, without chunks and content encodings.
    pub body: Vec<u8>,
    /// What did not fit, in the order it was met; each at most once.
    pub problems: Vec<HttpProblem>,
}

const MAX_HEAD_BYTES: usize = crate::head::MAX_HEAD_BYTES;

/// Nobody stacks more; a list of a thousand is an attack.
const MAX_ENCODINGS: usize = 4;

/// Parses the block of a `response` record. Interim answers (`100 Continue`) in front of it are
/// passed over.
///
/// ```
/// let block = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".to_vec();
/// let response = onionskin_warc::parse_response(block, &onionskin_warc::Limits::default())?;
/// assert_eq!(response.status, 200);
/// assert_eq!(response.body, b"hello");
/// # Ok::<(), onionskin_warc::HttpError>(())
/// ```
pub fn parse_response(block: Vec<u8>, limits: &Limits) -> Result<HttpResponse, HttpError> {
    parse_response_gently(block, limits, &mut |_| {})
}

/// As [`parse_response`], and calls `before_large` with the size of the body that is being decoded
/// before it grows; that may wait until there is memory for it.
pub fn parse_response_gently(
    mut block: Vec<u8>,
    limits: &Limits,
    before_large: &mut dyn FnMut(u64),
) -> Result<HttpResponse, HttpError> {
    let mut problems = Problems::default();
    let mut start = 0;
    let (status, headers, body_start) = loop {
        let (status, headers, head_len) = parse_head(&block[start..], &mut problems)?;
        let rest = &block[start + head_len..];
        if (100..200).contains(&status) && status != 101 && rest.starts_with(b"HTTP/") {
            start += head_len;
            continue;
        }
        break (status, headers, start + head_len);
    };
    block.drain(..body_start);
    let body = decode_body(block, &headers, limits, &mut problems, before_large);
    Ok(HttpResponse { status, headers, body, problems: problems.0 })
}

/// How many bytes of a block are the head of its HTTP response, the empty line and interim answers
/// in front of it included.
///
/// ```
/// assert_eq!(onionskin_warc::http_head_len(b"HTTP/1.1 200 OK\r\nA: 1\r\n\r\nbody"), Ok(25));
/// ```
///
/// # Errors
///
/// When the block is not an HTTP response.
pub fn http_head_len(block: &[u8]) -> Result<usize, HttpError> {
    let mut start = 0;
    loop {
        let (status, _, head_len) = parse_head(&block[start..], &mut Problems::default())?;
        start += head_len;
        if !((100..200).contains(&status) && status != 101 && block[start..].starts_with(b"HTTP/")) {
            return Ok(start);
        }
    }
}

/// Each problem once, in order.
#[derive(Default)]
struct Problems(Vec<HttpProblem>);

impl Problems {
    fn push(&mut self, problem: HttpProblem) {
        if !self.0.contains(&problem) {
            self.0.push(problem);
        }
    }
}

fn parse_head(block: &[u8], problems: &mut Problems) -> Result<(u16, Headers, usize), HttpError> {
    let window = &block[..block.len().min(MAX_HEAD_BYTES)];
    let line_end = memchr::memchr(b'\n', window);
    let status = parse_status(&window[..line_end.unwrap_or(window.len())]).ok_or(HttpError::NotHttp)?;
    let Some(line_end) = line_end else {
        problems.push(HttpProblem::HeadCutOff);
        return Ok((status, Headers::new(), block.len()));
    };
    let fields = &window[line_end + 1..];
    // The empty line may follow the status line at once: then `fields` begins with it.
    let fields_len = match fields {
        [b'\n', ..] => Some(1),
        [b'\r', b'\n', ..] => Some(2),
        _ => crate::head::head_end(fields, crate::ContainerKind::Warc, 0),
    };
    let fields_len = match fields_len {
        Some(len) => len,
        None if block.len() > window.len() => return Err(HttpError::HeadTooLong),
        None => {
            if !fields.is_empty() || block.last() != Some(&b'\n') {
                problems.push(HttpProblem::HeadCutOff);
            }
            fields.len()
        }
    };
    let mut headers = Headers::new();
    if headers.parse(&fields[..fields_len]) > 0 {
        problems.push(HttpProblem::BadHeaderLine);
    }
    Ok((status, headers, line_end + 1 + fields_len))
}

/// `HTTP/1.1 200 OK`; also `HTTP/2 200`, and whatever else has a version and three digits.
fn parse_status(line: &[u8]) -> Option<u16> {
    let version = line.get(..5).filter(|start| start.eq_ignore_ascii_case(b"HTTP/")).map(|_| &line[5..])?;
    let after = memchr::memchr2(b' ', b'\t', version).map(|at| version[at..].trim_ascii_start())?;
    let digits = after.split(|byte| !byte.is_ascii_digit()).next()?;
    let code = std::str::from_utf8(digits).ok()?.parse::<u16>().ok()?;
    (digits.len() == 3).then_some(code)
}

fn decode_body(
    mut body: Vec<u8>,
    headers: &Headers,
    limits: &Limits,
    problems: &mut Problems,
    before_large: &mut dyn FnMut(u64),
) -> Vec<u8> {
    let transfer: Vec<&str> = encodings(headers, "Transfer-Encoding");
    let is_chunked = transfer.iter().any(|name| name.eq_ignore_ascii_case("chunked"));
    if is_chunked {
        if let Some(problem) = chunked::unchunk(&mut body) {
            problems.push(problem);
        }
    } else if let Some(length) = headers.get("Content-Length").and_then(|length| length.parse::<u64>().ok())
        && (body.len() as u64) < length
    {
        problems.push(HttpProblem::Truncated);
    }
    let transfer = transfer.into_iter().filter(|name| !name.eq_ignore_ascii_case("chunked"));
    // Applied in the order they are listed, content before transfer, so they are undone from the
    // end.
    let applied: Vec<&str> = encodings(headers, "Content-Encoding").into_iter().chain(transfer).collect();
    if applied.len() > MAX_ENCODINGS {
        problems.push(HttpProblem::UnknownEncoding);
    } else {
        for name in applied.into_iter().rev() {
            let Some(coding) = coding::Coding::from_name(name) else {
                problems.push(HttpProblem::UnknownEncoding);
                break;
            };
            if body.is_empty() {
                break;
            }
            let decoded = coding.decode(&body, limits.max_body_bytes, before_large);
            if let Some(problem) = decoded.problem {
                problems.push(problem);
            }
            if let Some(decoded) = decoded.body {
                body = decoded;
            }
        }
    }
    if body.len() as u64 > limits.max_body_bytes {
        problems.push(HttpProblem::OverLimit);
        body.truncate(usize::try_from(limits.max_body_bytes).unwrap_or(usize::MAX));
    }
    body
}

fn encodings<'a>(headers: &'a Headers, field: &'a str) -> Vec<&'a str> {
    let names = headers.get_all(field).flat_map(|value| value.split(',')).map(str::trim);
    names
        .filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("identity"))
        .take(MAX_ENCODINGS + 1)
        .collect()
}

#[cfg(test)]
mod tests;
