//! Decoded bytes, with the borders of gzip members and zstd frames.
//!
//! A decoder that hides the borders (as `MultiGzDecoder` does) cannot tell a record that ended from
//! one that was damaged, and stops for good at the first error. Here every border is seen:
//! [`Stream::fill`] ends at it, and [`Stream::open`] goes on. After an error [`Stream::resync`]
//! looks for the next place where a member begins *and* decodes to the beginning of a record.
//!
//! A block is decoded straight into its own memory by [`Stream::fill_block`]; only heads, and the
//! few bytes decoded along with them, pass through the buffer here.

use crate::head::{Begins, MAX_HEAD_BYTES, record_begins};
use crate::input::Input;
use crate::{Compression, ContainerKind, DamageKind};
use std::io::{self, Read};

pub(crate) mod gzip;
pub(crate) mod zstd;

/// What came of decoding a little further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// At least one byte more.
    Bytes,
    /// The member is over, and was whole.
    MemberEnd,
    /// The member cannot be decoded further.
    Broken(DamageKind),
}

/// What lies at a border.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Open {
    /// A member, now open.
    Member,
    /// The end of the file.
    End,
    /// Bytes that begin no member.
    Garbage,
    /// The beginning of a member, and then the end of the file.
    CutOff,
}

/// Text decoded to find out what a place in the file is.
pub(crate) struct Probed<'a> {
    pub(crate) bytes: &'a [u8],
    /// How much of the input it took.
    pub(crate) used: usize,
    /// The member or frame is over.
    pub(crate) ended: bool,
}

enum Codec {
    Plain { is_open: bool },
    Gzip(Box<gzip::Gzip>),
    Zstd(Box<zstd::Zstd>),
}

/// How many bytes may be looked at more than once.
///
/// Hostile or unlucky bytes can look like the beginning of a member at every turn; going back to
/// try each would take quadratic time. So going back is paid for: every byte of the file that is
/// new earns two, and what is decoded in vain costs. Without credit the reader only goes forward,
/// and time stays linear.
struct Credit {
    left: u64,
    highest: u64,
}

impl Credit {
    const FIRST: u64 = 16 << 20;

    fn reached(&mut self, offset: u64) {
        if offset > self.highest {
            self.left = self.left.saturating_add(2 * (offset - self.highest)).min(1 << 40);
            self.highest = offset;
        }
    }

    fn spend(&mut self, cost: u64) -> bool {
        let affordable = cost <= self.left;
        if affordable {
            self.left -= cost;
        }
        affordable
    }
}

pub(crate) struct Stream<R> {
    input: Input<R>,
    codec: Codec,
    container: ContainerKind,
    /// Decoded, and not yet taken: `decoded[at..]`.
    decoded: Vec<u8>,
    at: usize,
    /// Where the open member began.
    member_offset: u64,
    /// How many bytes it gave so far.
    member_bytes: u64,
    /// How the open member ended, once it did; asking again gives the same answer.
    ended: Option<Fill>,
    credit: Credit,
}

/// Room behind a block, so that the fast loop of inflate runs to its end and the member's own end
/// is seen in the same call.
const BLOCK_SLACK: usize = 512;
/// A block grows by at least this, and at most by doubling: a length in a head is a claim.
const BLOCK_STEP: usize = 256 << 10;

impl<R: Read> Stream<R> {
    pub(crate) fn new(
        mut input: Input<R>,
        compression: Compression,
        container: ContainerKind,
        max_record_bytes: u64,
    ) -> Result<Stream<R>, zstd::SetupError> {
        let codec = match compression {
            Compression::None => Codec::Plain { is_open: false },
            Compression::Gzip => Codec::Gzip(Box::new(gzip::Gzip::new())),
            Compression::Zstd => Codec::Zstd(Box::new(zstd::Zstd::new(&mut input, max_record_bytes)?)),
        };
        let credit = Credit { left: Credit::FIRST, highest: input.offset() };
        let member_offset = input.offset();
        Ok(Stream {
            input,
            codec,
            container,
            decoded: Vec::new(),
            at: 0,
            member_offset,
            member_bytes: 0,
            ended: None,
            credit,
        })
    }

    pub(crate) fn is_compressed(&self) -> bool {
        !matches!(self.codec, Codec::Plain { .. })
    }

    pub(crate) fn container(&self) -> ContainerKind {
        self.container
    }

    /// Where the open member began.
    pub(crate) fn member_offset(&self) -> u64 {
        self.member_offset
    }

    /// Where in the file the decoder stands.
    pub(crate) fn input_offset(&self) -> u64 {
        self.input.offset()
    }

    /// The best answer to where in the file the next decoded byte is.
    pub(crate) fn offset(&self) -> u64 {
        match self.codec {
            Codec::Plain { .. } => self.input.offset().saturating_sub(self.pending().len() as u64),
            Codec::Gzip(_) | Codec::Zstd(_) => self.member_offset,
        }
    }

    /// Decoded bytes that nobody took yet.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.decoded[self.at..]
    }

    pub(crate) fn consume(&mut self, n: usize) {
        self.at = (self.at + n).min(self.decoded.len());
        if self.at == self.decoded.len() {
            self.decoded.clear();
            self.at = 0;
        }
    }

    /// Puts bytes back in front of what is pending, if there is credit for reading them again.
    pub(crate) fn push_back(&mut self, bytes: &[u8]) -> bool {
        let affordable = self.credit.spend(bytes.len() as u64);
        if affordable {
            self.decoded.splice(..self.at, bytes.iter().copied());
            self.at = 0;
        }
        affordable
    }

    /// Decodes up to about `wanted` bytes more into what is pending.
    pub(crate) fn fill(&mut self, wanted: usize) -> io::Result<Fill> {
        if let Some(ended) = self.ended {
            return Ok(ended);
        }
        if self.at > self.decoded.len() / 2 {
            self.decoded.drain(..self.at);
            self.at = 0;
        }
        let before = self.decoded.len();
        self.decoded.reserve(wanted);
        let fill = match &mut self.codec {
            Codec::Plain { is_open } => plain_fill(&mut self.input, &mut self.decoded, wanted, is_open)?,
            Codec::Gzip(gzip) => gzip.decode(&mut self.input, &mut self.decoded, wanted)?,
            Codec::Zstd(zstd) => zstd.decode(&mut self.input, &mut self.decoded)?,
        };
        self.member_bytes += (self.decoded.len() - before) as u64;
        Ok(self.note(fill))
    }

    /// Moves pending bytes to a block that is to be `length` bytes long.
    pub(crate) fn take_into(&mut self, block: &mut Vec<u8>, length: usize) {
        let n = self.pending().len().min(length.saturating_sub(block.len()));
        block.extend_from_slice(&self.decoded[self.at..self.at + n]);
        self.consume(n);
    }

    /// An empty block with a sensible beginning for `length` bytes.
    pub(crate) fn new_block(length: usize) -> Vec<u8> {
        Vec::with_capacity(length.min(BLOCK_STEP) + BLOCK_SLACK)
    }

    /// Decodes straight into a block that is to be `length` bytes long and is not yet. Nothing may
    /// be pending; what is decoded past `length` is pending afterwards.
    pub(crate) fn fill_block(&mut self, block: &mut Vec<u8>, length: usize) -> io::Result<Fill> {
        debug_assert!(self.pending().is_empty() && block.len() < length);
        if let Some(ended) = self.ended {
            return Ok(ended);
        }
        let before = block.len();
        let missing = length - before;
        if block.capacity() - before < missing.min(BLOCK_STEP) + BLOCK_SLACK {
            block.reserve_exact(missing.min(before.max(BLOCK_STEP)) + BLOCK_SLACK);
        }
        let fill = match &mut self.codec {
            Codec::Plain { is_open } => {
                plain_fill(&mut self.input, block, missing.min(block.capacity() - before), is_open)?
            }
            Codec::Gzip(gzip) => {
                let room = (missing.min(BLOCK_STEP) + BLOCK_SLACK).min(block.capacity() - before);
                gzip.decode(&mut self.input, block, room)?
            }
            Codec::Zstd(zstd) => zstd.decode(&mut self.input, block)?,
        };
        self.member_bytes += (block.len() - before) as u64;
        if block.len() > length {
            self.decoded.extend_from_slice(&block[length..]);
            block.truncate(length);
        }
        Ok(self.note(fill))
    }

    fn note(&mut self, fill: Fill) -> Fill {
        self.credit.reached(self.input.offset());
        self.ended = (fill != Fill::Bytes).then_some(fill);
        fill
    }

    /// Opens the member that begins here. Anything but [`Open::Member`] changes nothing.
    pub(crate) fn open(&mut self) -> io::Result<Open> {
        let open = match &mut self.codec {
            Codec::Plain { is_open } => {
                let more = !self.input.peek(1)?.is_empty();
                *is_open = more;
                self.member_offset = self.input.offset();
                if more { Open::Member } else { Open::End }
            }
            Codec::Gzip(gzip) => gzip.open(&mut self.input, &mut self.member_offset)?,
            Codec::Zstd(zstd) => zstd.open(&mut self.input, &mut self.member_offset)?,
        };
        if open == Open::Member {
            self.member_bytes = 0;
            self.ended = None;
        }
        Ok(open)
    }

    /// Looks for the next member that begins a record, one byte behind the beginning of the open
    /// member if `go_back`, else from where the decoder stands. Stands before it, unopened; false
    /// at the end of the file.
    pub(crate) fn resync(&mut self, go_back: bool) -> io::Result<bool> {
        self.decoded.clear();
        self.at = 0;
        self.ended = Some(Fill::MemberEnd);
        if go_back {
            let distance = self.input.offset() - self.member_offset;
            // What was decoded costs as well, or a bomb could be set off many times over.
            if self.credit.spend(distance + self.member_bytes / 16) {
                self.input.rewind(self.member_offset + 1);
            }
        }
        loop {
            let magic = match &self.codec {
                Codec::Plain { .. } => return self.drain_plain(),
                Codec::Gzip(_) => gzip::MAGIC,
                Codec::Zstd(_) => zstd::MAGIC,
            };
            let probe_bytes =
                if matches!(self.codec, Codec::Gzip(_)) { gzip::PROBE_BYTES } else { zstd::PROBE_BYTES };
            let bytes = self.input.peek(probe_bytes)?;
            let at_end = bytes.len() < magic.len();
            let Some(at) = memchr::memmem::find(bytes, magic) else {
                let passed = if at_end { bytes.len() } else { bytes.len() - (magic.len() - 1) };
                self.pass(passed);
                if at_end {
                    return Ok(false);
                }
                continue;
            };
            self.pass(at);
            let bytes = self.input.peek(probe_bytes)?;
            let probed = match &mut self.codec {
                Codec::Gzip(gzip) => gzip.probe().decode(bytes),
                Codec::Zstd(zstd) => zstd.probe().decode(bytes),
                Codec::Plain { .. } => return Ok(false),
            };
            if record_begins(probed.bytes, self.container) == Begins::Yes {
                return Ok(true);
            }
            let used = probed.used.clamp(1, bytes.len());
            let step = if self.credit.spend(used as u64) { 1 } else { used };
            self.pass(step);
        }
    }

    /// A plain file has no members to find; records are found in its text.
    fn drain_plain(&mut self) -> io::Result<bool> {
        while !self.input.peek(1)?.is_empty() {
            let n = self.input.available().len();
            self.pass(n);
        }
        Ok(false)
    }

    fn pass(&mut self, n: usize) {
        self.input.consume(n);
        self.input.set_mark();
        self.credit.reached(self.input.offset());
    }
}

fn plain_fill<R: Read>(
    input: &mut Input<R>,
    out: &mut Vec<u8>,
    wanted: usize,
    is_open: &mut bool,
) -> io::Result<Fill> {
    input.set_mark();
    let n = if *is_open { input.read_into(out, wanted.max(1))? } else { 0 };
    *is_open = n > 0;
    Ok(if n > 0 { Fill::Bytes } else { Fill::MemberEnd })
}

// Probing must see at least the whole head of a member.
const _: () = assert!(gzip::PROBE_BYTES < MAX_HEAD_BYTES);
