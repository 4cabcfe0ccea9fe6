use super::*;
use crate::testing::*;
use crate::{DamageKind, Item};
use proptest::collection::vec;
use proptest::prelude::*;
use std::io::Cursor;

fn pieces(file: &[u8], borders: &[u64]) -> Vec<Item> {
    let mut all: Vec<u64> = borders.to_vec();
    all.sort_unstable();
    all.insert(0, 0);
    all.push(u64::MAX);
    let read = |pair: &[u64]| {
        let reader = read_range(Cursor::new(file), pair[0], pair[1], SMALL).unwrap();
        reader.map(Result::unwrap).collect::<Vec<_>>()
    };
    all.windows(2).flat_map(read).collect()
}

fn check(file: &[u8], borders: &[u64]) {
    let whole = items(file, SMALL);
    let pieces = pieces(file, borders);
    assert_eq!(outline(&pieces), outline(&whole), "{borders:?}");
    assert_eq!(pieces, whole, "{borders:?}");
}

#[test]
fn one_border_anywhere() {
    let file: Vec<u8> = (0..6).flat_map(|n| gzip(&numbered(n))).collect();
    for border in 0..file.len() as u64 + 2 {
        check(&file, &[border]);
    }
}

#[test]
fn one_border_anywhere_in_a_damaged_file() {
    let mut members: Vec<Vec<u8>> = (0..8).map(|n| gzip(&numbered(n))).collect();
    members[2][60] ^= 0xff;
    members.insert(4, noise(300, 8));
    members.insert(6, gzip(b"not a record"));
    let cut = members[9].len() / 2;
    members[9].truncate(cut);
    let file = members.concat();
    assert!(split(items(&file, SMALL)).1.len() >= 4);
    for border in 0..file.len() as u64 {
        check(&file, &[border]);
    }
}

#[test]
fn a_border_inside_a_quoted_file() {
    // A downloaded .warc.gz, kept in stored blocks: its members lie bare in the file.
    let quoted: Vec<u8> = (100..340).flat_map(|n| gzip(&numbered(n))).collect();
    assert!(quoted.len() > 50_000 && quoted.len() < SMALL.max_record_bytes as usize, "{}", quoted.len());
    let fields = [("WARC-Type", "response"), ("WARC-Target-URI", "http://site.example/quote")];
    let mut file: Vec<u8> = (0..3).flat_map(|n| gzip(&numbered(n))).collect();
    file.extend(gzip_at(&warc_record(&fields, &quoted), 0));
    file.extend((4..900).flat_map(|n| gzip(&numbered(n))));
    assert_eq!(split(items(&file, SMALL)).1, []);
    for border in (0..file.len() as u64).step_by(4099) {
        check(&file, &[border]);
    }
}

#[test]
fn segments_across_a_border() {
    let first = [("WARC-Type", "response"), ("WARC-Record-ID", "<x:1>"), ("WARC-Segment-Number", "1")];
    let second = [
        ("WARC-Type", "continuation"),
        ("WARC-Segment-Origin-ID", "<x:1>"),
        ("WARC-Segment-Number", "2"),
        ("WARC-Segment-Total-Length", "6"),
    ];
    let file = [numbered(0), warc_record(&first, b"one"), warc_record(&second, b"two"), numbered(3)];
    let file: Vec<u8> = file.iter().flat_map(|record| gzip(record)).collect();
    for border in 0..file.len() as u64 {
        check(&file, &[border]);
    }
}

#[test]
fn a_range_reads_no_further_than_it_must() {
    let file: Vec<u8> = (0..20_000).flat_map(|n| gzip(&numbered(n))).collect();
    let mut reader = read_range(Cursor::new(&file[..]), 1000, 5000, SMALL).unwrap();
    assert!(reader.by_ref().count() > 5);
    assert!(reader.bytes_read() < 10_000);
    assert!((file.len() as u64) > 1_000_000);
}

#[test]
fn which_files_can_be_split() {
    let is_splittable = |file: &[u8]| is_splittable_gzip(&mut Cursor::new(file)).unwrap();
    let plain: Vec<u8> = (0..20).flat_map(numbered).collect();
    assert!(is_splittable(&(0..3).flat_map(|n| gzip(&numbered(n))).collect::<Vec<u8>>()));
    assert!(is_splittable(&gzip(&numbered(0))));
    assert!(!is_splittable(&plain));
    assert!(!is_splittable(b""));
    assert!(!is_splittable(&gzip(b"text")));
    assert!(!is_splittable(&zstd(&plain, b"")));
    assert!(
        !is_splittable(&plain.chunks(100).flat_map(gzip).collect::<Vec<u8>>()),
        "members are not records"
    );
    let cut = gzip(&plain);
    assert!(!is_splittable(&cut[..cut.len() / 2]));
}

#[test]
fn the_damage_of_an_arc_file_is_found_in_pieces_too() {
    let arc = |n: usize| {
        let block = numbered_block(n);
        let head = format!("http://site.example/{n} 1.2.3.4 20140126200624 text/plain {}\n", block.len());
        gzip(&[head.into_bytes(), block, b"\n".to_vec()].concat())
    };
    let mut file: Vec<u8> = (0..9).flat_map(arc).collect();
    let middle = file.len() / 2;
    file[middle] ^= 0x40;
    assert!(split(items(&file, SMALL)).1.iter().all(|damage| damage.kind == DamageKind::CorruptMember));
    for border in (0..file.len() as u64).step_by(7) {
        check(&file, &[border]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_borders(sizes in vec(0usize..3000, 1..40), borders in vec(0u64..60_000, 0..6), seed: u64) {
        let record = |(n, size): (usize, &usize)| {
            let uri = format!("http://site.example/{n}");
            gzip(&warc_record(&[("WARC-Target-URI", &uri)], &noise(*size, seed ^ n as u64)))
        };
        let file: Vec<u8> = sizes.iter().enumerate().flat_map(record).collect();
        check(&file, &borders);
    }

    #[test]
    fn any_borders_in_a_file_with_any_damage(
        changes in vec((any::<proptest::sample::Index>(), any::<u8>(), 0u8..4), 1..12),
        borders in vec(0u64..4000, 1..4),
    ) {
        let mut file: Vec<u8> = (0..14).flat_map(|n| gzip(&numbered(n))).collect();
        mutate(&mut file, changes);
        check(&file, &borders);
    }
}
