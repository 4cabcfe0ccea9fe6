use super::*;
use proptest::prelude::*;
use std::fs;

/// Sorts through the sorter and by `Vec::sort`, compares, and gives the cost.
fn check<R: Record + std::fmt::Debug>(records: &[R], budget: u64, dedup: bool) -> SortStats {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    let params = SortParams { dedup, ..SortParams::new(&runs, MemoryBudget::from_bytes(budget)) };
    let mut sorter = Sorter::new(params).unwrap();
    let (one_by_one, at_once) = records.split_at(records.len() / 2);
    for record in one_by_one {
        sorter.push(*record).unwrap();
    }
    sorter.push_slice(at_once).unwrap();
    let mut stream = sorter.finish().unwrap();
    let stats = stream.stats();
    let mut sorted = Vec::new();
    let mut block = Vec::new();
    while sorted.len() < records.len() / 3 && stream.next_block(&mut block, 7).unwrap() {
        sorted.extend_from_slice(&block);
    }
    sorted.extend(stream.map(Result::unwrap));

    let mut naive = records.to_vec();
    naive.sort();
    if dedup {
        naive.dedup();
    }
    assert_eq!(sorted, naive);
    assert_eq!(stats.records, records.len() as u64);
    assert!(stats.peak_bytes <= budget.max(8192), "{stats:?} for a budget of {budget}");
    let left = fs::read_dir(&runs).map_or(0, Iterator::count);
    assert_eq!(left, 0, "runs are removed");
    stats
}

fn scattered(n: u64) -> Vec<(u64, u32)> {
    (0..n).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40, (i % 5) as u32)).collect()
}

#[test]
fn what_fits_is_sorted_in_memory() {
    let stats = check(&scattered(1000), 1 << 20, false);
    assert_eq!((stats.runs, stats.spilled_bytes), (0, 0));
    assert_eq!(stats.peak_bytes, 1000 * 16);
    check::<u64>(&[], 1 << 20, false);
    check(&[5u64], 1, true);
}

#[test]
fn what_does_not_fit_is_spilled() {
    let stats = check(&scattered(20_000), 10 << 10, false);
    assert!(stats.runs >= 30, "{stats:?}");
    assert!(stats.extra_merges >= 1, "{stats:?}");
    assert!(stats.spilled_bytes > 20_000 * 12, "{stats:?}");
}

#[test]
fn a_budget_of_almost_nothing_still_sorts() {
    check(&scattered(500), 1, false);
    check(&scattered(500), 64, true);
}

#[test]
fn wide_records_are_sorted_by_all_their_bytes() {
    let records: Vec<[u8; 20]> = scattered(3000)
        .iter()
        .map(|(a, b)| std::array::from_fn(|i| (a >> (i % 8)) as u8 ^ *b as u8))
        .collect();
    assert!(check(&records, 10 << 10, true).runs > 1);
}

#[test]
fn a_damaged_run_is_an_error_with_its_name() {
    for cut_off in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let mut sorter =
            Sorter::new(SortParams::new(dir.path(), MemoryBudget::from_bytes(10 << 10))).unwrap();
        sorter.push_slice(&scattered(5000)).unwrap();
        let stream = sorter.finish().unwrap();
        let run = fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
        let mut bytes = fs::read(&run).unwrap();
        if cut_off {
            bytes.truncate(bytes.len() - 100);
        } else {
            let at = bytes.len() - 100;
            bytes[at] ^= 4;
        }
        fs::write(&run, bytes).unwrap();
        let results: Vec<_> = stream.collect();
        let last = results.last().unwrap().as_ref().unwrap_err();
        assert!(last.to_string().contains(run.file_name().unwrap().to_str().unwrap()), "{last}");
        assert_eq!(results.iter().filter(|result| result.is_err()).count(), 1, "an error ends the stream");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_with_its_name() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let params = SortParams::new(file.path().join("runs"), MemoryBudget::from_bytes(64));
    let mut sorter = Sorter::new(params).unwrap();
    let error = sorter.push_slice(&scattered(100)).unwrap_err();
    assert!(error.to_string().starts_with("creating the folder for sorted runs /"), "{error}");
}

#[test]
fn runs_are_removed_when_the_sorter_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let mut sorter = Sorter::new(SortParams::new(dir.path(), MemoryBudget::from_bytes(10 << 10))).unwrap();
    sorter.push_slice(&scattered(5000)).unwrap();
    assert!(fs::read_dir(dir.path()).unwrap().count() > 1);
    drop(sorter);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_known_number_of_records_reserves_no_more_than_that() {
    let mut params = SortParams::new("/nonexistent", MemoryBudget::from_mib(1 << 20));
    params.expected_records = Some(10);
    let mut sorter = Sorter::new(params).unwrap();
    sorter.push_slice(&scattered(10)).unwrap();
    assert!(sorter.buffer.capacity() <= 10);
    assert_eq!(sorter.finish().unwrap().count(), 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn sorts_like_vec_sort(records in prop::collection::vec((0u64..50, 0u32..4), 0..3000), budget in 1u64..20_000, dedup: bool) {
        check(&records, budget, dedup);
    }

    #[test]
    fn ten_kilobytes_spill_and_sort(records in prop::collection::vec(any::<(u64, u32)>(), 1000..4000)) {
        prop_assert!(check(&records, 10 << 10, false).runs > 0);
    }
}
