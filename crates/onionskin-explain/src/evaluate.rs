//! How good are the pairs and clusters of an atlas? A comparison with known answers.
//!
//! The truth says which documents are copies of each other, pair by pair or cluster by cluster.
//! Against it are held
//!
//! - the table of **pairs**: of the true pairs, how many does it have (recall); of its rows, how
//!   many are true (precision);
//! - the table of **clusters**: pairs of documents that are together, by the same two measures, and
//!   the adjusted Rand index;
//! - both by band of resemblance, and the clusters that went most wrong, worst first.
//!
//! Some rules keep the numbers sound:
//!
//! - A pair is *true* at a threshold when its known resemblance reaches it. A pair whose
//!   resemblance is not known is true.
//! - Exact copies are interchangeable. A search folds them and lists a near pair for one of them
//!   only; so a true pair counts as found when the table has it for exact copies of the two. The
//!   same holds for the truth when a row is judged.
//! - Precision can be judged only where the truth is complete. A row that it does not list is wrong
//!   when the two documents are in different clusters of the truth, when they are in one whose
//!   pairs are all listed, and when the truth claims to know every copy (pairs, generated truths;
//!   not under `partial`). A row inside a cluster of which only the pairs with the centre are
//!   listed, or with a document that a list of members does not name, is not judged.
//! - The clusters of the truth are those of its members where it says so, else what its true pairs
//!   connect.
//!
//! Memory: 20 bytes per document, some 50 bytes per cluster of the truth, and for sorting what the
//! budget says. A truth of any length is read twice from front to back and never held.

mod fields;
mod mirrors;
mod names;
mod partition;
mod truth;

use std::collections::HashMap;
use std::path::PathBuf;

use onionskin_core::{ClusterId, DocId, Packed, UnionFind};
use onionskin_similar::SimilarRecord;
use onionskin_store::join::SortedCursor;
use onionskin_store::sort::{SortError, SortParams, SortedStream, Sorter};
use onionskin_store::table::{Method, PairRow};
use onionskin_store::{Atlas, AtlasError, MemoryBudget, TableError, TableName};
use serde::Serialize;

pub use mirrors::{MirrorScore, evaluate_mirrors};
pub use partition::{ClusterError, ClusterScore};

use names::{Answers, Names};
use truth::{Label, Listed, Name, Statement, TruthFile};

/// What to compare with what.
#[derive(Clone, Debug)]
pub struct EvaluateParams {
    /// The folder of the atlas.
    pub atlas: PathBuf,
    /// The known answers.
    pub truth: PathBuf,
    /// Pairs of this resemblance and more are wanted; by default those that the search was for,
    /// else 0.9.
    pub threshold: Option<f64>,
    /// The truth does not know every copy: a pair that it says nothing about is not judged.
    pub partial: bool,
    /// How many of the worst clusters to tell.
    pub show: usize,
    /// Memory for sorting.
    pub memory: MemoryBudget,
    /// A folder for sorted runs that do not fit; made when needed.
    pub work_dir: PathBuf,
}

impl EvaluateParams {
    /// The threshold where neither the caller nor the atlas says one.
    pub const THRESHOLD: f64 = 0.9;
}

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluateError {
    /// The atlas cannot be used.
    #[error(transparent)]
    Atlas(#[from] Box<AtlasError>),
    /// A table cannot be read.
    #[error(transparent)]
    Table(#[from] Box<TableError>),
    /// A sort failed.
    #[error(transparent)]
    Sort(#[from] Box<SortError>),
    /// The truth cannot be opened or read.
    #[error("{}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The truth is not one.
    #[error("{}, line {line}: {problem}", path.display())]
    Truth {
        /// The file.
        path: PathBuf,
        /// The line or record.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// No search has been made.
    #[error("the atlas {} has neither pairs nor clusters\nhint: run `onionskin similar` first", dir.display())]
    NothingToJudge {
        /// The atlas.
        dir: PathBuf,
    },
    /// The tables do not fit together.
    #[error("table {table} names document {doc}, but there are only {documents}")]
    Document {
        /// The table.
        table: &'static str,
        /// The document.
        doc: DocId,
        /// Documents of the atlas.
        documents: u64,
    },
}

onionskin_store::boxed_sources!(EvaluateError: Atlas(AtlasError), Table(TableError), Sort(SortError));

/// Part of a whole; 1 of nothing, since nothing was done wrong.
pub(crate) fn ratio(part: u64, of: u64) -> f64 {
    if of == 0 { 1.0 } else { part as f64 / of as f64 }
}

/// The harmonic mean of precision and recall.
pub fn f1(precision: f64, recall: f64) -> f64 {
    if precision + recall == 0.0 { 0.0 } else { 2.0 * precision * recall / (precision + recall) }
}

/// What the truth says, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TruthCounts {
    /// Different pairs that it lists, between documents of the atlas.
    pub pairs: u64,
    /// Those that reach the threshold.
    pub pairs_at_threshold: u64,
    /// Documents that it names as members of clusters, one by one.
    pub members: u64,
    /// Clusters that it names.
    pub clusters: u64,
    /// Names that no document has; what is said of them is left out.
    pub unknown_names: u64,
    /// Some of them.
    pub unknown_examples: Vec<String>,
    /// Names that several documents have; the first of them is taken.
    pub ambiguous_names: u64,
    /// Words in a shingle of its resemblances, where it says so.
    pub shingle: Option<u32>,
}

/// How the table of pairs agrees with the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PairScore {
    /// True pairs.
    pub truth: u64,
    /// True pairs that the table has, itself or for exact copies of the two.
    pub found: u64,
    /// Rows that reach the threshold.
    pub rows: u64,
    /// Rows that are true.
    pub right: u64,
    /// Rows that are not.
    pub wrong: u64,
    /// Rows of which the truth says nothing.
    pub unjudged: u64,
    /// Rows below the threshold, which are left out.
    #[serde(rename = "below_threshold")]
    pub below: u64,
}

impl PairScore {
    /// Of the rows that can be judged, those that are true; 1 when there are none.
    pub fn precision(&self) -> f64 {
        ratio(self.right, self.right + self.wrong)
    }

    /// Of the true pairs, those that were found; 1 when there are none.
    pub fn recall(&self) -> f64 {
        ratio(self.found, self.truth)
    }
}

/// Known pairs whose resemblance is in a band.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Band {
    /// From this resemblance on.
    pub from: f64,
    /// Below this one, except for the last.
    pub to: f64,
    /// Known pairs.
    pub pairs: u64,
    /// Those that the table of pairs has, whatever its threshold was.
    pub in_pairs: u64,
    /// Those that are in one cluster.
    pub in_clusters: u64,
}

/// Lower ends of the bands. The last is for equal sets of shingles.
const BANDS: [f64; 9] = [0.0, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0];

/// How good the pairs and clusters of an atlas are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// Documents of the atlas.
    pub documents: u64,
    /// Pairs of this resemblance and more were wanted.
    pub threshold: f64,
    /// What the truth says.
    pub truth: TruthCounts,
    /// The table of pairs, where there is one.
    pub pairs: Option<PairScore>,
    /// The table of clusters, where there is one.
    pub clusters: Option<ClusterScore>,
    /// Recall by resemblance; bands without pairs are left out.
    pub bands: Vec<Band>,
    /// Addresses, or else ids, of the documents that stand as examples in the clusters.
    pub names: Vec<(DocId, String)>,
    /// Bytes that sorting wrote to disk.
    pub spilled_bytes: u64,
}

impl Evaluation {
    /// What an example is called; empty where nothing is known of it.
    pub fn name_of(&self, doc: DocId) -> &str {
        let at = self.names.binary_search_by_key(&doc, |(doc, _)| *doc);
        at.ok().and_then(|at| self.names.get(at)).map_or("", |(_, name)| name)
    }
}
/// What the truth says of each document.
struct Truth {
    counts: TruthCounts,
    /// Sets of equal texts.
    exact: UnionFind<DocId>,
    /// What true pairs connect, or members of one cluster.
    connected: UnionFind<DocId>,
    /// The cluster of each document, by the order in which the truth names them.
    cluster: Vec<Packed<u32>>,
    /// Which pairs of each cluster are listed.
    listed: Vec<Listed>,
    named: Vec<bool>,
    /// It has pairs; otherwise it may be a list of members.
    has_pairs: bool,
}

/// What was found of each document.
struct Found {
    exact: UnionFind<DocId>,
    cluster: Vec<Packed<ClusterId>>,
}

/// Compares the pairs and clusters of an atlas with known answers.
pub fn evaluate(params: &EvaluateParams) -> Result<Evaluation, EvaluateError> {
    let atlas = Atlas::open(&params.atlas)?;
    if !atlas.has(&TableName::Pairs) && !atlas.has(&TableName::Clusters) {
        return Err(EvaluateError::NothingToJudge { dir: params.atlas.clone() });
    }
    let threshold = match params.threshold {
        Some(threshold) => threshold,
        None => threshold_of(&atlas)?,
    };
    // At most four sorts are open at a time.
    let sort = SortParams::new(&params.work_dir, params.memory.split(4));
    let file = TruthFile::new(&params.truth);

    let mut names = Names::new(sort.clone())?;
    let mut ask = |name: &Name<'_>| names.ask(name);
    file.read(&mut |statement| match &statement {
        Statement::Pair { a, b, .. } => ask(a).and_then(|()| ask(b)),
        Statement::Member { name, .. } => ask(name),
        Statement::Cluster { .. } | Statement::Shingle(_) => Ok(()),
    })?;
    let documents = offer_documents(&atlas, &mut names)?;
    let mut answers = names.answers(u64::from(documents))?;

    let mut pairs = Sorter::new(sort.clone())?;
    let mut truth = read_truth(&file, threshold, documents, &mut answers, &mut pairs)?;
    let spilled_bytes = answers.spilled_bytes;
    drop(answers);
    let mut found = read_found(&atlas, documents)?;

    let mut evaluation =
        Evaluation { documents: u64::from(documents), threshold, spilled_bytes, ..Evaluation::default() };
    let (recall_side, precision_side) =
        sort_truth_pairs(pairs.finish()?, &mut truth, &mut found, &sort, &mut evaluation)?;
    if atlas.has(&TableName::Pairs) {
        let score = judge_pairs(
            &atlas,
            params.partial,
            (recall_side, precision_side),
            (&mut truth, &mut found),
            &sort,
            &mut evaluation,
        )?;
        evaluation.pairs = Some(score);
    }
    if atlas.has(&TableName::Clusters) {
        let everyone = truth.knows_everyone(params.partial);
        let labelled =
            DocId::range(0..documents).filter(|doc| everyone || truth.named[doc.index()]).map(|doc| {
                let root = truth.connected.root(doc);
                let cluster = found.cluster[doc.index()].get();
                let alone = (1 << 32) + u64::from(doc);
                (u64::from(root), cluster.map_or(alone, u64::from), doc)
            });
        evaluation.clusters =
            Some(partition::compare(labelled, &sort, params.show, &mut evaluation.spilled_bytes)?);
    }
    evaluation.bands.retain(|band| band.pairs > 0);
    evaluation.truth = truth.counts;
    evaluation.names = example_names(&atlas, &evaluation)?;
    Ok(evaluation)
}

/// The resemblance that the search was for. Other methods have thresholds that mean something else.
fn threshold_of(atlas: &Atlas) -> Result<f64, EvaluateError> {
    let search = atlas.record::<SimilarRecord>()?.unwrap_or_default().search;
    let threshold = match search.method {
        None | Some(Method::Resemblance) => search.threshold(),
        Some(Method::Exact) => Some(1.0),
        Some(_) => None,
    };
    Ok(threshold.filter(|value| (0.0..=1.0).contains(value)).unwrap_or(EvaluateParams::THRESHOLD))
}

/// Hands out the names of all documents, and counts them.
fn offer_documents(atlas: &Atlas, names: &mut Names) -> Result<u32, EvaluateError> {
    let (mut rows, mut last) = (0_u32, DocId::MIN);
    for batch in atlas.documents()? {
        for row in batch?.rows() {
            names.offer(row.doc, row.id, row.url)?;
            rows = rows.saturating_add(1);
            last = last.max(row.doc);
        }
    }
    // Numbers are dense, and memory is laid out by them.
    if rows > 0 && last.get() >= rows {
        return Err(EvaluateError::Document { table: "documents", doc: last, documents: u64::from(rows) });
    }
    Ok(rows)
}

/// Unknown names that are kept as examples.
const UNKNOWN_EXAMPLES: usize = 5;

fn read_truth(
    file: &TruthFile,
    threshold: f64,
    documents: u32,
    answers: &mut Answers,
    pairs: &mut Sorter<(DocId, DocId, u64)>,
) -> Result<Truth, EvaluateError> {
    let n = documents as usize;
    let mut truth = Truth {
        counts: TruthCounts::default(),
        exact: UnionFind::new(documents),
        connected: UnionFind::new(documents),
        cluster: vec![Packed::NONE; n],
        listed: Vec::new(),
        named: vec![false; n],
        has_pairs: false,
    };
    let mut numbers: HashMap<Label, u32> = HashMap::new();
    // The first member of each cluster, to connect the others with.
    let mut firsts: Vec<Option<DocId>> = Vec::new();
    let mut number_of = |label: Label, truth: &mut Truth, firsts: &mut Vec<Option<DocId>>, listed: Listed| {
        *numbers.entry(label).or_insert_with(|| {
            truth.listed.push(listed);
            firsts.push(None);
            // Never more than there are lines, and those are counted in 64 bits; the last number
            // stands for none.
            u32::try_from(truth.listed.len() - 1).unwrap_or(u32::MAX - 1)
        })
    };
    file.read(&mut |statement| {
        match statement {
            Statement::Pair { a, b, resemblance, exact, cluster } => {
                truth.has_pairs = true;
                let (a, b) = (truth.answer(answers, &a)?, truth.answer(answers, &b)?);
                let (Some(a), Some(b)) = (a, b) else { return Ok(()) };
                if let Some(label) = cluster {
                    let number = number_of(label, &mut truth, &mut firsts, Listed::Complete);
                    truth.cluster[a.index()] = number.into();
                    truth.cluster[b.index()] = number.into();
                }
                if a == b {
                    return Ok(());
                }
                let resemblance = resemblance.unwrap_or(1.0);
                if exact {
                    truth.exact.join(a, b);
                }
                if resemblance >= threshold {
                    truth.connected.join(a, b);
                }
                pairs.push((a.min(b), a.max(b), resemblance.to_bits()))?;
            }
            Statement::Member { name, cluster } => {
                let Some(doc) = truth.answer(answers, &name)? else { return Ok(()) };
                truth.counts.members += 1;
                let number = number_of(cluster, &mut truth, &mut firsts, Listed::Members);
                truth.cluster[doc.index()] = number.into();
                match &mut firsts[number as usize] {
                    Some(first) => {
                        truth.connected.join(*first, doc);
                    }
                    none => *none = Some(doc),
                }
            }
            Statement::Cluster { cluster, listed } => {
                let number = number_of(cluster, &mut truth, &mut firsts, listed);
                truth.listed[number as usize] = listed;
            }
            Statement::Shingle(words) => truth.counts.shingle = Some(words),
        }
        Ok(())
    })?;
    truth.counts.clusters = truth.listed.len() as u64;
    Ok(truth)
}

impl Truth {
    fn answer(&mut self, answers: &mut Answers, name: &Name<'_>) -> Result<Option<DocId>, EvaluateError> {
        let answer = answers.next(name)?;
        match answer {
            Some(answer) => {
                self.counts.ambiguous_names += u64::from(answer.ambiguous);
                self.named[answer.doc.index()] = true;
            }
            None => {
                self.counts.unknown_names += 1;
                if self.counts.unknown_examples.len() < UNKNOWN_EXAMPLES {
                    let (Name::Any(text) | Name::Url(text) | Name::Id(text)) = name else {
                        let Name::Doc(doc) = name else { return Ok(None) };
                        self.counts.unknown_examples.push(doc.to_string());
                        return Ok(None);
                    };
                    self.counts.unknown_examples.push(text.to_string());
                }
            }
        }
        Ok(answer.map(|answer| answer.doc))
    }

    /// Whether a document that it does not name is known to have no copy. A list of members says
    /// nothing of others.
    fn knows_everyone(&self, partial: bool) -> bool {
        !partial && (self.has_pairs || self.counts.members == 0)
    }

    /// What is known of two documents that are not listed as a pair: `None` for nothing.
    fn verdict(&self, a: DocId, b: DocId, partial: bool) -> Option<bool> {
        match (self.cluster[a.index()].get(), self.cluster[b.index()].get()) {
            (None, _) | (_, None) if self.knows_everyone(partial) => Some(false),
            (None, _) | (_, None) => None,
            (Some(x), Some(y)) if x != y => Some(false),
            (Some(x), _) => match self.listed.get(x as usize) {
                Some(Listed::Members) => Some(true),
                Some(Listed::Complete) => Some(false),
                Some(Listed::Centre) | None => None,
            },
        }
    }
}

fn read_found(atlas: &Atlas, documents: u32) -> Result<Found, EvaluateError> {
    let outside = |table, doc| EvaluateError::Document { table, doc, documents: u64::from(documents) };
    let mut found =
        Found { exact: UnionFind::new(documents), cluster: vec![Packed::NONE; documents as usize] };
    if atlas.has(&TableName::Pairs) {
        for row in atlas.pairs()? {
            let row = row?;
            if let Some(doc) = [row.a, row.b].into_iter().find(|doc| doc.get() >= documents) {
                return Err(outside("pairs", doc));
            }
            if row.method == Method::Exact {
                found.exact.join(row.a, row.b);
            }
        }
    }
    if atlas.has(&TableName::Clusters) {
        for row in atlas.clusters()? {
            let row = row?;
            match found.cluster.get_mut(row.doc.index()) {
                Some(cluster) => *cluster = row.cluster.into(),
                None => return Err(outside("clusters", row.doc)),
            }
        }
    }
    Ok(found)
}

/// Known pairs by the exact copies that were found: documents, resemblance.
type RecallSide = SortedStream<(DocId, DocId, u64)>;
/// Known pairs by the exact copies that are true.
type PrecisionSide = SortedStream<(DocId, DocId, u64)>;

/// Counts the known pairs, and sorts them for both questions.
fn sort_truth_pairs(
    pairs: SortedStream<(DocId, DocId, u64)>,
    truth: &mut Truth,
    found: &mut Found,
    sort: &SortParams,
    evaluation: &mut Evaluation,
) -> Result<(RecallSide, PrecisionSide), EvaluateError> {
    evaluation.spilled_bytes += pairs.stats().spilled_bytes;
    evaluation.bands = BANDS
        .iter()
        .zip(BANDS.iter().skip(1).chain([&1.0]))
        .map(|(&from, &to)| Band { from, to, ..Band::default() })
        .collect();
    let mut recall_side = Sorter::new(sort.clone())?;
    let mut precision_side = Sorter::new(sort.clone())?;
    let mut pairs = pairs.peekable();
    while let Some(pair) = pairs.next() {
        let (a, b, bits) = pair?;
        // Of a pair that is listed more than once the largest resemblance counts, which comes last.
        if matches!(pairs.peek(), Some(Ok(next)) if (next.0, next.1) == (a, b)) {
            continue;
        }
        let resemblance = f64::from_bits(bits);
        truth.counts.pairs += 1;
        truth.counts.pairs_at_threshold += u64::from(resemblance >= evaluation.threshold);
        let together =
            found.cluster[a.index()].is_some() && found.cluster[a.index()] == found.cluster[b.index()];
        if let Some(band) = band_of(&mut evaluation.bands, resemblance) {
            band.pairs += 1;
            band.in_clusters += u64::from(together);
        }
        let by = |sets: &mut UnionFind<DocId>, sorter: &mut Sorter<(DocId, DocId, u64)>| {
            let (x, y) = (sets.root(a), sets.root(b));
            sorter.push((x.min(y), x.max(y), bits))
        };
        by(&mut found.exact, &mut recall_side)?;
        by(&mut truth.exact, &mut precision_side)?;
    }
    let (recall_side, precision_side) = (recall_side.finish()?, precision_side.finish()?);
    evaluation.spilled_bytes += recall_side.stats().spilled_bytes + precision_side.stats().spilled_bytes;
    Ok((recall_side, precision_side))
}

fn band_of(bands: &mut [Band], resemblance: f64) -> Option<&mut Band> {
    bands.iter_mut().rev().find(|band| resemblance >= band.from)
}

fn judge_pairs(
    atlas: &Atlas,
    partial: bool,
    (recall_side, precision_side): (RecallSide, PrecisionSide),
    (truth, found): (&mut Truth, &mut Found),
    sort: &SortParams,
    evaluation: &mut Evaluation,
) -> Result<PairScore, EvaluateError> {
    let threshold = evaluation.threshold;
    let mut score = PairScore::default();
    // Rows under the exact copies of both sides. The resemblance is kept, since rows below the
    // threshold count in bands only.
    let mut rows_for_recall: Sorter<(DocId, DocId, u64)> = Sorter::new(sort.clone())?;
    let mut rows_for_precision: Sorter<(DocId, DocId)> = Sorter::new(sort.clone())?;
    for row in atlas.pairs()? {
        let PairRow { a, b, resemblance, method, .. } = row?;
        let resemblance = if method == Method::Exact { 1.0 } else { resemblance };
        let (x, y) = (found.exact.root(a), found.exact.root(b));
        if x != y {
            rows_for_recall.push((x.min(y), x.max(y), resemblance.to_bits()))?;
        }
        if resemblance < threshold {
            score.below += 1;
            continue;
        }
        score.rows += 1;
        let (x, y) = (truth.exact.root(a), truth.exact.root(b));
        if x == y {
            score.right += 1;
        } else {
            rows_for_precision.push((x.min(y), x.max(y)))?;
        }
    }
    let rows = rows_for_precision.finish()?;
    evaluation.spilled_bytes += rows.stats().spilled_bytes;
    let mut known = SortedCursor::new(precision_side);
    for row in rows {
        let (a, b) = row?;
        let verdict = match resemblance_of(&mut known, a, b)? {
            Some(resemblance) => Some(resemblance >= threshold),
            None => truth.verdict(a, b, partial),
        };
        match verdict {
            Some(true) => score.right += 1,
            Some(false) => score.wrong += 1,
            None => score.unjudged += 1,
        }
    }
    let rows = rows_for_recall.finish()?;
    evaluation.spilled_bytes += rows.stats().spilled_bytes;
    let mut rows = SortedCursor::new(rows);
    for pair in recall_side {
        let (x, y, bits) = pair?;
        let resemblance = f64::from_bits(bits);
        let row = if x == y { Some(1.0) } else { resemblance_of(&mut rows, x, y)? };
        if let Some(band) = band_of(&mut evaluation.bands, resemblance) {
            band.in_pairs += u64::from(row.is_some());
        }
        if resemblance >= threshold {
            score.truth += 1;
            score.found += u64::from(row.is_some_and(|row| row >= threshold));
        }
    }
    Ok(score)
}

/// Two documents, and the bits of their resemblance.
type Resembling = (DocId, DocId, u64);

/// The largest resemblance of a pair, which comes last. Pairs are asked for in ascending order.
fn resemblance_of(
    pairs: &mut SortedCursor<SortedStream<Resembling>, Resembling>,
    a: DocId,
    b: DocId,
) -> Result<Option<f64>, EvaluateError> {
    let found = pairs.last_at((a, b), |pair| (pair.0, pair.1))?;
    Ok(found.map(|(_, _, bits)| f64::from_bits(bits)))
}

/// What the examples are called.
fn example_names(atlas: &Atlas, evaluation: &Evaluation) -> Result<Vec<(DocId, String)>, EvaluateError> {
    let Some(clusters) = &evaluation.clusters else { return Ok(Vec::new()) };
    let errors = clusters.split.iter().chain(&clusters.mixed);
    let mut wanted: Vec<DocId> = errors.flat_map(|error| error.examples.iter().copied()).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let mut names = Vec::new();
    let (Some(&first), Some(&last)) = (wanted.first(), wanted.last()) else { return Ok(names) };
    for batch in atlas.documents()?.within(first..=last) {
        for row in batch?.rows().filter(|row| wanted.binary_search(&row.doc).is_ok()) {
            let name = row.url.or(row.id).map_or_else(|| format!("doc:{}", row.doc), str::to_owned);
            names.push((row.doc, name));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests;
