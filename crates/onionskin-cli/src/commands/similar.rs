//! `similar`: from an atlas to pairs and clusters.

use std::fmt::Write;

use anyhow::{Context, bail};
use onionskin::similar::{IterationSummary, Search};
use onionskin::{SimilarParams, SimilarSummary, similar};
use onionskin_core::Threshold;
use onionskin_similar::candidates::CandidateStats;
use onionskin_similar::recall::{Interval, Recall};
use onionskin_store::table::Method;
use onionskin_store::{Atlas, MemoryBudget, TableName};

use crate::Exit;
use crate::args::{Global, ResourceArgs, SimilarArgs, SimilarPreset};
use crate::output::{Counts, bytes, grouped, percent, print_summary, seconds};
use crate::progress::Bar;

/// Shared chunks that are enough, where nothing is said (Shivakumar and Garcia-Molina 1998, section
/// 3).
const FOUR_LINES: u32 = 15;
const TWO_LINES: u32 = 25;
/// The share of identical paragraphs, where nothing is said (Pereira et al. 2006, table 3: the
/// lowest).
const PARAGRAPHS: f64 = 0.5;

pub(crate) fn run(args: &SimilarArgs, global: &Global) -> anyhow::Result<Exit> {
    let params = params(args)?;
    let atlas = Atlas::open(&params.atlas)?;
    if !args.overwrite && params.is_done(&atlas)? {
        let found = found_by(&atlas);
        let found = if params.for_report { &[] } else { found.as_slice() };
        return super::nothing_to_do(global, "similar", &params.atlas, found, "--overwrite searches again");
    }
    let summary = Bar::steps(global).during(|bar| similar(&params, bar))?;
    print_summary(global, "similar", &summary, describe)?;
    Ok(Exit::Done)
}

/// What the last search left.
pub(super) fn found_by(atlas: &Atlas) -> [(&'static str, u64); 2] {
    [
        ("pairs", super::rows_of(atlas, &TableName::Pairs)),
        ("documents in clusters", super::rows_of(atlas, &TableName::Clusters)),
    ]
}

fn params(args: &SimilarArgs) -> anyhow::Result<SimilarParams> {
    let mut params = SimilarParams::new(args.atlas.clone());
    params.search = search(args)?;
    args.clusters.apply(&mut params);
    params.for_report = args.for_report;
    params.commit_bytes = args.commit_bytes;
    params.pdf_worker = super::pdf_worker();
    apply(&args.resources, &mut params.memory, &mut params.threads);
    Ok(params)
}

/// What was said about resources.
pub(crate) fn apply(resources: &ResourceArgs, memory: &mut MemoryBudget, threads: &mut usize) {
    *memory = resources.memory.unwrap_or(*memory);
    *threads = resources.threads.map_or(*threads, usize::from);
}

fn search(args: &SimilarArgs) -> anyhow::Result<Search> {
    let overlap = |chunking: &str, threshold: u32| -> anyhow::Result<Search> {
        let threshold = Threshold::new(threshold).context("at least one chunk must be shared")?;
        Ok(Search::Overlap { chunking: chunking.to_owned(), threshold, engine: args.engine })
    };
    match args.preset {
        Some(SimilarPreset::Sgm98Four) => return overlap("l4", FOUR_LINES),
        Some(SimilarPreset::Sgm98Two) => return overlap("l2", TWO_LINES),
        None => {}
    }
    let method = args.method.unwrap_or(match args.iterations {
        Some(_) => Method::Paragraphs,
        None => Method::Resemblance,
    });
    if method != Method::Resemblance && (args.exact || args.filter.is_some() || args.bands.is_some()) {
        bail!("--exact, --filter and --bands belong to the method resemblance, not to {method}");
    }
    if method != Method::Overlap && args.chunking.is_some() {
        bail!("--chunking belongs to the method overlap, not to {method}");
    }
    if let (Some(iterations), Some(of)) = (args.iterations, args.of) {
        if method != Method::Paragraphs {
            bail!("--iterations and --of belong to the method paragraphs, not to {method}");
        }
        if args.threshold.is_some() {
            bail!(
                "--iterations finds documents with the same shingle paragraphs, for which there is no --threshold"
            );
        }
        if iterations > of {
            bail!("--iterations is at most what --of says, {of}, not {iterations}");
        }
        return Ok(Search::Subcollections { iterations, of });
    }
    let share = |default: f64| args.threshold.as_deref().map_or(Ok(default), parse_share);
    match method {
        Method::Exact if args.threshold.is_some() => bail!("exact copies have no threshold"),
        Method::Exact => Ok(Search::Exact),
        Method::Overlap => {
            let chunking = args.chunking.map_or_else(|| "l4".to_owned(), |chunking| chunking.to_string());
            let threshold = match args.threshold.as_deref() {
                Some(number) => number.parse().with_context(|| {
                    format!("the threshold of overlap is a number of chunks, not {number:?}")
                })?,
                None if chunking == "l4" => FOUR_LINES,
                None if chunking == "l2" => TWO_LINES,
                None => bail!("say with --threshold how many chunks of {chunking} must be shared"),
            };
            overlap(&chunking, threshold)
        }
        Method::Paragraphs => Ok(Search::Paragraphs { share: share(PARAGRAPHS)? }),
        _ => Ok(Search::Resemblance {
            threshold: share(Search::THRESHOLD)?,
            filter: args.filter.or(args.bands),
            exact: args.exact,
        }),
    }
}

/// 0.9 or 90%.
pub(crate) fn parse_share(text: &str) -> anyhow::Result<f64> {
    let (number, of) = match text.strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    let value = number.trim().parse::<f64>().ok().map(|value| value / of);
    value
        .filter(|value| *value > 0.0 && *value <= 1.0)
        .with_context(|| format!("a threshold is above 0 and at most 1, as in 0.9 or 90%, not {text:?}"))
}

/// 0.9 or 90%, or any number where shared chunks are counted.
pub(crate) fn parse_number_or_share(text: &str) -> anyhow::Result<f64> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => parse_share(text),
    }
}

/// Which pairs the list has, and which not.
fn listed(candidates: &CandidateStats, crowded_clusters: u64) -> String {
    let CandidateStats { crowded_buckets, largest_bucket, crowd_limit, .. } = candidates;
    if *crowded_buckets == 0 {
        return "every pair that the filter finds was verified\n".to_owned();
    }
    // A document has many features, so a cluster may be a crowd several times.
    let place = match crowded_clusters {
        0 => format!("{} groups", grouped(*crowded_buckets)),
        1 => "1 cluster".to_owned(),
        clusters => format!("{} clusters", grouped(clusters)),
    };
    format!(
        "not all pairs are listed inside {place} with more than {} documents of equal features (the largest group has {}): \
         there every document was compared with the first of them, and with two of those most like it\n",
        grouped(*crowd_limit),
        grouped(*largest_bucket),
    )
}

/// The summary for people.
pub(crate) fn describe(summary: &SimilarSummary) -> String {
    let clusters = &summary.clusters;
    let mut found = Counts::new("found");
    found.row("documents", summary.documents);
    found.row("  with a text", summary.exact.texts);
    found.row("exact copies", summary.exact.copies);
    if summary.filter.is_some() {
        found.row("candidates by features", summary.verified.candidates);
    }
    if summary.method != Method::Exact {
        found.row("near pairs, verified", summary.near_pairs);
    }
    found.row("clusters", clusters.clusters);
    found.row("  documents in them", clusters.documents);
    found.row("  exact copies of the centre", clusters.exact_members);
    found.row("  near copies of the centre", clusters.near_members);
    found.row("  on the site of the centre", clusters.same_site);
    found.row("  on other sites", clusters.cross_site);
    found.row("  largest", clusters.largest);
    let mut text = format!("{found}\n");
    if let Some(lowest) = clusters.lowest_resemblance {
        let _ = writeln!(text, "lowest resemblance to a centre: {lowest:.3}");
    }
    if let Some(filter) = &summary.filter {
        let _ = writeln!(
            text,
            "candidates by the filter {}{}: it finds {:.2} % of pairs that are exactly at the threshold",
            filter.filter,
            if filter.from_sketches { ", made from the kept minima" } else { "" },
            100.0 * filter.at_threshold
        );
        if filter.at_threshold < 0.9 {
            let _ = writeln!(
                text,
                "hint: that is few; it accepts 99 % at a resemblance of {:.3}. Scan with +sketch in the recipe, or search with --exact",
                filter.filter.resemblance_at(0.99)
            );
        }
    }
    if summary.filter.is_some() {
        text += &listed(&summary.candidates, summary.clusters.crowded);
    }
    if let Some(recall) = &summary.recall {
        text += &describe_recall(recall);
    }
    if let Some(paragraphs) = &summary.paragraphs {
        let of = paragraphs.documents + summary.exact.copies;
        let percent_of_all = |n: u64| percent(if of == 0 { 0.0 } else { n as f64 / of as f64 });
        let duplicates = paragraphs.duplicates + summary.exact.copies;
        let _ = writeln!(
            text,
            "of {} documents with shingle paragraphs, in {} steps:",
            grouped(of),
            paragraphs.steps
        );
        let _ = writeln!(text, "  duplicates: {} ({})", grouped(duplicates), percent_of_all(duplicates));
        for (level, count) in &paragraphs.near {
            let count = count + summary.exact.copies;
            let _ = writeln!(
                text,
                "  near-duplicates at {level} %: {} ({})",
                grouped(count),
                percent_of_all(count)
            );
        }
    }
    if let Some(iterations) = &summary.iterations {
        text += &describe_iterations(iterations);
    }
    let resumed = if summary.resumed { " (went on where an earlier run stopped)" } else { "" };
    let _ = writeln!(
        text,
        "{}, {} of processor time, {} of memory at most{resumed}",
        seconds(summary.seconds),
        seconds(summary.cpu_seconds),
        summary.peak_memory.map_or_else(|| "unknown amount".to_owned(), bytes),
    );
    text
}

/// What became of true pairs.
fn describe_recall(recall: &Recall) -> String {
    let documents = grouped(recall.sampled);
    if recall.true_pairs == 0 {
        return format!("recall: none of {documents} sampled documents has a near-duplicate\n");
    }
    let mut text = format!(
        "recall, measured on {documents} documents, {} of them with {} true pairs (95 % interval):\n",
        grouped(recall.with_neighbours),
        grouped(recall.true_pairs)
    );
    for (name, share) in [
        ("true pairs listed", recall.listed),
        ("true pairs in one cluster", recall.clustered),
        ("true pairs of which dedup keeps both", recall.leaked),
        ("listed pairs that are true", recall.precision),
    ] {
        if let Some(Interval { value, low, high }) = share {
            let [value, low, high] = [value, low, high].map(|share| format!("{:.2}", 100.0 * share));
            let _ = writeln!(text, "  {name:<36} {value:>6} % ({low} to {high})");
        }
    }
    text
}

/// What the first iterations found, and what all would find.
fn describe_iterations(found: &IterationSummary) -> String {
    let mut text = format!(
        "duplicates by shingle paragraphs among {} documents, after {} of {} iterations:\n  found so far: {} clusters, {} duplicates\n",
        grouped(found.documents),
        found.iterations,
        found.of,
        grouped(found.clusters),
        grouped(found.duplicates)
    );
    for (name, [value, low, high]) in [
        ("clusters:  ", found.estimated_clusters),
        ("duplicates:", found.estimated_duplicates),
        ("unique:    ", found.estimated_unique),
    ] {
        let number = |n: f64| grouped(n.round() as u64);
        let _ = writeln!(
            text,
            "  estimated {name} {} (95 % between {} and {})",
            number(value),
            number(low),
            number(high)
        );
    }
    let [value, low, high] = found.estimated_share.map(|share| 100.0 * share);
    let _ = writeln!(
        text,
        "  estimated share of duplicates: {value:.1} % (95 % between {low:.1} % and {high:.1} %)"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_spelled_two_ways() {
        assert_eq!(
            ["0.9", "90%", "1", "100 %"].map(|text| parse_share(text).ok()),
            [Some(0.9), Some(0.9), Some(1.0), Some(1.0)]
        );
        assert!(["0", "1.5", "-1", "90", "", "%", "NaN"].iter().all(|text| parse_share(text).is_err()));
    }
}
