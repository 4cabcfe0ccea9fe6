use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use onionskin_core::{Analyzer, ClusterId, DocId, FingerprintSet};
use onionskin_store::table::{ClusterRow, CopyKind, PairRow};
use onionskin_testkit::naive::{line_chunks, naive_overlap, naive_pairs, shingles, words};
use onionskin_testkit::{Composer, Preset, Web, WebSpec};

use super::*;
use crate::candidates::PAIRS_PER_DOCUMENT;
use onionskin_scan::scan;
use onionskin_scan::testing::CancelAfter;
use onionskin_store::{Event, Quiet};

struct Made {
    folder: tempfile::TempDir,
    texts: Vec<String>,
}

impl Made {
    fn atlas(&self) -> PathBuf {
        self.folder.path().join("atlas")
    }

    fn params(&self) -> SimilarParams {
        let mut params = SimilarParams::new(self.atlas());
        params.memory = MemoryBudget::from_mib(256);
        params.threads = 2;
        params
    }

    fn pairs(&self) -> Vec<PairRow> {
        Atlas::open(self.atlas()).unwrap().pairs().unwrap().map(Result::unwrap).collect()
    }

    fn clusters(&self) -> Vec<ClusterRow> {
        Atlas::open(self.atlas()).unwrap().clusters().unwrap().map(Result::unwrap).collect()
    }

    fn tables(&self) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        for table in ["pairs", "clusters", "cluster_stats"] {
            for entry in fs::read_dir(self.atlas().join(table)).unwrap() {
                let path = entry.unwrap().path();
                found.insert(
                    format!("{table}/{}", path.file_name().unwrap().display()),
                    fs::read(path).unwrap(),
                );
            }
        }
        found.insert("manifest.json".to_owned(), fs::read(self.atlas().join("manifest.json")).unwrap());
        found
    }
}

/// A scan of texts, one JSON line each.
fn made_of(texts: Vec<String>) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("texts.jsonl");
    let lines: Vec<String> = texts.iter().map(|text| json!({ "text": text }).to_string()).collect();
    fs::write(&input, lines.join("\n")).unwrap();
    scan_into(&[&input], &folder.path().join("atlas"));
    Made { folder, texts }
}

fn scan_into(inputs: &[&Path], atlas: &Path) {
    let inputs = inputs.iter().map(|input| input.display().to_string()).collect();
    let mut params = ScanParams::new(inputs, atlas.to_owned());
    params.memory = MemoryBudget::from_mib(256);
    params.threads = 2;
    scan(&params, &Quiet).unwrap();
}

fn made(preset: Preset, pages: u64) -> Made {
    let web = Web::new(&WebSpec::of(preset, pages, 3)).unwrap();
    let mut composer = Composer::new(&web);
    made_of((0..web.n_pages()).map(|page| composer.text(page).to_owned()).collect())
}

/// The first document of every text, and the texts as sets.
fn distinct<T: Ord + Clone>(
    texts: &[String],
    set: impl Fn(&str) -> BTreeSet<T>,
) -> (Vec<DocId>, Vec<BTreeSet<T>>) {
    let mut seen = BTreeSet::new();
    let first = |(_, text): &(usize, &String)| !words(text).is_empty() && seen.insert(words(text));
    texts.iter().enumerate().filter(first).map(|(doc, text)| (DocId::at(doc), set(text))).unzip()
}

#[test]
fn exact_search_finds_what_the_definition_finds() {
    let made = made(Preset::Text, 400);
    let mut params = made.params();
    for threshold in [0.9, 0.7, 0.5] {
        params.search = Search::Resemblance { threshold, filter: None, exact: true };
        similar(&params, &Quiet).unwrap();
        let (docs, sets) = distinct(&made.texts, |text| shingles(&words(text), 4));
        let expected: Vec<(DocId, DocId, f64)> =
            naive_pairs(&sets, threshold).into_iter().map(|(a, b, r)| (docs[a], docs[b], r)).collect();
        let near = made.pairs().into_iter().filter(|pair| pair.method == Method::Resemblance);
        let found: Vec<(DocId, DocId, f64)> = near.map(|pair| (pair.a, pair.b, pair.resemblance)).collect();
        assert!(expected.len() > 20);
        assert_eq!(found, expected, "threshold {threshold}");
    }
}

#[test]
fn features_find_nearly_all_and_nothing_else() {
    let made = made(Preset::Text, 3000);
    let near = |exact| {
        let mut params = made.params();
        params.search = Search::Resemblance { threshold: 0.9, filter: None, exact };
        let summary = similar(&params, &Quiet).unwrap();
        let pairs: Vec<PairRow> = made.pairs();
        (summary, pairs)
    };
    let ((_, expected), (summary, found)) = (near(true), near(false));
    assert!(found.iter().all(|pair| expected.contains(pair)));
    assert!(found.len() as f64 >= 0.99 * expected.len() as f64, "{} of {}", found.len(), expected.len());
    let recall = summary.recall.unwrap();
    let near =
        |pairs: &[PairRow]| pairs.iter().filter(|pair| pair.method == Method::Resemblance).count() as f64;
    let (truth, measured) = (near(&found) / near(&expected), recall.listed.unwrap());
    assert!(measured.low <= truth && truth <= measured.high, "{truth} {measured:?}");
    assert_eq!(recall.precision.unwrap().value, 1.0);
}

#[test]
fn three_engines_and_the_definition_agree_on_overlap() {
    // The lines of a page are few; boilerplate makes some of them common.
    let mut texts = Vec::new();
    let web = Web::new(&WebSpec::of(Preset::Demo, 500, 5)).unwrap();
    let mut composer = Composer::new(&web);
    for page in 0..web.n_pages() {
        let body: Vec<String> = words(composer.text(page)).chunks(6).map(|line| line.join(" ")).collect();
        texts.push(format!("home about\nnews contact\n{}\nall rights\nreserved", body.join("\n")));
    }
    let made = made_of(texts);
    let mut tables = Vec::new();
    for engine in [Engine::Sort, Engine::Iceberg, Engine::Prefix] {
        let mut params = made.params();
        let threshold = Threshold::new(5).unwrap();
        params.search = Search::Overlap { chunking: "l2".to_owned(), threshold, engine };
        similar(&params, &Quiet).unwrap();
        tables.push(made.tables());
    }
    assert!(tables.windows(2).all(|two| two[0] == two[1]));
    let (docs, sets) = distinct(&made.texts, |text| line_chunks(text, 2));
    let expected: Vec<(DocId, DocId, u64)> =
        naive_overlap(&sets, 5).into_iter().map(|(a, b, n)| (docs[a], docs[b], n as u64)).collect();
    let near = made.pairs().into_iter().filter(|pair| pair.method == Method::Overlap);
    assert!(expected.len() > 50);
    assert_eq!(near.map(|pair| (pair.a, pair.b, pair.shared)).collect::<Vec<_>>(), expected);
}

#[test]
fn threads_memory_and_stops_do_not_change_a_byte() {
    struct StopAfter(std::cell::Cell<u32>);
    impl Progress for StopAfter {
        fn event(&self, _: Event<'_>) {
            let left = self.0.get();
            assert!(left > 0, "stopped by the test");
            self.0.set(left - 1);
        }
    }
    let made = made(Preset::Zipf, 2000);
    for (clustering, survivor) in
        [(Clustering::Centred, Survivor::First), (Clustering::Transitive, Survivor::Longest)]
    {
        let mut params = made.params();
        params.clustering = clustering;
        params.survivor = survivor;
        similar(&params, &Quiet).unwrap();
        let expected = made.tables();
        for (threads, mib) in [(1, 128), (3, 1024)] {
            params.threads = threads;
            params.memory = MemoryBudget::from_mib(mib);
            similar(&params, &Quiet).unwrap();
            assert!(made.tables() == expected, "{threads} threads, {mib} MiB");
        }
        let mut stops = 0;
        for patience in [1, 0, 1, 1, 1, 2, 9] {
            let stopper = StopAfter(std::cell::Cell::new(patience));
            match catch_unwind(AssertUnwindSafe(|| similar(&params, &stopper))) {
                Err(_) => stops += 1,
                Ok(summary) => {
                    assert!(summary.unwrap().resumed && stops >= 3, "{stops} stops");
                    break;
                }
            }
        }
        let found = made.tables();
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (name, bytes) in &found {
            assert!(bytes == &expected[name], "{name} differs after {stops} stops");
        }
    }
}

#[test]
fn a_search_stops_when_it_is_told_and_goes_on() {
    let made = made(Preset::Zipf, 1000);
    let mut params = made.params();
    similar(&params, &Quiet).unwrap();
    let expected = made.tables();
    // Of another clustering, so that nothing is there yet.
    params.clustering = Clustering::Transitive;
    similar(&params, &Quiet).unwrap();
    params.clustering = Clustering::Centred;
    let stops = CancelAfter::until_done(9, |progress| similar(&params, progress));
    assert!(stops >= 2, "{stops} stops");
    assert!(made.tables() == expected);
}

#[test]
fn a_chain_is_one_transitive_cluster_and_several_centred_ones() {
    let made = made(Preset::Chains, 600);
    let mut params = made.params();
    params.search = Search::Resemblance { threshold: 0.7, filter: None, exact: false };
    params.clustering = Clustering::Transitive;
    let transitive = similar(&params, &Quiet).unwrap().clusters;
    // The ends of a chain share nothing, and that is told.
    assert_eq!(transitive.lowest_resemblance, Some(0.0));
    params.clustering = Clustering::Centred;
    let centred = similar(&params, &Quiet).unwrap().clusters;
    assert!(centred.lowest_resemblance.unwrap() >= 0.7);
    assert!(centred.clusters > 2 * transitive.clusters, "{centred:?} {transitive:?}");
    assert!(centred.largest < transitive.largest);
}

#[test]
fn crowds_blanks_and_templates() {
    let crowd = made(Preset::Crowd, 3000);
    let mut params = crowd.params();
    params.search = Search::Resemblance { threshold: 0.75, filter: None, exact: false };
    let summary = similar(&params, &Quiet).unwrap();
    assert!(summary.clusters.largest >= 1200, "{summary:?}");
    // The crowd alone has over a million pairs, which meet in many buckets.
    assert!(summary.candidates.met < 3000 * PAIRS_PER_DOCUMENT, "{summary:?}");
    let recall = summary.recall.unwrap();
    // Documents of the crowd that are near to different centres are in different clusters.
    assert!(recall.clustered.unwrap().value > 0.7, "{recall:?}");
    assert!(recall.leaked.unwrap().value < 0.005, "{recall:?}");

    let blank = made(Preset::Blank, 3000);
    similar(&blank.params(), &Quiet).unwrap();
    // Empty documents are in no cluster, equal words are.
    let empty = DocId::MIN.onward().zip(&blank.texts).filter(|(_, text)| words(text).is_empty());
    let empty: BTreeSet<DocId> = empty.map(|(doc, _)| doc).collect();
    assert!(empty.len() > 100, "{}", empty.len());
    assert!(blank.clusters().iter().all(|row| !empty.contains(&row.doc)));
    for row in blank.pairs() {
        assert_eq!(words(&blank.texts[row.a.index()]), words(&blank.texts[row.b.index()]));
    }

    // Four fifths of every page are the same, which is a resemblance of two thirds.
    let template = made(Preset::Template, 2000);
    let summary = similar(&template.params(), &Quiet).unwrap();
    let recall = summary.recall.unwrap();
    assert!(recall.listed.is_none_or(|listed| listed.value > 0.98), "{recall:?}");
    assert!(summary.clusters.largest < 100, "{:?}", summary.clusters);
}

#[test]
fn revisits_follow_their_payload_and_never_lead() {
    let folder = tempfile::tempdir().unwrap();
    let page =
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>one two three four five six seven eight</p>";
    let record = |kind: &str, url: &str, more: &str, block: &str| {
        format!(
            "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2020-01-01T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:{url}>\r\n{more}Content-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    let digest = "WARC-Payload-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n";
    let other = "WARC-Payload-Digest: sha1:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB\r\n";
    let profile = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n";
    let response = "Content-Type: application/http; msgtype=response\r\n";
    let warc = [
        // The revisit comes first, and is still a copy of the page.
        record("revisit", "http://a.org/1", &format!("{digest}{profile}"), ""),
        record("response", "http://a.org/2", &format!("{digest}{response}"), page),
        record("response", "http://b.org/3", &format!("{other}{response}"), page),
        record("revisit", "http://b.org/4", &format!("{other}{profile}"), ""),
        record("revisit", "http://b.org/5", profile, ""),
    ]
    .concat();
    let input = folder.path().join("a.warc");
    fs::write(&input, warc).unwrap();
    scan_into(&[&input], &folder.path().join("atlas"));
    let made = Made { folder, texts: vec![] };
    let summary = similar(&made.params(), &Quiet).unwrap();
    assert_eq!(summary.documents, 5);
    let rows = made.clusters();
    assert_eq!(rows.iter().map(|row| row.doc.get()).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(rows.iter().find(|row| row.is_centre).unwrap().doc, DocId(1));
    assert!(rows.iter().all(|row| row.kind == CopyKind::Exact && row.resemblance_to_centre == 1.0));
}

/// Texts that are read again give the sets that a scan would have kept, in every shape of input.
#[test]
fn texts_read_again_give_the_same_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let web = Web::new(&WebSpec::of(Preset::Demo, 600, 9)).unwrap();
    let path = |name: &str| folder.path().join(name);
    let inputs = web.write_three_shapes(folder.path()).unwrap().map(|input| input.display().to_string());
    let search = |recipe: &str, name: &str| {
        let mut params = ScanParams::new(inputs.to_vec(), path(name));
        params.recipe = Some(recipe.parse().unwrap());
        params.options.task_bytes = 20_000;
        scan(&params, &Quiet).unwrap();
        let mut params = SimilarParams::new(path(name));
        params.search = Search::Resemblance { threshold: 0.8, filter: None, exact: false };
        params.clustering = Clustering::Transitive;
        let summary = similar(&params, &Quiet).unwrap();
        let atlas = Atlas::open(path(name)).unwrap();
        let pairs: Vec<PairRow> = atlas.pairs().unwrap().map(Result::unwrap).collect();
        let clusters: Vec<ClusterRow> = atlas.clusters().unwrap().map(Result::unwrap).collect();
        (summary.texts_read_again, pairs, clusters)
    };
    let kept = search("w4-rabin64-16x5r1+w4", "kept");
    let again = search("w4-rabin64-16x5r1", "again");
    assert!(!kept.0 && again.0);
    assert!(kept.1.iter().filter(|pair| pair.method == Method::Resemblance).count() > 20);
    assert_eq!((&kept.1, &kept.2), (&again.1, &again.2));
    // One permutation has its own candidates, and after verification next to the same pairs.
    let one_kept = search("w4-rabin64-16x5r1-one+w4", "one-kept");
    let one_again = search("w4-rabin64-16x5r1-one", "one-again");
    assert!(!one_kept.0 && one_again.0);
    assert_eq!((&one_kept.1, &one_kept.2), (&one_again.1, &one_again.2));
    let missed = kept.1.iter().filter(|pair| !one_kept.1.contains(pair)).count();
    assert!(missed * 50 <= kept.1.len(), "{missed} of {} missed", kept.1.len());
    // Threads, memory and where tasks end change nothing.
    for (name, threads, memory, task_bytes) in [("some", 3, 128, 3_000), ("others", 1, 512, 8 << 20)] {
        let mut params = ScanParams::new(inputs.to_vec(), path(name));
        params.recipe = Some("w4-rabin64-16x5r1-one".parse().unwrap());
        params.options.task_bytes = task_bytes;
        (params.threads, params.memory) = (threads, MemoryBudget::from_mib(256));
        scan(&params, &Quiet).unwrap();
        let mut params = SimilarParams::new(path(name));
        params.search = Search::Resemblance { threshold: 0.8, filter: None, exact: false };
        params.clustering = Clustering::Transitive;
        (params.threads, params.memory) = (threads, MemoryBudget::from_mib(memory));
        similar(&params, &Quiet).unwrap();
        let pairs: Vec<PairRow> =
            Atlas::open(path(name)).unwrap().pairs().unwrap().map(Result::unwrap).collect();
        assert_eq!(pairs, one_again.1, "{name}");
    }
}

#[test]
fn a_text_that_is_not_where_it_was_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("a.jsonl");
    let line = |words: &str| format!("{{\"text\":\"{words}\"}}\n");
    let (first, second) = ("a b c d e f g h i j", "a b c d e f g h i j k");
    fs::write(&input, line(first) + &line("nobody is like me at all") + &line(second)).unwrap();
    let mut scanned = ScanParams::new(vec![input.display().to_string()], folder.path().join("atlas"));
    scanned.recipe = Some("w4-rabin64-16x5r1-one".parse().unwrap());
    scan(&scanned, &Quiet).unwrap();
    let made = Made { folder, texts: vec![] };
    let mut params = made.params();
    params.search = Search::Resemblance { threshold: 0.5, filter: None, exact: false };
    assert_eq!(similar(&params, &Quiet).unwrap().near_pairs, 1);
    // As long as before, and cut into lines elsewhere.
    fs::write(&input, line(first) + &line("nobody is like me at a") + &line("a b c d e f g h i j k l"))
        .unwrap();
    params.search = Search::Resemblance { threshold: 0.6, filter: None, exact: false };
    let error = similar(&params, &Quiet).unwrap_err().to_string();
    assert!(error.contains("at offset"), "{error}");
}

#[test]
fn survivors_and_other_thresholds_from_stored_pairs() {
    let made = made(Preset::Text, 1500);
    let mut params = made.params();
    params.search = Search::Resemblance { threshold: 0.8, filter: None, exact: false };
    similar(&params, &Quiet).unwrap();
    let atlas = Atlas::open(made.atlas()).unwrap();
    let work = tempfile::tempdir().unwrap();
    let resources =
        Resources { memory: MemoryBudget::from_mib(64), threads: 1, work_dir: work.path().to_owned() };

    #[derive(Default)]
    struct Kept(Vec<ClusterRow>);
    impl crate::cluster::ClusterSink for Kept {
        fn member(&mut self, row: ClusterRow) -> Result<(), SimilarError> {
            self.0.push(row);
            Ok(())
        }
        fn cluster(&mut self, _: onionskin_store::table::ClusterStatsRow) -> Result<(), SimilarError> {
            Ok(())
        }
    }
    let mut wanted =
        Reclustering { clustering: Clustering::Centred, threshold: Some(0.9), survivor: Survivor::Longest };
    let mut again = Kept::default();
    recluster(&atlas, &wanted, &resources, &mut again).unwrap();
    // As if it had been asked for at first.
    params.search =
        Search::Resemblance { threshold: 0.9, filter: Some("16x5r1".parse().unwrap()), exact: false };
    params.survivor = Survivor::Longest;
    similar(&params, &Quiet).unwrap();
    assert_eq!(again.0, made.clusters());
    // For whoever walks along the documents, both ways are the same.
    let atlas = Atlas::open(made.atlas()).unwrap();
    let (memory, dir) = (MemoryBudget::from_mib(16), work.path());
    let stored = crate::membership::from_clusters_table(&atlas, memory, dir).unwrap();
    let anew = crate::membership::from_pairs(&atlas, &wanted, memory, dir).unwrap();
    let both = [stored, anew].map(|members| members.collect::<Result<Vec<_>, _>>().unwrap());
    assert!(both[0].len() > 50 && both[0] == both[1]);
    wanted.threshold = Some(0.5);
    let atlas = Atlas::open(made.atlas()).unwrap();
    let error = recluster(&atlas, &wanted, &resources, &mut Kept::default()).unwrap_err().to_string();
    assert!(error.contains("none for 0.5\nhint: ") && error.contains("lower threshold"), "{error}");
}

#[test]
fn the_survivor_leads() {
    let words: Vec<String> = (0..80).map(|i| format!("word{i}")).collect();
    let made =
        made_of(vec![words[..76].join(" "), words[..78].join(" "), words.join(" "), words[..78].join(", ")]);
    let mut params = made.params();
    let input = made.folder.path().join("texts.jsonl").display().to_string();
    for (survivor, centre) in [("first", 0), ("longest", 2), (&*format!("prefer:{input}"), 0)] {
        params.survivor = survivor.parse().unwrap();
        similar(&params, &Quiet).unwrap();
        let rows = made.clusters();
        assert_eq!(rows.len(), 4, "{rows:?}");
        assert_eq!(rows.iter().find(|row| row.is_centre).unwrap().doc, DocId(centre), "{survivor}");
    }
    // Rules that could only leave the first document of each cluster. What was found stays.
    let found = made.clusters();
    for (survivor, wanted) in [
        ("earliest", "none of the 4 documents has"),
        ("most-linked", "none of the 4 documents links"),
        ("prefer:texts", "looks for \"texts\", but no input"),
        (&*format!("prefer:{input},a.example"), "looks for \"a.example\""),
        ("prefer:a.example", "1 inputs (/"),
    ] {
        params.survivor = survivor.parse().unwrap();
        let error = similar(&params, &Quiet).unwrap_err().to_string();
        assert!(error.contains(wanted) && error.contains("\nhint: "), "{survivor}: {error}");
        assert_eq!(made.clusters(), found);
    }
}

/// As an atlas has it that was made before the rule was renamed.
#[test]
fn a_record_with_the_former_name_of_a_rule_opens() {
    let old: SearchRecord = serde_json::from_value(json!({ "survivor": "smallest" })).unwrap();
    assert_eq!(old.survivor, Some(Survivor::First));
    assert_eq!(serde_json::to_value(&old).unwrap()["survivor"], "first");
}

#[test]
fn what_the_scan_did_not_keep_is_made_from_the_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("a.jsonl");
    fs::write(&input, "{\"text\":\"a b c d e f\"}\n").unwrap();
    let mut scanned = ScanParams::new(vec![input.display().to_string()], folder.path().join("atlas"));
    scanned.recipe = Some("w4-rabin64-6x14r2".parse().unwrap());
    scan(&scanned, &Quiet).unwrap();
    let made = Made { folder, texts: vec![] };
    let mut params = made.params();
    similar(&params, &Quiet).unwrap();
    let overlap = |chunking: &str| Search::Overlap {
        chunking: chunking.to_owned(),
        threshold: Threshold::new(15).unwrap(),
        engine: Engine::Prefix,
    };
    let lines = SimilarParams { search: overlap("l4"), ..params.clone() };
    similar(&lines, &Quiet).unwrap();
    fs::write(&input, "{\"text\":\"changed\"}\n").unwrap();
    similar(&lines, &Quiet).unwrap();
    for search in [params.search.clone(), overlap("l2")] {
        let error = similar(&SimilarParams { search, ..params.clone() }, &Quiet).unwrap_err().to_string();
        assert!(error.contains("a.jsonl: it has 19 bytes, not 23") && error.contains("hint: "), "{error}");
    }
    params.search = Search::Exact;
    similar(&params, &Quiet).unwrap();
    params.memory = MemoryBudget::from_mib(1);
    assert!(similar(&params, &Quiet).unwrap_err().to_string().contains("at least 128M"));
}

/// Documents of paragraphs of three sentences, of few kinds and in any order, so that clusters of
/// equal ones are many and small, some of them with exact copies.
fn paragraphs_in_any_order(documents: usize, seed: u64) -> (Vec<String>, BTreeMap<Vec<u32>, Vec<DocId>>) {
    let mut rng = onionskin_core::SplitMix64::new(seed);
    let mut clusters: BTreeMap<Vec<u32>, Vec<DocId>> = BTreeMap::new();
    let mut texts = Vec::new();
    for doc in DocId::range(0..documents as u32) {
        // The smaller numbers are the more common.
        let mut number = || (rng.next_u32() % 40).min(rng.next_u32() % 40).min(rng.next_u32() % 40);
        let mut kinds: Vec<u32> = (0..3).map(|_| number()).collect();
        let sentence =
            |kind: u32, n: u32| format!("Sentence {n} of the paragraph {kind} tells about thing{kind}x{n}. ");
        texts.push(kinds.iter().flat_map(|kind| (0..3).map(move |n| sentence(*kind, n))).collect());
        kinds.sort_unstable();
        clusters.entry(kinds).or_default().push(doc);
    }
    (texts, clusters)
}

/// Two documents and more, each with the smallest of its cluster.
fn memberships(clusters: &[ClusterRow]) -> BTreeMap<DocId, DocId> {
    let mut smallest: BTreeMap<ClusterId, DocId> = BTreeMap::new();
    for row in clusters {
        let least = smallest.entry(row.cluster).or_insert(row.doc);
        *least = row.doc.min(*least);
    }
    clusters.iter().map(|row| (row.doc, smallest[&row.cluster])).collect()
}

#[test]
fn the_first_iterations_find_whole_clusters_and_estimate_the_rest() {
    use crate::sample::subcollection;
    let (texts, truth) = paragraphs_in_any_order(3_000, 5);
    let made = made_of(texts);
    let seed = Atlas::open(made.atlas()).unwrap().manifest().seed;
    let mut params = made.params();
    params.search = Search::Paragraphs { share: 0.5 };
    let whole = similar(&params, &Quiet).unwrap();
    let in_all = whole.paragraphs.unwrap().duplicates + whole.exact.copies;
    assert_eq!(in_all, 3_000 - truth.len() as u64);
    assert!(whole.exact.copies > 100 && truth.values().filter(|docs| docs.len() == 2).count() > 50);
    for (iterations, of) in [(1, 7), (4, 20), (10, 20), (20, 20)] {
        params.search = Search::Subcollections { iterations, of };
        let found = similar(&params, &Quiet).unwrap();
        let drawn = |docs: &[DocId]| docs.iter().any(|doc| subcollection(*doc, of, seed) < iterations);
        let outside = 1.0 - f64::from(iterations) / f64::from(of);
        let (mut clusters, mut duplicates, mut beyond_copies) = (0u64, 0u64, 0.0);
        let mut expected: BTreeMap<DocId, DocId> = BTreeMap::new();
        for docs in truth.values().filter(|docs| docs.len() > 1) {
            if drawn(docs) {
                clusters += 1;
                duplicates += docs.len() as u64 - 1;
                let texts: BTreeSet<&str> = docs.iter().map(|doc| made.texts[doc.index()].as_str()).collect();
                beyond_copies += (texts.len() - 1) as f64 / (1.0 - outside.powi(docs.len() as i32));
                expected.extend(docs.iter().map(|doc| (*doc, docs[0])));
                continue;
            }
            // Of others only exact copies are known.
            for doc in docs {
                let same = |other: &&DocId| made.texts[other.index()] == made.texts[doc.index()];
                if docs.iter().filter(same).count() > 1 {
                    expected.insert(*doc, *docs.iter().find(same).unwrap());
                }
            }
        }
        assert_eq!(memberships(&made.clusters()), expected, "{iterations} of {of}");
        let summary = found.iterations.unwrap();
        assert_eq!((summary.documents, summary.clusters, summary.duplicates), (3_000, clusters, duplicates));
        let expected = whole.exact.copies as f64 + beyond_copies;
        assert!((summary.estimated_duplicates[0] - expected).abs() < 1e-6, "{summary:?}: {expected}");
        let several = truth.values().filter(|docs| docs.len() > 1);
        let unique = 3_000 - several.clone().map(Vec::len).sum::<usize>();
        for ([_, low, high], truth) in
            [(summary.estimated_clusters, several.count()), (summary.estimated_unique, unique)]
        {
            assert!((low - 1e-6..=high + 1e-6).contains(&(truth as f64)), "{summary:?}, {truth}");
        }
        let [_, low, high] = summary.estimated_duplicates;
        assert!((low - 1e-6..=high + 1e-6).contains(&(in_all as f64)), "{summary:?}, {in_all} in all");
        assert!(found.paragraphs.is_none());
        let atlas = Atlas::open(made.atlas()).unwrap();
        let noted = atlas.manifest().stages.raw(StageName::Similar);
        assert_eq!((&noted["iterations"], &noted["of"]), (&json!(iterations), &json!(of)));
        assert_eq!(noted["found"]["iterations"]["duplicates"], json!(duplicates));
        if iterations == of {
            let all = in_all as f64;
            assert_eq!((summary.duplicates, summary.estimated_duplicates), (in_all, [all, all, all]));
        } else {
            assert!(high > low && summary.duplicates < in_all);
        }
    }
    // The whole search was noted for reports and stays.
    let copies = Atlas::open(made.atlas()).unwrap();
    assert!(copies.has(&"copies.paragraphs-100".into()) && copies.has(&"copies.paragraphs-50".into()));
}

#[test]
fn first_iterations_do_not_depend_on_memory_threads_or_who_survives() {
    let made = made_of(paragraphs_in_any_order(2_000, 6).0);
    let mut params = made.params();
    params.search = Search::Subcollections { iterations: 3, of: 10 };
    similar(&params, &Quiet).unwrap();
    let expected = (made.tables(), memberships(&made.clusters()));
    assert!(expected.1.len() > 500);
    for (threads, mib) in [(1, 128), (3, 1024)] {
        params.threads = threads;
        params.memory = MemoryBudget::from_mib(mib);
        similar(&params, &Quiet).unwrap();
        assert!(made.tables() == expected.0, "{threads} threads, {mib} MiB");
    }
    // Pairs lead to the smallest document only. Another centre has the same members all the same.
    params.survivor = Survivor::Longest;
    similar(&params, &Quiet).unwrap();
    assert_eq!(memberships(&made.clusters()), expected.1);
    assert!(made.clusters().iter().all(|row| row.resemblance_to_centre == 1.0));
}

#[test]
fn iterations_that_are_none() {
    let made = made_of(vec!["one text".to_owned()]);
    for (iterations, of, for_report) in [(0, 5, false), (6, 5, false), (0, 0, false), (1, 5, true)] {
        let mut params = made.params();
        params.search = Search::Subcollections { iterations, of };
        params.for_report = for_report;
        let refused = similar(&params, &Quiet);
        assert!(matches!(refused, Err(SimilarError::Parameters(_))), "{iterations} of {of}");
    }
}

#[test]
fn copies_of_texts_that_were_not_drawn_are_known_all_the_same() {
    // Two of everything: the first of many iterations finds few of them, and none can be missing.
    let text = |n: usize| format!("Text {n} begins. It goes on about thing{n}. It ends with word{n}.");
    let made = made_of((0..60).map(|n| text(n / 2)).collect());
    let mut params = made.params();
    params.search = Search::Subcollections { iterations: 1, of: 30 };
    let found = similar(&params, &Quiet).unwrap().iterations.unwrap();
    assert!(found.duplicates < 10, "{found:?}");
    let [value, low, high] = found.estimated_duplicates;
    assert!(low == 30.0 && value >= low && high >= value, "{found:?}");
    assert_eq!((found.estimated_share[1], found.estimated_unique), (0.5, [0.0; 3]));
}

/// The sets of texts do not depend on the memory that they have, nor on how many records have the
/// same offset.
#[test]
fn sets_of_texts_wait_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let web = Web::new(&WebSpec::of(Preset::Text, 6000, 9)).unwrap();
    let mut composer = Composer::new(&web);
    let record = |text: &str| {
        let length = text.len();
        format!(
            "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://a.example/\r\n\
             Content-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{text}\r\n\r\n"
        )
    };
    let texts: Vec<String> = (0..web.n_pages()).map(|page| composer.text(page).to_owned()).collect();
    let records: Vec<String> = texts.iter().map(|text| record(text)).collect();
    let input = folder.path().join("in.warc.gz");
    let mut encoder = GzEncoder::new(File::create(&input).unwrap(), Compression::fast());
    encoder.write_all(records.concat().as_bytes()).unwrap();
    encoder.finish().unwrap();
    let atlas = folder.path().join("atlas");
    scan_into(&[&input], &atlas);
    let params = SimilarParams::new(atlas.clone());
    let atlas = Atlas::open(atlas).unwrap();
    let recipe: Recipe = atlas.manifest().recipe.parse().unwrap();
    let again = Reread::new(&params, &atlas, &recipe).unwrap();
    let work_dir = folder.path().join("work");
    let read = |memory: MemoryBudget, wanted: &dyn Fn(DocId) -> bool| {
        let resources = Resources { memory, threads: 1, work_dir: work_dir.clone() };
        let sets = ChunkSets::from_source(again.sets(&resources));
        let (mut reader, mut found) = (sets.reader(), Vec::new());
        while let Some((doc, set)) = reader.next_of(wanted).unwrap() {
            found.push((doc, set.to_vec()));
        }
        found
    };
    let mut analyzer = Analyzer::new(&recipe, 0);
    let naive: Vec<(DocId, Vec<u64>)> = texts
        .iter()
        .enumerate()
        .map(|(doc, text)| {
            let mut set = analyzer.analyze_chunks(text).main_chunks().to_vec();
            FingerprintSet::default().retain_first(&mut set);
            (DocId::at(doc), set)
        })
        .filter(|(_, set)| !set.is_empty())
        .collect();
    assert!(naive.iter().map(|(_, set)| set.len()).sum::<usize>() > 1 << 18);
    for wanted in [&|_| true as _, &|doc: DocId| doc.get() % 7 == 3, &|doc: DocId| doc.get() == 5999]
        as [&dyn Fn(DocId) -> bool; 3]
    {
        let expected: Vec<_> = naive.iter().filter(|(doc, _)| wanted(*doc)).cloned().collect();
        for mib in [1, 1024] {
            let found = read(MemoryBudget::from_mib(mib), wanted);
            assert!(found == expected, "{mib} MiB: {} of {}", found.len(), expected.len());
        }
    }
    // Every file is gone again.
    assert!(!work_dir.exists() || fs::read_dir(work_dir).unwrap().next().is_none());
}
