use super::*;
use crate::storage::Disk;
use proptest::prelude::*;

fn write(path: &Path, records: &[(u64, u32)], block_records: usize) -> RawMeta {
    let mut writer =
        RawWriter::with_block_records::<(u64, u32)>(&Disk, path, "writing a test", block_records).unwrap();
    for record in records {
        writer.push(record).unwrap();
    }
    writer.finish(true).unwrap()
}

fn read(path: &Path) -> Result<Vec<(u64, u32)>, RawError> {
    RawRecords::new(vec![path.to_owned()]).collect()
}

#[test]
fn the_bytes_of_a_small_file_are_frozen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.raw");
    let meta = write(&path, &[(0x0102_0304_0506_0708, 9)], 10);
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(meta.bytes, bytes.len() as u64);
    assert_eq!(meta.xxh3, xxhash_rust::xxh3::xxh3_64(&bytes));
    assert_eq!(&bytes[..16], b"OSKRAW01\x0c\0\0\0\0\0\0\0");
    assert_eq!(&bytes[16..20], &[12, 0, 0, 0]);
    assert_eq!(&bytes[24..36], &[8, 7, 6, 5, 4, 3, 2, 1, 9, 0, 0, 0]);
    let covered = [&[0u8; 8][..], &[12, 0, 0, 0], &bytes[24..36]].concat();
    assert_eq!(&bytes[20..24], &crc32c::crc32c(&covered).to_le_bytes());
    assert_eq!(&bytes[36..40], &[0; 4]);
    assert_eq!(&bytes[44..], &[1, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn files_follow_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b, c) = (dir.path().join("a"), dir.path().join("b"), dir.path().join("c"));
    write(&a, &[(1, 1), (2, 2), (3, 3)], 2);
    write(&b, &[], 2);
    write(&c, &[(4, 4)], 2);
    let all: Vec<(u64, u32)> = RawRecords::new(vec![a, b, c]).map(Result::unwrap).collect();
    assert_eq!(all, [(1, 1), (2, 2), (3, 3), (4, 4)]);
}

#[test]
fn every_cut_and_every_flipped_bit_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("whole.raw");
    let records: Vec<(u64, u32)> = (0..7).map(|i| (i * 1_000_003, i as u32)).collect();
    write(&path, &records, 3);
    assert_eq!(read(&path).unwrap(), records);
    let whole = std::fs::read(&path).unwrap();
    let damaged = dir.path().join("damaged.raw");
    for cut in 0..whole.len() {
        std::fs::write(&damaged, &whole[..cut]).unwrap();
        let error = read(&damaged).unwrap_err();
        assert!(error.to_string().contains("damaged.raw"), "{error}");
        assert!(
            matches!(error, RawError::Damaged { problem: RawDamage::CutOff, .. }),
            "cut at {cut}: {error}"
        );
    }
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&damaged, &bytes).unwrap();
        assert!(matches!(read(&damaged), Err(RawError::Damaged { .. })), "bit {bit}");
    }
    std::fs::write(&damaged, [&whole[..], b"x"].concat()).unwrap();
    assert!(matches!(read(&damaged), Err(RawError::Damaged { problem: RawDamage::Trailing, .. })));
}

#[test]
fn blocks_that_changed_places_are_seen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("swapped.raw");
    write(&path, &[(1, 1), (2, 2)], 1);
    let mut bytes = std::fs::read(&path).unwrap();
    let (first, second) = bytes[16..56].split_at_mut(20);
    first.swap_with_slice(second);
    std::fs::write(&path, &bytes).unwrap();
    assert!(matches!(read(&path), Err(RawError::Damaged { problem: RawDamage::Checksum, offset: 16, .. })));
}

#[test]
fn records_of_another_width_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.raw");
    write(&path, &[(1, 1)], 1);
    let error = RawReader::<u64>::open(&path).unwrap_err();
    assert!(error.to_string().ends_with("records are 12 bytes wide, expected 8"), "{error}");
}

fn round_trip<R: Record + std::fmt::Debug>(record: R) {
    let mut bytes = vec![0xAA; R::BYTES];
    record.put(&mut bytes);
    assert_eq!(R::get(&bytes), record);
}

proptest! {
    #[test]
    fn records_round_trip(a: u64, b: u32, c: u16, d: [u8; 20], e: i64, f: u128) {
        round_trip(a);
        round_trip((a, b));
        round_trip((a, b, c));
        round_trip((d, e, f, c));
        round_trip((e as i32, c as u8));
    }

    #[test]
    fn any_bytes_are_an_error_or_records(bytes: Vec<u8>) {
        let mut file = b"OSKRAW01\x0c\0\0\0\0\0\0\0".to_vec();
        file.extend_from_slice(&bytes);
        let mut reader = RawReader::<(u64, u32), _>::new(file.as_slice(), Path::new("any")).unwrap();
        let (mut scratch, mut block) = (Vec::new(), Vec::new());
        while let Ok(true) = reader.next_block(&mut scratch, &mut block) {}
        prop_assert!(scratch.capacity() <= 2 * MAX_BLOCK_BYTES);
    }
}
