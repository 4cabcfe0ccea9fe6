//! What stands on pages: from the inputs of atlases, or fetched; and a lexicon of it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use crate::size::engine::{Lexicon, Texts};
use crate::size::random::Dice;
use crate::size::{MemberFailure, Page};
use onionskin_core::{Analyzer, Recipe, TextFingerprinter};
use onionskin_corpus::{BadRecord, Document, InputFailure, Options, Scratch, SkipReason, Tasks, Visitor};
use onionskin_extract::url::normalize;
use onionskin_extract::{ExtractOptions, Extractor, Hints, Page as Extracted};
use onionskin_store::table::document;
use onionskin_store::{Atlas, MemoryBudget};

use super::http::HttpClient;
use onionskin_scan::inputs::{limit_tools, reading_options, reopen};

/// The different words of a text that engines understand alike: letters only, 3 to 24 of them, in
/// lower case. Ascending.
pub(super) fn words_of(text: &str) -> Vec<String> {
    let mut words = BTreeSet::new();
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        let letters = word.chars().count();
        if (3..=24).contains(&letters) && word.chars().all(char::is_alphabetic) {
            words.insert(word.to_lowercase());
        }
    }
    words.into_iter().collect()
}

/// Where texts come from.
pub(super) struct TextStore {
    pub atlases: Vec<Atlas>,
    /// Where inputs with relative names are.
    pub base: Option<PathBuf>,
    /// Asks for pages that no atlas has.
    pub fetcher: Option<Rc<RefCell<HttpClient>>>,
    /// How fetched pages are summed up, so that they compare with those of atlases.
    pub recipe: (Recipe, u64),
    /// Command that reads PDF files apart from this process.
    pub pdf_worker: Vec<String>,
    /// Words of pages that were asked for; `None` where there are none to be had.
    known: HashMap<String, Option<Known>>,
}

#[derive(Clone, Debug, Default)]
struct Known {
    words: Vec<String>,
    text_fp: Option<u64>,
    sketch: Vec<u32>,
}

/// A document that is wanted: its input and offset.
type Place = (String, u64);

/// What a document must be to be the one that was scanned: its address, and the fingerprint of its
/// text.
type Scanned = (String, Option<u64>);

impl TextStore {
    pub(super) fn new(atlases: Vec<Atlas>, recipe: (Recipe, u64)) -> TextStore {
        TextStore {
            atlases,
            base: None,
            fetcher: None,
            recipe,
            pdf_worker: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// Gets to know pages that are not known yet.
    fn learn(&mut self, urls: &[&str]) -> Result<(), MemberFailure> {
        let mut missing: BTreeSet<&str> =
            urls.iter().copied().filter(|url| !self.known.contains_key(*url)).collect();
        let mut analyzer = Analyzer::new(&self.recipe.0, self.recipe.1);
        let mut known = |text: &str| {
            let analysis = analyzer.analyze(text);
            let text_fp = analysis.text_fp().map(|fp| fp.0);
            Known { words: words_of(text), text_fp, sketch: analysis.sketch().to_vec() }
        };
        for atlas in &self.atlases {
            if missing.is_empty() {
                break;
            }
            let places = find_places(atlas, &missing)?;
            let mut learnt: Vec<(String, Known)> = Vec::new();
            let options = self.options(atlas)?;
            read_places(atlas, self.base.as_deref(), options, &places, &mut |url, text| {
                learnt.push((url.to_owned(), known(text)));
            })?;
            for (url, page) in learnt {
                missing.remove(url.as_str());
                self.known.insert(url, Some(page));
            }
        }
        for url in missing {
            let page = self.fetcher.as_ref().and_then(|client| fetch(client, url)).map(|text| known(&text));
            self.known.insert(url.to_owned(), page);
        }
        Ok(())
    }

    fn options(&self, atlas: &Atlas) -> Result<Arc<Options>, MemberFailure> {
        let mut options = reading_options(atlas)?;
        options.extract.pdf_worker = self.pdf_worker.clone();
        limit_tools(&mut options, MemoryBudget::default_for_machine());
        options.task_bytes = options.task_bytes.min(1 << 20);
        Ok(Arc::new(options))
    }

    /// The words of some texts of the atlases, each with the number of those texts that have it,
    /// and how many texts that were.
    pub(super) fn lexicon(&self, texts: usize, seed: u64) -> Result<(Lexicon, u64), MemberFailure> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        let mut read = 0;
        for atlas in &self.atlases {
            let places = random_places(atlas, texts.div_ceil(self.atlases.len()), seed)?;
            let options = self.options(atlas)?;
            read_places(atlas, self.base.as_deref(), options, &places, &mut |_, text| {
                read += 1;
                for word in words_of(text) {
                    *counts.entry(word).or_default() += 1;
                }
            })?;
        }
        Ok((Lexicon::new(counts), read))
    }
}

/// The media type of a document that has no text of its own.
const REVISIT: &str = "warc/revisit";

/// Where a document is.
type Columns = (document::Url, document::Source, document::Offset, document::MediaType, document::TextFp);

/// Where the pages with these addresses are; of several with one address the first.
fn find_places(atlas: &Atlas, urls: &BTreeSet<&str>) -> Result<BTreeMap<Place, Scanned>, MemberFailure> {
    let mut places = BTreeMap::new();
    let mut found: BTreeSet<String> = BTreeSet::new();
    let mut documents = atlas.documents()?.select::<Columns>();
    while let Some(batch) = documents.next_batch()? {
        for (url, source, offset, media_type, text_fp) in batch.rows() {
            let Some(url) = url.filter(|_| media_type != REVISIT) else { continue };
            let url = normalize(url).unwrap_or_else(|| url.to_owned());
            if urls.contains(url.as_str()) && found.insert(url.clone()) {
                places.insert((source.to_owned(), offset), (url, text_fp));
            }
        }
    }
    Ok(places)
}

/// Where some random documents are.
fn random_places(atlas: &Atlas, wanted: usize, seed: u64) -> Result<BTreeMap<Place, Scanned>, MemberFailure> {
    // Reservoir sampling: every document is equally likely to stay.
    let mut dice = Dice::new(seed);
    let mut kept: Vec<(Place, Scanned)> = Vec::new();
    let mut seen = 0u64;
    let mut documents = atlas.documents()?.select::<Columns>();
    while let Some(batch) = documents.next_batch()? {
        for (url, source, offset, media_type, text_fp) in batch.rows() {
            if media_type == REVISIT {
                continue;
            }
            seen += 1;
            let place = (source.to_owned(), offset);
            let url = url.map(|url| normalize(url).unwrap_or_else(|| url.to_owned())).unwrap_or_default();
            let scanned = (url, text_fp);
            if kept.len() < wanted {
                kept.push((place, scanned));
            } else {
                let at = dice.below(seen) as usize;
                if at < wanted {
                    kept[at] = (place, scanned);
                }
            }
        }
    }
    Ok(kept.into_iter().collect())
}

/// Takes the wanted records of one input.
struct Wanted<'a> {
    /// Ascending.
    offsets: Vec<(u64, &'a Scanned)>,
    fingerprinter: TextFingerprinter,
    /// Documents that have another text now.
    changed: u64,
    take: &'a mut dyn FnMut(&str, &str),
    failure: Option<InputFailure>,
}

impl Visitor for Wanted<'_> {
    fn wants(&mut self, offset: u64) -> bool {
        self.offsets.binary_search_by_key(&offset, |(at, _)| *at).is_ok()
    }

    fn next_wanted(&mut self, from: u64) -> Option<Range<u64>> {
        let next = self.offsets.partition_point(|(at, _)| *at < from);
        self.offsets.get(next).map(|(at, _)| *at..u64::MAX)
    }

    fn document(&mut self, document: Document<'_>) {
        let found = self.offsets.binary_search_by_key(&document.offset, |(at, _)| *at);
        let Some((_, (url, text_fp))) = found.ok().and_then(|at| self.offsets.get(at)) else { return };
        // Several records of a compressed WARC file may have one offset.
        let same = document.url.is_none_or(|found| {
            url.is_empty() || found == *url || normalize(found).as_deref() == Some(url.as_str())
        });
        if !same || document.revisit {
            return;
        }
        if self.fingerprinter.text_fp(document.text).map(|fp| fp.0) == *text_fp {
            (self.take)(url, document.text);
        } else {
            self.changed += 1;
        }
    }

    fn bad_record(&mut self, _: BadRecord) {}

    fn skipped(&mut self, _: SkipReason) {}

    fn failed(&mut self, failure: InputFailure) {
        self.failure = Some(failure);
    }
}

/// Reads texts again. Inputs that are gone are told in the log, and their texts are not to be had.
/// Nor are texts that the scan did not see: an input that changed may have the same length.
fn read_places(
    atlas: &Atlas,
    base: Option<&std::path::Path>,
    options: Arc<Options>,
    places: &BTreeMap<Place, Scanned>,
    take: &mut dyn FnMut(&str, &str),
) -> Result<(), MemberFailure> {
    let recipe: Recipe = atlas.manifest().recipe.parse()?;
    for input in &atlas.manifest().inputs {
        let of = places.range((input.name.clone(), 0)..=(input.name.clone(), u64::MAX));
        let offsets: Vec<(u64, &Scanned)> = of.map(|((_, offset), scanned)| (*offset, scanned)).collect();
        if offsets.is_empty() {
            continue;
        }
        let source = match reopen(input, base, &options) {
            Ok(source) if !source.is_stream() => source,
            Ok(_) => {
                tracing::warn!(input = %input.name, "a pipe cannot be read again");
                continue;
            }
            Err(error) => {
                tracing::warn!(input = %input.name, %error, "texts cannot be read again");
                continue;
            }
        };
        let mut scratch = Scratch::new(&options);
        let mut tasks = Tasks::new(Arc::from(vec![source]), Arc::clone(&options));
        let fingerprinter = TextFingerprinter::new(&recipe);
        let mut wanted = Wanted { offsets, fingerprinter, changed: 0, take, failure: None };
        while let Some(task) = tasks.next_task() {
            task.run(&mut scratch, &mut wanted);
            if let Some(failure) = &wanted.failure {
                let (byte, error) = (failure.byte, &failure.detail);
                tracing::warn!(input = %input.name, byte, %error, "texts cannot be read again");
                break;
            }
        }
        if wanted.changed > 0 {
            let changed = wanted.changed;
            tracing::warn!(input = %input.name, changed, "texts have changed since they were scanned");
        }
    }
    Ok(())
}

/// The text of a page that has to be fetched.
fn fetch(client: &RefCell<HttpClient>, url: &str) -> Option<String> {
    let (answer, from) = match client.borrow_mut().get(url) {
        Ok(answer) => answer,
        Err(error) => {
            tracing::debug!(url, %error, "not fetched");
            return None;
        }
    };
    let mut page = Extracted::default();
    let hints = Hints { url: Some(&from), charset: None };
    let declared = answer.headers.get("Content-Type");
    let mut extractor = Extractor::new(ExtractOptions::default());
    extractor.extract(&answer.body, declared, &hints, &mut page).ok()?;
    Some(page.text)
}

impl Texts for TextStore {
    fn words(&mut self, urls: &[&str]) -> Result<Vec<Option<Vec<String>>>, MemberFailure> {
        self.learn(urls)?;
        let words = |url: &&str| Some(self.known.get(*url)?.as_ref()?.words.clone());
        Ok(urls.iter().map(words).collect())
    }

    fn contents(&mut self, urls: &[&str]) -> Result<Vec<Option<Page>>, MemberFailure> {
        self.learn(urls)?;
        let page = |url: &&str| {
            let known = self.known.get(*url)?.as_ref()?;
            let sketch = (!known.sketch.is_empty()).then(|| known.sketch.clone());
            Some(Page { url: Some((*url).to_owned()), text_fp: known.text_fp, sketch })
        };
        Ok(urls.iter().map(page).collect())
    }
}
