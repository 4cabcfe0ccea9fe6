use crate::size::Presence;

use super::*;
use onionskin_scan::testing::scan_into;
use onionskin_store::progress::Quiet;

/// A page with a text of its own; `version` changes one word in sixty.
fn page(url: &str, content: u64, version: u64) -> String {
    let word = |n: u64| format!("w{:x}", onionskin_core::scramble(content * 1000 + n) % 100_000);
    let mut words: Vec<String> = (0..60).map(word).collect();
    words[30] = format!("version{version}");
    format!("{}\n", serde_json::json!({ "url": url, "text": words.join(" ") }))
}

struct Webs {
    dir: tempfile::TempDir,
}

impl Webs {
    fn new() -> Webs {
        Webs { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn atlas(&self, name: &str, pages: impl IntoIterator<Item = String>, recipe: &str) -> String {
        let input = self.dir.path().join(format!("{name}.jsonl"));
        std::fs::write(&input, pages.into_iter().collect::<String>()).unwrap();
        scan_into(&[&input], &self.dir.path().join(name), recipe);
        self.path(name)
    }

    fn params(&self, members: &[&String], by: ByChoice) -> SizeParams {
        let mut params = SizeParams::new(members.iter().map(|name| (*name).clone()).collect());
        params.by = by;
        params.memory = MemoryBudget::from_mib(8);
        params.work_dir = self.dir.path().join("work");
        params
    }
}

const RECIPE: &str = "w4-rabin64-6x14r2+sketch";

/// Contents 0..900 in the first and 300..1200 in the second. Two in five contents of the first
/// stand in it three times; where they are in the second they have other addresses there, and half
/// of those a word that differs.
fn mirrored(webs: &Webs) -> [String; 2] {
    let copied = |c: u64| c % 5 < 2;
    let first = (0..900u64).flat_map(|c| {
        (0..if copied(c) { 3 } else { 1 }).map(move |copy| page(&format!("http://a{copy}.example/{c}"), c, 0))
    });
    let second = (300..1_200u64).map(|c| match copied(c) {
        true => page(&format!("http://mirror.example/{c}"), c, c % 2),
        false => page(&format!("http://a0.example/{c}"), c, 0),
    });
    [webs.atlas("first", first, RECIPE), webs.atlas("second", second, RECIPE)]
}

#[test]
fn copies_bias_addresses_and_not_contents() {
    let webs = Webs::new();
    let [first, second] = mirrored(&webs);
    let ratio = |by: ByChoice| {
        let mut params = webs.params(&[&first, &second], by);
        params.samples = Some(500);
        let report = size(&params, &Quiet).unwrap();
        (report.estimates.ratios[0].ratio.unwrap(), report)
    };
    // Both have 900 contents.
    let (near, report) = ratio(ByChoice::Auto);
    assert_eq!(report.by, By::Near { threshold: 0.9 });
    assert!(near.interval.covers(1.0), "{near:?}, seed 1");
    // Word by word the copies that differ are different on both sides alike.
    let (text, report) = ratio(ByChoice::Text);
    assert_eq!((report.observed[0].count, report.observed[1].count), (Some(900), Some(900)));
    assert!(text.interval.covers(1.0), "{text:?}, seed 1");
    let (url, report) = ratio(ByChoice::Url);
    assert_eq!((report.observed[0].count, report.observed[1].count), (Some(1_620), Some(900)));
    assert!(url.interval.low > 1.3, "{url:?}, seed 1");
}

#[test]
fn near_copies_are_found_and_weighted() {
    let webs = Webs::new();
    // Every content of the first has two versions; the second has a third version of half of them.
    let first = (0..300u64).flat_map(|c| [0, 1].map(|v| page(&format!("http://a.example/{c}/{v}"), c, v)));
    let second = (150..300u64).map(|c| page(&format!("http://b.example/{c}"), c, 2));
    let (first, second) = (webs.atlas("a", first, RECIPE), webs.atlas("b", second, RECIPE));
    let mut params = webs.params(&[&first, &second], ByChoice::Near);
    params.threshold = 0.7;
    let report = size(&params, &Quiet).unwrap();
    assert!(report.observed[0].samples.iter().all(|sample| sample.weight == 0.5));
    let found = &report.estimates;
    assert!((found.fractions[0][1].unwrap().share.value - 0.5).abs() < 0.01, "{:?}", found.fractions);
    assert!((found.fractions[1][0].unwrap().share.value - 1.0).abs() < 0.01);
    assert!((found.sizes[1].unwrap().value - 0.5).abs() < 0.02);
    let text = size(&webs.params(&[&first, &second], ByChoice::Text), &Quiet).unwrap();
    assert_eq!(text.estimates.ratios[0].ratio, None, "no text is the same");
}

#[test]
fn lists_and_atlases_by_address() {
    use std::io::Write;
    let webs = Webs::new();
    let atlas = webs.atlas("a", (0..50u64).map(|c| page(&format!("http://a.example/{c}"), c, 0)), RECIPE);
    let plain = webs.path("list.txt");
    let lines: String = (25..125).map(|c| format!("HTTP://A.example:80/{c}#top\n")).collect();
    std::fs::write(&plain, format!("# a comment\n\nnot an address\n{lines}{lines}")).unwrap();
    let zipped = webs.path("list.gz");
    let mut gz =
        flate2::write::GzEncoder::new(std::fs::File::create(&zipped).unwrap(), flate2::Compression::fast());
    gz.write_all(lines.as_bytes()).unwrap();
    gz.finish().unwrap();
    let report = size(&webs.params(&[&atlas, &plain, &zipped], ByChoice::Auto), &Quiet).unwrap();
    assert_eq!(report.by, By::Url);
    assert_eq!(report.observed.iter().map(|o| o.count).collect::<Vec<_>>(), [Some(50), Some(100), Some(100)]);
    // All were sampled whole, so everything is exact.
    let sizes: Vec<f64> = report.estimates.sizes.iter().map(|size| size.unwrap().value).collect();
    assert!(sizes.iter().zip([1.0, 2.0, 2.0]).all(|(a, b)| (a - b).abs() < 1e-9), "{sizes:?}");
    assert!((report.estimates.coverage[0].unwrap().value - 50.0 / 125.0).abs() < 1e-9);
    assert!(report.biases.iter().any(|bias| bias.name == "checking bias"));
}

#[test]
fn what_cannot_be_compared_is_told() {
    let webs = Webs::new();
    let pages = || (0..20u64).map(|c| page(&format!("http://a.example/{c}"), c, 0));
    let with = webs.atlas("with", pages(), RECIPE);
    let without = webs.atlas("without", pages(), "w4-rabin64-6x14r2");
    let other = webs.atlas("other", pages(), "w3-rabin64-6x14r2+sketch");
    let nfkc = webs.atlas("nfkc", pages(), "w4-nfkc-rabin64-6x14r2+sketch");
    let list = webs.path("list.txt");
    std::fs::write(&list, "http://a.example/1\n").unwrap();
    let problem = |members: &[&String], by| size(&webs.params(members, by), &Quiet).unwrap_err().to_string();
    assert!(problem(&[&with, &without], ByChoice::Near).contains("keeps no minima"));
    assert!(problem(&[&with, &other], ByChoice::Near).contains("recipes w4"));
    assert!(problem(&[&with, &nfkc], ByChoice::Text).contains("hint: compare by URL, or scan both alike"));
    assert!(problem(&[&with, &list], ByChoice::Content).contains("list of addresses"));
    assert!(problem(&[&with, &with], ByChoice::Url).contains("given twice"));
    assert!(problem(&[&with], ByChoice::Url).contains("at least two"));
    assert!(problem(&[&with, &webs.path("nowhere")], ByChoice::Url).contains("nowhere"));
    assert!(
        problem(&[&with, &"http://127.0.0.1:1/?q={query}".to_owned()], ByChoice::Text).contains("lexicon")
    );
    // Contents: near where that can be, else word by word.
    let by = |a: &String, b: &String| size(&webs.params(&[a, b], ByChoice::Content), &Quiet).unwrap().by;
    assert_eq!(by(&with, &without), By::Text);
    assert!(matches!(by(&with, &webs.atlas("again", pages(), RECIPE)), By::Near { .. }));
}

#[test]
fn an_empty_atlas_and_empty_pages_read_well() {
    let webs = Webs::new();
    let empty = |url: &str| format!("{}\n", serde_json::json!({ "url": url, "text": "" }));
    let none = webs.atlas("none", [empty("http://a.example/0")], RECIPE);
    let some = webs.atlas("some", (0..9u64).map(|c| page(&format!("http://a.example/{c}"), c, 0)), RECIPE);
    let report = size(&webs.params(&[&none, &some], ByChoice::Text), &Quiet).unwrap();
    assert_eq!(report.estimates.sizes[0].unwrap().value, 0.0);
    assert_eq!(report.estimates.reference, Some(1));
    // By address the empty page is a page.
    let report = size(&webs.params(&[&none, &some], ByChoice::Url), &Quiet).unwrap();
    assert_eq!(report.observed[0].samples[0].found, [Presence::Present, Presence::Present]);
}

#[test]
fn words_and_texts_come_from_the_inputs() {
    use crate::size::engine::Texts;
    let webs = Webs::new();
    let text = |n: u64| {
        let url = format!("http://a.example/{n}");
        format!(
            "{}\n",
            serde_json::json!({ "url": url, "text": format!("The page, Nr. {n}, of Zebras and x86 ab") })
        )
    };
    let atlas = Atlas::open(webs.atlas("a", (0..200).map(text), RECIPE)).unwrap();
    let mut store = TextStore::new(vec![atlas], (RECIPE.parse().unwrap(), 1));
    let words = store.words(&["http://a.example/7", "http://b.example/", "http://a.example/199"]).unwrap();
    let expected: Vec<String> = ["and", "page", "the", "zebras"].map(str::to_owned).to_vec();
    assert_eq!(words, [Some(expected.clone()), None, Some(expected)]);
    let contents = store.contents(&["http://a.example/7", "http://a.example/8"]).unwrap();
    assert!(contents.iter().all(|page| page.as_ref().unwrap().text_fp.is_some()));
    assert_ne!(contents[0].as_ref().unwrap().text_fp, contents[1].as_ref().unwrap().text_fp);
    let (lexicon, texts) = store.lexicon(50, 1).unwrap();
    assert_eq!((texts, lexicon.frequency("zebras")), (50, Some(50)));
}

/// The text of a page that has changed since is not taken for the one of the atlas.
#[test]
fn words_of_changed_inputs_are_not_taken() {
    use crate::size::engine::Texts;
    let webs = Webs::new();
    let page = |url: &str, word: &str| {
        format!("{}\n", serde_json::json!({ "url": url, "text": format!("all about {word}") }))
    };
    let (zero, one) = ("http://a.example/0", "http://a.example/1");
    let atlas = Atlas::open(webs.atlas("a", [page(zero, "zebras"), page(one, "camels")], RECIPE)).unwrap();
    let input = atlas.manifest().inputs[0].name.clone();
    std::fs::write(input, [page(zero, "horses"), page(one, "camels")].concat()).unwrap();
    let mut store = TextStore::new(vec![atlas], (RECIPE.parse().unwrap(), 1));
    let words = store.words(&[zero, one]).unwrap();
    assert_eq!(words, [None, Some(["about", "all", "camels"].map(str::to_owned).to_vec())]);
    assert_eq!(store.lexicon(50, 1).unwrap().1, 1);
}

/// An index of seen documents, made of the documents of an atlas.
fn index_of(webs: &Webs, atlas: &str, name: &str, numbers: bool) -> String {
    use onionskin::seen::{AtlasDocuments, Document, Options, Params, Seen, recipe_of};
    let at = webs.dir.path().join(name);
    let atlas = Atlas::open(atlas).unwrap();
    let (recipe, seed) = recipe_of(&atlas).unwrap();
    let params = Params::new(&recipe, seed, !numbers).unwrap();
    let mut documents = AtlasDocuments::open(&atlas, &params).unwrap();
    let mut seen = Seen::create(&at, params, Options::new(MemoryBudget::from_mib(8))).unwrap();
    while let Some(document) = documents.next_document().unwrap() {
        if let Some(probe) = document.features.probe() {
            seen.add(&Document { probe, key: 7, name: &document.name }).unwrap();
        }
    }
    // One more, which is gone again.
    let gone =
        seen.add(&Document { probe: onionskin_seen::Probe::new(1, &[2; 6]), key: 7, name: "http://gone/" });
    seen.remove(&[gone.unwrap().doc.unwrap()]).unwrap();
    seen.close().unwrap();
    at.display().to_string()
}

/// An index is as large as the atlas that it was made of, by texts and by addresses, and fits where
/// the atlas does.
#[test]
fn indexes_of_seen_documents_are_members() {
    let webs = Webs::new();
    let [first, second] = mirrored(&webs);
    let seen = index_of(&webs, &first, "seen", false);
    assert_eq!(MemberKind::of(&seen), MemberKind::Seen);
    for by in [ByChoice::Auto, ByChoice::Text, ByChoice::Url] {
        let mut params = webs.params(&[&seen, &second, &first], by);
        params.samples = Some(100_000);
        let report = size(&params, &Quiet).unwrap();
        assert_eq!(report.by, if by == ByChoice::Url { By::Url } else { By::Text });
        assert_eq!(report.observed[0].count, report.observed[2].count, "{by:?}");
        let fractions = &report.estimates.fractions;
        let share = |a: usize, b: usize| fractions[a][b].unwrap().share.value;
        assert_eq!((share(0, 2), share(2, 0)), (1.0, 1.0), "{by:?}");
        assert_eq!((share(0, 1), share(1, 0)), (share(2, 1), share(1, 2)), "{by:?}");
        assert!(share(0, 1) > 0.1 && share(0, 1) < 0.9, "{by:?}");
    }
    // A sample, against the same without an index.
    let mut params = webs.params(&[&seen, &second], ByChoice::Text);
    params.samples = Some(300);
    let ratio = size(&params, &Quiet).unwrap().estimates.ratios[0].ratio.unwrap();
    assert!(ratio.interval.covers(1.0), "{ratio:?}, seed 1");
}

#[test]
fn what_an_index_of_seen_documents_cannot_answer_is_told() {
    let webs = Webs::new();
    let atlas = webs.atlas("a", (0..20u64).map(|c| page(&format!("http://a.example/{c}"), c, 0)), RECIPE);
    let named = index_of(&webs, &atlas, "named", false);
    let numbers = index_of(&webs, &atlas, "numbers", true);
    let problem = |members: &[&String], by| {
        size(&webs.params(members, by), &Quiet).err().map(|error| error.to_string()).unwrap()
    };
    assert!(problem(&[&named, &atlas], ByChoice::Near).contains("are compared by text or by URL"));
    assert!(problem(&[&numbers, &atlas], ByChoice::Url).contains("keeps numbers"));
    let other = webs.atlas("nfkc", [page("http://a.example/", 1, 0)], "w4-nfkc-rabin64-6x14r2");
    assert!(problem(&[&named, &other], ByChoice::Text).contains("cannot be compared by text"));
    // Other shingles have the same texts.
    let wide = webs.atlas("wide", (10..30u64).map(|c| page("http://b.example/", c, 0)), "w6-rabin64-4x5r2");
    let report = size(&webs.params(&[&numbers, &wide], ByChoice::Auto), &Quiet).unwrap();
    assert_eq!(report.estimates.fractions[0][1].unwrap().share.value, 0.5);
    let engine = "http://127.0.0.1:9/?q={query}".to_owned();
    assert!(problem(&[&named, &engine], ByChoice::Text).contains("48 bits"));
}
