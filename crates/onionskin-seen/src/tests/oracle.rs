//! Against a list of documents that is searched from front to back, and against a database of
//! documents by feature.

use std::collections::BTreeMap;
use std::path::PathBuf;

use onionskin_store::MemoryBudget;
use proptest::prelude::*;
use redb::{
    Database, MultimapTableDefinition, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction,
};

use crate::testing::{Text, fast_dir, living, options, params};
use crate::{Document, Match, Reader, Seen};

const K: usize = 3;
/// Features that must agree.
const AGREE: usize = 2;

#[derive(Clone, Debug)]
struct Entry {
    key: u64,
    text: usize,
    group: usize,
    living: bool,
}

/// Where the oracle keeps what it knows. A group has the features of the document that founded it.
trait Rows {
    fn push(&mut self, entry: Entry);
    fn entries(&self) -> Vec<Entry>;
    /// Makes these all there is.
    fn replace(&mut self, entries: Vec<Entry>);
    /// Founds the next group, by a text.
    fn found(&mut self, text: usize, features: &[u64]);
    /// The texts that have founded groups.
    fn founders(&self) -> Vec<usize>;
    /// Groups that share features with these, and how many.
    fn sharing(&self, features: &[u64]) -> BTreeMap<usize, usize>;
    fn reopen(&mut self) {}
}

/// Lists that are searched from front to back.
#[derive(Default)]
struct Lists {
    entries: Vec<Entry>,
    founders: Vec<(usize, Vec<u64>)>,
}

impl Rows for Lists {
    fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    fn entries(&self) -> Vec<Entry> {
        self.entries.clone()
    }

    fn replace(&mut self, entries: Vec<Entry>) {
        self.entries = entries;
    }

    fn found(&mut self, text: usize, features: &[u64]) {
        self.founders.push((text, features.to_vec()));
    }

    fn founders(&self) -> Vec<usize> {
        self.founders.iter().map(|founder| founder.0).collect()
    }

    fn sharing(&self, features: &[u64]) -> BTreeMap<usize, usize> {
        let shared = |founder: &Vec<u64>| founder.iter().zip(features).filter(|(a, b)| a == b).count();
        self.founders
            .iter()
            .map(|founder| shared(&founder.1))
            .enumerate()
            .filter(|(_, shared)| *shared > 0)
            .collect()
    }
}

/// A database that others have written and tested: feature to groups, and documents by number.
struct Redb {
    path: PathBuf,
    database: Option<Database>,
}

/// Place and value to groups.
const FEATURES: MultimapTableDefinition<(u64, u64), u64> = MultimapTableDefinition::new("features");
/// Key, text, group, whether living.
const DOCUMENTS: TableDefinition<u64, (u64, u64, u64, bool)> = TableDefinition::new("documents");
/// Groups to the texts that have founded them.
const FOUNDERS: TableDefinition<u64, u64> = TableDefinition::new("founders");

impl Redb {
    fn create(path: PathBuf) -> Redb {
        let database = Database::create(&path).unwrap();
        let redb = Redb { path, database: Some(database) };
        redb.write(|change| {
            change.open_multimap_table(FEATURES).unwrap();
            change.open_table(DOCUMENTS).unwrap();
            change.open_table(FOUNDERS).unwrap();
        });
        redb
    }

    fn database(&self) -> &Database {
        self.database.as_ref().unwrap()
    }

    fn write<T>(&self, work: impl FnOnce(&WriteTransaction) -> T) -> T {
        let change = self.database().begin_write().unwrap();
        let result = work(&change);
        change.commit().unwrap();
        result
    }
}

impl Rows for Redb {
    fn push(&mut self, entry: Entry) {
        self.write(|change| {
            let mut documents = change.open_table(DOCUMENTS).unwrap();
            let next = documents.last().unwrap().map_or(0, |(last, _)| last.value() + 1);
            documents.insert(next, entry.row()).unwrap();
        });
    }

    fn entries(&self) -> Vec<Entry> {
        let documents = self.database().begin_read().unwrap().open_table(DOCUMENTS).unwrap();
        documents.iter().unwrap().map(|row| Entry::of_row(row.unwrap().1.value())).collect()
    }

    fn replace(&mut self, entries: Vec<Entry>) {
        self.write(|change| {
            change.delete_table(DOCUMENTS).unwrap();
            let mut documents = change.open_table(DOCUMENTS).unwrap();
            for (at, entry) in (0..).zip(entries) {
                documents.insert(at, entry.row()).unwrap();
            }
        });
    }

    fn found(&mut self, text: usize, features: &[u64]) {
        let group = self.founders().len() as u64;
        self.write(|change| {
            let mut table = change.open_multimap_table(FEATURES).unwrap();
            for (place, feature) in (0..).zip(features) {
                table.insert((place, *feature), group).unwrap();
            }
            change.open_table(FOUNDERS).unwrap().insert(group, text as u64).unwrap();
        });
    }

    fn founders(&self) -> Vec<usize> {
        let founders = self.database().begin_read().unwrap().open_table(FOUNDERS).unwrap();
        founders.iter().unwrap().map(|row| row.unwrap().1.value() as usize).collect()
    }

    fn sharing(&self, features: &[u64]) -> BTreeMap<usize, usize> {
        let table = self.database().begin_read().unwrap().open_multimap_table(FEATURES).unwrap();
        let mut shared = BTreeMap::new();
        for (place, feature) in (0..).zip(features) {
            for group in table.get((place, *feature)).unwrap() {
                *shared.entry(group.unwrap().value() as usize).or_insert(0) += 1;
            }
        }
        shared
    }

    fn reopen(&mut self) {
        self.database = None;
        self.database = Some(Database::open(&self.path).unwrap());
    }
}

impl Entry {
    fn row(&self) -> (u64, u64, u64, bool) {
        (self.key, self.text as u64, self.group as u64, self.living)
    }

    fn of_row((key, text, group, living): (u64, u64, u64, bool)) -> Entry {
        Entry { key, text: text as usize, group: group as usize, living }
    }
}

/// The rules, whatever keeps the rows.
struct Oracle<R> {
    texts: Vec<Text>,
    rows: R,
    /// Of an index with sketches.
    threshold: f64,
    /// Minima that agree at least by the threshold.
    least: usize,
}

/// Place of a document, its group, features shared, whether exact, resemblance.
#[derive(Clone, Copy)]
struct Best {
    at: usize,
    group: usize,
    shared: usize,
    exact: bool,
    resemblance: f64,
}

impl<R: Rows> Oracle<R> {
    fn find(&self, text: usize) -> Option<Best> {
        let entries = self.rows.entries();
        let same = |entry: &Entry| entry.living && self.texts[entry.text].fp == self.texts[text].fp;
        if let Some(at) = entries.iter().position(same) {
            return Some(Best { at, group: entries[at].group, shared: K, exact: true, resemblance: 1.0 });
        }
        let founders = self.rows.founders();
        let mut best: Option<Best> = None;
        for (group, shared) in self.rows.sharing(&self.texts[text].features) {
            let oldest = entries.iter().position(|entry| entry.living && entry.group == group);
            let Some(at) = oldest.filter(|_| shared >= AGREE) else { continue };
            let (ours, theirs) = (&self.texts[text].sketch, &self.texts[founders[group]].sketch);
            let agreeing = ours.iter().zip(theirs).filter(|(a, b)| a == b).count();
            // 3x2: a feature is two minima.
            let resemblance = match ours.len() {
                0 => ((shared as f64 + 0.5) / (K as f64 + 1.0)).sqrt(),
                n => agreeing as f64 / n as f64,
            };
            let rank = (resemblance, shared, std::cmp::Reverse(at));
            let least = if self.threshold == 0.0 { 0 } else { self.least };
            if (ours.is_empty() || agreeing >= least)
                && best.is_none_or(|b| rank > (b.resemblance, b.shared, std::cmp::Reverse(b.at)))
            {
                best = Some(Best { at, group, shared, exact: false, resemblance });
            }
        }
        best
    }

    fn add(&mut self, key: u64, text: usize, copies_too: bool) -> bool {
        let found = self.find(text);
        if found.is_some() && !copies_too {
            return false;
        }
        let group = found.filter(|found| found.exact).map_or_else(
            || {
                self.rows.found(text, &self.texts[text].features);
                self.rows.founders().len() - 1
            },
            |found| found.group,
        );
        self.rows.push(Entry { key, text, group, living: true });
        true
    }

    fn remove(&mut self, places: &[usize]) {
        let mut entries = self.rows.entries();
        places.iter().for_each(|at| entries[*at].living = false);
        self.rows.replace(entries);
    }

    fn compact(&mut self) {
        let mut entries = self.rows.entries();
        entries.retain(|entry| entry.living);
        self.rows.replace(entries);
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

/// A story, and what it is told with.
#[derive(Clone, Debug)]
struct Case {
    texts: Vec<Text>,
    steps: Vec<Step>,
    table: u32,
    memory: MemoryBudget,
    /// With sketches, and this.
    threshold: Option<f64>,
    run_postings: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let features = prop::collection::vec(prop::collection::vec(0u64..3, K), TEXTS);
    let memory = prop::sample::select(vec![1u64, 20_000, 1 << 20]);
    let sketches = prop::collection::vec(prop::collection::vec(0u32..2, 2 * K), TEXTS);
    let threshold = prop::option::of(prop::sample::select(vec![0.0, 0.5, 0.66, 0.9]));
    // So few that runs are not merged, and that compaction makes several.
    let run_postings = prop::sample::select(vec![u64::MAX, 20, 45]);
    let steps = prop::collection::vec(step(), 1..60);
    let all = (features, sketches, steps, 1u32..6, memory, threshold, run_postings);
    all.prop_map(|(features, sketches, steps, table, memory, threshold, run_postings)| Case {
        texts: (100..)
            .zip(features.into_iter().zip(sketches))
            .map(|(fp, (features, sketch))| {
                let sketch = if threshold.is_some() { sketch } else { vec![] };
                Text { fp, features, sketch }
            })
            .collect(),
        threshold,
        run_postings,
        steps,
        table,
        memory: MemoryBudget::from_bytes(memory),
    })
}

fn check(case: &Case, rows: impl Rows) -> Result<(), TestCaseError> {
    let Case { texts, steps, table, memory, .. } = case;
    let threshold = case.threshold.unwrap_or(0.0);
    let dir = fast_dir();
    let at = dir.path().join("seen");
    let settings = || crate::Options { memory: *memory, run_postings: case.run_postings, ..options(*table) };
    let mut params = params("w4-rabin64-3x2r2", false);
    params.sketches = case.threshold.is_some();
    // A byte of each minimum is kept in an index that is made for a threshold.
    params.threshold = case.threshold.filter(|_| case.run_postings > 20).and_then(|at| at.try_into().ok());
    let document = |text: usize, key| Document {
        probe: texts[text].probe().with_threshold(threshold),
        ..texts[text].document(key, "")
    };
    let mut seen = Seen::create(&at, params, settings()).unwrap();
    let mut reader = Reader::open(&at, *memory).unwrap();
    let least = onionskin_core::feature::least_agreement(2 * K, threshold, 0.004);
    let mut oracle = Oracle { texts: texts.clone(), rows, threshold, least };
    for (key, step) in (1u64..).zip(steps) {
        let n = oracle.rows.entries().len();
        match step {
            Step::Add(text) => {
                seen.add(&document(*text, key)).unwrap();
                oracle.add(key, *text, true);
            }
            Step::AddIfNew(text) => {
                let outcome = seen.add_if_new(&document(*text, key)).unwrap();
                prop_assert_eq!(outcome.doc.is_some(), oracle.add(key, *text, false));
            }
            Step::Remove(places) if n > 0 => {
                let places: Vec<_> = places.iter().map(|at| at.index(n)).collect();
                seen.remove(&places.iter().map(|at| *at as u32).collect::<Vec<_>>()).unwrap();
                oracle.remove(&places);
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
                oracle.rows.reopen();
            }
            Step::Kill => {
                seen.commit().unwrap();
                drop(seen);
                seen = Seen::open(&at, settings()).unwrap();
                oracle.rows.reopen();
            }
        }
        let told =
            |answer: Option<Match>| answer.map(|m| (m.key, m.shared, m.exact, m.doc as usize, m.resemblance));
        let committed = matches!(step, Step::Commit | Step::Compact | Step::Close | Step::Kill);
        if committed {
            reader.refresh().unwrap();
        }
        let entries = oracle.rows.entries();
        for (text, at) in texts.iter().zip(0..) {
            let expected =
                oracle.find(at).map(|b| (entries[b.at].key, b.shared, b.exact, b.at, b.resemblance));
            let probe = text.probe().with_threshold(threshold);
            let found = told(seen.check(&probe).unwrap());
            prop_assert_eq!(found, expected, "text {} after {:?}", at, step);
            if committed {
                let found = told(reader.check(&probe).unwrap());
                prop_assert_eq!(found, expected, "reader, text {} after {:?}", at, step);
            }
        }
        let expected: Vec<_> = entries.iter().filter(|entry| entry.living).map(|entry| entry.key).collect();
        prop_assert_eq!(living(&seen), expected);
        if matches!(step, Step::Compact) {
            let postings: Vec<u64> = seen.runs().iter().map(|run| run.meta().postings).collect();
            prop_assert!(postings.iter().all(|n| *n <= case.run_postings), "{:?}", postings);
            // No two neighbours would fit into one; but an heir that had postings of its own under
            // a key has one less than was counted.
            let heirs = steps.iter().any(|step| matches!(step, Step::Remove(_)));
            prop_assert!(
                heirs || postings.windows(2).all(|two| two[0] + two[1] > case.run_postings),
                "{:?}",
                postings
            );
        }
    }
    seen.close().unwrap();
    let found = crate::verify(&at).unwrap();
    prop_assert!(found.is_whole() && found.torn_bytes == 0, "{:?}", found);
    Ok(())
}

fn cases(few: u32, many: u32) -> ProptestConfig {
    let slow = std::env::var_os("ONIONSKIN_SLOW_TESTS").is_some();
    ProptestConfig::with_cases(if slow { many } else { few })
}

proptest! {
    #![proptest_config(cases(300, 5_000))]

    #[test]
    fn answers_are_those_of_a_list(case in case()) {
        check(&case, Lists::default())?;
    }
}

proptest! {
    #![proptest_config(cases(24, 500))]

    #[test]
    fn answers_are_those_of_a_database(case in case()) {
        let dir = fast_dir();
        check(&case, Redb::create(dir.path().join("redb")))?;
    }
}
