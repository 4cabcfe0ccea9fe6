use onionskin_store::MemoryBudget;

use super::*;

/// More sets than fit, fewer, one that is larger than the memory, and again.
#[test]
fn sets_come_out_as_they_went_in() {
    let folder = tempfile::tempdir().unwrap();
    let memory = MemoryBudget::from_mib(1);
    let resources = Resources { memory, threads: 1, work_dir: folder.path().join("work") };
    let mut held = HeldSets::new(&resources);
    let mut doc = 0;
    for (documents, chunks) in [(300, 1000), (3, 10), (200_000, 1), (1, 300_000), (2, 300_000), (0, 0)] {
        let sets: Vec<(DocId, Vec<u64>)> = (0..documents)
            .map(|nth: u64| {
                doc += 1;
                (DocId(doc), (0..chunks + nth % 3).map(|chunk| chunk * nth).collect())
            })
            .collect();
        for (doc, set) in &sets {
            held.push(*doc, set).unwrap();
        }
        let most = sets.iter().map(|(_, set)| set.len()).max().unwrap_or(0).max(1 << 17);
        assert!(held.chunks.len() <= most && held.docs.len() <= 1 << 16, "{documents} of {chunks}");
        assert_eq!(held.path.is_file(), documents * chunks > 1 << 17 && documents > 1);
        for (doc, set) in &sets {
            assert_eq!((held.advance().unwrap(), held.chunks()), (Some(*doc), &set[..]));
        }
        assert_eq!(held.advance().unwrap(), None);
        assert!(!held.path.exists() && held.chunks.capacity() <= 2 << 17);
    }
}
