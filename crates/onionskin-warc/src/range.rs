//! Pieces of one big gzip file.
//!
//! A crawl's file is a gigabyte, and reading it is mostly inflating it. Members are independent, so
//! pieces of the file can be read at the same time, once each piece knows where its first member
//! begins. The naive answer is the first `1f 8b 08` after the border that decodes to the beginning
//! of a record. It is nearly always right, and wrong in an instructive way: a crawl may have
//! downloaded a `.warc.gz`, which does not shrink and so is *stored*, bytes for bytes, inside its
//! record. A border inside such a record finds the members of the wrong file.
//!
//! But stored bytes come in blocks of at most 64 KiB with a few bytes between them, so a chain of
//! members that is really a quotation breaks soon. A chain that holds for [`TRUSTED_CHAIN`] is
//! believed. One that breaks earlier may be a quotation or true damage: then the reader starts from
//! further back, at a chain that holds, and follows the file from there as a reader of the whole
//! file would. Both find the same records.

use crate::input::Input;
use crate::reader::OpenError;
use crate::stream::{Fill, Open, Stream, gzip};
use crate::{Compression, ContainerKind, Limits, Reader, sniff};
use std::io::{self, Read, Seek, SeekFrom};

/// A chain of whole members this long is not a quotation: longer than a stored block.
const TRUSTED_CHAIN: u64 = 80 << 10;

/// A chain that consists of one huge member is believed after this much text.
const TRUSTED_TEXT: u64 = 4 << 20;

/// How far before the border to look first when the chain at the border is not to be trusted;
/// doubled until one is.
const FIRST_STEP_BACK: u64 = 1 << 20;

/// Reads the records whose gzip member *begins* in `start..end` of a file with a member for each
/// record (see [`is_splittable_gzip`]); the last of them is read to its end, past `end`. Reading
/// `0..a`, `a..b` and `b..u64::MAX`, in any order, gives the same records and the same damage as
/// reading the whole file. (One exception: a `continuation` record without its first segment is
/// reported only by the reader of the file's beginning.)
pub fn read_range<R: Read + Seek>(
    mut input: R,
    start: u64,
    end: u64,
    limits: Limits,
) -> Result<Reader<R>, OpenError> {
    let container = container(&mut input)?;
    let mut from = start;
    let mut step = FIRST_STEP_BACK;
    while from > 0 && !is_trusted(&mut input, from, end, container)? {
        from = start.saturating_sub(step);
        step = step.saturating_mul(2);
    }
    input.seek(SeekFrom::Start(from))?;
    Reader::for_range(input, from, (start, end), container, limits)
}

fn container<R: Read + Seek>(input: &mut R) -> Result<ContainerKind, OpenError> {
    input.seek(SeekFrom::Start(0))?;
    let mut head = Vec::new();
    input.by_ref().take(gzip::PROBE_BYTES as u64).read_to_end(&mut head)?;
    // The first member may be the damaged one. WARC is what nearly every file is.
    Ok(sniff(gzip::Probe::new().decode(&head).bytes).unwrap_or(ContainerKind::Warc))
}

fn gzip_stream<R: Read>(input: R, offset: u64, container: ContainerKind) -> Result<Stream<R>, OpenError> {
    Ok(Stream::new(Input::new(input, offset), Compression::Gzip, container, u64::MAX)?)
}

/// Can the first member found at `from` or later be a member of this file, and not of one quoted in
/// it?
fn is_trusted<R: Read + Seek>(
    input: &mut R,
    from: u64,
    end: u64,
    container: ContainerKind,
) -> Result<bool, OpenError> {
    input.seek(SeekFrom::Start(from))?;
    // Nothing that begins behind the end is wanted, so there is no need to look for it there; what
    // begins before it must be seen far enough to be recognised.
    let reach = end.saturating_sub(from).saturating_add(gzip::PROBE_BYTES as u64);
    let mut stream = gzip_stream(input.by_ref().take(reach), from, container)?;
    if !stream.resync(false)? || stream.input_offset() >= end {
        return Ok(true);
    }
    let first = stream.input_offset();
    drop(stream);
    input.seek(SeekFrom::Start(first))?;
    let mut stream = gzip_stream(input.by_ref(), first, container)?;
    let mut text = 0;
    while stream.input_offset() - first < TRUSTED_CHAIN && text < TRUSTED_TEXT {
        match stream.open()? {
            Open::Member => {}
            Open::End => return Ok(true),
            Open::Garbage | Open::CutOff => return Ok(false),
        }
        loop {
            match stream.fill(64 << 10)? {
                Fill::Bytes => {
                    let n = stream.pending().len();
                    stream.consume(n);
                    text += n as u64;
                    if text >= TRUSTED_TEXT {
                        break;
                    }
                }
                Fill::MemberEnd => break,
                Fill::Broken(_) => return Ok(false),
            }
        }
    }
    Ok(true)
}

/// True when the head of a gzip file shows a first member that ends, and is followed by another
/// that begins a record or by the end of the file: then there is a member for each record, and the
/// file can be read in pieces. Leaves the input at its beginning.
pub fn is_splittable_gzip<R: Read + Seek>(input: &mut R) -> io::Result<bool> {
    input.seek(SeekFrom::Start(0))?;
    let answer = first_member_ends(input);
    input.seek(SeekFrom::Start(0))?;
    match answer {
        Ok(answer) => Ok(answer),
        Err(OpenError::Io(error)) => Err(error),
        Err(_) => Ok(false),
    }
}

fn first_member_ends<R: Read + Seek>(input: &mut R) -> Result<bool, OpenError> {
    // A first record larger than this is rare, and a file that is one member is then not read to
    // its end in vain.
    const MAX_FIRST_MEMBER: u64 = 8 << 20;
    let mut stream = gzip_stream(input.by_ref().take(MAX_FIRST_MEMBER), 0, ContainerKind::Warc)?;
    if stream.open()? != Open::Member {
        return Ok(false);
    }
    let mut is_first_bytes = true;
    loop {
        match stream.fill(64 << 10)? {
            Fill::Bytes => {
                if is_first_bytes && sniff(stream.pending()).is_none() {
                    return Ok(false);
                }
                is_first_bytes = false;
                let n = stream.pending().len();
                stream.consume(n);
            }
            Fill::MemberEnd => break,
            Fill::Broken(_) => return Ok(false),
        }
    }
    let second = stream.input_offset();
    drop(stream);
    input.seek(SeekFrom::Start(second))?;
    let mut head = Vec::new();
    input.by_ref().take(gzip::PROBE_BYTES as u64).read_to_end(&mut head)?;
    Ok(!is_first_bytes && (head.is_empty() || sniff(gzip::Probe::new().decode(&head).bytes).is_some()))
}

#[cfg(test)]
mod tests;
