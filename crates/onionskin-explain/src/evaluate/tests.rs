use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use onionskin_testkit::{Fact, Preset, TruthOptions, Web, WebSpec, naive};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;
use onionskin_scan::testing::{pair, scan_into, write_similar};

fn atlas_of(folder: &Path, documents: u32) -> PathBuf {
    let (input, atlas) = (folder.join("in.jsonl"), folder.join("atlas"));
    let mut text = String::new();
    for doc in 0..documents {
        let _ = writeln!(
            text,
            "{{\"id\":\"d{doc}\",\"url\":\"http://a.example/{doc}\",\"text\":\"document {doc}\"}}"
        );
    }
    fs::write(&input, text).unwrap();
    scan_into(&[&input], &atlas, "w4-rabin64-6x14r2");
    atlas
}

fn judge(atlas: &Path, truth: &str, change: impl FnOnce(&mut EvaluateParams)) -> Evaluation {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("truth");
    fs::write(&path, truth).unwrap();
    let mut params = EvaluateParams {
        atlas: atlas.to_owned(),
        truth: path,
        threshold: None,
        partial: false,
        show: 5,
        memory: MemoryBudget::from_mib(1),
        work_dir: folder.path().join("work"),
    };
    change(&mut params);
    evaluate(&params).unwrap()
}

fn near(a: u32, b: u32) -> PairRow {
    pair(a, b, 0.95, Method::Resemblance)
}

#[test]
fn pairs_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let atlas = atlas_of(folder.path(), 8);
    write_similar(
        &atlas,
        Some(0.8),
        &[near(0, 1), near(2, 3), pair(4, 5, 0.85, Method::Resemblance)],
        &[vec![0, 1], vec![2, 3, 4, 5]],
    );
    let truth = "a,b,resemblance\nd0,d1,0.97\nhttp://a.example/3,http://a.example/2,0.75\n6,7,0.9\n4,5,0.85\nd0,gone,1\n";
    let seen = judge(&atlas, truth, |_| {});
    assert_eq!((seen.threshold, seen.documents), (0.8, 8));
    assert_eq!((seen.truth.pairs, seen.truth.pairs_at_threshold, seen.truth.unknown_names), (4, 3, 1));
    assert_eq!(seen.truth.unknown_examples, ["gone"]);
    let pairs = seen.pairs.unwrap();
    // (2, 3) is listed, but not similar enough; (6, 7) was missed.
    assert_eq!(
        (pairs.truth, pairs.found, pairs.rows, pairs.right, pairs.wrong, pairs.unjudged),
        (3, 2, 3, 2, 1, 0)
    );
    assert_eq!((pairs.recall(), pairs.precision()), (2.0 / 3.0, 2.0 / 3.0));
    let clusters = seen.clusters.unwrap();
    assert_eq!(
        (clusters.truth_pairs, clusters.found_pairs, clusters.common_pairs, clusters.documents),
        (3, 7, 2, 8)
    );
    assert_eq!((clusters.n_split, clusters.split[0].examples.clone()), (1, vec![DocId(6), DocId(7)]));
    assert_eq!((clusters.n_mixed, clusters.mixed[0].parts), (1, 3));
    assert!(seen.names.contains(&(DocId(6), "http://a.example/6".to_owned())));
    let bands: Vec<_> =
        seen.bands.iter().map(|band| (band.from, band.pairs, band.in_pairs, band.in_clusters)).collect();
    assert_eq!(bands, [(0.7, 1, 1, 1), (0.85, 1, 1, 1), (0.9, 1, 0, 0), (0.95, 1, 1, 1)]);

    let seen = judge(&atlas, truth, |params| params.threshold = Some(0.9));
    let pairs = seen.pairs.unwrap();
    assert_eq!(
        (pairs.truth, pairs.found, pairs.rows, pairs.below, pairs.right, pairs.wrong),
        (2, 1, 2, 1, 1, 1)
    );
}

#[test]
fn what_the_truth_does_not_say_is_not_judged() {
    let folder = tempfile::tempdir().unwrap();
    let atlas = atlas_of(folder.path(), 6);
    write_similar(&atlas, None, &[near(0, 1), near(0, 2), near(1, 2), near(3, 4)], &[]);
    let score = |truth: &str, partial: bool| {
        let pairs = judge(&atlas, truth, |params| params.partial = partial).pairs.unwrap();
        (pairs.right, pairs.wrong, pairs.unjudged)
    };
    let pairs = "{\"a\":0,\"b\":1}\n";
    assert_eq!(score(pairs, false), (1, 3, 0));
    assert_eq!(score(pairs, true), (1, 0, 3));
    // Members: documents that are not named are not judged.
    assert_eq!(score("doc,cluster\n0,x\n1,x\n2,y\n", false), (1, 2, 1));
    let facts = |listed: &str| {
        format!(
            "{{\"type\":\"cluster\",\"cluster\":0,\"kind\":\"near\",\"pages\":3,\"centre\":\"d0\",\"pairs\":\"{listed}\"}}\n\
             {{\"type\":\"copy\",\"cluster\":0,\"a\":\"d0\",\"b\":\"d1\",\"kind\":\"near\",\"resemblance\":0.95}}\n\
             {{\"type\":\"copy\",\"cluster\":0,\"a\":\"d0\",\"b\":\"d2\",\"kind\":\"near\",\"resemblance\":0.8}}\n"
        )
    };
    // (1, 2) is not listed: wrong if all pairs are, unknown if only those with the centre.
    assert_eq!(score(&facts("all"), false), (1, 3, 0));
    assert_eq!(score(&facts("sharing"), false), (1, 3, 0));
    assert_eq!(score(&facts("centre"), false), (1, 2, 1));
    // But if one of them equals the centre, it is known all the same.
    assert_eq!(score(&facts("centre").replacen("near\",\"res", "exact\",\"res", 1), false), (1, 3, 0));
}

#[test]
fn exact_copies_stand_for_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let atlas = atlas_of(folder.path(), 5);
    // 0 = 1 = 2, and 0 is near 3: that 2 is near 3 follows.
    let exact = |a, b| pair(a, b, 1.0, Method::Exact);
    write_similar(&atlas, None, &[exact(0, 1), exact(0, 2), near(0, 3)], &[]);
    let seen = judge(&atlas, "a,b\n1,2\n2,3\n3,4\n", |_| {});
    let pairs = seen.pairs.unwrap();
    assert_eq!((pairs.truth, pairs.found), (3, 2));
    assert_eq!(seen.clusters.unwrap().common_pairs, 0);
}

/// Everything by the definitions, pair by pair.
struct Naive {
    documents: u32,
    truth: BTreeMap<(u32, u32), f64>,
    rows: BTreeMap<(u32, u32), (f64, bool)>,
    clusters: Vec<Vec<u32>>,
    threshold: f64,
}

impl Naive {
    fn components(&self, pairs: impl Iterator<Item = (u32, u32)>) -> Vec<usize> {
        naive::naive_components(self.documents as usize, pairs.map(|(a, b)| (a as usize, b as usize)))
    }

    fn score(&self) -> (u64, u64, u64, u64, u64, u64, u64) {
        let exact = self.components(self.rows.iter().filter(|row| row.1.1).map(|row| *row.0));
        let connected =
            self.components(self.truth.iter().filter(|pair| *pair.1 >= self.threshold).map(|pair| *pair.0));
        let same = |a: u32, b: u32| exact[a as usize] == exact[b as usize];
        let all = (0..self.documents).flat_map(|b| (0..b).map(move |a| (a, b)));
        let found = |&(a, b): &(u32, u32)| {
            same(a, b)
                || self.rows.iter().any(|(&(x, y), &(r, _))| {
                    r >= self.threshold && ((same(a, x) && same(b, y)) || (same(a, y) && same(b, x)))
                })
        };
        let truth: Vec<(u32, u32)> =
            self.truth.iter().filter(|p| *p.1 >= self.threshold).map(|p| *p.0).collect();
        let rows: Vec<&(u32, u32)> =
            self.rows.iter().filter(|row| row.1.0 >= self.threshold).map(|row| row.0).collect();
        let right =
            rows.iter().filter(|row| self.truth.get(row).is_some_and(|r| *r >= self.threshold)).count();
        let cluster = |doc: u32| self.clusters.iter().position(|members| members.contains(&doc));
        let together = |&(a, b): &(u32, u32)| cluster(a).is_some() && cluster(a) == cluster(b);
        let in_truth = |&(a, b): &(u32, u32)| connected[a as usize] == connected[b as usize];
        let count = |test: &dyn Fn(&(u32, u32)) -> bool| all.clone().filter(|pair| test(pair)).count() as u64;
        (
            truth.len() as u64,
            truth.iter().filter(|pair| found(pair)).count() as u64,
            rows.len() as u64,
            right as u64,
            count(&in_truth),
            count(&together),
            count(&|pair| in_truth(pair) && together(pair)),
        )
    }
}

#[test]
fn counts_are_those_of_the_naive_judge() {
    const DOCUMENTS: u32 = 10;
    let folder = tempfile::tempdir().unwrap();
    let atlas = atlas_of(folder.path(), DOCUMENTS);
    let doc = || 0..DOCUMENTS;
    let share = || prop::sample::select(vec![0.55, 0.75, 0.9, 0.97, 1.0]);
    let pairs = || prop::collection::vec((doc(), doc(), share(), any::<bool>()), 0..12);
    let strategy = (pairs(), pairs(), prop::collection::vec(0_usize..4, DOCUMENTS as usize), share());
    let config = Config { cases: 48, source_file: Some(file!()), ..Config::default() };
    let mut runner = TestRunner::new(config);
    let ordered = |pairs: &[(u32, u32, f64, bool)]| {
        let kept = pairs.iter().filter(|(a, b, ..)| a != b);
        kept.map(|&(a, b, r, exact)| ((a.min(b), a.max(b)), (if exact { 1.0 } else { r }, exact)))
            .collect::<BTreeMap<_, _>>()
    };
    let result = runner.run(&strategy, |(truth, rows, labels, threshold)| {
        let clusters: Vec<Vec<u32>> = (0..4)
            .map(|label| doc().filter(|doc| labels[*doc as usize] == label).collect::<Vec<_>>())
            .filter(|members| members.len() > 1)
            .collect();
        let truth: BTreeMap<(u32, u32), f64> =
            ordered(&truth).into_iter().map(|(pair, (r, _))| (pair, r)).collect();
        let naive = Naive { documents: DOCUMENTS, truth, rows: ordered(&rows), clusters, threshold };
        let rows: Vec<PairRow> = naive
            .rows
            .iter()
            .map(|(&(a, b), &(r, exact))| pair(a, b, r, if exact { Method::Exact } else { Method::Overlap }))
            .collect();
        write_similar(&atlas, Some(threshold), &rows, &naive.clusters);
        let mut text = String::from("a,b,resemblance\n");
        for ((a, b), resemblance) in &naive.truth {
            // Twice, the other way around, and once with less: the largest counts.
            let _ = writeln!(
                text,
                "d{a},d{b},{resemblance}\nhttp://a.example/{b},{a},{resemblance}\n{a},{b},0.5"
            );
        }
        let seen = judge(&atlas, &text, |_| {});
        let (pairs, clusters) = (seen.pairs.unwrap(), seen.clusters.unwrap());
        let counts = (
            pairs.truth,
            pairs.found,
            pairs.rows,
            pairs.right,
            clusters.truth_pairs,
            clusters.found_pairs,
            clusters.common_pairs,
        );
        prop_assert_eq!(counts, naive.score());
        prop_assert_eq!(pairs.right + pairs.wrong + pairs.unjudged, pairs.rows);
        Ok(())
    });
    result.unwrap();
}

#[test]
fn a_perfect_search_of_a_generated_web_is_perfect() {
    let web = Web::new(&WebSpec::of(Preset::Demo, 600, 5)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (input, atlas) = (folder.path().join("in.jsonl"), folder.path().join("atlas"));
    web.write_jsonl(&mut fs::File::create(&input).unwrap(), 0..web.n_pages(), &mut |_, _| {}).unwrap();
    scan_into(&[&input], &atlas, "w4-rabin64-6x14r2");
    let mut truth = Vec::new();
    web.write_truth(&mut truth, TruthOptions::default(), &mut |_, _| {}).unwrap();
    let truth = String::from_utf8(truth).unwrap();
    let docs: BTreeMap<String, u32> = (0..web.n_pages()).map(|page| (web.url(page), page as u32)).collect();
    let facts = truth.lines().map(|line| serde_json::from_str::<Fact>(line).unwrap());
    let mut pairs: BTreeMap<(u32, u32), PairRow> = BTreeMap::new();
    for fact in facts {
        if let Fact::Copy { a, b, resemblance, kind, .. } = fact
            && resemblance >= 0.8
        {
            let (a, b) = (docs[&a].min(docs[&b]), docs[&a].max(docs[&b]));
            let exact = kind == onionskin_testkit::CopyKind::Exact;
            let method = if exact { Method::Exact } else { Method::Resemblance };
            pairs.insert((a, b), pair(a, b, resemblance, method));
        }
    }
    let components =
        naive::naive_components(docs.len(), pairs.keys().map(|(a, b)| (*a as usize, *b as usize)));
    let roots: BTreeSet<usize> = components.iter().copied().collect();
    let members =
        |root: usize| (0..docs.len()).filter(|doc| components[*doc] == root).map(|doc| doc as u32).collect();
    let clusters: Vec<Vec<u32>> =
        roots.into_iter().map(members).filter(|members: &Vec<u32>| members.len() > 1).collect();
    let rows: Vec<PairRow> = pairs.into_values().collect();
    write_similar(&atlas, Some(0.8), &rows, &clusters);
    let seen = judge(&atlas, &truth, |_| {});
    let score = seen.pairs.unwrap();
    assert_eq!((score.precision(), score.recall(), score.unjudged), (1.0, 1.0, 0));
    assert_eq!((score.truth, seen.truth.unknown_names, seen.truth.shingle), (rows.len() as u64, 0, Some(4)));
    let of_clusters = seen.clusters.unwrap();
    assert_eq!((of_clusters.adjusted_rand_index(), of_clusters.n_split, of_clusters.n_mixed), (1.0, 0, 0));

    // Half of the rows are gone, and two strangers are in.
    let mut fewer: Vec<PairRow> =
        rows.iter().step_by(2).filter(|row| row.method != Method::Exact).copied().collect();
    let before = fewer.len();
    let stranger = (0..docs.len() as u32 - 1)
        .find(|doc| components[*doc as usize] != components[*doc as usize + 1])
        .unwrap();
    fewer.push(near(stranger, stranger + 1));
    fewer.sort_by_key(|row| (row.a, row.b));
    write_similar(&atlas, Some(0.8), &fewer, &clusters[1..]);
    let seen = judge(&atlas, &truth, |_| {});
    let score = seen.pairs.unwrap();
    assert_eq!((score.found, score.wrong, score.right), (before as u64, 1, before as u64));
    assert!(seen.clusters.unwrap().adjusted_rand_index() < 1.0);
}

#[test]
fn impossible_comparisons_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let atlas = atlas_of(folder.path(), 3);
    let mut params = EvaluateParams {
        atlas: atlas.clone(),
        truth: folder.path().join("missing"),
        threshold: None,
        partial: false,
        show: 5,
        memory: MemoryBudget::from_mib(1),
        work_dir: folder.path().join("work"),
    };
    assert!(evaluate(&params).unwrap_err().to_string().contains("hint: run `onionskin similar`"));
    write_similar(&atlas, None, &[near(0, 7)], &[]);
    assert!(evaluate(&params).unwrap_err().to_string().contains("missing"));
    params.truth = folder.path().join("truth");
    fs::write(&params.truth, "a,b\n0,1\n").unwrap();
    let error = evaluate(&params).unwrap_err().to_string();
    let wanted = "pairs/part-00000.parquet, row 0: column \"b\": 7, but there are 3 documents";
    assert!(error.contains(wanted), "{error}");
}
