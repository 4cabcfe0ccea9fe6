//! Picks fields out of a JSON object without building it.
//!
//! The naive way parses a line into a tree of values. A general parser that is told to pass over
//! what is not wanted does better, and still looks at every byte of a string one by one, and
//! unpacks a string with escapes into memory that it allocates anew for each. Nearly every text has
//! escapes (its line breaks), so that is the common case here: strings are searched by vector
//! instructions for the next quote or backslash, and what lies between goes into a buffer that all
//! lines share.
//!
//! What is accepted is JSON as RFC 8259 has it, with one exception: control characters inside
//! strings pass, since writers that forget to escape a tab are common and nothing is gained by
//! losing their texts. Nesting is followed without recursion; only the paths of the wanted fields,
//! which are ours, decide how deep this calls itself.

use memchr::memchr2;

use crate::fields::FieldNames;

/// How many fields can be asked for.
pub(crate) const FIELDS: usize = 4;

/// Where a field is looked for. A dot goes into a nested object; a key with the dot in its own name
/// is found as well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'p> {
    path: &'p str,
    /// Which of the fields it is for.
    field: usize,
    /// Of the paths for one field, the lowest that leads to a value wins.
    rank: usize,
    /// Whether it may lead into an object.
    has_dot: bool,
}

impl<'p> Path<'p> {
    /// The paths of some fields, each with its names in the order of preference.
    pub(crate) fn all(fields: &[&'p FieldNames]) -> Vec<Path<'p>> {
        let paths = fields.iter().enumerate().flat_map(|(field, names)| {
            names.iter().enumerate().map(move |(rank, path)| Path::new(path, field, rank))
        });
        paths.collect()
    }

    fn new(path: &'p str, field: usize, rank: usize) -> Path<'p> {
        Path { path, field, rank, has_dot: path.contains('.') }
    }

    /// What is left of it inside the object under a key.
    fn inside(&self, key: &str) -> Option<Path<'p>> {
        let rest = self.path.strip_prefix(key)?.strip_prefix('.')?;
        Some(Path::new(rest, self.field, self.rank))
    }
}

/// The values that were found, and by which paths.
struct Slots<'a> {
    values: [Slot<'a>; FIELDS],
    /// The rank of the path to a value that is not null.
    ranks: [usize; FIELDS],
}

impl<'a> Slots<'a> {
    /// Whether a value under a path is to replace what was found so far.
    fn wants(&self, path: &Path<'_>) -> bool {
        path.rank <= self.ranks[path.field]
    }

    fn set(&mut self, path: &Path<'_>, value: Slot<'a>) {
        let rank = &mut self.ranks[path.field];
        if value != Slot::Null {
            *rank = path.rank;
        } else if *rank == path.rank {
            *rank = usize::MAX;
        } else if *rank != usize::MAX {
            return;
        }
        self.values[path.field] = value;
    }
}

/// What was found in a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Slot<'a> {
    #[default]
    Absent,
    Null,
    /// A string without escapes, in the line.
    Borrowed(&'a str),
    /// A string with escapes, in the buffer of its field.
    Unpacked,
    /// A number, as it is spelt.
    Number(&'a str),
    /// True, false, an array or an object.
    Other,
}

/// Buffers that all lines share.
#[derive(Debug, Default)]
pub(crate) struct JsonBuffers {
    /// Strings with escapes, unpacked.
    pub(crate) unpacked: [String; FIELDS],
    key: String,
    /// What closes the arrays and objects that are open while something is passed over.
    open: Vec<u8>,
}

impl JsonBuffers {
    /// A long text should not be paid for by every worker until the end.
    pub(crate) fn shrink(&mut self) {
        for buffer in &mut self.unpacked {
            if buffer.capacity() > 4 << 20 {
                *buffer = String::new();
            }
        }
        if self.open.capacity() > 1 << 20 {
            self.open = Vec::new();
        }
    }
}

/// Why a line is not a JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JsonError {
    #[error("not an object")]
    NotAnObject,
    #[error("{what} at byte {at}")]
    Broken { what: &'static str, at: usize },
}

/// Finds the fields of the object that a line holds. A key that is there twice counts the last
/// time.
pub(crate) fn find_fields<'a>(
    line: &'a str,
    paths: &[Path<'_>],
    buffers: &mut JsonBuffers,
) -> Result<[Slot<'a>; FIELDS], JsonError> {
    let mut slots = Slots { values: [Slot::Absent; FIELDS], ranks: [usize::MAX; FIELDS] };
    let mut scanner = Scanner { line, at: 0 };
    scanner.skip_space();
    let is_object = scanner.peek() == Some(b'{');
    if is_object {
        scanner.object(paths, &mut slots, buffers)?;
    } else {
        scanner.skip_value(&mut buffers.open)?;
    }
    scanner.skip_space();
    if scanner.at < line.len() {
        return scanner.broken("characters after the end");
    }
    if is_object { Ok(slots.values) } else { Err(JsonError::NotAnObject) }
}

/// Visits the keys of the object that a line holds, those of objects inside it left out.
pub(crate) fn each_key(
    line: &str,
    buffers: &mut JsonBuffers,
    mut visit: impl FnMut(&str),
) -> Result<(), JsonError> {
    let mut scanner = Scanner { line, at: 0 };
    scanner.skip_space();
    if scanner.peek() != Some(b'{') {
        return Err(JsonError::NotAnObject);
    }
    scanner.at += 1;
    scanner.skip_space();
    let mut is_open = scanner.peek() != Some(b'}');
    while is_open {
        scanner.skip_space();
        if scanner.peek() != Some(b'"') {
            return scanner.broken("a key is missing");
        }
        match scanner.wanted_string(&mut buffers.key)? {
            Slot::Borrowed(key) => visit(key),
            _ => visit(&buffers.key),
        }
        scanner.skip_space();
        scanner.expect(b':', "a colon is missing")?;
        scanner.skip_value(&mut buffers.open)?;
        scanner.skip_space();
        match scanner.peek() {
            Some(b',') => scanner.at += 1,
            Some(b'}') => is_open = false,
            _ => return scanner.broken("a comma or brace is missing"),
        }
    }
    scanner.at += 1;
    scanner.skip_space();
    if scanner.at < line.len() { scanner.broken("characters after the end") } else { Ok(()) }
}

struct Scanner<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn broken<T>(&self, what: &'static str) -> Result<T, JsonError> {
        Err(JsonError::Broken { what, at: self.at })
    }

    fn bytes(&self) -> &'a [u8] {
        self.line.as_bytes()
    }

    fn peek(&self) -> Option<u8> {
        self.bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), JsonError> {
        if self.peek() != Some(byte) {
            return self.broken(what);
        }
        self.at += 1;
        Ok(())
    }

    /// An object whose fields may be wanted; stands on its brace.
    fn object(
        &mut self,
        paths: &[Path<'_>],
        slots: &mut Slots<'a>,
        buffers: &mut JsonBuffers,
    ) -> Result<(), JsonError> {
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return self.broken("a key is missing");
            }
            let key = match self.wanted_string(&mut buffers.key)? {
                Slot::Borrowed(key) => key,
                _ => &*buffers.key,
            };
            let path = paths.iter().find(|path| path.path == key);
            // Only where the key is none of the fields: comparing with all paths takes longer than
            // the rest of a short value.
            let inside: Vec<Path<'_>> = match path {
                Some(_) => Vec::new(),
                None => {
                    paths.iter().filter(|path| path.has_dot).filter_map(|path| path.inside(key)).collect()
                }
            };
            self.skip_space();
            self.expect(b':', "a colon is missing")?;
            self.skip_space();
            if let Some(path) = path.filter(|path| slots.wants(path)) {
                // Null leaves the buffer as it is.
                let value = self.value(&mut buffers.unpacked[path.field], &mut buffers.open)?;
                slots.set(path, value);
            } else if !inside.is_empty() && self.peek() == Some(b'{') {
                self.object(&inside, slots, buffers)?;
            } else {
                self.skip_value(&mut buffers.open)?;
            }
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return self.broken("a comma or brace is missing"),
            }
        }
    }

    /// A value that is wanted.
    fn value(&mut self, buffer: &mut String, open: &mut Vec<u8>) -> Result<Slot<'a>, JsonError> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => self.wanted_string(buffer),
            Some(b'-' | b'0'..=b'9') => {
                self.number()?;
                Ok(Slot::Number(&self.line[start..self.at]))
            }
            Some(b'n') => self.literal("null").map(|()| Slot::Null),
            _ => self.skip_value(open).map(|()| Slot::Other),
        }
    }

    /// Passes over a value of any depth. `open` holds what closes the arrays and objects around.
    fn skip_value(&mut self, open: &mut Vec<u8>) -> Result<(), JsonError> {
        open.clear();
        loop {
            // At a value.
            self.skip_space();
            match self.peek() {
                Some(b'"') => self.skip_string()?,
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.literal("true")?,
                Some(b'f') => self.literal("false")?,
                Some(b'n') => self.literal("null")?,
                Some(b'[') => {
                    self.at += 1;
                    self.skip_space();
                    if self.peek() != Some(b']') {
                        open.push(b']');
                        continue;
                    }
                    self.at += 1;
                }
                Some(b'{') => {
                    self.at += 1;
                    self.skip_space();
                    if self.peek() != Some(b'}') {
                        open.push(b'}');
                        self.skip_key()?;
                        continue;
                    }
                    self.at += 1;
                }
                _ => return self.broken("a value is missing"),
            }
            // After a value: close what ends here, or go on to the next.
            loop {
                let Some(&close) = open.last() else { return Ok(()) };
                self.skip_space();
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        if close == b'}' {
                            self.skip_space();
                            self.skip_key()?;
                        }
                        break;
                    }
                    Some(byte) if byte == close => {
                        self.at += 1;
                        open.pop();
                    }
                    _ => return self.broken("a comma or bracket is missing"),
                }
            }
        }
    }

    fn skip_key(&mut self) -> Result<(), JsonError> {
        if self.peek() != Some(b'"') {
            return self.broken("a key is missing");
        }
        self.skip_string()?;
        self.skip_space();
        self.expect(b':', "a colon is missing")
    }

    /// Passes over a string; stands on its quote. Escapes are checked here for their letters.
    fn skip_string(&mut self) -> Result<(), JsonError> {
        self.at += 1;
        while self.run()? != b'"' {
            self.at = self.after_escape()?;
        }
        self.at += 1;
        Ok(())
    }

    /// A string that is wanted, found and unpacked in one go; stands on its quote.
    fn wanted_string(&mut self, out: &mut String) -> Result<Slot<'a>, JsonError> {
        self.at += 1;
        let start = self.at;
        if self.run()? == b'"' {
            self.at += 1;
            return Ok(Slot::Borrowed(&self.line[start..self.at - 1]));
        }
        out.clear();
        out.push_str(&self.line[start..self.at]);
        loop {
            self.at = self.unescape(out)?;
            let start = self.at;
            let end = self.run()?;
            out.push_str(&self.line[start..self.at]);
            if end == b'"' {
                self.at += 1;
                return Ok(Slot::Unpacked);
            }
        }
    }

    /// Goes on to the next quote or backslash, and tells which it is.
    fn run(&mut self) -> Result<u8, JsonError> {
        let bytes = self.bytes();
        match bytes.get(self.at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
            Some(found) => {
                self.at += found;
                Ok(bytes[self.at])
            }
            None => {
                self.at = bytes.len();
                self.broken("a string does not end")
            }
        }
    }

    /// Where the escape ends that begins here.
    fn after_escape(&self) -> Result<usize, JsonError> {
        match self.bytes().get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(self.at + 2),
            Some(b'u') if hex4(self.bytes(), self.at + 2).is_some() => Ok(self.at + 6),
            _ => self.broken("an unknown escape"),
        }
    }

    /// Adds the character that the escape here stands for, and tells where it ends, with the second
    /// half of a pair if it has one.
    fn unescape(&self, out: &mut String) -> Result<usize, JsonError> {
        let bytes = self.bytes();
        let mut end = self.after_escape()?;
        out.push(match bytes[self.at + 1] {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let mut unit = hex4(bytes, self.at + 2).unwrap_or_default();
                if let 0xd800..=0xdbff = unit {
                    let low = if bytes[end..].starts_with(b"\\u") { hex4(bytes, end + 2) } else { None };
                    if let Some(low @ 0xdc00..=0xdfff) = low {
                        unit = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                        end += 6;
                    }
                }
                match char::from_u32(unit) {
                    Some(character) => character,
                    None => return self.broken("half of a surrogate pair"),
                }
            }
            // A quote, a backslash or a slash.
            other => char::from(other),
        });
        Ok(end)
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { self.broken("a digit is missing") } else { Ok(()) }
    }

    fn number(&mut self) -> Result<(), JsonError> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn literal(&mut self, word: &'static str) -> Result<(), JsonError> {
        if !self.bytes()[self.at..].starts_with(word.as_bytes()) {
            return self.broken("a value is missing");
        }
        self.at += word.len();
        Ok(())
    }
}

/// Four hexadecimal digits.
fn hex4(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 4)?;
    digits.iter().try_fold(0, |value, &digit| Some(value << 4 | char::from(digit).to_digit(16)?))
}

#[cfg(test)]
mod tests;
