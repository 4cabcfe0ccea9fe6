use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;

use onionskin_testkit::Preset;
use tantivy::query::Query as _;

use super::*;
use crate::testing::{Indexed, index_file, indexed};

/// Scores every page that matches, groups them and sorts: no bar, nothing skipped.
fn naive_best_groups(
    of: &Indexed,
    query: &Query,
    any: bool,
    params: &SearchParams,
    wanted: usize,
) -> Vec<Best> {
    let engine = query.engine(&of.index.fields, any);
    let weight = engine.weight(EnableScoring::enabled_from_searcher(&of.index.searcher)).unwrap();
    let mut groups: BTreeMap<u64, Best> = BTreeMap::new();
    for (first, segment) in &of.index.segments {
        let reader = of.index.searcher.segment_reader(*segment);
        let each = &mut |at, score| {
            let doc = DocId(first + at);
            if params.within.is_some_and(|group| of.copies.group_of(doc) != Some(group)) {
                return;
            }
            let found = Best { key: params.fold.key(&of.copies, doc), doc, score };
            let best = groups.entry(found.key).or_insert(found);
            if better(&found, best).is_lt() {
                *best = found;
            }
        };
        weight.for_each(reader, each).unwrap();
    }
    let mut best: Vec<Best> = groups.into_values().collect();
    best.sort_by(better);
    best.truncate(wanted);
    best
}

/// Words of some pages, common and rare.
fn some_queries(of: &Indexed) -> Vec<Query> {
    let mut queries = Vec::new();
    for doc in DocId::range(0..of.index.documents()).step_by(37) {
        let page = of.index.page(doc).unwrap().unwrap();
        let words = crate::words_of(page.text.as_deref().unwrap_or_default());
        for (start, n) in [(0, 1), (5, 2), (20, 3)] {
            if let Some(words) = words.get(start..start + n) {
                queries.extend(words.join(" ").parse());
                queries.extend(format!("\"{}\"", words.join(" ")).parse());
                queries.extend(format!("{} -{}", words[0], words[n - 1]).parse());
            }
        }
    }
    queries
}

#[test]
fn folding_while_collecting_finds_what_folding_everything_finds() {
    let of = indexed(Preset::Demo, 1200, 3);
    let queries = some_queries(&of);
    assert!(queries.len() > 100);
    let mut most_folded = 0;
    for query in &queries {
        for fold in Fold::ALL {
            for (any, wanted) in [(false, 3), (true, 7)] {
                let params = SearchParams { fold, ..SearchParams::default() };
                let found = of.index.best_groups(&of.copies, query, any, &params, wanted).unwrap().best;
                let expected = naive_best_groups(&of, query, any, &params, usize::MAX);
                assert_eq!(found.len(), expected.len().min(wanted), "{query:?}");
                // Sums of scores may be taken in another order, and groups that are as good as each
                // other change places.
                let close = |a: &Best, b: &Best| (a.score - b.score).abs() < 1e-4;
                let mut keys = BTreeSet::new();
                for (found, expected_here) in found.iter().zip(&expected) {
                    assert!(close(found, expected_here), "{query:?} {fold:?}: {found:?}, {expected_here:?}");
                    let same = expected.iter().find(|expected| expected.key == found.key);
                    assert!(
                        same.is_some_and(|same| close(same, found)),
                        "{query:?} {fold:?}: {found:?}, {same:?}"
                    );
                    assert!(keys.insert(found.key), "{query:?} {fold:?}: {found:?} twice");
                }
                if fold == Fold::Off {
                    let folded = SearchParams::default();
                    let groups = naive_best_groups(&of, query, any, &folded, usize::MAX).len();
                    let pages = naive_best_groups(&of, query, any, &params, usize::MAX).len();
                    most_folded = most_folded.max(pages - groups);
                }
            }
        }
    }
    assert!(most_folded > 10, "nothing was folded, so nothing was tested");
}

#[test]
fn no_two_results_are_of_one_collection() {
    let of = indexed(Preset::Demo, 1200, 3);
    assert!(!of.copies.groups().is_empty());
    let mut clutter = 0;
    for query in some_queries(&of) {
        let folded = of.index.search(&of.copies, &query, &SearchParams::default()).unwrap();
        let groups: Vec<CollectionId> = folded.hits.iter().filter_map(|hit| hit.group).collect();
        assert_eq!(groups.iter().collect::<BTreeSet<_>>().len(), groups.len(), "{query:?}");
        let clusters: Vec<ClusterId> =
            folded.hits.iter().filter(|hit| hit.group.is_none()).filter_map(|hit| hit.cluster).collect();
        assert_eq!(clusters.iter().collect::<BTreeSet<_>>().len(), clusters.len(), "{query:?}");

        let off = SearchParams { fold: Fold::Off, limit: 50, ..SearchParams::default() };
        let all = of.index.search(&of.copies, &query, &off).unwrap();
        let groups: Vec<CollectionId> = all.hits.iter().filter_map(|hit| hit.group).collect();
        clutter += groups.len() - groups.iter().collect::<BTreeSet<_>>().len();
        assert!(all.matches.pages >= all.hits.len() as u64);

        if let Some(group) = folded.hits.iter().find_map(|hit| hit.group) {
            let within =
                SearchParams { fold: Fold::Off, within: Some(group), limit: 500, ..SearchParams::default() };
            let inside = of.index.search(&of.copies, &query, &within).unwrap();
            assert!(inside.hits.iter().all(|hit| hit.group == Some(group)));
            assert_eq!(inside.matches.pages, inside.hits.len() as u64);
            assert!(!inside.hits.is_empty());
        }
    }
    assert!(clutter > 50, "without folding there is clutter, found {clutter}");
}

fn write_pages(pages: &[(&str, &str)]) -> Indexed {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages.jsonl");
    let mut file = fs::File::create(&path).unwrap();
    for (url, text) in pages {
        writeln!(file, "{}", serde_json::json!({ "url": url, "text": text })).unwrap();
    }
    index_file(folder, path)
}

fn found(of: &Indexed, query: &str, params: &SearchParams) -> Vec<u32> {
    let results = of.index.search(&of.copies, &query.parse().unwrap(), params).unwrap();
    results.hits.iter().map(|hit| hit.page.doc.get()).collect()
}

fn words(from: u32, to: u32) -> String {
    (from..to).map(|n| format!("word{n} ")).collect()
}

#[test]
fn a_result_that_stands_in_the_ones_above_it_sinks() {
    // The second page is the first with a third of it replaced; the third is about something else
    // and says the word once.
    let a = format!("apple apple apple apple {}", words(0, 300));
    let b = format!("apple apple apple {}{}", words(0, 230), words(900, 970));
    let c = format!("apple {}", words(2000, 2300));
    let of = write_pages(&[("http://a/", &a), ("http://b/", &b), ("http://c/", &c)]);
    let plain = SearchParams { reorder: false, ..SearchParams::default() };
    assert_eq!(found(&of, "apple", &plain), [0, 1, 2]);
    assert_eq!(found(&of, "apple", &SearchParams::default()), [0, 2, 1]);
    let results = of.index.search(&of.copies, &"apple".parse().unwrap(), &SearchParams::default()).unwrap();
    let sunk = results.hits[2].overlap.unwrap();
    assert_eq!(sunk.doc, DocId(0));
    assert!(sunk.share > 0.5 && sunk.share < 1.0, "{sunk:?}");
}

#[test]
fn what_is_copied_often_is_worth_more() {
    let often = format!("pear {}", words(0, 200));
    let once = format!("pear {}", words(500, 700));
    let of = write_pages(&[
        ("http://once/", &once),
        ("http://a/", &often),
        ("http://b/", &often),
        ("http://c/", &often),
    ]);
    assert_eq!(found(&of, "pear", &SearchParams { replication: false, ..SearchParams::default() }), [0, 1]);
    assert_eq!(found(&of, "pear", &SearchParams::default()), [1, 0]);
    assert_eq!(
        found(
            &of,
            "pear",
            &SearchParams { fold: Fold::Off, replication: false, reorder: false, ..SearchParams::default() }
        ),
        [0, 1, 2, 3]
    );
}

#[test]
fn pages_without_all_words_come_when_there_are_no_others() {
    let of = write_pages(&[
        ("http://a.example.org/x", "red green"),
        ("http://b.org/", "blue red"),
        ("http://c.example.org/", ""),
    ]);
    let results =
        |text: &str| of.index.search(&of.copies, &text.parse().unwrap(), &SearchParams::default()).unwrap();
    let both = results("green blue");
    assert!(both.is_relaxed);
    assert_eq!(both.matches.pages, 2);
    assert!(!results("red").is_relaxed);
    assert_eq!(found(&of, "red site:example.org", &SearchParams::default()), [0]);
    assert_eq!(found(&of, "site:example.org", &SearchParams::default()), [0, 2]);
    assert_eq!(found(&of, "\"red green\"", &SearchParams::default()), [0]);
    assert!(found(&of, "\"green red\"", &SearchParams::default()).is_empty());
    assert_eq!(found(&of, "red -blue", &SearchParams::default()), [0]);
    assert!(found(&of, "purple", &SearchParams::default()).is_empty());
    // The address has words too.
    assert_eq!(found(&of, "example x", &SearchParams::default()), [0]);
}

#[test]
fn pages_of_results_continue_each_other() {
    let of = indexed(Preset::Demo, 600, 8);
    let query = some_queries(&of).into_iter().next().unwrap();
    let params = |offset, limit| SearchParams { offset, limit, fold: Fold::Off, ..SearchParams::default() };
    let search = |params| of.index.search(&of.copies, &query, &params).unwrap();
    let all = search(params(0, 40));
    let docs = |results: &Results| results.hits.iter().map(|hit| hit.page.doc).collect::<Vec<_>>();
    let mut parts = Vec::new();
    for offset in (0..40).step_by(8) {
        parts.extend(docs(&search(params(offset, 8))));
    }
    assert_eq!(parts, docs(&all));
    assert!(search(params(100_000, 10)).hits.is_empty());
}

#[test]
fn pages_that_match_are_counted_or_reckoned() {
    let of = indexed(Preset::Demo, 1200, 3);
    let params = SearchParams { fold: Fold::Off, limit: 1, ..SearchParams::default() };
    let mut reckoned = 0;
    for query in some_queries(&of) {
        let results = of.index.search(&of.copies, &query, &params).unwrap();
        let truth = naive_best_groups(&of, &query, results.is_relaxed, &params, usize::MAX).len() as u64;
        assert_eq!(results.matches, Matches { pages: truth, is_exact: true }, "{query:?}");
        let guess = of.index.reckon(&query, results.is_relaxed, &params, &of.copies, 400).unwrap();
        assert!(!guess.is_exact);
        if truth > 300 {
            reckoned += 1;
            assert!(guess.pages > truth / 2 && guess.pages < truth * 2, "{query:?}: {guess:?} for {truth}");
        }
    }
    assert!(reckoned > 20);
}
