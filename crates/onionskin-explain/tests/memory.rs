//! What a comparison takes, at worst, is what is said of it. A process of its own: memory is
//! counted by the process.

use onionskin_core::Recipe;
use onionskin_explain::explain::{Comparison, ExplainLimits};
use onionskin_store::process::peak_rss;

/// Numbers that look random, from a seed.
fn numbers(mut seed: u64) -> impl Iterator<Item = u64> {
    std::iter::repeat_with(move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed >> 33
    })
}

#[test]
fn a_comparison_takes_what_its_limits_say() {
    let recipe: Recipe = Recipe::DEFAULT.parse().unwrap();
    let limits = ExplainLimits::of_words(200_000);
    let each = 100_000;
    let of = |words: &mut dyn Iterator<Item = u64>| -> String {
        words.take(each).map(|word| format!("w{word} ")).collect()
    };
    let Some(before) = peak_rss() else { return };
    for (name, a, b) in [
        ("one word", of(&mut std::iter::repeat(1)), of(&mut (0..).map(|n| u64::from(n == 70_000)))),
        ("two words", of(&mut numbers(1).map(|n| n % 2)), of(&mut numbers(2).map(|n| n % 2))),
        ("eight words", of(&mut numbers(1).map(|n| n % 8)), of(&mut numbers(2).map(|n| n % 8))),
        (
            "a period",
            of(&mut (0..).map(|n| if n % 9 == 0 { n } else { n % 7 })),
            of(&mut (0..).map(|n| n % 7)),
        ),
        ("few shared", of(&mut (0..)), of(&mut (0..).map(|n| if n % 5 == 0 { 2 * n } else { n }))),
        ("nothing shared", of(&mut numbers(1)), of(&mut numbers(2))),
    ] {
        let comparison = Comparison::within(a, b, &recipe, Some(&limits));
        assert_eq!((comparison.words_a, comparison.words_b), (each, each), "{name}");
        let taken = peak_rss().unwrap_or(0).saturating_sub(before);
        assert!(taken < limits.memory(), "{name}: {taken} of {}", limits.memory());
        eprintln!("{name}: {} bytes for each word so far", taken / (2 * each as u64));
    }
}
