//! Against a list of documents that is searched from front to back, and against a database of documents by feature.

use std::collections::BTreeMap;
use std::path::PathBuf;

use onionskin_store::MemoryBudget;
use proptest::prelude::*;
use redb::{
    Database, MultimapTableDefinition, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction,
};

use crate::testing::{Text, fast_dir, living, options, params};
use crate::{Match, Reader, Seen};

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
    /// Founds the next group.
    fn found(&mut self, features: &[u64]);
    fn groups(&self) -> usize;
    /// Groups that share features with these, and how many.
    fn sharing(&self, features: &[u64]) -> BTreeMap<usize, usize>;
    fn reopen(&mut self) {}
}

/// Lists that are searched from front to back.
#[derive(Default)]
struct Lists {
    entries: Vec<Entry>,
    founders: Vec<Vec<u64>>,
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

    fn found(&mut self, features: &[u64]) {
        self.founders.push(features.to_vec());
    }

    fn groups(&self) -> usize {
        self.founders.len()
    }

    fn sharing(&self, features: &[u64]) -> BTreeMap<usize, usize> {
        let shared = |founder: &Vec<u64>| founder.iter().zip(features).filter(|(a, b)| a == b).count();
        self.founders.iter().map(shared).enumerate().filter(|(_, shared)| *shared > 0).collect()
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
const COUNTS: TableDefinition<&str, u64> = TableDefinition::new("counts");

impl Redb {
    fn create(path: PathBuf) -> Redb {
        let database = Database::create(&path).unwrap();
        let redb = Redb { path, database: Some(database) };
        redb.write(|change| {
            change.open_multimap_table(FEATURES).unwrap();
            change.open_table(DOCUMENTS).unwrap();
            change.open_table(COUNTS).unwrap();
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

    fn found(&mut self, features: &[u64]) {
        let group = self.groups() as u64;
        self.write(|change| {
            let mut table = change.open_multimap_table(FEATURES).unwrap();
            for (place, feature) in (0..).zip(features) {
                table.insert((place, *feature), group).unwrap();
            }
            change.open_table(COUNTS).unwrap().insert("groups", group + 1).unwrap();
        });
    }

    fn groups(&self) -> usize {
        let counts = self.database().begin_read().unwrap().open_table(COUNTS).unwrap();
        counts.get("groups").unwrap().map_or(0, |count| count.value() as usize)
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
}

impl<R: Rows> Oracle<R> {
    /// Place of the document, its group, features shared, whether exact.
    fn find(&self, text: usize) -> Option<(usize, usize, usize, bool)> {
        let entries = self.rows.entries();
        let same = |entry: &Entry| entry.living && self.texts[entry.text] == self.texts[text];
        if let Some(at) = entries.iter().position(same) {
            return Some((at, entries[at].group, K, true));
        }
        let mut best: Option<(usize, usize, usize, bool)> = None;
        for (group, shared) in self.rows.sharing(&self.texts[text].features) {
            let oldest = entries.iter().position(|entry| entry.living && entry.group == group);
            if let Some(at) = oldest.filter(|_| shared >= AGREE)
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
                self.rows.found(&self.texts[text].features);
                self.rows.groups() - 1
            },
            |found| found.1,
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
}

fn case() -> impl Strategy<Value = Case> {
    let features = prop::collection::vec(prop::collection::vec(0u64..3, K), TEXTS);
    let memory = prop::sample::select(vec![1u64, 20_000, 1 << 20]);
    let all = (features, prop::collection::vec(step(), 1..60), 1u32..6, memory);
    all.prop_map(|(features, steps, table, memory)| Case {
        texts: (100..).zip(features).map(|(fp, features)| Text { fp, features }).collect(),
        steps,
        table,
        memory: MemoryBudget::from_bytes(memory),
    })
}

fn check(case: &Case, rows: impl Rows) -> Result<(), TestCaseError> {
    let Case { texts, steps, table, memory } = case;
    let dir = fast_dir();
    let at = dir.path().join("seen");
    let settings = || crate::Options { memory: *memory, ..options(*table) };
    let mut seen = Seen::create(&at, params("w4-rabin64-3x2r2", false), settings()).unwrap();
    let mut reader = Reader::open(&at, *memory).unwrap();
    let mut oracle = Oracle { texts: texts.clone(), rows };
    for (key, step) in (1u64..).zip(steps) {
        let n = oracle.rows.entries().len();
        match step {
            Step::Add(text) => {
                seen.add(&texts[*text].document(key, "")).unwrap();
                oracle.add(key, *text, true);
            }
            Step::AddIfNew(text) => {
                let outcome = seen.add_if_new(&texts[*text].document(key, "")).unwrap();
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
        let told = |answer: Option<Match>| answer.map(|m| (m.key, m.shared, m.exact, m.doc as usize));
        let committed = matches!(step, Step::Commit | Step::Compact | Step::Close | Step::Kill);
        if committed {
            reader.refresh().unwrap();
        }
        let entries = oracle.rows.entries();
        for (text, at) in texts.iter().zip(0..) {
            let expected = oracle.find(at).map(|(at, _, shared, exact)| (entries[at].key, shared, exact, at));
            let found = told(seen.check(&text.probe()).unwrap());
            prop_assert_eq!(found, expected, "text {} after {:?}", at, step);
            if committed {
                let found = told(reader.check(&text.probe()).unwrap());
                prop_assert_eq!(found, expected, "reader, text {} after {:?}", at, step);
            }
        }
        let expected: Vec<_> = entries.iter().filter(|entry| entry.living).map(|entry| entry.key).collect();
        prop_assert_eq!(living(&seen), expected);
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
