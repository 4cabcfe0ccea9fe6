use super::*;
use proptest::prelude::*;

fn compare(a: &str, b: &str, recipe: &str) -> Comparison {
    Comparison::new(a.to_owned(), b.to_owned(), &recipe.parse().unwrap())
}

/// What is the same stands plain, what is only in one in [-...-] or {+...+}, what moved in <...>.
fn show(comparison: &Comparison) -> String {
    let parts = comparison.blocks.iter().map(|block| match block {
        Block::Same(at) => comparison.text_a[comparison.passages[*at].a.clone()].to_owned(),
        Block::Differ { a, b } => {
            let side = |stretches: &[Stretch], text: &str, marks: [&str; 2]| {
                let shown = stretches.iter().map(|stretch| {
                    let [open, close] = if stretch.moved.is_some() { ["<", ">"] } else { marks };
                    format!("{open}{}{close}", &text[stretch.range.clone()])
                });
                shown.collect::<String>()
            };
            side(a, &comparison.text_a, ["[-", "-]"]) + &side(b, &comparison.text_b, ["{+", "+}"])
        }
    });
    parts.collect::<Vec<_>>().join(" ")
}

fn check(a: &str, b: &str, wanted: &str) {
    assert_eq!(show(&compare(a, b, "w2-rabin64-t8")), wanted);
}

#[test]
fn differences_stand_between_what_is_the_same() {
    check("the quick brown fox runs", "the quick red fox runs", "the quick [-brown-]{+red+} fox runs");
    check("one two three", "zero one two three four", "{+zero+} one two three {+four+}");
    check("one two", "three four", "[-one two-]{+three four+}");
    check("", "three four", "{+three four+}");
    check("", "", "");
    check("One, TWO; three.", "one two three", "One, TWO; three.");
    check(
        "a b c d | e f g",
        "e f g / a b c d",
        "{+<+}".replace("{+<+}", "<e f g /> a b c d | <e f g>").as_str(),
    );
}

#[test]
fn a_whole_text_is_accounted_for() {
    let comparison = compare("A rose is a rose, is a rose.", "A rose is a rose is.", "w4-rabin64-t8");
    assert_eq!((comparison.words_a, comparison.words_b, comparison.shared_words()), (8, 6, 6));
    assert_eq!(comparison.passages.len(), 1);
    assert_eq!(&comparison.text_a[comparison.passages[0].a.clone()], "A rose is a rose, is");
    assert_eq!(&comparison.text_b[comparison.passages[0].b.clone()], "A rose is a rose is.");
}

#[test]
fn the_middle_is_left_out() {
    let text = "one, two; three (four) five. six!";
    let comparison = compare(text, text, "w2-rabin64-t8");
    let whole = 0..text.len();
    let short = comparison.shortened(Side::A, &whole, 2, 4).unwrap();
    assert_eq!((&text[short.head], short.left_out, &text[short.tail]), ("one, two;", 2, "five. six!"));
    assert_eq!(comparison.shortened(Side::B, &whole, 2, 6), None);
    assert_eq!(comparison.shortened(Side::B, &whole, 3, 0), None);
    let short = comparison.shortened(Side::A, &(5..22), 1, 0).unwrap();
    assert_eq!((&text[short.head], short.left_out, &text[short.tail]), ("two;", 1, "(four)"));
    assert_eq!(comparison.shortened(Side::A, &whole, 0, 0).unwrap().left_out, 6);
}

proptest! {
    #[test]
    fn every_word_is_in_one_block(a in "([ab中 ]|x“y){0,30}", b in "([ab中 ]|x“y){0,30}", w in 1_u16..4) {
        let recipe: Recipe = format!("w{w}-rabin64-t8").parse().unwrap();
        let comparison = Comparison::new(a.clone(), b.clone(), &recipe);
        let (mut in_a, mut in_b) = (0, 0);
        let (mut at_a, mut at_b) = (0, 0);
        let stretch = |part: &Range<usize>, words: usize, at: &mut usize, sum: &mut usize| {
            assert!(part.start >= *at);
            *at = part.end;
            *sum += words;
        };
        let mut moved = 0;
        for block in &comparison.blocks {
            match block {
                Block::Same(number) => {
                    let passage = &comparison.passages[*number];
                    prop_assert!(!passage.moved);
                    stretch(&passage.a, passage.words, &mut at_a, &mut in_a);
                    stretch(&passage.b, passage.words, &mut at_b, &mut in_b);
                }
                Block::Differ { a, b } => {
                    a.iter().for_each(|part| stretch(&part.range, part.words, &mut at_a, &mut in_a));
                    b.iter().for_each(|part| stretch(&part.range, part.words, &mut at_b, &mut in_b));
                    moved += a.iter().chain(b).filter(|part| part.moved.is_some()).count();
                }
            }
        }
        prop_assert_eq!((in_a, in_b), (comparison.words_a, comparison.words_b));
        prop_assert_eq!(moved, 2 * comparison.passages.iter().filter(|passage| passage.moved).count());
    }
}
