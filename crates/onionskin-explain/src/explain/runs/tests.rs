use super::*;
use onionskin_core::rabin::{Purpose, Rabin, Width};
use proptest::prelude::*;

fn shingler(w: usize) -> Shingler {
    Shingler::new(Rabin::new(Purpose::Chunks, Width::Bits64), w)
}

/// Without a limit that matters here.
fn all_runs(a: &[u64], b: &[u64], shingler: &Shingler) -> Vec<Run> {
    common_runs(a, b, shingler, PAIRS)
}

/// By the definition: the longest run of tokens that are still free, the first of equals, again and
/// again.
fn naive_common_runs(a: &[u64], b: &[u64], w: usize) -> Vec<Run> {
    if a == b && !a.is_empty() {
        return vec![Run { a: 0, b: 0, len: a.len() }];
    }
    let (mut free_a, mut free_b) = (vec![true; a.len()], vec![true; b.len()]);
    let mut runs = Vec::new();
    loop {
        let mut best = Run { a: 0, b: 0, len: 0 };
        for i in 0..a.len() {
            for j in 0..b.len() {
                let fits = |n: &usize| {
                    let (i, j) = (i + n, j + n);
                    i < a.len() && j < b.len() && a[i] == b[j] && free_a[i] && free_b[j]
                };
                let len = (0..).take_while(fits).count();
                if len > best.len {
                    best = Run { a: i, b: j, len };
                }
            }
        }
        if best.len < w.max(1) {
            runs.sort_unstable();
            return runs;
        }
        free_a[best.in_a()].fill(false);
        free_b[best.in_b()].fill(false);
        runs.push(best);
    }
}

/// The most tokens of runs in one order, by trying all.
fn naive_in_order(runs: &[Run]) -> usize {
    (0_u32..1 << runs.len())
        .filter_map(|chosen| {
            let chosen: Vec<&Run> =
                runs.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1).map(|(_, run)| run).collect();
            let ordered = chosen.windows(2).all(|w| w[0].b < w[1].b);
            ordered.then(|| chosen.iter().map(|run| run.len).sum())
        })
        .max()
        .unwrap_or(0)
}

#[test]
fn a_passage_that_moved_is_found() {
    let a = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    let b = [6, 7, 8, 9, 50, 1, 2, 3, 4, 5];
    let runs = all_runs(&a, &b, &shingler(2));
    assert_eq!(runs, [Run { a: 0, b: 5, len: 5 }, Run { a: 5, b: 0, len: 4 }]);
    assert_eq!(in_order(&runs), [true, false]);
}

#[test]
fn texts_shorter_than_a_shingle_share_all_or_nothing() {
    assert_eq!(all_runs(&[1, 2], &[1, 2], &shingler(4)).len(), 1);
    assert_eq!(all_runs(&[1, 2], &[1, 2, 3], &shingler(4)), []);
    assert_eq!(all_runs(&[1, 2], &[1, 2, 3, 4, 5], &shingler(4)), []);
    assert_eq!(all_runs(&[], &[], &shingler(4)), []);
}

#[test]
fn texts_that_repeat_themselves_take_no_time() {
    let begun = std::time::Instant::now();
    // Sixteen thousand million pairs of places; one token keeps them from being equal.
    let a = vec![7; 100_000];
    let mut b = vec![7; 160_000];
    b[120_000] = 8;
    let runs = all_runs(&a, &b, &shingler(4));
    assert_eq!(runs, [Run { a: 0, b: 0, len: 100_000 }]);
    // Every period at once, and a change now and then.
    let a: Vec<u64> = (0..100_000).map(|i| if i % 997 == 0 { 1000 + i } else { i % 7 }).collect();
    let b: Vec<u64> = (0..100_000).map(|i| if i % 1009 == 0 { 500_000 + i } else { i % 7 }).collect();
    let runs = all_runs(&a, &b, &shingler(4));
    let shared: usize = runs.iter().map(|run| run.len).sum();
    assert!(shared > 50_000, "{shared}");
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

proptest! {
    #[test]
    fn runs_are_those_of_the_naive_search(
        a in prop::collection::vec(0_u64..4, 0..24),
        b in prop::collection::vec(0_u64..4, 0..24),
        w in 1_usize..5,
    ) {
        prop_assert_eq!(all_runs(&a, &b, &shingler(w)), naive_common_runs(&a, &b, w));
    }

    #[test]
    fn edits_of_a_text_too(
        text in prop::collection::vec(0_u64..9, 0..40),
        cuts in prop::collection::vec((0_usize..40, 0_usize..40, 0_u64..9), 0..4),
        w in 2_usize..5,
    ) {
        let mut edited = text.clone();
        for (from, to, token) in cuts {
            if from < edited.len() && to < edited.len() {
                edited.swap(from, to);
                edited.insert(to, token);
            }
        }
        prop_assert_eq!(all_runs(&text, &edited, &shingler(w)), naive_common_runs(&text, &edited, w));
    }

    #[test]
    fn beyond_the_limit_runs_are_still_true(
        a in prop::collection::vec(0_u64..2, 0..60),
        b in prop::collection::vec(0_u64..2, 0..60),
        w in 1_usize..5,
    ) {
        let runs = common_runs(&a, &b, &shingler(w), 4 * (a.len() + b.len()));
        let (mut used_a, mut used_b) = (vec![false; a.len()], vec![false; b.len()]);
        for run in &runs {
            prop_assert_eq!(&a[run.in_a()], &b[run.in_b()]);
            prop_assert!(run.len >= w || a == b);
            for at in run.in_a() {
                prop_assert!(!std::mem::replace(&mut used_a[at], true));
            }
            for at in run.in_b() {
                prop_assert!(!std::mem::replace(&mut used_b[at], true));
            }
        }
    }

    #[test]
    fn the_heaviest_order_is_found(lens in prop::collection::vec(1_usize..6, 0..9), keys in prop::collection::vec(0_u32..1000, 9)) {
        let mut by_key: Vec<usize> = (0..lens.len()).collect();
        by_key.sort_by_key(|at| keys[*at]);
        let runs: Vec<Run> =
            lens.iter().enumerate().map(|(at, len)| Run { a: 10 * at, b: 10 * by_key[at], len: *len }).collect();
        let chosen = in_order(&runs);
        let kept: Vec<&Run> = runs.iter().zip(&chosen).filter(|(_, kept)| **kept).map(|(run, _)| run).collect();
        prop_assert!(kept.windows(2).all(|w| w[0].b < w[1].b));
        prop_assert_eq!(kept.iter().map(|run| run.len).sum::<usize>(), naive_in_order(&runs));
    }
}
