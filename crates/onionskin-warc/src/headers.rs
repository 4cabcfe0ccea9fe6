//! Named fields, as WARC and HTTP have them.
//!
//! One record has a dozen fields and a crawl has billions of records, so a map of strings would
//! spend more time in the allocator than in the file. All names and values of one record lie in one
//! string, with spans into it; looking one up is a scan, which for a dozen fields is faster than
//! hashing.

use std::fmt;
use std::ops::Range;

/// The fields of a record or an HTTP message, in file order, repeats kept; names compare without
/// case.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers {
    text: String,
    // u32 is enough: heads longer than `MAX_HEAD_BYTES` are refused before they are parsed.
    spans: Vec<Span>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Span {
    start: u32,
    name_end: u32,
    end: u32,
}

impl Span {
    fn name(self) -> Range<usize> {
        self.start as usize..self.name_end as usize
    }

    fn value(self) -> Range<usize> {
        self.name_end as usize..self.end as usize
    }
}

impl Headers {
    /// No fields.
    pub fn new() -> Headers {
        Headers::default()
    }

    /// The value of the first field of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.get_all(name).next()
    }

    /// The values of all fields of this name, in order.
    pub fn get_all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        let matches = move |span: &&Span| self.text[span.name()].eq_ignore_ascii_case(name);
        self.spans.iter().filter(matches).map(|span| &self.text[span.value()])
    }

    /// All fields in file order, as (name, value).
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> + '_ {
        self.spans.iter().map(|span| (&self.text[span.name()], &self.text[span.value()]))
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Adds a field at the end.
    pub fn push(&mut self, name: &str, value: &str) {
        self.push_bytes(name.as_bytes(), value.as_bytes());
    }

    fn push_bytes(&mut self, name: &[u8], value: &[u8]) {
        let start = self.text.len();
        push_text(&mut self.text, name);
        let name_end = self.text.len();
        push_text(&mut self.text, value);
        let (Ok(start), Ok(name_end), Ok(end)) =
            (u32::try_from(start), u32::try_from(name_end), u32::try_from(self.text.len()))
        else {
            self.text.truncate(start);
            return;
        };
        self.spans.push(Span { start, name_end, end });
    }

    /// Parses field lines ended by CRLF or LF; a line that begins with white space goes on with the
    /// one before it (folding). Says how many lines were neither, and were passed over.
    pub(crate) fn parse(&mut self, lines: &[u8]) -> usize {
        let mut strange_lines = 0;
        self.text.reserve(lines.len());
        for line in lines.split(|&byte| byte == b'\n') {
            let folded = matches!(line.first(), Some(b' ' | b'\t'));
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            if folded {
                match self.spans.last_mut() {
                    Some(last) => {
                        self.text.push(' ');
                        push_text(&mut self.text, line);
                        last.end = u32::try_from(self.text.len()).unwrap_or(last.end);
                    }
                    None => strange_lines += 1,
                }
                continue;
            }
            match memchr::memchr(b':', line) {
                Some(colon) if colon > 0 => {
                    self.push_bytes(line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
                }
                _ => strange_lines += 1,
            }
        }
        strange_lines
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Appends bytes as text: UTF-8 as it is, anything else as Latin-1, which is what old servers meant
/// by it and loses nothing.
fn push_text(text: &mut String, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(valid) => text.push_str(valid),
        Err(_) => text.extend(bytes.iter().map(|&byte| char::from(byte))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &str, expected: &[(&str, &str)]) {
        let mut headers = Headers::new();
        headers.parse(lines.as_bytes());
        assert_eq!(headers.iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn both_line_ends_and_folding() {
        check("A: 1\r\nb:2\nC : 3 \r\n", &[("A", "1"), ("b", "2"), ("C", "3")]);
        check("A: one\r\n two\r\n\tthree\r\nB: x\r\n", &[("A", "one two three"), ("B", "x")]);
        check("Empty:\r\nURL: http://a:80/\r\n", &[("Empty", ""), ("URL", "http://a:80/")]);
    }

    #[test]
    fn lookup_ignores_case_and_keeps_repeats() {
        let mut headers = Headers::new();
        headers.parse(b"Set-Cookie: a\r\nset-cookie: b\r\n");
        assert_eq!(headers.get("SET-COOKIE"), Some("a"));
        assert_eq!(headers.get_all("set-cookie").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(headers.get("cookie"), None);
    }

    #[test]
    fn strange_lines_are_counted() {
        let mut headers = Headers::new();
        assert_eq!(headers.parse(b" folded first\r\nno colon\r\n: no name\r\nA: 1\r\n"), 3);
        assert_eq!(headers.len(), 1);
    }

    #[test]
    fn latin_1_survives() {
        let mut headers = Headers::new();
        headers.parse(b"Location: /caf\xe9\r\n");
        assert_eq!(headers.get("location"), Some("/café"));
    }
}
