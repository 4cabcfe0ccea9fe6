//! From text to features, kernel by kernel, each beside its naive twin.
#![allow(clippy::unwrap_used, reason = "a bench")]

use std::hint::black_box;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use onionskin_core::feature::FeatureMaker;
use onionskin_core::rabin::{Purpose, Rabin, Shingler, Width};
use onionskin_core::sketch::{OnePermutation, Permutations, resemblance_trivial_but_slow};
use onionskin_core::token::{Tokenizer, Tokens, Unit};
use onionskin_core::unicode::Form;
use onionskin_core::{Analyzer, FingerprintSet, Recipe, SplitMix64};

fn main() {
    divan::main();
}

/// Words with a skewed vocabulary, as long as a page of the web.
fn text() -> String {
    let mut rng = SplitMix64::new(1);
    let mut text = String::new();
    for nth in 0..500 {
        // The product of two uniform numbers is skewed enough to look like a vocabulary.
        let word = (rng.next_u32() % 300) * (rng.next_u32() % 100);
        text.push_str(["The", "an", "reading", "on", "Ölpreis"][word as usize % 5]);
        text.push_str(&word.to_string());
        text.push_str(if nth % 12 == 11 { ".\n" } else { " " });
    }
    text
}

fn tokens_of(text: &str) -> Vec<u64> {
    let mut tokens = Tokens::default();
    Tokenizer::new(Unit::Word, Form::Nfc, Width::Bits64).tokenize(text, &mut tokens);
    tokens.remainders().to_vec()
}

fn shingles_of(text: &str) -> Vec<u64> {
    let mut shingles = Vec::new();
    shingler().shingle_into(&tokens_of(text), &mut shingles);
    shingles
}

fn shingler() -> Shingler {
    Shingler::new(Rabin::new(Purpose::Chunks, Width::Bits64), 4)
}

mod tokens {
    use super::*;

    #[divan::bench]
    fn masks(bencher: Bencher<'_, '_>) {
        let text = text();
        let mut tokenizer = Tokenizer::new(Unit::Word, Form::Nfc, Width::Bits64);
        let mut tokens = Tokens::default();
        bencher.counter(BytesCount::of_str(&text)).bench_local(|| {
            tokenizer.tokenize(&text, &mut tokens);
            tokens.remainders().len()
        });
    }

    #[divan::bench]
    fn naive(bencher: Bencher<'_, '_>) {
        let text = text();
        let rabin = Rabin::portable(Purpose::Chunks, Width::Bits64);
        bencher.counter(BytesCount::of_str(&text)).bench_local(|| {
            let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
            words.map(|word| rabin.word(word.to_lowercase().as_bytes())).collect::<Vec<u64>>()
        });
    }
}

mod shingles {
    use super::*;

    #[divan::bench]
    fn rolling(bencher: Bencher<'_, '_>) {
        let (tokens, shingler) = (tokens_of(&text()), shingler());
        let mut shingles = Vec::new();
        bencher.counter(ItemsCount::new(tokens.len())).bench_local(|| {
            shingles.clear();
            shingler.shingle_into(&tokens, &mut shingles);
            shingles.len()
        });
    }

    #[divan::bench]
    fn naive(bencher: Bencher<'_, '_>) {
        let tokens = tokens_of(&text());
        let rabin = Rabin::portable(Purpose::Chunks, Width::Bits64);
        bencher
            .counter(ItemsCount::new(tokens.len()))
            .bench_local(|| tokens.windows(4).map(|window| rabin.sequence(window)).collect::<Vec<u64>>());
    }
}

mod sketch {
    use super::*;

    const MINIMA: usize = 84;

    /// Sketches the shingles of a text again and again.
    fn repeat<T>(bencher: Bencher<'_, '_>, mut sketch: impl FnMut(&[u64]) -> T) {
        let shingles = shingles_of(&text());
        bencher.counter(ItemsCount::new(shingles.len())).bench_local(|| sketch(&shingles));
    }

    #[divan::bench]
    fn permutations(bencher: Bencher<'_, '_>) {
        let mut permutations = Permutations::new(MINIMA, 1);
        repeat(bencher, |shingles| black_box(permutations.sketch(shingles)).len());
    }

    #[divan::bench]
    fn permutations_naive(bencher: Bencher<'_, '_>) {
        let permutations = Permutations::new(MINIMA, 1);
        repeat(bencher, |shingles| permutations.sketch_trivial_but_slow(shingles));
    }

    #[divan::bench]
    fn one_permutation(bencher: Bencher<'_, '_>) {
        let mut one = OnePermutation::new(MINIMA, 1);
        repeat(bencher, |shingles| black_box(one.sketch(shingles)).len());
    }

    #[divan::bench]
    fn one_permutation_naive(bencher: Bencher<'_, '_>) {
        let one = OnePermutation::new(MINIMA, 1);
        repeat(bencher, |shingles| one.sketch_trivial_but_slow(shingles));
    }
}

mod features {
    use super::*;

    #[divan::bench]
    fn of_a_sketch(bencher: Bencher<'_, '_>) {
        let sketch = Permutations::new(84, 1).sketch(&shingles_of(&text())).to_vec();
        let mut maker = FeatureMaker::new("6x14r2".parse().unwrap());
        bencher.bench_local(|| black_box(maker.features(&sketch)).len());
    }

    #[divan::bench]
    fn naive(bencher: Bencher<'_, '_>) {
        let sketch = Permutations::new(84, 1).sketch(&shingles_of(&text())).to_vec();
        let rabin = Rabin::portable(Purpose::Features, Width::Bits64);
        bencher.bench_local(|| {
            let groups = (0u64..).zip(sketch.chunks_exact(14)).map(|(number, group)| {
                let minima = group.chunks_exact(2).map(|two| u64::from(two[0]) | u64::from(two[1]) << 32);
                let blocks: Vec<u64> = std::iter::once(number).chain(minima).collect();
                rabin.sequence(&blocks)
            });
            groups.collect::<Vec<u64>>()
        });
    }

    #[divan::bench(args = [Recipe::DEFAULT, "w4-rabin64-6x14r2", "w4-rabin64-6x14r2-one"])]
    fn of_a_text(bencher: Bencher<'_, '_>, recipe: &str) {
        let text = text();
        let mut analyzer = Analyzer::new(&recipe.parse().unwrap(), 1);
        bencher
            .counter(BytesCount::of_str(&text))
            .bench_local(|| black_box(analyzer.analyze(&text).features()).len());
    }
}

mod shared {
    use super::*;

    fn two_sets() -> (Vec<u64>, Vec<u64>) {
        let (mut a, mut b) = (shingles_of(&text()), shingles_of(&text()[1000..]));
        for set in [&mut a, &mut b] {
            set.sort_unstable();
            set.dedup();
        }
        (a, b)
    }

    #[divan::bench]
    fn table(bencher: Bencher<'_, '_>) {
        let (a, b) = two_sets();
        let mut set = FingerprintSet::default();
        bencher.counter(ItemsCount::new(a.len() + b.len())).bench_local(|| {
            set.hold(&a);
            set.count_shared(&b)
        });
    }

    #[divan::bench]
    fn naive(bencher: Bencher<'_, '_>) {
        let (a, b) = two_sets();
        bencher
            .counter(ItemsCount::new(a.len() + b.len()))
            .bench_local(|| resemblance_trivial_but_slow(&a, &b));
    }
}
