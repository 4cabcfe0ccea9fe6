//! Sizes for people.

use std::fmt::Write;

use onionskin::size::{MemberKind, SearchesReport, SizeReport};
use onionskin_study::size::By;
use onionskin_study::size::addresses::{AddressEstimates, AddressStudy};
use onionskin_study::size::bias::Bias;
use onionskin_study::size::overlap::Basis;
use onionskin_study::size::statistics::{Estimate, Interval};
use onionskin_study::size::walk::{Rule, WalkParams, Walked};

use super::{MethodArg, SizeArgs};
use crate::output::{grouped, percent, seconds, table};

/// A, B, ... Z, then numbers.
fn letter(at: usize) -> String {
    match u8::try_from(at) {
        Ok(at) if at < 26 => char::from(b'A' + at).to_string(),
        _ => format!("#{at}"),
    }
}

fn percents(interval: Interval) -> String {
    format!("{:.1} to {:.1} %", 100.0 * interval.low, 100.0 * interval.high)
}

/// A ratio with three digits that say something.
fn ratio(value: f64) -> String {
    match value.abs() {
        v if !v.is_finite() => "unbounded".to_owned(),
        v if v == 0.0 || (0.0095..1000.0).contains(&v) => format!("{value:.3}"),
        v if v >= 1000.0 => grouped(value.round() as u64),
        _ => format!("{value:.2e}"),
    }
}

fn ratios(interval: Interval) -> String {
    format!("{} to {}", ratio(interval.low), ratio(interval.high))
}

fn both(estimate: &Option<Estimate>, show: fn(f64) -> String, range: fn(Interval) -> String) -> [String; 2] {
    match estimate {
        Some(Estimate { value, interval }) if interval.low == interval.high => [show(*value), String::new()],
        Some(Estimate { value, interval }) => [show(*value), range(*interval)],
        None => ["-".to_owned(), String::new()],
    }
}

fn biases(text: &mut String, biases: &[Bias]) {
    text.push_str("\nWhat may be wrong:\n");
    for Bias { name, text: what } in biases {
        let _ = writeln!(text, "- {name}: {what}.");
    }
}

/// The heading of an interval.
fn sure(args: &SizeArgs) -> String {
    format!("{} %", (100.0 * args.confidence * 100.0).round() / 100.0)
}

pub(super) fn overlap(report: &SizeReport, args: &SizeArgs) -> String {
    let found = &report.estimates;
    let n = report.observed.len();
    let by = match report.by {
        By::Url => "address".to_owned(),
        By::Text => "text, word by word".to_owned(),
        By::Near { threshold } => format!("text, resemblance {threshold} and more by sketches"),
    };
    let mut text = String::new();
    for (x, (observed, kind)) in report.observed.iter().zip(&report.kinds).enumerate() {
        let kind = match kind {
            MemberKind::Atlas => "atlas",
            MemberKind::Seen => "seen",
            MemberKind::List => "list",
            MemberKind::Engine => "engine",
        };
        let _ = writeln!(text, "{}  {kind:6}  {}", letter(x), observed.name);
    }
    let _ = writeln!(text, "\nPages are the same by {by}. Share of the row that the column has:");
    let letters: Vec<String> = (0..n).map(letter).collect();
    let header: Vec<&str> = std::iter::once("").chain(letters.iter().map(String::as_str)).collect();
    let mut matrix = table(&header);
    for x in 0..n {
        let mut row = vec![letter(x)];
        for y in 0..n {
            row.push(match &found.fractions[x][y] {
                Some(fraction) => {
                    let [share, range] = both(&Some(fraction.share), percent, percents);
                    format!("{share}\n{range}")
                }
                None if x == y => String::new(),
                None => "-".to_owned(),
            });
        }
        matrix.add_row(row);
    }
    let _ = writeln!(text, "{matrix}\n");

    let sure = sure(args);
    let first = found.reference.map_or_else(|| "none".to_owned(), letter);
    let against = format!("size, {first} = 1");
    let mut sizes = table(&["", "samples", "worth", "counted", &against, &sure, "of the union", &sure]);
    for x in 0..n {
        let observed = &report.observed[x];
        let [size, size_range] = both(&found.sizes[x], ratio, ratios);
        let [cover, cover_range] = both(&found.coverage[x], percent, percents);
        sizes.add_row(vec![
            letter(x),
            grouped(observed.samples.len() as u64),
            format!("{:.0}", found.effective_samples[x]),
            observed.count.map_or_else(|| "-".to_owned(), grouped),
            size,
            size_range,
            cover,
            cover_range,
        ]);
    }
    let _ = writeln!(text, "{sizes}");
    pairs(&mut text, report, &sure);
    parts(&mut text, report, &sure);
    remarks(&mut text, report);
    efforts(&mut text, report);
    let _ = writeln!(text, "\nIt took {}.", seconds(report.seconds));
    biases(&mut text, &report.biases);
    text
}

fn pairs(text: &mut String, report: &SizeReport, sure: &str) {
    if report.observed.len() < 3 {
        return;
    }
    let mut pairs = table(&["pair alone", "ratio", sure]);
    for pair in &report.estimates.ratios {
        let [value, range] = both(&pair.ratio, ratio, ratios);
        pairs.add_row(vec![format!("{} / {}", letter(pair.x), letter(pair.y)), value, range]);
    }
    let _ = writeln!(text, "\n{pairs}");
}

/// Parts of the union that are shown; the others are in the JSON.
const PARTS: usize = 16;

fn parts(text: &mut String, report: &SizeReport, sure: &str) {
    let parts = &report.estimates.parts;
    if parts.is_empty() {
        return;
    }
    let mut shown = table(&["part of the union", "share", sure]);
    for part in parts.iter().take(PARTS) {
        let letters: Vec<String> = part.members.iter().map(|x| letter(*x)).collect();
        let name = if letters.len() == 1 { format!("only {}", letters[0]) } else { letters.join(" and ") };
        let [value, range] = both(&Some(part.share), percent, percents);
        shown.add_row(vec![name, value, range]);
    }
    let _ = writeln!(text, "\n{shown}");
}

/// What people would wonder at.
fn remarks(text: &mut String, report: &SizeReport) {
    let found = &report.estimates;
    for (x, observed) in report.observed.iter().enumerate() {
        if observed.is_empty() {
            let _ = writeln!(text, "\n{} is empty: no page of it was found.", letter(x));
        } else if observed.samples.is_empty() {
            let _ = writeln!(
                text,
                "\nNo page of {} could be used: its answers failed or were cut, or the words of its pages are not to be had (--texts, --fetch).",
                letter(x)
            );
        } else if found.sizes[x].is_none() {
            let first = found.reference.map(letter).unwrap_or_default();
            let _ = writeln!(
                text,
                "\nThe size of {} against {first} cannot be told: no overlap was seen from both sides, not even by way of others. More samples may find some.",
                letter(x)
            );
        }
        let worth = found.effective_samples[x];
        if worth < 30.0 && !observed.is_whole && !observed.samples.is_empty() {
            let _ = writeln!(
                text,
                "\nThe sample of {} is worth {worth:.0} pages: intervals are rough.",
                letter(x)
            );
        }
    }
    if found.basis == Basis::Counts {
        let _ = writeln!(
            text,
            "\nShares of the union follow from counts, since overlaps do not connect all members."
        );
    }
}

/// What engines went through.
fn efforts(text: &mut String, report: &SizeReport) {
    if !report.kinds.contains(&MemberKind::Engine) {
        return;
    }
    let mut shown =
        table(&["", "requests", "failed", "queries", "empty", "cut", "pages dropped", "checks unknown"]);
    for (x, (observed, kind)) in report.observed.iter().zip(&report.kinds).enumerate() {
        if *kind == MemberKind::Engine {
            let e = observed.effort;
            let numbers = [
                e.requests,
                e.failures,
                e.queries,
                e.empty_queries,
                e.cut_queries,
                e.dropped_pages,
                e.unknown_checks,
            ];
            shown.add_row(std::iter::once(letter(x)).chain(numbers.map(grouped)));
        }
    }
    let _ = writeln!(text, "\n{shown}");
    if let Some(words) = report.lexicon_words {
        let _ = writeln!(text, "Queries were made of {} words.", grouped(words as u64));
    }
}

pub(super) fn searches(report: &SearchesReport, args: &SizeArgs) -> String {
    debug_assert_eq!(args.method, MethodArg::Searches);
    let mut text = String::new();
    for (x, name) in report.names.iter().enumerate() {
        let total = grouped(report.estimates.totals[x]);
        let requests = grouped(report.requests[x]);
        let _ = writeln!(text, "{}  {name}: {total} results, {requests} requests", letter(x));
    }
    let _ = writeln!(
        text,
        "\n{} queries: {} count, {} of them without any result; {} had too many results, {} failed",
        grouped(report.queries),
        grouped(report.used),
        grouped(report.estimates.empty),
        grouped(report.too_many),
        grouped(report.failed)
    );
    let sure = sure(args);
    let mut shown = table(&["", "ratio", &sure, "left out"]);
    for pair in &report.estimates.ratios {
        let name = format!("{} / {}", letter(pair.x), letter(pair.y));
        let rows = [
            ("ratio of sums", &pair.of_sums, 0),
            ("mean of ratios", &pair.mean, pair.without_y),
            ("harmonic mean", &pair.harmonic, pair.without_x),
        ];
        for (kind, estimate, without) in rows {
            let [value, range] = both(estimate, ratio, ratios);
            shown.add_row(vec![format!("{name}, {kind}"), value, range, grouped(without)]);
        }
        for (of, within, estimate) in [(pair.x, pair.y, &pair.overlap[0]), (pair.y, pair.x, &pair.overlap[1])]
        {
            let [value, range] = both(estimate, percent, percents);
            shown.add_row(vec![
                format!("of {} in {}", letter(of), letter(within)),
                value,
                range,
                String::new(),
            ]);
        }
    }
    let _ = writeln!(text, "{shown}\nIt took {}.", seconds(report.seconds));
    biases(&mut text, &report.biases);
    text
}

pub(super) fn walk(
    walked: &Walked,
    params: &WalkParams,
    args: &SizeArgs,
    known: &[Bias],
    took: f64,
) -> String {
    let mut text = String::new();
    let rule = match params.rule {
        Rule::Jumping => "along links, with jumps to pages it knew",
        Rule::Metropolis => "along links in both directions (Metropolis)",
    };
    let _ = writeln!(
        text,
        "Two walks of {} steps {rule} visited {} of {} pages; {} were sampled.",
        grouped(params.steps / 2),
        grouped(walked.visited),
        grouped(walked.pages),
        grouped(walked.sample.len() as u64)
    );
    let near = if walked.distance <= walked.distance_limit { "within" } else { "beyond" };
    let _ = writeln!(
        text,
        "Links pointing at a page: {:.2} in the sample, {:.2} of all. The distributions are {:.3} apart (Kolmogorov and Smirnov), {near} the {:.3} of a uniform sample of this size.",
        walked.mean_in_links[0], walked.mean_in_links[1], walked.distance, walked.distance_limit
    );
    let _ = writeln!(
        text,
        "{} pages have no link pointing at them; a walk along links meets them only where it begins.",
        grouped(walked.unlinked)
    );
    let [a, b] = walked.caught.map(grouped);
    let again = grouped(walked.recaught);
    match walked.size {
        Some(Estimate { value, interval }) => {
            let _ = writeln!(
                text,
                "One walk sampled {a} pages, the other {b}, and {again} are in both: about {} pages can be reached ({}: {} to {}). There are {}.",
                grouped(value.round() as u64),
                sure(args),
                grouped(interval.low.round() as u64),
                grouped(interval.high.round() as u64),
                grouped(walked.pages)
            );
            if !interval.covers(walked.pages as f64) {
                text.push_str("That is outside the interval: the walks were too short, kept to the same pages, or could not reach the others.\n");
            }
        }
        None => {
            let _ = writeln!(
                text,
                "One walk sampled {a} pages, the other {b}, and none is in both: more samples are needed to tell how many pages can be reached."
            );
        }
    }
    let _ = writeln!(text, "It took {}.", seconds(took));
    biases(&mut text, known);
    text
}

/// A large number with as many digits as mean something.
fn about(value: f64) -> String {
    grouped(value.max(0.0).round() as u64)
}

fn abouts(interval: Interval) -> String {
    format!("{} to {}", about(interval.low), about(interval.high))
}

pub(super) fn addresses(
    study: &AddressStudy,
    found: &AddressEstimates,
    args: &SizeArgs,
    known: &[Bias],
) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} of {} addresses were tried; {} had a server, of which {} were crawled.",
        grouped(study.tried),
        grouped(study.space),
        grouped(study.found),
        grouped(study.pages.len() as u64)
    );
    let sure = sure(args);
    let mut shown = table(&["", "estimate", &sure]);
    let [servers, range] = both(&Some(found.servers), about, abouts);
    shown.add_row(vec!["servers".to_owned(), servers, range]);
    if found.mean_pages.is_some() {
        let [mean, range] = both(&found.mean_pages, ratio, ratios);
        shown.add_row(vec!["pages of a server".to_owned(), mean, range]);
        let [pages, range] = both(&found.pages, about, abouts);
        shown.add_row(vec!["pages".to_owned(), pages, range]);
    }
    if let Some(without) = found.pages_without_largest {
        shown.add_row(vec!["pages, without the largest server".to_owned(), about(without), String::new()]);
    }
    let _ = writeln!(text, "{shown}");
    if let Some(tail) = found.tail {
        let _ = writeln!(
            text,
            "The tail of pages per server has the exponent {:.2} (standard error {:.2}, from {} servers with more than {} pages).",
            tail.exponent,
            tail.standard_error,
            grouped(tail.servers as u64),
            grouped(tail.from)
        );
    }
    if let Some(share) = found.largest_share {
        let _ = writeln!(text, "The largest server has {} of the pages seen.", percent(share));
    }
    for warning in &found.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    biases(&mut text, known);
    text
}
