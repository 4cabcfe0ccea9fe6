use std::io::Cursor;

use proptest::prelude::*;

use super::*;

/// A reader that hands out a few bytes at a time, and may fail at the end.
struct Trickle<'a> {
    bytes: &'a [u8],
    step: usize,
    fail: bool,
}

impl Read for Trickle<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.step.min(into.len()).min(self.bytes.len());
        if n == 0 && self.fail {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        into[..n].copy_from_slice(&self.bytes[..n]);
        self.bytes = &self.bytes[n..];
        Ok(n)
    }
}

/// Every line with its offset; `None` for one over the limit.
fn naive_lines(bytes: &[u8], max_line: usize) -> Vec<(u64, Option<Vec<u8>>)> {
    let mut out = Vec::new();
    let mut offset = 0;
    for line in bytes.split_inclusive(|&b| b == b'\n') {
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        out.push((offset, (content.len() <= max_line).then(|| content.to_vec())));
        offset += line.len() as u64;
    }
    out
}

fn range_lines(bytes: &[u8], range: Range<u64>, max_line: usize, step: usize) -> Vec<(u64, Option<Vec<u8>>)> {
    let start = usize::try_from(range.start.saturating_sub(1)).unwrap();
    let mut buffer = Vec::new();
    let input = Trickle { bytes: &bytes[start..], step, fail: false };
    let mut reader = LineReader::new(input, range, max_line, &mut buffer);
    let mut out = Vec::new();
    while let Some(line) = reader.next(&mut |_| {}).unwrap() {
        out.push(match line {
            Line::Whole { offset, bytes } => (offset, Some(bytes.to_vec())),
            Line::TooLong { offset, bytes } => {
                assert!(bytes as usize > max_line);
                (offset, None)
            }
        });
    }
    out
}

/// Few letters, so that line feeds are everywhere.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(b"ab\n\r".to_vec()), 0..200)
}

proptest! {
    #[test]
    fn ranges_together_have_every_line_once(bytes in text(), step in 1_u64..50, max_line in 0_usize..30, trickle in 1_usize..40) {
        let len = bytes.len() as u64;
        let mut found = Vec::new();
        let mut start = 0;
        while start < len {
            let end = (start + step).min(len);
            found.extend(range_lines(&bytes, start..end, max_line, trickle));
            start = end;
        }
        prop_assert_eq!(found, naive_lines(&bytes, max_line));
    }

    /// Going from one wanted line to the next, by reading or by jumping, with ends that are told
    /// right or too far.
    #[test]
    fn wanted_lines_are_those_that_are_wanted(
        bytes in text(), wanted in prop::collection::vec(any::<bool>(), 200), step in 1_u64..80, gap in 0_u64..40, ends: bool,
    ) {
        let every = naive_lines(&bytes, 1000);
        let starts: Vec<u64> =
            every.iter().zip(&wanted).filter(|(_, wanted)| **wanted).map(|((offset, _), _)| *offset).collect();
        let expected: Vec<_> = every.iter().filter(|(offset, _)| starts.contains(offset)).cloned().collect();
        let len = bytes.len() as u64;
        let (mut found, mut begin, mut buffer) = (Vec::new(), 0, Vec::new());
        while begin < len {
            let range = begin..(begin + step).min(len);
            let mut input = Cursor::new(&bytes);
            input.set_position(range.start.saturating_sub(1));
            let mut reader = LineReader::new(input, range.clone(), 1000, &mut buffer);
            while let Some(start) = starts.iter().copied().find(|start| *start >= reader.offset().max(range.start))
                && start < range.end
            {
                let next = every.iter().map(|(offset, _)| *offset).find(|offset| *offset > start);
                let end = next.filter(|_| ends).unwrap_or(u64::MAX);
                reader.skip_to(start..end, gap).unwrap();
                if let Some(Line::Whole { offset, bytes }) = reader.next(&mut |_| {}).unwrap() {
                    found.push((offset, Some(bytes.to_vec())));
                }
            }
            begin = range.end;
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn blocks_together_have_every_line_once(
        bytes in text(), block in 1_u64..60, max_line in 0_usize..30, trickle in 1_usize..40, fail: bool,
    ) {
        let mut found = Vec::new();
        let mut failure = None;
        let mut was_last = false;
        let mut borders = Vec::new();
        let mut reader = BlockReader::new(Trickle { bytes: &bytes, step: trickle, fail }, block, max_line);
        while let Some(part) = reader.next_block(&mut |_| {}) {
            prop_assert!(!was_last, "nothing after the last block");
            was_last = part.last;
            borders.push(part.offset);
            found.extend(part.too_long.iter().map(|&(offset, _)| (offset, None)));
            for (at, line) in lines(&part.bytes) {
                found.push((part.offset + at as u64, (line.len() <= max_line).then(|| line.to_vec())));
            }
            failure = failure.or(part.failure);
        }
        prop_assert!(was_last || bytes.is_empty() && !fail);
        let mut expected = naive_lines(&bytes, max_line);
        if fail {
            prop_assert_eq!(failure.map(|loss| loss.reason), Some(BadReason::CutOff));
            if !bytes.ends_with(b"\n") {
                // The line the break fell into is no line, though one known to be too long may be
                // told of.
                let cut = expected.pop();
                if found.len() > expected.len() {
                    prop_assert_eq!(found.pop(), cut.map(|(offset, _)| (offset, None)));
                }
            }
        } else {
            prop_assert_eq!(failure, None);
        }
        prop_assert_eq!(found, expected);

        // Cut at the same places however the reads fall.
        let mut whole = BlockReader::new(Trickle { bytes: &bytes, step: usize::MAX, fail }, block, max_line);
        let at_once: Vec<u64> = std::iter::from_fn(|| whole.next_block(&mut |_| {})).map(|part| part.offset).collect();
        prop_assert_eq!(borders, at_once);
    }
}

#[test]
fn a_long_line_grows_the_buffer_and_gives_it_back() {
    let mut bytes = vec![b'x'; 40 * BUFFER_BYTES];
    bytes.extend_from_slice(b"\nshort\n");
    let mut buffer = Vec::new();
    let len = bytes.len() as u64;
    let mut reader = LineReader::new(Cursor::new(&bytes), 0..len, bytes.len(), &mut buffer);
    assert!(
        matches!(reader.next(&mut |_| {}).unwrap(), Some(Line::Whole { offset: 0, bytes }) if bytes.len() == 40 * BUFFER_BYTES)
    );
    assert!(matches!(reader.next(&mut |_| {}).unwrap(), Some(Line::Whole { bytes: b"short", .. })));
    assert_eq!(reader.next(&mut |_| {}).unwrap(), None);
    drop(reader);
    assert!(buffer.capacity() <= 2 * BUFFER_BYTES);
}

#[test]
fn a_line_over_the_limit_is_never_held() {
    let max_line = 4 * BUFFER_BYTES;
    let input = io::repeat(b'x').take(64 << 20).chain(&b"\nnext\n"[..]);
    let mut buffer = Vec::new();
    let mut reader = LineReader::new(input, 0..(64 << 20) + 6, max_line, &mut buffer);
    assert_eq!(reader.next(&mut |_| {}).unwrap(), Some(Line::TooLong { offset: 0, bytes: 64 << 20 }));
    assert_eq!(
        reader.next(&mut |_| {}).unwrap(),
        Some(Line::Whole { offset: (64 << 20) + 1, bytes: b"next" })
    );
    drop(reader);
    assert!(buffer.len() <= max_line + 2);

    let input = io::repeat(b'x').take(64 << 20).chain(&b"\nnext\n"[..]);
    let mut reader = BlockReader::new(input, 1 << 20, max_line);
    let block = reader.next_block(&mut |_| {}).unwrap();
    assert_eq!(
        (&*block.bytes, &*block.too_long, block.last),
        (&b"next\n"[..], &[(0, (64 << 20) + 1)][..], true)
    );
    assert!(block.bytes.capacity() <= 2 * max_line + STEP_BYTES, "{}", block.bytes.capacity());
}

#[test]
fn a_file_that_shrank_is_cut_off() {
    let mut buffer = Vec::new();
    let mut reader = LineReader::new(&b"one\ntw"[..], 0..20, 100, &mut buffer);
    assert_eq!(reader.next(&mut |_| {}).unwrap(), Some(Line::Whole { offset: 0, bytes: b"one" }));
    assert_eq!(reader.next(&mut |_| {}).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(reader.next(&mut |_| {}).unwrap(), None);
}
