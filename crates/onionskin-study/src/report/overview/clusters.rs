//! Sizes and growth of clusters.

use onionskin_core::format::{grouped, percent};

use crate::figure::{Bars, Figure, LineSeries, Lines, SizeSeries, Sizes};
use crate::findings::{Findings, Level};
use crate::power_law::{PowerLaw, fit};
use crate::replication::{PartCounts, SIZE_CLASSES, class_name, share};
use crate::report::{Cell, Section, Table};

/// Sizes in a table of a page; the figure has them all.
const SIZES_LISTED: usize = 200;

/// The sizes of clusters with the law that fits them.
fn series(name: &str, counts: &PartCounts) -> (SizeSeries, Option<PowerLaw>) {
    let points: Vec<(u64, u64)> = counts.sizes.iter().map(|(size, n)| (*size, *n)).collect();
    let law = fit(&points, 2);
    let line = law.as_ref().map(|law| {
        let clusters = law.tail as f64;
        let at = |size: u64| (size as f64, clusters * law.share(size));
        // No further than where the law still expects a cluster.
        let last = points.last().map_or(2, |(size, _)| *size);
        let end = (0..64)
            .map(|step| last >> step)
            .find(|size| *size <= 3 || at(*size).1 >= 0.5)
            .unwrap_or(3)
            .max(3);
        [at(2), at(end)]
    });
    (SizeSeries { name: name.to_owned(), points, line }, law)
}

pub(super) fn cluster_sizes(findings: &Findings) -> Section {
    let mut section = Section::new("clusters", "Sizes of clusters");
    let mut laws = Table::new(
        "exponents",
        "Exponents of the fitted power laws",
        &["Level", "Part", "Clusters", "Exponent", "Largest deviation"],
    );
    let z = 1.96;
    for level in &findings.levels {
        let counts = &level.counts;
        if counts.whole.clusters == 0 {
            continue;
        }
        let mut all = vec![("complete", &counts.whole)];
        if findings.parts.is_some() {
            all.extend([("connected", &counts.connected), ("disconnected", &counts.disconnected)]);
        }
        let mut drawn = Vec::new();
        let mut law_of_whole = None;
        for (name, part) in all {
            let (points, law) = series(name, part);
            drawn.push(points);
            if let Some(law) = &law {
                let spread = z * law.standard_error;
                laws.row([
                    level.title.clone().into(),
                    name.into(),
                    law.tail.into(),
                    Cell::NumberBetween(law.exponent, law.exponent - spread, law.exponent + spread),
                    Cell::Number(law.ks, 3),
                ]);
            }
            if name == "complete" {
                law_of_whole = law;
            }
        }
        let pairs = counts.whole.sizes.get(&2).copied().unwrap_or(0);
        let small: u64 = counts.whole.sizes.range(..=10).map(|(_, n)| n).sum();
        let mut sentence = format!(
            "At the level “{}” {} of the clusters are pairs and {} have ten documents or fewer; the largest has {}.",
            level.title,
            percent(share(pairs, counts.whole.clusters)),
            percent(share(small, counts.whole.clusters)),
            grouped(counts.whole.sizes.last_key_value().map_or(0, |(size, _)| *size))
        );
        sentence += &match law_of_whole {
            Some(law) => format!(
                " The line is a power law with exponent {:.2}, give or take {:.2}.",
                law.exponent,
                z * law.standard_error
            ),
            None => " There are too few different sizes to fit a law to.".to_owned(),
        };
        let figure = Sizes {
            title: format!("Clusters by size: {}", level.title),
            x_label: "documents in a cluster".to_owned(),
            y_label: "clusters".to_owned(),
            series: drawn,
        };
        section.show(&format!("sizes-{}", level.name), Figure::Sizes(figure), sentence);
        let mut table = Table::new(
            &format!("sizes-{}", level.name),
            &format!("Clusters by size: {}", level.title),
            &["Size", "Clusters", "Connected", "Disconnected"],
        )
        .folded();
        let sizes: std::collections::BTreeSet<u64> = [&counts.whole, &counts.connected, &counts.disconnected]
            .iter()
            .flat_map(|part| part.sizes.keys().copied())
            .collect();
        for size in sizes.iter().take(SIZES_LISTED) {
            let n = |part: &PartCounts| Cell::Count(part.sizes.get(size).copied().unwrap_or(0));
            table.row([(*size).into(), n(&counts.whole), n(&counts.connected), n(&counts.disconnected)]);
        }
        section.table(table);
    }
    if findings.levels.iter().all(|level| level.counts.whole.clusters == 0) {
        section.say("There are no clusters: no document is a copy of another.");
        return section;
    }
    if !laws.rows.is_empty() {
        section.table(laws);
    }
    if let Some(level) = findings.main_level().filter(|level| level.counts.whole.clusters > 0) {
        same_site_or_not(&mut section, level);
        largest(&mut section, level);
    }
    section
}

fn same_site_or_not(section: &mut Section, level: &Level) {
    let classes = &level.counts.classes;
    let used = classes.iter().rposition(|class| class.clusters > 0).map_or(1, |at| at + 1);
    let names: Vec<String> = (0..used).map(|at| class_name(&SIZE_CLASSES, at)).collect();
    let one_site: Vec<f64> =
        classes[..used].iter().map(|class| 100.0 * share(class.one_site, class.clusters)).collect();
    let figure = Bars {
        title: format!("Clusters on one site or several: {}", level.title),
        x_label: "documents in a cluster".to_owned(),
        y_label: "clusters, %".to_owned(),
        groups: names.clone(),
        series: vec![
            ("all on one site".to_owned(), one_site.clone()),
            (
                "on several sites".to_owned(),
                classes[..used]
                    .iter()
                    .zip(&one_site)
                    .map(|(class, n)| if class.clusters > 0 { 100.0 - n } else { 0.0 })
                    .collect(),
            ),
        ],
        stacked: true,
        lying: false,
    };
    let large = classes[..used].last().copied().unwrap_or_default();
    let sentence = format!(
        "Of the clusters of {} documents {} are on one site, of the largest class ({} documents) {}.",
        names[0],
        if classes[0].clusters > 0 {
            percent(share(classes[0].one_site, classes[0].clusters))
        } else {
            "none".to_owned()
        },
        names[used - 1],
        percent(share(large.one_site, large.clusters))
    );
    section.show("one-site", Figure::Bars(figure), sentence);
    let rows = names.iter().zip(classes).map(|(name, class)| {
        [
            name.clone().into(),
            class.clusters.into(),
            class.documents.into(),
            class.one_site.into(),
            Cell::Share(share(class.one_site, class.clusters)),
            class.same_site_duplicates.into(),
            class.cross_site_duplicates.into(),
        ]
    });
    let columns = [
        "Size",
        "Clusters",
        "Documents",
        "On one site",
        "On one site, %",
        "Duplicates on the same site",
        "Duplicates on other sites",
    ];
    section.table(Table::of(
        "one-site",
        &format!("Clusters on one site or several: {}", level.title),
        columns,
        rows,
    ));
}

fn largest(section: &mut Section, level: &Level) {
    let rows = level.counts.largest.iter().zip(&level.largest).map(|(cluster, (url, title))| {
        [
            cluster.documents.into(),
            cluster.sites.into(),
            url.clone().map_or_else(|| Cell::Text(format!("document {}", cluster.original())), Cell::Address),
            title.clone().into(),
        ]
    });
    let columns = ["Documents", "Sites", "Original", "Title"];
    section.table(Table::of(
        "largest-clusters",
        &format!("The largest clusters: {}", level.title),
        columns,
        rows,
    ));
}

pub(super) fn growth(findings: &Findings) -> Section {
    let mut section = Section::new("growth", "Growth by iteration");
    section.say(
        "A search that compares one part of the collection after the other with all of it knows every cluster that has a document in one of the parts so far. Parts are drawn by chance, so the first ones speak for the rest: what is found early tells what there will be in the end.",
    );
    let mut columns = vec![
        "Level",
        "Iterations, %",
        "Clusters found",
        "Duplicates found",
        "Duplicates in the end, estimated",
    ];
    if findings.reference.is_some() {
        columns.push("Estimated by the reference");
    }
    columns.push("Duplicates in the end");
    let mut table = Table::new("estimates", "What the first iterations tell of the end", &columns);
    for (at, level) in findings.levels.iter().enumerate() {
        let growth = &level.counts.growth;
        if level.counts.whole.clusters == 0 {
            continue;
        }
        let curve = growth.curve();
        let of = growth.of();
        for percent in [10, 20, 50, 100] {
            let iterations = (of * percent).div_ceil(100).clamp(1, of);
            let Some(point) = curve.get(iterations as usize - 1) else { continue };
            let share = growth.estimate(iterations).share;
            let mut row: Vec<Cell> = vec![
                level.title.clone().into(),
                Cell::Number(100.0 * f64::from(iterations) / f64::from(of), 0),
                point.clusters.into(),
                point.duplicates.into(),
                Cell::ShareBetween(share.value, share.low, share.high),
            ];
            if let Some((_, reference)) = &findings.reference {
                let guess = growth.estimate_from(reference, iterations);
                row.push(guess.map_or(Cell::None, |guess| Cell::Share(guess.share)));
            }
            row.push(Cell::Share(level.counts.whole.duplicate_share()));
            table.row(row);
        }
        // One figure for the main level and one for the paper's own, or they would all look alike.
        if at != findings.main && level.name != "paragraphs-100" {
            continue;
        }
        let points = |of: fn(&crate::growth::Point) -> u64| -> Vec<(f64, f64)> {
            let begin = [(0.0, 0.0)].into_iter();
            begin.chain(curve.iter().map(|point| (f64::from(point.iteration), of(point) as f64))).collect()
        };
        let estimated: Vec<_> =
            (1..=of).map(|iterations| (iterations, growth.estimate(iterations).duplicates)).collect();
        let figure = Lines {
            title: format!("Growth: {}", level.title),
            x_label: format!("iterations, of {of}"),
            y_label: "documents, clusters".to_owned(),
            series: vec![
                LineSeries {
                    name: "duplicates found".to_owned(),
                    points: points(|point| point.duplicates),
                    band: None,
                    dashed: false,
                },
                LineSeries {
                    name: "clusters found".to_owned(),
                    points: points(|point| point.clusters),
                    band: None,
                    dashed: false,
                },
                LineSeries {
                    name: "duplicates in the end, estimated (95 % interval)".to_owned(),
                    points: estimated.iter().map(|(at, interval)| (f64::from(*at), interval.value)).collect(),
                    band: Some(estimated.iter().map(|(_, interval)| (interval.low, interval.high)).collect()),
                    dashed: true,
                },
            ],
            marks: Vec::new(),
        };
        let half = curve.get((of / 2).max(1) as usize - 1);
        let early = growth.estimate((of / 5).max(1)).share;
        let sentence = format!(
            "At the level “{}” half of the iterations find {} of the duplicates. A fifth of them would have told that {} of the documents are duplicates, give or take {:.1} points; it is {}.",
            level.title,
            percent(share(half.map_or(0, |point| point.duplicates), level.counts.whole.duplicates())),
            percent(early.value),
            100.0 * (early.high - early.low) / 2.0,
            percent(level.counts.whole.duplicate_share())
        );
        section.show(&format!("growth-{}", level.name), Figure::Lines(figure), sentence);
        let mut points = Table::new(
            &format!("growth-{}", level.name),
            &format!("Growth: {}", level.title),
            &["Iteration", "Documents compared", "Clusters", "Duplicates"],
        )
        .folded();
        for point in &curve {
            points.row([
                u64::from(point.iteration).into(),
                point.documents_compared.into(),
                point.clusters.into(),
                point.duplicates.into(),
            ]);
        }
        section.table(points);
    }
    if table.rows.is_empty() {
        section.say("There are no clusters, so nothing grows.");
    } else {
        section.table(table);
        if let Some((name, _)) = &findings.reference {
            section.say(format!(
                "The reference is {name}: what was found here is taken to be the same share of the end as it was there after as much of the iterations."
            ));
        }
    }
    section
}
