//! Files that are wrong.

use super::*;
use std::time::{Duration, Instant};

fn members(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|n| gzip(&numbered(n))).collect()
}

#[test]
fn one_corrupt_member_among_200_at_any_byte() {
    let members = members(200);
    let start: usize = members[..100].iter().map(Vec::len).sum();
    let clean = members.concat();
    for at in 0..members[100].len() {
        for flip in [0x01, 0xff] {
            let mut file = clean.clone();
            file[start + at] ^= flip;
            let (records, damage) = split(items(&file, SMALL));
            assert!(records.len() >= 199, "byte {at}: {} records", records.len());
            assert!(damage.len() <= 1, "byte {at}: {damage:?}");
            // Some bits mean nothing: time and system in the head, the padding after the deflate
            // data. Then all must be as it was written.
            let is_harmless = damage.is_empty();
            for damage in &damage {
                assert_eq!(damage.offset, start as u64, "byte {at}");
                assert!(damage.lost_bytes <= members[100].len() as u64, "byte {at}");
            }
            for record in records.iter().filter(|record| !record.truncated) {
                let n: usize = record.target_uri().unwrap().rsplit('/').next().unwrap().parse().unwrap();
                assert!(is_harmless || n != 100, "byte {at}: a damaged record passed for whole");
                assert_eq!(record.block, numbered_block(n));
            }
        }
    }
}

#[test]
fn garbage_between_members() {
    let members = members(200);
    for garbage in
        [noise(1000, 9), b"\x1f\x8b\x08\x00garbage\x1f\x8b\x08".to_vec(), vec![0x1f; 10], gzip(b"text")]
    {
        let file = [members[..50].concat(), garbage.clone(), members[50..].concat()].concat();
        let (records, damage) = split(items(&file, SMALL));
        assert_eq!(records.len(), 200);
        assert_eq!(damage.len(), 1);
        assert_eq!(damage[0].offset, members[..50].concat().len() as u64);
        assert!(damage[0].lost_bytes <= garbage.len() as u64);
    }
}

#[test]
fn damage_in_the_very_first_member() {
    let members = members(20);
    let mut file = members.concat();
    file[14] ^= 0xff;
    let (records, damage) = split(items(&file, SMALL));
    assert!(records.len() >= 19);
    assert_eq!((damage.len(), damage[0].offset), (1, 0));
    let file = [noise(500, 4), members.concat()].concat();
    let (records, damage) = split(items(&file, SMALL));
    assert_eq!(records.len(), 20);
    assert_eq!(damage, [Damage { offset: 0, kind: DamageKind::Garbage, lost_bytes: 500 }]);
    let file = [b"oops ".to_vec(), (0..5).flat_map(numbered).collect()].concat();
    assert_eq!(outline(&items(&file, SMALL)), "!garbage 0 1 2 3 4");
}

#[test]
fn a_file_cut_off_at_any_byte() {
    let members = members(8);
    let file = members.concat();
    let before: usize = members[..7].iter().map(Vec::len).sum();
    for cut in before..file.len() {
        let (records, damage) = split(items(&file[..cut], SMALL));
        assert!(records.len() >= 7, "cut at {cut}");
        assert!(records[..7].iter().all(|record| !record.truncated));
        let expected = if cut == before { vec![] } else { vec![(before as u64, DamageKind::CutOff)] };
        let found: Vec<_> = damage.iter().map(|damage| (damage.offset, damage.kind)).collect();
        assert_eq!(found, expected, "cut at {cut}");
        if let Some(last) = records.get(7) {
            assert!(numbered_block(7).starts_with(&last.block));
            assert!(last.truncated || last.block == numbered_block(7));
        }
    }
    let (partial, _) = split(items(&file[..file.len() - 30], SMALL));
    assert_eq!(partial.len(), 8, "the last record has its head and a part of its block");
    assert!(partial[7].truncated && !partial[7].block.is_empty());
}

#[test]
fn plain_and_zstd_files_cut_off_at_any_byte() {
    let plain: Vec<u8> = (0..3).flat_map(numbered).collect();
    let last = plain.len() - numbered(2).len();
    for cut in last..plain.len() {
        let outline = outline(&items(&plain[..cut], SMALL));
        let whole = cut == last || cut >= plain.len() - 4;
        assert!(outline.starts_with("0 1"), "{outline}");
        assert_eq!(outline.contains("!cut-off"), !whole, "cut at {cut}: {outline}");
    }
    let frames: Vec<u8> = (0..3).flat_map(|n| zstd(&numbered(n), b"")).collect();
    let last = frames.len() - zstd(&numbered(2), b"").len();
    for cut in last + 1..frames.len() {
        let outline = outline(&items(&frames[..cut], SMALL));
        assert!(outline.starts_with("0 1") && outline.ends_with("!cut-off"), "cut at {cut}: {outline}");
    }
}

#[test]
fn corrupt_zstd_frames() {
    let frames: Vec<Vec<u8>> = (0..60).map(|n| zstd(&numbered(n), b"")).collect();
    let start: usize = frames[..30].iter().map(Vec::len).sum();
    for at in 0..frames[30].len() {
        let mut file = frames.concat();
        file[start + at] ^= 0x10;
        let (records, damage) = split(items(&file, SMALL));
        assert!(records.len() >= 59, "byte {at}: {}", records.len());
        assert!(damage.len() <= 2, "byte {at}: {damage:?}");
        assert!(damage.iter().all(|damage| damage.offset >= start as u64));
    }
    let file = [frames[..30].concat(), noise(5000, 2), frames[30..].concat()].concat();
    let (records, damage) = split(items(&file, SMALL));
    assert_eq!((records.len(), damage.len()), (60, 1));
    assert_eq!(damage[0].lost_bytes, 5000);
}

/// Record 1 of three with its length changed.
fn with_length(change: i64) -> [Vec<u8>; 3] {
    let length = (numbered_block(1).len() as i64 + change).to_string();
    let fields = [
        ("WARC-Type", "response"),
        ("WARC-Target-URI", "http://site.example/1"),
        ("Content-Length", length.as_str()),
    ];
    [numbered(0), warc_record(&fields, &numbered_block(1)), numbered(2)]
}

#[test]
fn lengths_that_are_wrong() {
    for change in [-100, -1, 5, 20, 200, 100_000_000] {
        let records = with_length(change);
        let plain = records.concat();
        let expected = match change {
            100_000_000 => "0 !too-large 2",
            5.. => "0 1- !wrong-length 2",
            _ => "0 1 !wrong-length 2",
        };
        let per_member: Vec<u8> = records.iter().flat_map(|record| gzip(record)).collect();
        let per_frame: Vec<u8> = records.iter().flat_map(|record| zstd(record, b"")).collect();
        for (name, file) in [("plain", plain.clone()), ("gzip", per_member), ("zstd", per_frame)] {
            assert_eq!(outline(&items(&file, SMALL)), expected, "{name}, {change}");
        }
        if change < 1_000_000 {
            assert_eq!(outline(&items(&gzip(&plain), SMALL)), expected, "whole-file gzip, {change}");
        }
    }
    // The true block comes out when the next record shows where it ends.
    let (records, _) = split(items(&with_length(200).concat(), SMALL));
    assert_eq!(records[1].block, numbered_block(1));
    // Less than the line ends behind it, and nobody can tell.
    let (records, damage) = split(items(&with_length(4).concat(), SMALL));
    assert_eq!((records.len(), damage.len()), (3, 0));
}

#[test]
fn a_wrong_length_in_the_last_record() {
    let [first, last, _] = with_length(50);
    assert_eq!(outline(&items(&[first.clone(), last.clone()].concat(), SMALL)), "0 1- !cut-off");
    assert_eq!(outline(&items(&[gzip(&first), gzip(&last)].concat(), SMALL)), "0 1- !wrong-length");
}

#[test]
fn a_quoted_warc_file_stays_in_its_record() {
    let quoted: Vec<u8> = (5..8).flat_map(numbered).collect();
    let fields = [("WARC-Type", "response"), ("WARC-Target-URI", "http://site.example/1")];
    let pieces = [numbered(0), warc_record(&fields, &quoted), numbered(2)];
    let gz: Vec<u8> = pieces.iter().flat_map(|piece| gzip_at(piece, 0)).collect();
    for file in [pieces.concat(), gz] {
        let records = records(&file);
        assert_eq!(records.len(), 3);
        assert_eq!(records[1].block, quoted);
    }
}

#[test]
fn heads_without_a_usable_length() {
    for length in ["", "-5", "many", "99999999999999999999999999"] {
        let bad = warc_record(&[("WARC-Type", "response"), ("Content-Length", length)], b"some text");
        let pieces = [numbered(0), bad, numbered(2)];
        let gz: Vec<u8> = pieces.iter().flat_map(|piece| gzip(piece)).collect();
        for file in [pieces.concat(), gz] {
            assert_eq!(outline(&items(&file, SMALL)), "0 !bad-header 2", "{length:?}");
        }
    }
    let endless = [b"WARC/1.0\r\nX: ".to_vec(), vec![b'x'; 400 << 10], numbered(2)].concat();
    assert_eq!(outline(&items(&endless, SMALL)), "!bad-header 2");
}

#[test]
fn records_above_the_limit_are_passed_over() {
    let at_limit = warc_record(&[("WARC-Target-URI", "x:/fits")], &noise(1 << 16, 1));
    let above = warc_record(&[("WARC-Target-URI", "x:/big")], &noise((1 << 16) + 1, 1));
    let pieces = [numbered(0), at_limit, above, numbered(3)];
    let gz: Vec<u8> = pieces.iter().flat_map(|piece| gzip(piece)).collect();
    let zst: Vec<u8> = pieces.iter().flat_map(|piece| zstd(piece, b"")).collect();
    for file in [pieces.concat(), gz, zst, gzip(&pieces.concat())] {
        assert_eq!(outline(&items(&file, SMALL)), "0 fits !too-large 3");
    }
}

#[test]
fn a_bomb_is_left_early() {
    // 40 MB of one character in 40 kB, once with an honest head, once with a small length, once as
    // blank lines.
    let zeros = vec![b'0'; 40 << 20];
    let honest = warc_record(&[("WARC-Type", "resource")], &zeros);
    let lying = warc_record(&[("WARC-Type", "resource"), ("Content-Length", "10")], &zeros);
    let blank = [b"WARC/1.0\r\nContent-Length: 1\r\n\r\nx".to_vec(), vec![b'\n'; 40 << 20]].concat();
    for (bomb, expected) in
        [(honest, "0 !too-large 2"), (lying, "0 ? !wrong-length 2"), (blank, "0 ? !garbage 2")]
    {
        for bomb in [gzip_at(&bomb, 1), zstd(&bomb, b"")] {
            let is_gzip = bomb[0] == 0x1f;
            let pack = |n| if is_gzip { gzip(&numbered(n)) } else { zstd(&numbered(n), b"") };
            let file = [pack(0), bomb, pack(2)].concat();
            let items = items(&file, SMALL);
            assert_eq!(outline(&items), expected);
            for damage in split(items).1 {
                assert!(
                    damage.lost_bytes < 2 * SMALL.max_skip_bytes(),
                    "the rest is not decoded: {damage:?}"
                );
            }
        }
    }
}

/// Two MiB of anything are read in well under a second when time is linear, in minutes when it is
/// not.
fn check_linear(name: &str, file: &[u8]) {
    let started = Instant::now();
    if let Ok(reader) = Reader::new(file, Limits::default()) {
        for item in reader {
            item.unwrap();
        }
    }
    let elapsed = started.elapsed();
    assert!(elapsed < Duration::from_secs(15), "{name}: {elapsed:?} for {} bytes", file.len());
}

#[test]
fn hostile_bytes_cost_linear_time() {
    const LEN: usize = 2 << 20;
    const MEMBER_HEAD: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03";
    let fill = |first: Vec<u8>, unit: &[u8]| [first, unit.repeat(LEN / unit.len())].concat();
    let gz = |name, unit: &[u8]| check_linear(name, &fill(gzip(&numbered(0)), unit));
    gz("magic numbers", b"\x1f\x8b\x08");
    gz("heads of members", MEMBER_HEAD);
    gz("endless names", b"\x1f\x8b\x08\x08\x01\x01\x01\x01\x01\x03");
    gz("empty stored blocks", &[MEMBER_HEAD, &[0, 0, 0, 0xff, 0xff].repeat(3)].concat());
    // Members that begin a record and go on for 64 KiB, over all the members that follow.
    let nested = [MEMBER_HEAD, b"\x00\xff\xff\x00\x00WARC/1.0\r\nContent-Length: 9999999\r\n\r\n"].concat();
    gz("nested members", &nested);
    gz("members cut short", &gzip(&numbered(1))[..200]);
    let plain = |name, unit: &[u8]| check_linear(name, &fill(numbered(0), unit));
    plain("lengths beyond the end", b"WARC/1.0\r\nContent-Length: 60000000\r\n\r\n");
    plain("heads without length", b"WARC/1.0\r\nWARC-Type: x\r\n\r\n");
    plain("beginnings of heads", b"\nWARC/1.0");
    plain("tiny garbage", b"x");
    plain("line ends", b"\n");
    let arc = |name, unit: &[u8]| {
        check_linear(name, &fill(b"filedesc://f.arc 0.0.0.0 20140126200624 text/plain 0\n".to_vec(), unit));
    };
    arc("an endless ARC line", b"http://a/ ");
    arc("ARC lines", b"http://a/ b c d e\n");
    arc("ARC lengths", b"http://a/ 1.1.1.1 20140126200624 a/b 60000000\n");
    let zst = |name, unit: &[u8]| check_linear(name, &fill(zstd(&numbered(0), b""), unit));
    zst("zstd magic numbers", b"\x28\xb5\x2f\xfd");
    zst("zstd frames cut short", &zstd(&noise(900, 1), b"")[..30]);
    check_linear("random", &noise(LEN, 77));
}

#[test]
fn all_that_is_passed_over_is_counted() {
    let head = b"filedesc://f.arc 0.0.0.0 20140126200624 text/plain 0\n".to_vec();
    let (records, damage) = split(items(&[head, b"http://a/ ".repeat(100_000)].concat(), SMALL));
    assert_eq!(records.len(), 1);
    assert_eq!(damage.iter().map(|damage| damage.lost_bytes).sum::<u64>(), 1_000_000);
    let (records, damage) = split(items(&[numbered(0), vec![b'x'; 1_000_000], numbered(1)].concat(), SMALL));
    assert_eq!(records.len(), 2);
    assert_eq!(damage.iter().map(|damage| damage.lost_bytes).sum::<u64>(), 1_000_000);
}
