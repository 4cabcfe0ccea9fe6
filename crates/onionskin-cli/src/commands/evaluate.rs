//! `evaluate`: pairs and clusters against known answers.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use clap::ValueHint;
use onionskin::evaluate::{
    Band, ClusterError, ClusterScore, MirrorScore, PairScore, TruthCounts, evaluate_mirrors, f1,
};
use onionskin::{EvaluateParams, Evaluation, evaluate};
use onionskin_store::MemoryBudget;
use serde::Serialize;

use crate::Exit;
use crate::args::Global;
use crate::output::{grouped, print, print_json, table};

#[derive(Debug, clap::Args)]
pub(crate) struct EvaluateArgs {
    /// The folder of the atlas.
    #[arg(value_hint = ValueHint::DirPath)]
    pub atlas: PathBuf,
    /// The known answers.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub truth: PathBuf,
    /// Pairs of this resemblance and more are true [default: that of the search, else 0.9]
    #[arg(long, value_name = "RESEMBLANCE", value_parser = share)]
    pub threshold: Option<f64>,
    /// The truth does not know every copy: pairs that it says nothing about are not judged.
    #[arg(long)]
    pub partial: bool,
    /// How many of the worst clusters to show.
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub show: usize,
    /// Exit with 1 when recall of pairs (of clusters, where there are no pairs) is lower.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub min_recall: Option<f64>,
    /// Exit with 1 when precision of pairs (of clusters, where there are no pairs) is lower.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub min_precision: Option<f64>,
    /// Exit with 1 when the adjusted Rand index of the clusters is lower.
    #[arg(long, value_name = "INDEX")]
    pub min_ari: Option<f64>,
    /// Memory for sorting, as in 512M or 2G; 20 bytes a document come on top [default: half of what the machine has]
    #[arg(long, value_name = "SIZE", env = "ONIONSKIN_MEMORY")]
    pub memory: Option<MemoryBudget>,
}

fn share(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| (0.0..=1.0).contains(value));
    value.ok_or_else(|| "not a number from 0 to 1".to_owned())
}

pub(crate) fn run(args: &EvaluateArgs, global: &Global) -> anyhow::Result<Exit> {
    // Runs that do not fit in memory, removed as they are merged.
    let work_dir = std::env::temp_dir().join(format!("onionskin-evaluate-{}", std::process::id()));
    let params = EvaluateParams {
        atlas: args.atlas.clone(),
        truth: args.truth.clone(),
        threshold: args.threshold,
        partial: args.partial,
        show: args.show,
        memory: args.memory.unwrap_or_else(MemoryBudget::default_for_machine),
        work_dir,
    };
    let result = evaluate(&params);
    // It is there only if something was spilled.
    let _ = std::fs::remove_dir(&params.work_dir);
    let seen = result?;
    let mirrors = evaluate_mirrors(&args.atlas, &args.truth)?;
    if global.json {
        print_json(&EvaluateWire::new(&seen))?;
        if let Some(mirrors) = &mirrors {
            print_json(&MirrorsWire::new(mirrors))?;
        }
    } else {
        let mirrors = mirrors.map(|mirrors| describe_mirrors(&mirrors, args.show)).unwrap_or_default();
        print(&(describe(&seen, args.partial) + &mirrors))?;
    }
    remarks(&seen);
    let failed = shortfalls(&seen, args);
    failed.iter().for_each(|failure| say(failure));
    Ok(if failed.is_empty() { Exit::Done } else { Exit::No })
}

#[expect(clippy::print_stderr, reason = "a remark beside the data")]
fn say(text: &str) {
    eprintln!("{text}");
}

/// What should make people doubt the numbers.
fn remarks(seen: &Evaluation) {
    let truth = &seen.truth;
    if truth.unknown_names > 0 {
        let examples = truth.unknown_examples.join(", ");
        let n = grouped(truth.unknown_names);
        say(&format!(
            "warning: {n} names of the truth are of no document and were left out, such as {examples}"
        ));
    }
    if truth.ambiguous_names > 0 {
        let n = grouped(truth.ambiguous_names);
        say(&format!(
            "warning: {n} names of the truth are of several documents; the first of them was taken"
        ));
    }
    if truth.pairs == 0 && truth.members == 0 {
        say("warning: the truth says nothing about documents of this atlas");
    }
}

fn shortfalls(seen: &Evaluation, args: &EvaluateArgs) -> Vec<String> {
    let scores = seen
        .pairs
        .map(|pairs| (pairs.recall(), pairs.precision()))
        .or_else(|| seen.clusters.as_ref().map(|clusters| (clusters.recall(), clusters.precision())));
    let index = seen.clusters.as_ref().map(ClusterScore::adjusted_rand_index);
    let wanted = [
        ("recall", args.min_recall, scores.map(|scores| scores.0)),
        ("precision", args.min_precision, scores.map(|scores| scores.1)),
        ("the adjusted Rand index", args.min_ari, index),
    ];
    let short = wanted.into_iter().filter_map(|(name, least, value)| {
        let least = least?;
        match value {
            Some(value) if value >= least => None,
            Some(value) => Some(format!("{name} is {value:.6}, below {least}")),
            None => Some(format!("{name} cannot be told: the atlas has no clusters")),
        }
    });
    short.collect()
}

/// Mirrors that were planted, and what was found of them.
pub(crate) fn describe_mirrors(score: &MirrorScore, show: usize) -> String {
    let mut text = format!(
        "mirrors: {} of {} targets found; of {} mirrors {} found, {} as one collection\n",
        grouped(score.targets_found),
        grouped(score.targets),
        grouped(score.mirrors),
        grouped(score.mirrors_found),
        grouped(score.mirrors_whole),
    );
    let _ = writeln!(
        text,
        "of {} collections that were found, {} correspond to no mirror or to a part of one; without groups of fewer than ten pages, {} of {}",
        grouped(score.collections),
        grouped(score.problems),
        grouped(score.problems_without_noise),
        grouped(score.collections_without_noise),
    );
    for (root, why) in score.misses.iter().take(show) {
        let _ = writeln!(text, "  {root}: {why}");
    }
    text
}

/// Mirrors as JSON, in a line of their own.
#[derive(Serialize)]
struct MirrorsWire<'a> {
    r#type: &'static str,
    targets: u64,
    targets_found: u64,
    mirrors: u64,
    mirrors_found: u64,
    mirrors_whole: u64,
    by_kind: &'a BTreeMap<String, (u64, u64)>,
    collections: u64,
    problems: u64,
    collections_without_noise: u64,
    problems_without_noise: u64,
    misses: &'a [(String, String)],
}

impl<'a> MirrorsWire<'a> {
    fn new(score: &'a MirrorScore) -> MirrorsWire<'a> {
        MirrorsWire {
            r#type: "evaluate_mirrors",
            targets: score.targets,
            targets_found: score.targets_found,
            mirrors: score.mirrors,
            mirrors_found: score.mirrors_found,
            mirrors_whole: score.mirrors_whole,
            by_kind: &score.by_kind,
            collections: score.collections,
            problems: score.problems,
            collections_without_noise: score.collections_without_noise,
            problems_without_noise: score.problems_without_noise,
            misses: &score.misses,
        }
    }
}

fn describe(seen: &Evaluation, partial: bool) -> String {
    let mut text = String::new();
    let t = seen.threshold;
    let truth = &seen.truth;
    if truth.pairs > 0 {
        let at = grouped(truth.pairs_at_threshold);
        let _ = writeln!(text, "truth: {} pairs, {at} of resemblance {t} and more", grouped(truth.pairs));
    }
    if truth.members > 0 {
        let (members, clusters) = (grouped(truth.members), grouped(truth.clusters));
        let _ = writeln!(text, "truth: {members} documents in {clusters} clusters");
    }
    let mut scores = table(&["", "true", "found", "true found", "precision", "recall", "F1"]);
    let mut row = |name: &str, counts: [u64; 3], precision: f64, recall: f64| {
        let [truth, found, both] = counts.map(grouped);
        let shares = [precision, recall, f1(precision, recall)].map(|share| format!("{share:.4}"));
        let [precision, recall, f1] = shares;
        scores.add_row([name.to_owned(), truth, found, both, precision, recall, f1]);
    };
    if let Some(pairs) = &seen.pairs {
        row("pairs", [pairs.truth, pairs.rows, pairs.found], pairs.precision(), pairs.recall());
    }
    if let Some(clusters) = &seen.clusters {
        let counts = [clusters.truth_pairs, clusters.found_pairs, clusters.common_pairs];
        row("pairs in one cluster", counts, clusters.precision(), clusters.recall());
    }
    let _ = writeln!(text, "{scores}");
    if let Some(pairs) = &seen.pairs {
        describe_judgement(&mut text, pairs, partial);
    }
    if let Some(clusters) = &seen.clusters {
        let _ = writeln!(
            text,
            "adjusted Rand index {:.6} over {} documents; {} clusters by the truth, {} found",
            clusters.adjusted_rand_index(),
            grouped(clusters.documents),
            grouped(clusters.truth_clusters),
            grouped(clusters.found_clusters),
        );
    }
    if !seen.bands.is_empty() {
        describe_bands(&mut text, seen);
    }
    if let Some(clusters) = &seen.clusters {
        describe_errors(
            &mut text,
            seen,
            "split",
            "clusters of the truth are split",
            clusters.n_split,
            &clusters.split,
        );
        describe_errors(
            &mut text,
            seen,
            "mixed",
            "found clusters mix several of the truth",
            clusters.n_mixed,
            &clusters.mixed,
        );
    }
    text
}

fn describe_judgement(text: &mut String, pairs: &PairScore, partial: bool) {
    let PairScore { right, wrong, unjudged, below, .. } = *pairs;
    let _ = write!(text, "of the pairs found, {} are true, {} are not", grouped(right), grouped(wrong));
    let _ = match unjudged {
        0 => writeln!(text),
        n if partial => writeln!(text, ", {} were not judged: the truth is partial", grouped(n)),
        n => writeln!(text, ", {} were not judged: the truth does not tell", grouped(n)),
    };
    if below > 0 {
        let _ = writeln!(text, "{} pairs of a lower resemblance were left out", grouped(below));
    }
}

fn describe_bands(text: &mut String, seen: &Evaluation) {
    let mut bands = table(&["resemblance", "known pairs", "in pairs", "", "in one cluster", ""]);
    for band in &seen.bands {
        let name = if band.from == 1.0 { "1".to_owned() } else { format!("{} to {}", band.from, band.to) };
        let share = |part: u64| format!("{:.2} %", 100.0 * part as f64 / band.pairs as f64);
        let of_table = |is_there: bool, part: u64| {
            if is_there { [grouped(part), share(part)] } else { ["-".to_owned(), "-".to_owned()] }
        };
        let [in_pairs, share_of_pairs] = of_table(seen.pairs.is_some(), band.in_pairs);
        let [in_clusters, share_of_clusters] = of_table(seen.clusters.is_some(), band.in_clusters);
        bands.add_row([name, grouped(band.pairs), in_pairs, share_of_pairs, in_clusters, share_of_clusters]);
    }
    let _ = writeln!(text, "{bands}");
}

fn describe_errors(
    text: &mut String,
    seen: &Evaluation,
    word: &str,
    what: &str,
    n: u64,
    errors: &[ClusterError],
) {
    if n == 0 {
        return;
    }
    let worst = if errors.is_empty() { "" } else { "; the worst:" };
    let _ = writeln!(text, "{} {what}{worst}", grouped(n));
    for error in errors {
        let _ = writeln!(
            text,
            "  {word} in {}, {} documents, {} pairs wrong:",
            grouped(error.parts),
            grouped(error.documents),
            grouped(error.pairs),
        );
        for doc in &error.examples {
            let _ = writeln!(text, "    doc:{doc}  {}", name_of(seen, *doc));
        }
    }
}

fn name_of(seen: &Evaluation, doc: u32) -> String {
    let at = seen.names.binary_search_by_key(&doc, |(doc, _)| *doc);
    at.ok().and_then(|at| seen.names.get(at)).map(|(_, name)| name.clone()).unwrap_or_default()
}

/// `onionskin evaluate --json`.
#[derive(Serialize)]
struct EvaluateWire<'a> {
    r#type: &'static str,
    documents: u64,
    threshold: f64,
    truth: TruthWire<'a>,
    pairs: Option<PairsWire>,
    clusters: Option<ClustersWire>,
    bands: Vec<BandWire>,
    spilled_bytes: u64,
}

#[derive(Serialize)]
struct TruthWire<'a> {
    pairs: u64,
    pairs_at_threshold: u64,
    members: u64,
    clusters: u64,
    unknown_names: u64,
    unknown_examples: &'a [String],
    ambiguous_names: u64,
    shingle: Option<u32>,
}

#[derive(Serialize)]
struct PairsWire {
    truth: u64,
    found: u64,
    rows: u64,
    right: u64,
    wrong: u64,
    unjudged: u64,
    below_threshold: u64,
    precision: f64,
    recall: f64,
    f1: f64,
}

#[derive(Serialize)]
struct ClustersWire {
    documents: u64,
    truth_clusters: u64,
    found_clusters: u64,
    truth_pairs: u64,
    found_pairs: u64,
    common_pairs: u64,
    precision: f64,
    recall: f64,
    f1: f64,
    adjusted_rand_index: f64,
    split: u64,
    worst_split: Vec<ClusterErrorWire>,
    mixed: u64,
    worst_mixed: Vec<ClusterErrorWire>,
}

#[derive(Serialize)]
struct ClusterErrorWire {
    /// Smallest document of a cluster of the truth, or number of a found one.
    cluster: u64,
    documents: u64,
    parts: u64,
    pairs: u64,
    examples: Vec<ExampleWire>,
}

#[derive(Serialize)]
struct ExampleWire {
    doc: u32,
    name: String,
}

#[derive(Serialize)]
struct BandWire {
    from: f64,
    to: f64,
    pairs: u64,
    in_pairs: u64,
    in_clusters: u64,
}

impl<'a> EvaluateWire<'a> {
    fn new(seen: &'a Evaluation) -> EvaluateWire<'a> {
        let TruthCounts { unknown_examples, .. } = &seen.truth;
        let bands = seen.bands.iter().map(|&Band { from, to, pairs, in_pairs, in_clusters }| BandWire {
            from,
            to,
            pairs,
            in_pairs,
            in_clusters,
        });
        EvaluateWire {
            r#type: "evaluate",
            documents: seen.documents,
            threshold: seen.threshold,
            truth: TruthWire {
                pairs: seen.truth.pairs,
                pairs_at_threshold: seen.truth.pairs_at_threshold,
                members: seen.truth.members,
                clusters: seen.truth.clusters,
                unknown_names: seen.truth.unknown_names,
                unknown_examples,
                ambiguous_names: seen.truth.ambiguous_names,
                shingle: seen.truth.shingle,
            },
            pairs: seen.pairs.as_ref().map(|pairs| PairsWire {
                truth: pairs.truth,
                found: pairs.found,
                rows: pairs.rows,
                right: pairs.right,
                wrong: pairs.wrong,
                unjudged: pairs.unjudged,
                below_threshold: pairs.below,
                precision: pairs.precision(),
                recall: pairs.recall(),
                f1: f1(pairs.precision(), pairs.recall()),
            }),
            clusters: seen.clusters.as_ref().map(|clusters| clusters_wire(clusters, seen)),
            bands: bands.collect(),
            spilled_bytes: seen.spilled_bytes,
        }
    }
}

fn clusters_wire(clusters: &ClusterScore, seen: &Evaluation) -> ClustersWire {
    let errors = |errors: &[ClusterError]| {
        let wire = |error: &ClusterError| ClusterErrorWire {
            cluster: error.cluster,
            documents: error.documents,
            parts: error.parts,
            pairs: error.pairs,
            examples: error
                .examples
                .iter()
                .map(|&doc| ExampleWire { doc, name: name_of(seen, doc) })
                .collect(),
        };
        errors.iter().map(wire).collect()
    };
    ClustersWire {
        documents: clusters.documents,
        truth_clusters: clusters.truth_clusters,
        found_clusters: clusters.found_clusters,
        truth_pairs: clusters.truth_pairs,
        found_pairs: clusters.found_pairs,
        common_pairs: clusters.common_pairs,
        precision: clusters.precision(),
        recall: clusters.recall(),
        f1: f1(clusters.precision(), clusters.recall()),
        adjusted_rand_index: clusters.adjusted_rand_index(),
        split: clusters.n_split,
        worst_split: errors(&clusters.split),
        mixed: clusters.n_mixed,
        worst_mixed: errors(&clusters.mixed),
    }
}
