//! How large pages are, known before they are unpacked.
//!
//! A few bytes of a Parquet file may stand for gigabytes: compression, dictionaries and shared
//! prefixes all multiply. The library that decodes asks for the bytes of a page after it has read
//! the page's head. In between, the head is read here as well, and a page that there is no memory
//! for is refused. Whoever reads rows then asks for more room, or for fewer rows at a time.

use std::collections::BTreeMap;
use std::io;

/// Heads are found in this many bytes; only statistics come after what is needed here.
const PREFIX_BYTES: usize = 200;

/// The encodings that have to be unpacked as a whole, by their numbers in the format.
const DELTA_LENGTH_BYTE_ARRAY: i32 = 6;
const DELTA_BYTE_ARRAY: i32 = 7;

/// What the head of a page says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PageHead {
    unpacked: u64,
    stored: u64,
    values: u64,
    encoding: i32,
}

/// Why a page was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It alone would take this many bytes.
    Page(u64),
    /// It would take too much together with the pages before, or with this many values of it.
    Together,
}

/// Counts what the pages of a reader take.
#[derive(Debug)]
pub(super) struct Meter {
    /// Heads that were read, by where they begin.
    heads: BTreeMap<u64, PageHead>,
    /// What a page may take, and all new pages of a batch of rows.
    pub(super) limit: u64,
    /// Rows that are read at a time.
    pub(super) rows: u64,
    taken: u64,
    refused: Option<Refused>,
}

impl Meter {
    pub(super) fn new(limit: u64) -> Meter {
        Meter { heads: BTreeMap::new(), limit, rows: 1, taken: 0, refused: None }
    }

    /// Rows are going to be read.
    pub(super) fn begin(&mut self) {
        self.taken = 0;
        self.refused = None;
    }

    pub(super) fn take_refused(&mut self) -> Option<Refused> {
        self.refused.take()
    }

    /// Notes the head that may begin at an offset.
    pub(super) fn note_head(&mut self, offset: u64, bytes: &[u8]) {
        if let Some(head) = PageHead::parse(&bytes[..bytes.len().min(PREFIX_BYTES)]) {
            self.heads.insert(offset, head);
        }
    }

    /// Takes the memory of bytes that are going to be read: those of a page, or of metadata.
    pub(super) fn take(&mut self, offset: u64, length: u64) -> io::Result<()> {
        let noted = self.heads.range(..offset).next_back();
        let head = noted.map(|(at, head)| (*at, *head)).filter(|(_, head)| head.stored == length);
        let bytes = match head {
            Some((at, head)) => {
                // Those of this column that come before it are not asked for again.
                self.heads.remove(&at);
                if head.encoding == DELTA_BYTE_ARRAY {
                    let values = head.unpacked.saturating_mul(self.rows.min(head.values));
                    if values > self.limit {
                        return self.refuse(Refused::Together);
                    }
                }
                head.bytes()
            }
            None => length,
        };
        if bytes > self.limit {
            return self.refuse(Refused::Page(bytes));
        }
        self.taken = self.taken.saturating_add(bytes);
        if self.taken > self.limit { self.refuse(Refused::Together) } else { Ok(()) }
    }

    fn refuse(&mut self, refused: Refused) -> io::Result<()> {
        self.refused = Some(refused);
        let message = format!("a page needs more memory than the {} bytes that are allowed", self.limit);
        Err(io::Error::other(message))
    }
}

impl PageHead {
    fn bytes(&self) -> u64 {
        let lengths = match self.encoding {
            DELTA_LENGTH_BYTE_ARRAY | DELTA_BYTE_ARRAY => self.values.saturating_mul(8),
            _ => 0,
        };
        self.stored.saturating_add(self.unpacked).saturating_add(lengths)
    }

    /// Reads the beginning of a `PageHeader` in the compact protocol of Thrift; `None` when it is
    /// none.
    fn parse(bytes: &[u8]) -> Option<PageHead> {
        let mut fields = Fields { bytes, id: 0 };
        let mut head = PageHead::default();
        let (mut sizes, mut kind) = (0, None);
        while let Some((id, field)) = fields.next()? {
            match (id, field) {
                (1, I32) => kind = Some(fields.zigzag()?),
                (2, I32) => {
                    head.unpacked = u64::try_from(fields.zigzag()?).ok()?;
                    sizes += 1;
                }
                (3, I32) => {
                    head.stored = u64::try_from(fields.zigzag()?).ok()?;
                    sizes += 1;
                }
                (4, I32) => drop(fields.zigzag()?),
                // The head of a data page of either version, or of a dictionary.
                (5 | 7 | 8, STRUCT) => {
                    let encoding_at = if id == 8 { 4 } else { 2 };
                    let mut inner = Fields { bytes: fields.bytes, id: 0 };
                    while let Some((id, I32)) = inner.next()? {
                        let value = inner.zigzag()?;
                        if id == 1 {
                            head.values = u64::try_from(value).ok()?;
                        } else if id == encoding_at {
                            head.encoding = i32::try_from(value).ok()?;
                            break;
                        }
                    }
                    break;
                }
                // An index, which nobody unpacks.
                _ => break,
            }
        }
        (sizes == 2 && kind.is_some()).then_some(head)
    }
}

const I32: u8 = 5;
const STRUCT: u8 = 12;

/// The fields of a structure.
struct Fields<'a> {
    bytes: &'a [u8],
    id: i64,
}

impl Fields<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    /// The number and the type of the next field; `Some(None)` at the end.
    #[expect(clippy::option_option, reason = "bytes that end early are something else than the end")]
    fn next(&mut self) -> Option<Option<(i64, u8)>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        self.id = match byte >> 4 {
            0 => self.zigzag()?,
            step => self.id.checked_add(i64::from(step))?,
        };
        Some(Some((self.id, byte & 0x0f)))
    }

    fn zigzag(&mut self) -> Option<i64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A head with sizes below 64 and a data page of version 1.
    fn head(unpacked: u8, stored: u8, values: u8, encoding: u8) -> Vec<u8> {
        vec![
            0x15,
            0,
            0x15,
            2 * unpacked,
            0x15,
            2 * stored,
            0x2c,
            0x15,
            2 * values,
            0x15,
            2 * encoding,
            0x15,
            6,
            0x15,
            6,
            0,
            0,
        ]
    }

    #[test]
    fn heads_are_read() {
        let expected = PageHead { unpacked: 60, stored: 10, values: 3, encoding: 6 };
        assert_eq!(PageHead::parse(&head(60, 10, 3, 6)), Some(expected));
        for cut in 0..head(60, 10, 3, 6).len() {
            PageHead::parse(&head(60, 10, 3, 6)[..cut]);
        }
        assert_eq!(PageHead::parse(b"PAR1"), None);
        assert_eq!(PageHead::parse(&[0xff; 40]), None);
    }

    #[test]
    fn pages_are_refused_alone_and_together() {
        let mut meter = Meter::new(100);
        meter.note_head(0, &head(60, 10, 3, 0));
        meter.note_head(1000, &head(60, 10, 3, 0));
        assert!(meter.take(17, 10).is_ok());
        assert!(meter.take(1017, 10).is_err());
        assert_eq!(meter.take_refused(), Some(Refused::Together));
        meter.begin();
        // Unknown bytes count as they are.
        assert!(meter.take(2000, 101).is_err());
        assert_eq!(meter.take_refused(), Some(Refused::Page(101)));
        meter.begin();
        meter.note_head(0, &head(60, 10, 40, 6));
        assert!(meter.take(17, 10).is_err());
        assert_eq!(meter.take_refused(), Some(Refused::Page(60 + 10 + 8 * 40)));
        meter.begin();
        meter.rows = 2;
        meter.note_head(0, &head(60, 10, 40, 7));
        assert!(meter.take(17, 10).is_err());
        assert_eq!(meter.take_refused(), Some(Refused::Together));
    }
}
