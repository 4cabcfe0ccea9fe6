//! Against a list of documents that is searched from front to back.

use onionskin_store::MemoryBudget;
use proptest::prelude::*;

use crate::testing::{Text, fast_dir, living, options, params};
use crate::{Match, Reader, Seen};

const K: usize = 3;
const R: usize = 2;

#[derive(Clone, Debug)]
struct Entry {
    key: u64,
    text: usize,
    group: usize,
    living: bool,
}

/// Documents in groups; a group has the features of the document that founded it.
struct Oracle {
    texts: Vec<Text>,
    entries: Vec<Entry>,
    founders: Vec<usize>,
}

impl Oracle {
    /// Place of the document, its group, features shared, whether exact.
    fn find(&self, text: usize) -> Option<(usize, usize, usize, bool)> {
        let same = |entry: &Entry| entry.living && self.texts[entry.text] == self.texts[text];
        if let Some(at) = self.entries.iter().position(same) {
            return Some((at, self.entries[at].group, K, true));
        }
        let mut best: Option<(usize, usize, usize, bool)> = None;
        for (group, founder) in self.founders.iter().enumerate() {
            let features = self.texts[*founder].features.iter().zip(&self.texts[text].features);
            let shared = features.filter(|(a, b)| a == b).count();
            let oldest = self.entries.iter().position(|entry| entry.living && entry.group == group);
            if let Some(at) = oldest.filter(|_| shared >= R)
                && best.is_none_or(|best| shared > best.2 || shared == best.2 && at < best.0)
            {
                best = Some((at, group, shared, false));
            }
        }
        best
    }

    fn add(&mut self, key: u64, text: usize, copies_too: bool) -> bool {
        let found = self.find(text);
        if found.is_some() && !copies_too {
            return false;
        }
        let group = found.map_or_else(
            || {
                self.founders.push(text);
                self.founders.len() - 1
            },
            |found| found.1,
        );
        self.entries.push(Entry { key, text, group, living: true });
        true
    }

    fn compact(&mut self) {
        self.entries.retain(|entry| entry.living);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Add(usize),
    AddIfNew(usize),
    Remove(Vec<prop::sample::Index>),
    Commit,
    Compact,
    Close,
    Kill,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..TEXTS).prop_map(Step::Add),
        3 => (0..TEXTS).prop_map(Step::AddIfNew),
        4 => prop::collection::vec(any::<prop::sample::Index>(), 1..3).prop_map(Step::Remove),
        3 => Just(Step::Commit),
        1 => Just(Step::Compact),
        1 => Just(Step::Close),
        1 => Just(Step::Kill),
    ]
}

const TEXTS: usize = 14;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("ONIONSKIN_SLOW_TESTS").is_some() { 5_000 } else { 300 }))]

    #[test]
    fn answers_are_those_of_a_list(
        features in prop::collection::vec(prop::collection::vec(0u64..3, K), TEXTS),
        steps in prop::collection::vec(step(), 1..60),
        table in 1u32..6,
        memory in prop::sample::select(vec![1u64, 20_000, 1 << 20]),
    ) {
        let texts: Vec<Text> =
            (100..).zip(features).map(|(fp, features)| Text { fp, features }).collect();
        let dir = fast_dir();
        let at = dir.path().join("seen");
        let memory = MemoryBudget::from_bytes(memory);
        let settings = || crate::Options { memory, ..options(table) };
        let mut seen = Seen::create(&at, params("w4-rabin64-3x2r2", false), settings()).unwrap();
        let mut reader = Reader::open(&at, memory).unwrap();
        let mut oracle = Oracle { texts: texts.clone(), entries: vec![], founders: vec![] };
        for (key, step) in (1u64..).zip(steps) {
            match &step {
                Step::Add(text) => {
                    seen.add(&texts[*text].document(key, "")).unwrap();
                    oracle.add(key, *text, true);
                }
                Step::AddIfNew(text) => {
                    let outcome = seen.add_if_new(&texts[*text].document(key, "")).unwrap();
                    prop_assert_eq!(outcome.doc.is_some(), oracle.add(key, *text, false));
                }
                Step::Remove(places) if !oracle.entries.is_empty() => {
                    let places: Vec<_> = places.iter().map(|at| at.index(oracle.entries.len())).collect();
                    seen.remove(&places.iter().map(|at| *at as u32).collect::<Vec<_>>()).unwrap();
                    places.iter().for_each(|at| oracle.entries[*at].living = false);
                }
                Step::Remove(_) => {}
                Step::Commit => seen.commit().unwrap(),
                Step::Compact => {
                    seen.compact().unwrap();
                    oracle.compact();
                }
                Step::Close => {
                    seen.close().unwrap();
                    seen = Seen::open(&at, settings()).unwrap();
                }
                Step::Kill => {
                    seen.commit().unwrap();
                    drop(seen);
                    seen = Seen::open(&at, settings()).unwrap();
                }
            }
            let told = |answer: Option<Match>| answer.map(|m| (m.key, m.shared, m.exact, m.doc as usize));
            let committed = matches!(step, Step::Commit | Step::Compact | Step::Close | Step::Kill);
            if committed {
                reader.refresh().unwrap();
            }
            for (text, at) in texts.iter().zip(0..) {
                let expected = oracle.find(at).map(|(at, _, shared, exact)| (oracle.entries[at].key, shared, exact, at));
                prop_assert_eq!(told(seen.check(&text.probe()).unwrap()), expected, "text {} after {:?}", at, step);
                if committed {
                    prop_assert_eq!(told(reader.check(&text.probe()).unwrap()), expected, "reader, text {} after {:?}", at, step);
                }
            }
            let expected: Vec<_> = oracle.entries.iter().filter(|entry| entry.living).map(|entry| entry.key).collect();
            prop_assert_eq!(living(&seen), expected);
        }
        seen.close().unwrap();
        let found = crate::verify(&at).unwrap();
        prop_assert!(found.is_whole() && found.torn_bytes == 0, "{:?}", found);
    }
}
