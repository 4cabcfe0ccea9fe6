//! What holds for any file.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

fn any_block() -> impl Strategy<Value = Vec<u8>> {
    const LIKE_WHAT_SURROUNDS_IT: [&str; 7] =
        ["\r\n", "\n", "WARC/1.0", "Content-Length: 1", "\r\n\r\n", "x", "\0"];
    prop_oneof![
        vec(any::<u8>(), 0..300),
        vec(proptest::sample::select(&LIKE_WHAT_SURROUNDS_IT[..]), 0..30)
            .prop_map(|parts| parts.concat().into_bytes()),
        (0usize..50_000, any::<u64>()).prop_map(|(len, seed)| noise(len, seed)),
    ]
}

fn write(blocks: &[Vec<u8>], pack: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let record = |(n, block): (usize, &Vec<u8>)| {
        let uri = format!("http://site.example/{n}");
        pack(&warc_record(&[("WARC-Type", "resource"), ("WARC-Target-URI", &uri)], block))
    };
    blocks.iter().enumerate().flat_map(record).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(blocks in vec(any_block(), 0..12), piece in 6usize..5000) {
        let plain = write(&blocks, <[u8]>::to_vec);
        let files = [
            plain.clone(),
            write(&blocks, gzip),
            write(&blocks, |record| zstd(record, b"")),
            gzip(&plain),
            zstd(&plain, b""),
        ];
        for (n, file) in files.iter().enumerate() {
            let (records, damage) = split(items(file, Limits::default()));
            prop_assert_eq!(&damage, &[], "form {}", n);
            prop_assert_eq!(testing::blocks(&records), blocks.iter().collect::<Vec<_>>(), "form {}", n);
        }
        // With borders anywhere, text in a block can stand where a record would.
        let pieces: Vec<u8> = plain.chunks(piece).flat_map(|piece| gzip_at(piece, 1)).collect();
        if !plain.is_empty() {
            let (records, _) = split(items(&pieces, Limits::default()));
            prop_assert!(records.len() >= blocks.len());
        }
    }

    #[test]
    fn any_bytes_come_to_an_end(bytes in vec(any::<u8>(), 0..4000)) {
        fuzz_reader(&bytes);
        for magic in [&b"\x1f\x8b\x08\x00"[..], b"\x28\xb5\x2f\xfd", b"WARC/1.0\r\n", b"\x5d\x2a\x4d\x18"] {
            fuzz_reader(&[magic, &bytes].concat());
        }
    }

    #[test]
    fn any_mutation_comes_to_an_end(
        form in 0usize..5,
        changes in vec((any::<Index>(), any::<u8>(), 0u8..4), 1..20),
    ) {
        let blocks: Vec<Vec<u8>> = (0..12).map(numbered_block).collect();
        let plain = write(&blocks, <[u8]>::to_vec);
        let mut file = match form {
            0 => plain,
            1 => write(&blocks, gzip),
            2 => write(&blocks, |record| zstd(record, b"")),
            3 => gzip(&plain),
            _ => [skippable(0xd, &plain), write(&blocks, |record| zstd(record, &plain))].concat(),
        };
        mutate(&mut file, changes);
        fuzz_reader(&file);
    }

    #[test]
    fn damage_to_one_member_harms_no_other(at in any::<Index>(), bytes in vec(any::<u8>(), 1..40)) {
        let members: Vec<Vec<u8>> = (0..30).map(|n| gzip(&numbered(n))).collect();
        let start: usize = members[..15].iter().map(Vec::len).sum();
        let mut file = members.concat();
        let at = at.index(members[15].len());
        let end = (at + bytes.len()).min(members[15].len());
        file[start + at..start + end].copy_from_slice(&bytes[..end - at]);
        let (records, _) = split(items(&file, SMALL));
        for n in (0..30).filter(|&n| n != 15) {
            prop_assert!(records.iter().any(|record| record.block == numbered_block(n) && !record.truncated));
        }
    }
}
