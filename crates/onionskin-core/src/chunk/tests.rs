use proptest::prelude::*;

use super::*;

fn shingle_paragraphs_of(text: &str) -> Vec<String> {
    let mut found = vec![];
    shingle_paragraphs(text, &mut ParagraphScratch::default(), |chunk| {
        found.push(String::from_utf8(chunk.to_vec()).unwrap())
    });
    found
}

/// Definition 1, a character at a time.
fn naive_shingle_paragraphs(text: &str) -> Vec<String> {
    let collapsed: Vec<char> =
        text.split_ascii_whitespace_and_vt().collect::<Vec<_>>().join(" ").chars().collect();
    let mut sentences = vec![];
    let mut sentence = String::new();
    for c in collapsed {
        if sentence.is_empty() && (c == ' ' || c == '.') {
            continue;
        }
        sentence.push(c);
        if c == '.' || sentence.chars().count() == 150 {
            sentences.push(std::mem::take(&mut sentence));
        }
    }
    if !sentence.trim_end_matches(' ').is_empty() {
        sentences.push(sentence);
    }
    sentences.chunks(3).map(|three| three.join("\n")).collect()
}

trait SplitAscii {
    fn split_ascii_whitespace_and_vt(&self) -> impl Iterator<Item = &str>;
}

impl SplitAscii for str {
    fn split_ascii_whitespace_and_vt(&self) -> impl Iterator<Item = &str> {
        self.split([' ', '\n', '\t', '\r', '\x0b', '\x0c']).filter(|piece| !piece.is_empty())
    }
}

#[test]
fn the_example_of_the_paper() {
    let found = shingle_paragraphs_of("s1. s2. s3. s4. s5. s6.");
    assert_eq!(found, ["s1.\ns2.\ns3.\n", "s4.\ns5.\ns6.\n"]);
}

#[test]
fn a_sentence_without_period_ends_at_150_characters() {
    let found = shingle_paragraphs_of(&"x".repeat(151));
    assert_eq!(found, [format!("{}\nx\n", "x".repeat(150))]);
    let found = shingle_paragraphs_of(&"é".repeat(450));
    assert_eq!(found, [format!("{0}\n{0}\n{0}\n", "é".repeat(150))]);
}

#[test]
fn white_space_makes_no_difference_and_dots_alone_are_no_sentence() {
    assert_eq!(shingle_paragraphs_of(" a  b.\n\nc... d"), shingle_paragraphs_of("a b. c. d"));
    assert_eq!(shingle_paragraphs_of(" \n "), [""; 0]);
    assert_eq!(shingle_paragraphs_of("..."), [""; 0]);
}

#[test]
fn sentences_and_paragraphs() {
    let text = "Version 1.5 is out. Is it?! Yes\n\nA line\nand another. 終わり。次";
    let found: Vec<_> = sentences(text).map(str::trim).filter(|s| !s.is_empty()).collect();
    assert_eq!(found, ["Version 1.5 is out.", "Is it?!", "Yes", "A line\nand another.", "終わり。", "次"]);
    let found: Vec<_> = paragraphs("a\nb\n\n \n\nc").map(str::trim).filter(|s| !s.is_empty()).collect();
    assert_eq!(found, ["a\nb", "c"]);
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    for bad in ["", "w", "w0", "w04", "w+4", "w1025", "l-1", "x4", "sentence"] {
        let error = bad.parse::<Chunking>().unwrap_err().to_string();
        assert!(error.contains("known are doc, sent"), "{error}");
    }
}

proptest! {
    #[test]
    fn spelling_round_trips(kind in 0usize..8, n in 1u16..=1024) {
        let n = NonZeroU16::new(n).unwrap();
        let chunking = [
            Chunking::Document, Chunking::Sentences, Chunking::Paragraphs, Chunking::ShingleParagraphs,
            Chunking::Lines(n), Chunking::Shingles(Unit::Word, n), Chunking::Shingles(Unit::Letter, n), Chunking::Shingles(Unit::Line, n),
        ][kind];
        prop_assert_eq!(chunking.to_string().parse::<Chunking>(), Ok(chunking));
    }

    #[test]
    fn shingle_paragraphs_equal_their_naive_twin(text in "([a-c é\n.]{0,40}|x{100,200}| ){0,12}") {
        let found: Vec<String> =
            shingle_paragraphs_of(&text).iter().map(|chunk| chunk.trim_end_matches(['\n', ' ']).to_owned()).collect();
        let naive: Vec<String> =
            naive_shingle_paragraphs(&text).iter().map(|chunk| chunk.trim_end_matches(['\n', ' ']).to_owned()).collect();
        prop_assert_eq!(found, naive);
    }

    #[test]
    fn sentences_and_paragraphs_lose_nothing(text in "[a.!?。\n ]{0,60}") {
        prop_assert_eq!(sentences(&text).collect::<String>(), text.clone());
        prop_assert_eq!(paragraphs(&text).collect::<String>(), text);
    }
}
