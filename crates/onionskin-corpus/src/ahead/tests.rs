use proptest::prelude::*;

use super::*;
use crate::decode::decoder_within;
use crate::testing::{gzip, zst};
use crate::watch::Watched;

const WINDOW_LOG: u32 = 23;

/// What came out, how it ended, and how much of the input had been read by then.
type Came = (Vec<u8>, Option<String>, u64);

fn drain(mut input: impl Read, watch: &Watch, most: usize) -> Came {
    let (mut out, mut piece) = (Vec::new(), vec![0; most]);
    loop {
        match input.read(&mut piece) {
            Ok(0) => return (out, None, watch.position()),
            Ok(n) => out.extend_from_slice(&piece[..n]),
            Err(error) => return (out, Some(error.to_string()), watch.position()),
        }
    }
}

fn in_order(stored: &[u8], encoding: Encoding) -> Came {
    let watch = Watch::default();
    let input = Watched::new(io::Cursor::new(stored.to_vec()), Some(stored.len() as u64), &watch);
    drain(Steps::new(decoder_within(input, encoding, WINDOW_LOG).unwrap(), 0), &watch, 64 << 10)
}

/// Decodes ahead with so many helpers, within so many bytes; also how many pieces there were.
fn ahead(stored: &[u8], encoding: Encoding, bytes: u64, helpers: usize, most: usize) -> (Came, usize) {
    let (watch, ahead) = (Watch::default(), Ahead::within(bytes));
    let input = Watched::new(io::Cursor::new(stored.to_vec()), Some(stored.len() as u64), &watch);
    let mut pieces = Pieces::new(input, encoding, WINDOW_LOG, &ahead, &watch);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    if !ahead.help() {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let came = drain(&mut pieces, &watch, most);
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        let in_rest = pieces.rest.is_some();
        (came, if in_rest { 0 } else { 1 })
    })
}

fn text(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut out = Vec::with_capacity(bytes + 20);
    while out.len() < bytes {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        out.extend_from_slice(format!("word{} ", (state >> 33) % 5000).as_bytes());
        if state >> 60 == 0 {
            out.push(b'\n');
        }
    }
    out.truncate(bytes);
    out
}

fn framed(text: &[u8], piece: usize, encoding: Encoding) -> Vec<u8> {
    text.chunks(piece)
        .flat_map(|part| if encoding == Encoding::Gzip { gzip(part) } else { zst(part) })
        .collect()
}

/// Whatever is decoded ahead is what is decoded in order.
fn check(stored: &[u8], encoding: Encoding, bytes: u64) -> usize {
    let expected = in_order(stored, encoding);
    let mut whole = 0;
    for (helpers, most) in [(0, 64 << 10), (2, 5000)] {
        let (came, pieces) = ahead(stored, encoding, bytes, helpers, most);
        assert_eq!(came.1, expected.1);
        assert_eq!(came.0.len(), expected.0.len());
        assert!(came == expected, "{} and {} bytes read", came.2, expected.2);
        whole = pieces;
    }
    whole
}

const BOTH: [Encoding; 2] = [Encoding::Gzip, Encoding::Zstd];

#[test]
fn frames_and_members_are_decoded_ahead() {
    let text = text(3 << 20, 1);
    for encoding in BOTH {
        for piece in [1000, 50_000, 700_000] {
            let stored = framed(&text, piece, encoding);
            assert_eq!(in_order(&stored, encoding).0, text);
            assert_eq!(check(&stored, encoding, 32 << 20), 1, "{encoding:?} in frames of {piece}");
        }
    }
}

#[test]
fn a_frame_that_is_too_large_is_decoded_in_order_with_all_after_it() {
    let text = text(3 << 20, 2);
    for encoding in BOTH {
        let mut stored = framed(&text[..100_000], 9000, encoding);
        stored.extend(framed(&text, text.len(), encoding));
        stored.extend(framed(&text[..100_000], 9000, encoding));
        assert_eq!(check(&stored, encoding, 4 << 20), 0);
        assert_eq!(check(&stored, encoding, 64 << 20), 1);
    }
}

#[test]
fn what_is_not_a_frame_ends_as_it_does_in_order() {
    let text = text(300_000, 3);
    for encoding in BOTH {
        let whole = framed(&text, 40_000, encoding);
        assert_eq!(check(&[], encoding, 8 << 20), 0);
        let magic: &[u8] = if encoding == Encoding::Gzip { b"\x1f\x8b\x08" } else { b"\x28\xb5\x2f\xfd" };
        for end in [&b"\0"[..], b"\0\0\0\0\0\0\0\0\0\0\0\0", b"garbage behind the last frame", magic] {
            assert_eq!(check(&[&whole, end].concat(), encoding, 8 << 20), 0);
        }
        for len in [1, 5, 17, whole.len() / 2, whole.len() - 1] {
            assert_eq!(check(&whole[..len], encoding, 8 << 20), 0);
        }
        // An empty frame is one, and so is one to be skipped.
        let empty = framed(b"x", 1, encoding);
        let nothing = if encoding == Encoding::Gzip { gzip(b"") } else { zst(b"") };
        let skipped: &[u8] = if encoding == Encoding::Gzip { b"" } else { b"\x53\x2a\x4d\x18\x04\0\0\0abcd" };
        assert_eq!(
            check(&[skipped, &nothing, &whole, skipped, &empty, &nothing].concat(), encoding, 8 << 20),
            1
        );
    }
}

/// A header of gzip inside a member that is stored as it is: no border, whatever it looks like.
#[test]
fn members_inside_members_are_no_border() {
    let inner = gzip(b"an archive in an archive, with all its headers and trailers");
    let mut stored = Vec::new();
    for _ in 0..3 {
        let mut outer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        io::Write::write_all(&mut outer, &[&inner[..], &inner, b"more"].concat()).unwrap();
        stored.extend(outer.finish().unwrap());
    }
    assert_eq!(check(&stored, Encoding::Gzip, 8 << 20), 0);
}

/// A frame that says less, or decodes to far more, than there is room for.
#[test]
fn bombs_are_not_decoded_ahead() {
    let zeros = vec![0; 40 << 20];
    for encoding in BOTH {
        let stored = framed(&zeros, 20 << 20, encoding);
        assert_eq!(check(&stored, encoding, 4 << 20), 0);
        // The length at the end of a member can lie.
        let mut lying = framed(&zeros[..10 << 20], 10 << 20, encoding);
        let len = lying.len();
        lying[len - 4..].copy_from_slice(&1000_u32.to_le_bytes());
        assert_eq!(check(&lying, encoding, 4 << 20), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damage_is_what_it_is_in_order(
        seed in any::<u64>(),
        piece in 500_usize..60_000,
        is_gzip in any::<bool>(),
        at in any::<prop::sample::Index>(),
        kind in 0..4,
        byte in 1..=255_u8,
        bytes in prop::sample::select(vec![1_u64 << 16, 1 << 20, 8 << 20]),
    ) {
        let encoding = if is_gzip { Encoding::Gzip } else { Encoding::Zstd };
        let mut stored = framed(&text(400_000, seed), piece, encoding);
        let at = at.index(stored.len());
        match kind {
            0 => stored[at] ^= byte,
            1 => stored.truncate(at),
            2 => stored.insert(at, byte),
            _ => drop(stored.remove(at)),
        }
        check(&stored, encoding, bytes);
    }
}
