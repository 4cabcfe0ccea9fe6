//! Oracles: slow, plain, and right at a glance.
//!
//! Everything here is the definition written down, over strings and sets, without fingerprints,
//! without tricks and without a line shared with the crates that it judges. Use it on small inputs.

use std::collections::BTreeSet;

/// A shingle: consecutive tokens.
pub type Shingle = Vec<String>;

/// The words of a text: runs of letters and digits, in lower case.
///
/// Scripts without spaces come out as long runs here; the generator plants edits only where words
/// are spaced.
///
/// ```
/// assert_eq!(onionskin_testkit::naive::words("A rose, is a ROSE."), ["a", "rose", "is", "a", "rose"]);
/// ```
pub fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()).map(str::to_lowercase).collect()
}

/// The set of `w`-shingles of a token sequence. A sequence shorter than `w` is one shingle, an
/// empty one has none.
///
/// ```
/// use onionskin_testkit::naive::{shingles, words};
/// assert_eq!(shingles(&words("a rose is a rose is a rose"), 4).len(), 3);
/// ```
pub fn shingles(tokens: &[String], w: usize) -> BTreeSet<Shingle> {
    if tokens.is_empty() {
        return BTreeSet::new();
    }
    if tokens.len() < w || w == 0 {
        return BTreeSet::from([tokens.to_vec()]);
    }
    tokens.windows(w).map(<[String]>::to_vec).collect()
}

/// |A ∩ B| / |A ∪ B|. Two empty sets resemble each other not at all: there is nothing in them to be alike.
pub fn resemblance<T: Ord>(a: &BTreeSet<T>, b: &BTreeSet<T>) -> f64 {
    let union = a.union(b).count();
    if union == 0 { 0.0 } else { a.intersection(b).count() as f64 / union as f64 }
}

/// |A ∩ B| / |A|: how much of `a` is in `b`; 0 when `a` is empty.
pub fn containment<T: Ord>(a: &BTreeSet<T>, b: &BTreeSet<T>) -> f64 {
    if a.is_empty() { 0.0 } else { a.intersection(b).count() as f64 / a.len() as f64 }
}

/// The resemblance of two texts in word shingles of `w`.
pub fn text_resemblance(a: &str, b: &str, w: usize) -> f64 {
    resemblance(&shingles(&words(a), w), &shingles(&words(b), w))
}

/// The containment of `a` in `b`, in word shingles of `w`.
pub fn text_containment(a: &str, b: &str, w: usize) -> f64 {
    containment(&shingles(&words(a), w), &shingles(&words(b), w))
}

/// The pieces between white space, as a set.
pub fn whitespace_chunks(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Every `n` lines in a row, without overlap, as a set; lines are trimmed and blank ones dropped
/// first. The last chunk may be shorter.
pub fn line_chunks(text: &str, n: usize) -> BTreeSet<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.chunks(n.max(1)).map(|chunk| chunk.join("\n")).collect()
}

/// All pairs of documents that share at least `threshold` chunks, with the number shared:
/// `(a, b, shared)` with `a < b`, in order. Every document is compared with every other.
///
/// ```
/// use std::collections::BTreeSet;
/// let documents = [BTreeSet::from([1, 2, 3]), BTreeSet::from([2, 3, 4]), BTreeSet::from([4, 5])];
/// assert_eq!(onionskin_testkit::naive::naive_overlap(&documents, 2), [(0, 1, 2)]);
/// ```
pub fn naive_overlap<T: Ord>(documents: &[BTreeSet<T>], threshold: usize) -> Vec<(usize, usize, usize)> {
    let mut pairs = Vec::new();
    for a in 0..documents.len() {
        for b in a + 1..documents.len() {
            let shared = documents[a].intersection(&documents[b]).count();
            if shared >= threshold.max(1) {
                pairs.push((a, b, shared));
            }
        }
    }
    pairs
}

/// All pairs whose resemblance is at least `threshold` and above 0: `(a, b, resemblance)` with
/// `a < b`, in order.
pub fn naive_pairs<T: Ord>(documents: &[BTreeSet<T>], threshold: f64) -> Vec<(usize, usize, f64)> {
    let mut pairs = Vec::new();
    for a in 0..documents.len() {
        for b in a + 1..documents.len() {
            let value = resemblance(&documents[a], &documents[b]);
            if value >= threshold && value > 0.0 {
                pairs.push((a, b, value));
            }
        }
    }
    pairs
}

/// The classes of the transitive closure of `pairs` over `0..n`: for each document the smallest one
/// that it is connected with.
pub fn naive_components(n: usize, pairs: impl IntoIterator<Item = (usize, usize)>) -> Vec<usize> {
    let mut label: Vec<usize> = (0..n).collect();
    for (a, b) in pairs {
        let (from, to) = (label[a].max(label[b]), label[a].min(label[b]));
        if from != to {
            for entry in &mut label {
                if *entry == from {
                    *entry = to;
                }
            }
        }
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rose_of_broder() {
        let rose = words("a rose is a rose is a rose");
        assert_eq!(shingles(&rose, 4).len(), 3);
        let other = words("a rose is a flower which is a rose");
        // Broder 2000, section 2: 70 % for 1-shingles is 3 of 5 distinct words here, 50 % for
        // 2-shingles.
        assert_eq!(resemblance(&shingles(&rose, 1), &shingles(&other, 1)), 3.0 / 5.0);
        assert_eq!(resemblance(&shingles(&rose, 2), &shingles(&other, 2)), 3.0 / 6.0);
    }

    #[test]
    fn short_and_empty_texts() {
        assert_eq!(shingles(&words("one two"), 4), BTreeSet::from([vec!["one".into(), "two".into()]]));
        assert!(shingles(&words(" ... "), 4).is_empty());
        assert_eq!(text_resemblance("", "", 4), 0.0);
        assert_eq!(text_resemblance("one two", "One, two!", 4), 1.0);
    }

    #[test]
    fn containment_is_not_symmetric() {
        assert_eq!(text_containment("a b c", "x a b c d", 2), 1.0);
        assert_eq!(text_containment("x a b c d", "a b c", 2), 0.5);
    }

    #[test]
    fn chunkings() {
        assert_eq!(line_chunks("a\n\n b \nc\n", 2), BTreeSet::from(["a\nb".into(), "c".into()]));
        assert_eq!(whitespace_chunks("b a\tb").len(), 2);
    }

    #[test]
    fn components_close_over_chains() {
        assert_eq!(naive_components(6, [(4, 5), (1, 2), (2, 4)]), [0, 1, 1, 3, 1, 1]);
    }
}
