use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// The shingles that contain one of `positions`, counted by looking at each.
fn touched_naively(n: u32, w: u32, positions: &[u32]) -> usize {
    (0..=n - w).filter(|&start| positions.iter().any(|&p| p >= start && p < start + w)).count()
}

proptest! {
    #[test]
    fn edits_touch_as_many_shingles_as_asked(n in 1u32..200, w in 1u32..9, share in 0.0f64..1.0, seed in any::<u64>()) {
        prop_assume!(n >= w);
        let changed = (f64::from(n - w + 1) * share) as u32;
        let mut positions = Vec::new();
        edit_positions(n, w, changed, &mut Dice::new(seed), &mut positions);
        prop_assert!(positions.iter().all(|&p| p < n));
        prop_assert!(positions.windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert_eq!(touched_naively(n, w, &positions), changed as usize);
    }

    #[test]
    fn prose_has_the_words_it_was_asked_for(n in 0u32..500, seed in any::<u64>()) {
        let vocabulary = Vocabulary::new(Script::Greek);
        let mut draft = Draft::new();
        draft.clear(Script::Greek);
        draft.prose(&vocabulary, &mut Dice::new(seed), n, Extra::Unique(unique_word(Namespace::Topic, seed)));
        prop_assert_eq!(draft.n_words(), n);
        prop_assert_eq!(draft.blocks.last().map_or(0, |block| block.end), n);
        prop_assert_eq!(naive::words(&draft.to_text(&vocabulary)).len(), n as usize);
    }
}

#[test]
fn pairs_come_as_near_as_counting_allows() {
    let vocabulary = Vocabulary::new(Script::Latin);
    for (n, w) in [(40, 1), (60, 4), (300, 4), (300, 10), (1000, 5)] {
        for target in [0.0, 0.05, 0.3, 0.5, 0.75, 0.9, 0.95, 0.99] {
            let (a, b, exact) = pair_from(&vocabulary, n, w, target, u64::from(n + w));
            // Between two counts x and x + 1 the resemblance jumps by at most 2 / N; the nearer end
            // is 1 / N away.
            let n_shingles = naive::shingles(&naive::words(&a), w as usize).len() as f64;
            let at_most_one_edit = (n_shingles - 1.0) / (n_shingles + 1.0);
            let reachable = f64::min(target, at_most_one_edit);
            let tolerance = if w == 1 { 4.0 } else { 1.5 } / n_shingles;
            assert!((exact - reachable).abs() <= tolerance, "n {n} w {w} target {target} exact {exact}");
            assert_eq!(exact, naive::text_resemblance(&a, &b, w as usize));
        }
    }
}

#[test]
fn the_ends_of_the_range() {
    let (a, b, exact) = pairs_with_resemblance(50, 4, 1.0, 3);
    assert_eq!((a == b, exact), (true, 1.0));
    let (a, b, exact) = pairs_with_resemblance(2, 4, 0.5, 3);
    assert_ne!(a, b);
    assert_eq!(exact, 0.0);
    assert_eq!(pairs_with_resemblance(0, 4, 0.5, 3), (String::new(), String::new(), 0.0));
    assert_eq!(pairs_with_resemblance(30, 4, f64::NAN, 3).2, 0.0);
}

#[test]
fn every_script_has_its_punctuation_and_no_stray_bytes() {
    for script in Script::ALL {
        let vocabulary = Vocabulary::new(script);
        let mut draft = Draft::new();
        draft.clear(script);
        draft.prose(&vocabulary, &mut Dice::new(9), 400, Extra::Unique(unique_word(Namespace::Topic, 9)));
        let text = draft.to_text(&vocabulary);
        assert!(
            !text.contains('\u{fffd}') && !text.contains("  ") && !text.contains('"') && !text.contains('\\')
        );
        let punctuation: BTreeSet<char> =
            text.chars().filter(|c| !c.is_alphanumeric() && !c.is_whitespace()).collect();
        if script == Script::Han {
            assert!(punctuation.contains(&'。'), "{punctuation:?}");
        } else if script != Script::Thai {
            assert!(punctuation.contains(&'.'), "{punctuation:?}");
        }
    }
}

#[test]
fn numbers_are_decimal() {
    for number in [0, 7, 10, 1999, u64::MAX] {
        let mut out = Vec::new();
        push_number(&mut out, number);
        assert_eq!(out, number.to_string().as_bytes());
    }
}
