//! Gzip, member by member.
//!
//! The members' own heads and trailers are read here and only the deflate data is left to zlib-rs,
//! because a wrong checksum is not a wrong stream: the record is whole, suspicious, and worth
//! handing out.

use super::{Fill, Open, Probed};
use crate::DamageKind;
use crate::input::Input;
use flate2::{Crc, Decompress, FlushDecompress, Status};
use std::io::{self, Read};

/// What every member begins with: the magic number and the only method there is.
pub(crate) const MAGIC: &[u8] = &[0x1f, 0x8b, 0x08];

/// Enough to decode the first line of a record: a head with a name in it, the tables of a deflate
/// block, and text.
pub(crate) const PROBE_BYTES: usize = 8 << 10;

/// Longest head of a member: 64 KiB of extra fields, a name and a comment.
const MAX_MEMBER_HEAD: usize = 96 << 10;

/// A checksum and a length.
pub(crate) const TRAILER_BYTES: usize = 8;

/// Could a member begin here?
pub(crate) fn begins(bytes: &[u8]) -> bool {
    // The three high flags are reserved: random bytes that pass the magic fail here seven times out
    // of eight.
    bytes.starts_with(MAGIC) && bytes.get(3).is_some_and(|flags| flags & 0xe0 == 0)
}

enum MemberHead {
    Len(usize),
    TooShort,
    Bad,
}

fn member_head(bytes: &[u8]) -> MemberHead {
    if !begins(bytes) {
        let could_begin = bytes.len() < 4 && MAGIC.iter().zip(bytes).all(|(a, b)| a == b);
        return if could_begin { MemberHead::TooShort } else { MemberHead::Bad };
    }
    let flags = bytes[3];
    let mut len = 10;
    let short = |_| if bytes.len() >= MAX_MEMBER_HEAD { MemberHead::Bad } else { MemberHead::TooShort };
    if flags & 0x04 != 0 {
        match bytes.get(len..len + 2) {
            Some(&[low, high]) => len += 2 + usize::from(u16::from_le_bytes([low, high])),
            _ => return short(()),
        }
    }
    for flag in [0x08, 0x10] {
        if flags & flag != 0 {
            let limit = bytes.len().min(MAX_MEMBER_HEAD);
            match bytes.get(len..limit).and_then(|rest| memchr::memchr(0, rest)) {
                Some(end) => len += end + 1,
                None => return short(()),
            }
        }
    }
    if flags & 0x02 != 0 {
        len += 2;
    }
    if len <= bytes.len() { MemberHead::Len(len) } else { short(()) }
}

/// How long the head of the member is that begins here, if one does.
pub(crate) fn member_head_len(bytes: &[u8]) -> Option<usize> {
    match member_head(bytes) {
        MemberHead::Len(len) => Some(len),
        MemberHead::TooShort | MemberHead::Bad => None,
    }
}

#[derive(PartialEq, Eq)]
enum State {
    /// At a border.
    Closed,
    /// In the deflate data.
    Deflate,
    /// Before the checksum.
    Trailer,
}

pub(crate) struct Gzip {
    inflate: Decompress,
    crc: Crc,
    state: State,
    probe: Option<Probe>,
}

impl Gzip {
    pub(crate) fn new() -> Gzip {
        Gzip { inflate: Decompress::new(false), crc: Crc::new(), state: State::Closed, probe: None }
    }

    pub(crate) fn probe(&mut self) -> &mut Probe {
        self.probe.get_or_insert_with(Probe::new)
    }

    pub(crate) fn open<R: Read>(
        &mut self,
        input: &mut Input<R>,
        member_offset: &mut u64,
    ) -> io::Result<Open> {
        skip_padding(input)?;
        let mut wanted = 64;
        let head_len = loop {
            let bytes = input.peek(wanted)?;
            match member_head(bytes) {
                _ if bytes.is_empty() => return Ok(Open::End),
                MemberHead::Len(len) => break len,
                MemberHead::Bad => return Ok(Open::Garbage),
                MemberHead::TooShort if bytes.len() < wanted => return Ok(Open::CutOff),
                MemberHead::TooShort => wanted = (bytes.len() + 1).max(wanted * 2),
            }
        };
        *member_offset = input.offset();
        input.set_mark();
        input.consume(head_len);
        self.inflate.reset(false);
        self.crc.reset();
        self.state = State::Deflate;
        Ok(Open::Member)
    }

    /// Appends up to `room` decoded bytes to `out`.
    pub(crate) fn decode<R: Read>(
        &mut self,
        input: &mut Input<R>,
        out: &mut Vec<u8>,
        room: usize,
    ) -> io::Result<Fill> {
        debug_assert!(room > 0);
        loop {
            match self.state {
                State::Closed => return Ok(Fill::MemberEnd),
                State::Trailer => {
                    self.state = State::Closed;
                    return self.check_trailer(input);
                }
                State::Deflate => {}
            }
            let (before_in, before_len) = (self.inflate.total_in(), out.len());
            let offered = input.available().len();
            // Not `decompress_vec`: it clears all the capacity there is before every call.
            let before_out = self.inflate.total_out();
            out.resize(before_len + room, 0);
            let target = &mut out[before_len..];
            let result = self.inflate.decompress(input.available(), target, FlushDecompress::None);
            out.truncate(before_len + (self.inflate.total_out() - before_out) as usize);
            let used = (self.inflate.total_in() - before_in) as usize;
            input.consume(used.min(offered));
            self.crc.update(&out[before_len..]);
            match result {
                Ok(Status::StreamEnd) => self.state = State::Trailer,
                Ok(Status::Ok | Status::BufError) => {
                    let stuck = out.len() == before_len && used == offered;
                    if stuck && !input.fill()? {
                        self.state = State::Closed;
                        return Ok(Fill::Broken(DamageKind::CutOff));
                    }
                    // No progress with input and room to spare cannot happen; if it did, it must
                    // not loop.
                    if used == 0 && out.len() == before_len && !stuck {
                        self.state = State::Closed;
                        return Ok(Fill::Broken(DamageKind::CorruptMember));
                    }
                }
                Err(_) => {
                    self.state = State::Closed;
                    return Ok(Fill::Broken(DamageKind::CorruptMember));
                }
            }
            if out.len() > before_len {
                return Ok(Fill::Bytes);
            }
        }
    }

    fn check_trailer<R: Read>(&mut self, input: &mut Input<R>) -> io::Result<Fill> {
        let bytes = input.peek(TRAILER_BYTES)?;
        let Some(&[a, b, c, d, e, f, g, h]) = bytes.get(..TRAILER_BYTES) else {
            return Ok(Fill::Broken(DamageKind::CutOff));
        };
        let crc_matches = u32::from_le_bytes([a, b, c, d]) == self.crc.sum();
        let size_matches = u32::from_le_bytes([e, f, g, h]) == self.crc.amount();
        input.consume(TRAILER_BYTES);
        Ok(if crc_matches && size_matches {
            Fill::MemberEnd
        } else {
            Fill::Broken(DamageKind::CorruptMember)
        })
    }
}

/// Zeros between and after members come from tapes and from block devices, and mean nothing.
fn skip_padding<R: Read>(input: &mut Input<R>) -> io::Result<()> {
    loop {
        let bytes = input.peek(1)?;
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        if zeros == 0 {
            return Ok(());
        }
        input.consume(zeros);
        input.set_mark();
    }
}

/// Decodes the beginning of what may be a member.
pub(crate) struct Probe {
    inflate: Decompress,
    text: Vec<u8>,
}

impl Probe {
    /// Text enough for the head line of an ARC record with a long URL.
    const TEXT_BYTES: usize = 4 << 10;

    pub(crate) fn new() -> Probe {
        Probe { inflate: Decompress::new(false), text: Vec::with_capacity(Probe::TEXT_BYTES) }
    }

    /// The cost is bounded by [`PROBE_BYTES`], however many there are.
    pub(crate) fn decode(&mut self, bytes: &[u8]) -> Probed<'_> {
        let bytes = &bytes[..bytes.len().min(PROBE_BYTES)];
        self.text.clear();
        let MemberHead::Len(head_len) = member_head(bytes) else {
            return Probed { bytes: &[], used: 1, ended: false };
        };
        self.inflate.reset(false);
        let result = self.inflate.decompress_vec(&bytes[head_len..], &mut self.text, FlushDecompress::None);
        let ended = matches!(result, Ok(Status::StreamEnd));
        let trailer = if ended { TRAILER_BYTES } else { 0 };
        Probed { bytes: &self.text, used: head_len + self.inflate.total_in() as usize + trailer, ended }
    }
}
