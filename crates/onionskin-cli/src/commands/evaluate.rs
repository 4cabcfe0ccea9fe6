//! `evaluate`: pairs and clusters against known answers.

use std::fmt::Write;
use std::path::PathBuf;

use clap::ValueHint;
use onionskin::evaluate::{ClusterError, ClusterScore, MirrorScore, PairScore, evaluate_mirrors, f1};
use onionskin::{EvaluateParams, Evaluation, evaluate};
use onionskin_store::MemoryBudget;

use crate::Exit;
use crate::args::Global;
use crate::output::{grouped, print, print_tagged, table, tell};

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
    /// Memory for sorting, as in 512M or 2G; 20 bytes a document come on top [default: half of what
    /// the machine has]
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
        print_tagged("evaluate", &seen)?;
        if let Some(mirrors) = &mirrors {
            print_tagged("evaluate_mirrors", mirrors)?;
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

fn say(text: &str) {
    tell(text);
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
            let _ = writeln!(text, "    doc:{doc}  {}", seen.name_of(*doc));
        }
    }
}
