use super::*;
use crate::MemoryBudget;
use crate::sort::{SortError, SortParams, Sorter};

#[test]
fn the_flag_of_a_thread_ends_with_the_work() {
    let (outer, inner) = (Cancel::default(), Cancel::default());
    inner.cancel();
    with(&outer, || {
        assert!(check().is_ok());
        assert_eq!(with(&inner, check), Err(Cancelled));
        assert!(check().is_ok());
        assert!(std::thread::spawn(check).join().is_ok_and(|checked| checked.is_ok()));
        assert!(!current().is_cancelled());
        outer.cancel();
        assert!(current().is_cancelled());
    });
    assert!(check().is_ok());
}

#[test]
fn the_flag_ends_with_a_panic() {
    let cancel = Cancel::default();
    cancel.cancel();
    let panicked = std::panic::catch_unwind(|| with(&cancel, || panic!("on purpose")));
    assert!(panicked.is_err());
    assert!(check().is_ok());
}

/// Pushes ten thousand records and reads them, with a flag that is set before a step.
fn sort_until(step: usize, memory: MemoryBudget) -> Result<u64, SortError> {
    let dir = tempfile::tempdir().unwrap();
    let cancel = Cancel::default();
    with(&cancel, || {
        let stop = |now| {
            if now == step {
                cancel.cancel();
            }
        };
        stop(0);
        let mut sorter = Sorter::<u64>::new(SortParams::new(dir.path(), memory))?;
        for record in 0..10_000 {
            sorter.push(record)?;
        }
        stop(1);
        let mut sorted = sorter.finish()?;
        stop(2);
        let mut count = 0;
        for record in sorted.by_ref() {
            record?;
            count += 1;
        }
        Ok(count)
    })
}

#[test]
fn sorts_stop_wherever_they_are() {
    for memory in [MemoryBudget::from_bytes(10 << 10), MemoryBudget::from_mib(1)] {
        for step in 0..3 {
            let stopped = sort_until(step, memory);
            assert!(matches!(stopped, Err(SortError::Cancelled(_))), "step {step} of {memory}: {stopped:?}");
        }
        assert_eq!(sort_until(3, memory).unwrap(), 10_000);
    }
}
