//! What links lead to, and what they do not.

use onionskin_core::format::{grouped, percent, plural};

use crate::figure::{Bars, Figure, LineSeries, Lines};
use crate::findings::{Findings, Level, WebParts};
use crate::graph::Part;
use crate::replication::{PartCounts, share};
use crate::report::{Cell, Section, Table};

pub(super) fn connected(findings: &Findings, parts: &WebParts) -> Section {
    let mut section = Section::new("parts", "Connected and disconnected parts");
    let beginning = match parts.seeds {
        None => "in the largest strongly connected component".to_owned(),
        Some(n) => format!("at {}", plural(n, "given page", "given pages")),
    };
    let left = findings.documents - parts.reached.min(findings.documents);
    section.say(format!(
        "A crawl that begins {beginning} and follows links reaches {} of {} documents ({}). These are the connected part; the other {} are the disconnected one.",
        grouped(parts.reached),
        grouped(findings.documents),
        percent(share(parts.reached, findings.documents)),
        grouped(left)
    ));
    let main = findings.main_level();
    let groups: Vec<String> = Part::ALL.iter().map(|part| part.name().to_owned()).collect();
    let count = |part: Part| parts.documents[part as usize];
    let clustered = |part: Part| main.map_or(0, |level| level.counts.by_part[part as usize]).min(count(part));
    let figure = Bars {
        title: "The bow tie".to_owned(),
        x_label: "part of the web".to_owned(),
        y_label: "documents, %".to_owned(),
        groups,
        series: vec![
            (
                "has no copy".to_owned(),
                Part::ALL
                    .iter()
                    .map(|part| 100.0 * share(count(*part) - clustered(*part), findings.documents))
                    .collect(),
            ),
            (
                "is in a cluster".to_owned(),
                Part::ALL.iter().map(|part| 100.0 * share(clustered(*part), findings.documents)).collect(),
            ),
        ],
        stacked: true,
        lying: false,
    };
    let sentence = format!(
        "The core, where everything reaches everything else, has {} of the documents; {} lead to it, {} are led to from it, {} hang on these, and {} have nothing to do with it.",
        percent(share(count(Part::Core), findings.documents)),
        percent(share(count(Part::In), findings.documents)),
        percent(share(count(Part::Out), findings.documents)),
        percent(share(count(Part::Tube) + count(Part::Tendril), findings.documents)),
        percent(share(count(Part::Disconnected), findings.documents))
    );
    section.show("bow-tie", Figure::Bars(figure), sentence);
    let rows = Part::ALL.map(|part| {
        [
            part.name().into(),
            count(part).into(),
            Cell::Share(share(count(part), findings.documents)),
            clustered(part).into(),
            Cell::Share(share(clustered(part), count(part))),
        ]
    });
    let columns = ["Part", "Documents", "Documents, %", "In clusters", "In clusters, %"];
    section.table(Table::of("bow-tie", "Parts of the bow tie", columns, rows));
    section.say(format!(
        "There {}; the largest weakly connected one has {} documents.",
        match parts.strong_components {
            1 => "is one strongly connected component".to_owned(),
            n => format!("are {} strongly connected components", grouped(n)),
        },
        grouped(parts.largest_weak)
    ));
    if !findings.levels.is_empty() {
        by_part(&mut section, findings);
    }
    if parts.by_depth.len() > 1 {
        let mut reached = 0;
        let points: Vec<(f64, f64)> = (0u32..)
            .zip(&parts.by_depth)
            .map(|(depth, n)| {
                reached += n;
                (f64::from(depth), 100.0 * share(reached, findings.documents))
            })
            .collect();
        let figure = Lines {
            title: "Documents reached by links".to_owned(),
            x_label: "links from the beginning".to_owned(),
            y_label: "documents, %".to_owned(),
            series: vec![LineSeries { name: "reached".to_owned(), points, band: None, dashed: false }],
            marks: Vec::new(),
        };
        let depth = parts.by_depth.len() as u64 - 1;
        let sentence = format!("The last documents are reached after {}.", plural(depth, "link", "links"));
        section.show("depth", Figure::Lines(figure), sentence);
        let mut table =
            Table::new("depth", "Documents by links from the beginning", &["Links", "Documents"]).folded();
        for (depth, n) in (0u64..).zip(&parts.by_depth) {
            table.row([depth.into(), (*n).into()]);
        }
        section.table(table);
    }
    section
}

/// Tables 4, 5 and 6 of Pereira et al. 2006.
fn by_part(section: &mut Section, findings: &Findings) {
    let series = |name: &str, of: fn(&Level) -> &PartCounts| {
        let shares = findings.levels.iter().map(|level| 100.0 * of(level).duplicate_share()).collect();
        (name.to_owned(), shares)
    };
    let figure = Bars {
        title: "Duplicates in each part".to_owned(),
        x_label: "level of likeness".to_owned(),
        y_label: "duplicates, % of the documents of the part".to_owned(),
        groups: findings.levels.iter().map(|level| level.title.clone()).collect(),
        series: vec![
            series("complete", |level| &level.counts.whole),
            series("connected", |level| &level.counts.connected),
            series("disconnected", |level| &level.counts.disconnected),
        ],
        stacked: false,
        lying: true,
    };
    if let Some(level) = findings.main_level() {
        let counts = &level.counts;
        let (inside, outside) = (counts.connected.duplicate_share(), counts.disconnected.duplicate_share());
        let comparison = if counts.connected.documents == 0 || counts.disconnected.documents == 0 {
            "One of the parts is empty, so there is nothing to compare.".to_owned()
        } else if counts.whole.clusters == 0 {
            "There are no duplicates in either part.".to_owned()
        } else {
            format!(
                "At the level “{}” {} of the connected part and {} of the disconnected part are duplicates: {}. A crawl by links alone would report {} where the complete web has {}.",
                level.title,
                percent(inside),
                percent(outside),
                match inside.total_cmp(&outside) {
                    std::cmp::Ordering::Less => "they are more common where links do not lead",
                    std::cmp::Ordering::Greater => "they are more common where links lead",
                    std::cmp::Ordering::Equal => "they are equally common in both",
                },
                percent(inside),
                percent(counts.whole.duplicate_share())
            )
        };
        section.show("parts", Figure::Bars(figure), comparison);
    }
    let title = "Duplicates in the complete web and in its parts";
    let mut table = Table::new(
        "duplicates-by-part",
        title,
        &[
            "Level",
            "Complete",
            "Complete, %",
            "Connected",
            "Connected, %",
            "Disconnected",
            "Disconnected, %",
            "Clusters that fall apart",
        ],
    );
    for level in &findings.levels {
        let counts = &level.counts;
        let mut row: Vec<Cell> = vec![level.title.clone().into()];
        for part in [&counts.whole, &counts.connected, &counts.disconnected] {
            row.extend([Cell::Count(part.duplicates()), Cell::Share(part.duplicate_share())]);
        }
        row.push(counts.clusters_lost.into());
        table.row(row);
    }
    section.table(table);
    let rows = findings.levels.iter().map(|level| {
        let counts = &level.counts;
        let whole = &counts.whole;
        [
            level.title.clone().into(),
            whole.clusters.into(),
            counts.clusters_reached.into(),
            Cell::Share(share(counts.clusters_reached, whole.clusters)),
            whole.unique().into(),
            counts.unique_reached().into(),
            Cell::Share(share(counts.unique_reached(), whole.unique())),
            whole.useful().into(),
            counts.useful_reached().into(),
            Cell::Share(share(counts.useful_reached(), whole.useful())),
        ]
    });
    let columns = [
        "Level",
        "Clusters",
        "Clusters reached",
        "Clusters reached, %",
        "Unique",
        "Unique reached",
        "Unique reached, %",
        "Useful",
        "Useful reached",
        "Useful reached, %",
    ];
    section.table(Table::of("coverage", "What the crawl covers", columns, rows));
    section.say("Clusters are cut down to the documents of a part before its duplicates are counted. A cluster falls apart when each part has one document of it. Useful documents are the unique ones and one of each cluster.");
}
