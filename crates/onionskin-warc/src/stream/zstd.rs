//! Zstandard, frame by frame, with the dictionary that a `.warc.zst` may carry in front.
//!
//! The proposal of the IIPC: the file may begin with a skippable frame `0x184D2A5D` that holds a
//! dictionary, itself perhaps compressed; every record is one or more frames; other skippable
//! frames may stand anywhere and are passed over.

use super::{Fill, Open, Probed};
use crate::DamageKind;
use crate::input::Input;
use std::io::{self, Read};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

/// What every frame with data begins with.
pub(crate) const MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// A decoder gives no text before it has a whole block, and blocks have up to 128 KiB.
pub(crate) const PROBE_BYTES: usize = 136 << 10;

/// Readers must take dictionaries of 8 MiB and may refuse bigger ones.
const MAX_DICTIONARY: usize = 16 << 20;

/// Readers must take windows of 8 MiB; the zstd program takes 128 MiB unless told otherwise.
const WINDOW_LOGS: std::ops::RangeInclusive<u32> = 23..=27;

/// Could a frame begin here, with data or skippable?
pub(crate) fn begins(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) || is_skippable(bytes)
}

fn is_skippable(bytes: &[u8]) -> bool {
    matches!(bytes, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// The head of a skippable frame.
pub(crate) struct Skippable {
    nibble: u8,
    len: u32,
}

impl Skippable {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Skippable> {
        match *bytes {
            [first, _, _, _, a, b, c, d, ..] if is_skippable(bytes) => {
                Some(Skippable { nibble: first & 0x0f, len: u32::from_le_bytes([a, b, c, d]) })
            }
            _ => None,
        }
    }

    pub(crate) fn is_dictionary(&self) -> bool {
        self.nibble == 0x0d
    }

    /// With its head.
    pub(crate) fn frame_len(&self) -> u64 {
        8 + u64::from(self.len)
    }
}

/// Why a zstd file cannot be read at all.
#[derive(Debug)]
pub(crate) enum SetupError {
    Dictionary(&'static str),
    Io(io::Error),
}

impl From<io::Error> for SetupError {
    fn from(error: io::Error) -> SetupError {
        SetupError::Io(error)
    }
}

pub(crate) struct Zstd {
    decoder: Decoder<'static>,
    dictionary: Option<Vec<u8>>,
    is_open: bool,
    probe: Option<Probe>,
}

impl Zstd {
    pub(crate) fn new<R: Read>(input: &mut Input<R>, max_record_bytes: u64) -> Result<Zstd, SetupError> {
        let dictionary = read_dictionary(input)?;
        let mut decoder = match &dictionary {
            Some(bytes) => Decoder::with_dictionary(bytes)
                .map_err(|_| SetupError::Dictionary("is not a zstd dictionary"))?,
            None => Decoder::new()?,
        };
        // A window is memory, so it follows the limit for records.
        let wanted = max_record_bytes.max(1).ilog2();
        decoder.set_parameter(DParameter::WindowLogMax(
            wanted.clamp(*WINDOW_LOGS.start(), *WINDOW_LOGS.end()),
        ))?;
        Ok(Zstd { decoder, dictionary, is_open: false, probe: None })
    }

    pub(crate) fn probe(&mut self) -> &mut Probe {
        let dictionary = self.dictionary.as_deref();
        self.probe.get_or_insert_with(|| Probe::new(dictionary).unwrap_or_else(Probe::blind))
    }

    pub(crate) fn open<R: Read>(
        &mut self,
        input: &mut Input<R>,
        member_offset: &mut u64,
    ) -> io::Result<Open> {
        loop {
            let bytes = input.peek(8)?;
            if bytes.is_empty() {
                return Ok(Open::End);
            }
            if bytes.starts_with(MAGIC) {
                *member_offset = input.offset();
                input.set_mark();
                let reset = self.decoder.reinit();
                self.is_open = reset.is_ok();
                return reset.map(|()| Open::Member);
            }
            match Skippable::parse(bytes) {
                Some(frame) => {
                    input.set_mark();
                    if !skip(input, frame.frame_len())? {
                        return Ok(Open::CutOff);
                    }
                }
                None if bytes.len() < 8 && (MAGIC.starts_with(bytes) || is_skippable(bytes)) => {
                    return Ok(Open::CutOff);
                }
                None => return Ok(Open::Garbage),
            }
        }
    }

    /// Decodes into the spare capacity of `out`, of which there must be some.
    pub(crate) fn decode<R: Read>(&mut self, input: &mut Input<R>, out: &mut Vec<u8>) -> io::Result<Fill> {
        debug_assert!(out.len() < out.capacity());
        while self.is_open {
            let before = out.len();
            let mut source = InBuffer::around(input.available());
            let mut target = OutBuffer::around_pos(out, before);
            let result = self.decoder.run(&mut source, &mut target);
            let used = source.pos();
            let exhausted = used == input.available().len();
            input.consume(used);
            match result {
                Ok(0) => self.is_open = false,
                Ok(_) => {
                    if out.len() == before && exhausted && !input.fill()? {
                        self.is_open = false;
                        return Ok(Fill::Broken(DamageKind::CutOff));
                    }
                }
                Err(_) => {
                    self.is_open = false;
                    return Ok(Fill::Broken(DamageKind::CorruptMember));
                }
            }
            if out.len() > before {
                return Ok(Fill::Bytes);
            }
        }
        Ok(Fill::MemberEnd)
    }
}

/// Passes over `n` bytes; false when the file has fewer.
fn skip<R: Read>(input: &mut Input<R>, mut n: u64) -> io::Result<bool> {
    while n > 0 {
        let available = input.peek(1)?.len();
        if available == 0 {
            return Ok(false);
        }
        let step = available.min(usize::try_from(n).unwrap_or(usize::MAX));
        input.consume(step);
        input.set_mark();
        n -= step as u64;
    }
    Ok(true)
}

fn read_dictionary<R: Read>(input: &mut Input<R>) -> Result<Option<Vec<u8>>, SetupError> {
    let Some(frame) = Skippable::parse(input.peek(8)?).filter(Skippable::is_dictionary) else {
        return Ok(None);
    };
    let frame_len = usize::try_from(frame.frame_len()).unwrap_or(usize::MAX);
    if frame_len > MAX_DICTIONARY {
        return Err(SetupError::Dictionary("is larger than 16 MiB"));
    }
    // Peeking grows the buffer as bytes arrive, so the claim alone costs nothing.
    let Some(bytes) = input.peek(frame_len)?.get(8..frame_len) else {
        return Err(SetupError::Dictionary("is cut off"));
    };
    let dictionary = if bytes.starts_with(MAGIC) { decompress_dictionary(bytes)? } else { bytes.to_vec() };
    input.consume(frame_len);
    Ok(Some(dictionary))
}

fn decompress_dictionary(bytes: &[u8]) -> Result<Vec<u8>, SetupError> {
    let mut decoder = Decoder::new()?;
    let mut source = InBuffer::around(bytes);
    let mut out = Vec::new();
    loop {
        if out.len() >= MAX_DICTIONARY {
            return Err(SetupError::Dictionary("is larger than 16 MiB"));
        }
        out.reserve_exact(out.len().max(64 << 10));
        let before = (source.pos(), out.len());
        let mut target = OutBuffer::around_pos(&mut out, before.1);
        let result = decoder.run(&mut source, &mut target);
        match result {
            Ok(0) => return Ok(out),
            Ok(_) if (source.pos(), out.len()) != before => {}
            _ => return Err(SetupError::Dictionary("cannot be decompressed")),
        }
    }
}

/// Decodes the beginning of what may be a frame.
pub(crate) struct Probe {
    decoder: Option<Decoder<'static>>,
    text: Vec<u8>,
}

impl Probe {
    const TEXT_BYTES: usize = 4 << 10;

    /// `None` when the library has no memory for it.
    pub(crate) fn new(dictionary: Option<&[u8]>) -> Option<Probe> {
        let mut decoder = Decoder::with_dictionary(dictionary.unwrap_or_default()).ok()?;
        decoder.set_parameter(DParameter::WindowLogMax(*WINDOW_LOGS.end())).ok()?;
        Some(Probe { decoder: Some(decoder), text: Vec::with_capacity(Probe::TEXT_BYTES) })
    }

    /// Finds nothing.
    fn blind() -> Probe {
        Probe { decoder: None, text: Vec::new() }
    }

    /// The cost is bounded by [`PROBE_BYTES`], however many there are.
    pub(crate) fn decode(&mut self, bytes: &[u8]) -> Probed<'_> {
        let bytes = &bytes[..bytes.len().min(PROBE_BYTES)];
        self.text.clear();
        let mut source = InBuffer::around(bytes);
        let mut ended = false;
        if let Some(decoder) = self.decoder.as_mut().filter(|_| bytes.starts_with(MAGIC)) {
            let ready = decoder.reinit().is_ok();
            while ready && self.text.len() < Probe::TEXT_BYTES {
                let before = (source.pos(), self.text.len());
                let mut target = OutBuffer::around_pos(&mut self.text, before.1);
                match decoder.run(&mut source, &mut target) {
                    Ok(0) => ended = true,
                    Ok(_) if (source.pos(), self.text.len()) != before => continue,
                    Ok(_) | Err(_) => {}
                }
                break;
            }
        }
        Probed { bytes: &self.text, used: source.pos().max(1), ended }
    }
}
