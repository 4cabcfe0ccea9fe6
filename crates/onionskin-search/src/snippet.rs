//! The stretch of a text that shows best why it was found.

use std::ops::Range;

use crate::words::Words;

/// Bytes of a snippet, about.
const LENGTH: usize = 240;

/// A part of a snippet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// What stands there; white space is one blank.
    pub text: String,
    /// Whether it is a word that was looked for.
    pub is_match: bool,
}

/// The stretch with the most different words of those that are wanted (sorted), the most of them,
/// the earliest; the beginning when it has none.
pub(crate) fn snippet(text: &str, wanted: &[&str]) -> Vec<Fragment> {
    let mut hits: Vec<(Range<usize>, usize)> = Vec::new();
    let mut words = Words::new(text);
    let mut word = String::new();
    while let Some(range) = words.next_into(&mut word) {
        if let Ok(which) = wanted.binary_search(&word.as_str()) {
            hits.push((range, which));
        }
    }
    let best = best_window(&hits, wanted.len());
    // A third of what is left goes before the first match.
    let (first, last) = match (hits.get(best.start), best.end.checked_sub(1).and_then(|last| hits.get(last)))
    {
        (Some((first, _)), Some((last, _))) => (first.start, last.end),
        _ => (0, 0),
    };
    let room = LENGTH.saturating_sub(last - first);
    let start = word_border(text, first.saturating_sub(room / 3), first);
    let end = last_border(text, (start + LENGTH).max(last), last);
    let mut fragments = Vec::new();
    if text[..start].contains(|c: char| !c.is_whitespace()) {
        push(&mut fragments, "… ", false);
    }
    let mut at = start;
    for (range, _) in hits.iter().filter(|(range, _)| range.start >= start && range.end <= end) {
        push(&mut fragments, &text[at..range.start], false);
        push(&mut fragments, &text[range.clone()], true);
        at = range.end;
    }
    push(&mut fragments, &text[at..end], false);
    if text[end..].contains(|c: char| !c.is_whitespace()) {
        push(&mut fragments, " …", false);
    }
    fragments
}

/// The hits of the best stretch.
fn best_window(hits: &[(Range<usize>, usize)], wanted: usize) -> Range<usize> {
    let mut counts = vec![0usize; wanted];
    let (mut start, mut different) = (0, 0);
    let mut best = (0, 0, 0..0);
    for (end, (range, which)) in hits.iter().enumerate() {
        different += usize::from(counts[*which] == 0);
        counts[*which] += 1;
        while range.end - hits[start].0.start > LENGTH && start < end {
            counts[hits[start].1] -= 1;
            different -= usize::from(counts[hits[start].1] == 0);
            start += 1;
        }
        if (different, end + 1 - start) > (best.0, best.1) {
            best = (different, end + 1 - start, start..end + 1);
        }
    }
    best.2
}

/// How far a border may move to a blank. Scripts without blanks are cut where it falls.
const REACH: usize = 40;

/// Where a word begins: at `from` or a little before, not after `to`.
fn word_border(text: &str, from: usize, to: usize) -> usize {
    let near = (0..=from).rev().take(REACH).filter(|at| text.is_char_boundary(*at));
    let after_blank = |at: &usize| *at == 0 || text[..*at].ends_with(char::is_whitespace);
    let at_any = || (from..=to).find(|at| text.is_char_boundary(*at)).unwrap_or(to);
    near.into_iter().find(after_blank).unwrap_or_else(at_any)
}

/// Where a word ends: at `from` or a little before, not before `to`.
fn last_border(text: &str, from: usize, to: usize) -> usize {
    if from >= text.len() {
        return text.len();
    }
    let near = || (to..=from).rev().take(REACH).filter(|at| text.is_char_boundary(*at));
    let before_blank = |at: &usize| text[*at..].starts_with(char::is_whitespace);
    near().find(before_blank).or_else(|| near().next()).unwrap_or(to)
}

fn push(fragments: &mut Vec<Fragment>, text: &str, is_match: bool) {
    if text.is_empty() {
        return;
    }
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if !c.is_whitespace() && !c.is_control() {
            plain.push(c);
        } else if !plain.ends_with(' ') {
            plain.push(' ');
        }
    }
    match fragments.last_mut() {
        Some(last) if last.is_match == is_match => {
            let text = if last.text.ends_with(' ') { plain.trim_start() } else { &plain };
            last.text.push_str(text);
        }
        _ => fragments.push(Fragment { text: plain, is_match }),
    }
}

#[cfg(test)]
mod tests;
