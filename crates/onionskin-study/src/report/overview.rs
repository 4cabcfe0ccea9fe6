//! From what is known of a web to a report of it.

mod clusters;
mod lists;
mod web;

use onionskin_core::format::{bytes, grouped, percent, plural, seconds};

use self::clusters::{cluster_sizes, growth};
use self::lists::{aliases, collections, sites};
use self::web::connected;
use super::{Cell, Document, Headline, Section, Table};
use crate::figure::{Bars, Figure};
use crate::findings::{Findings, Level};
use crate::replication::{REPLICA_CLASSES, class_name, share};

/// The report of one web.
pub fn overview(findings: &Findings) -> Document {
    let mut sections = vec![at_a_glance(findings)];
    if findings.documents > 0 {
        copies(findings, &mut sections);
    }
    sections.push(costs(findings));
    sections.push(method(findings));
    Document {
        title: format!("Copies in {}", findings.name),
        subtitle: format!(
            "{} on {}, {}",
            plural(findings.documents, "document", "documents"),
            plural(findings.sites, "site", "sites"),
            bytes(findings.bytes)
        ),
        headlines: headlines(findings),
        sections,
        footer: format!("Made by {} from the atlas {}.", findings.tool, findings.name),
    }
}

/// Everything about copies.
fn copies(findings: &Findings, sections: &mut Vec<Section>) {
    if !findings.levels.is_empty() {
        sections.push(replication(findings));
        sections.push(savings(findings));
    }
    if !findings.near.is_empty() {
        sections.push(near_duplicates(findings));
    }
    sections.push(match &findings.parts {
        Some(parts) => connected(findings, parts),
        None => {
            let mut section = Section::new("parts", "Connected and disconnected parts");
            section.say("There are no links between these documents, so nothing can be said about what a crawler would reach.");
            section
        }
    });
    if !findings.levels.is_empty() {
        sections.push(cluster_sizes(findings));
        sections.push(growth(findings));
    }
    sections.push(collections(findings));
    sections.push(sites(findings));
    if let Some(found) = &findings.collections {
        sections.push(aliases(found));
    }
}

fn headlines(findings: &Findings) -> Vec<Headline> {
    let mut out = vec![Headline { value: findings.documents.into(), label: "documents".to_owned() }];
    let mut told: Vec<&Level> = findings.levels.first().into_iter().collect();
    if let Some(main) = findings.main_level().filter(|_| findings.main > 0) {
        told.push(main);
    }
    for level in told {
        let value = Cell::Share(level.counts.whole.duplicate_share());
        out.push(Headline { value, label: format!("are duplicates: {}", level.title) });
    }
    if let Some(level) = findings.main_level() {
        let value = Cell::Bytes(level.counts.duplicate_bytes);
        out.push(Headline { value, label: "in duplicates, that need not be kept".to_owned() });
    }
    if let Some(found) = &findings.collections {
        out.push(Headline { value: found.groups.into(), label: "replicated collections".to_owned() });
    }
    if let Some(parts) = &findings.parts {
        let value = Cell::Share(share(parts.reached, findings.documents));
        out.push(Headline { value, label: "reached by a crawl that follows links".to_owned() });
    }
    out
}

fn at_a_glance(findings: &Findings) -> Section {
    let mut section = Section::new("glance", "At a glance");
    if findings.documents == 0 {
        section.say("The atlas has no documents.");
        return section;
    }
    let empty = findings.documents - findings.texts.min(findings.documents);
    let texts = match (findings.documents, empty) {
        (1, 0) => "The one document has a text.".to_owned(),
        (1, _) => "The one document is empty, and so similar to nothing.".to_owned(),
        (n, 0) => format!("All {} documents have a text.", grouped(n)),
        (n, _) => format!(
            "{} of the {} documents have a text; {} empty and similar to nothing.",
            grouped(findings.texts),
            grouped(n),
            plural(empty, "is", "are")
        ),
    };
    let links = match findings.links {
        0 => String::new(),
        1 => " There is one link between them.".to_owned(),
        n => format!(" There are {} links between them.", grouped(n)),
    };
    section.say(texts + &links);
    if findings.bad_records > 0 {
        section.say(format!(
            "{} of the inputs could not be read and {} left out.",
            plural(findings.bad_records, "record", "records"),
            if findings.bad_records == 1 { "was" } else { "were" }
        ));
    }
    let Some(main) = findings.main_level() else {
        section.say("No search for copies has been made.");
        return section;
    };
    let whole = &main.counts.whole;
    if whole.clusters == 0 {
        section.say(format!("No document is a copy of another at the level “{}”.", main.title));
    } else {
        let (same, cross) = by_site(main);
        section.say(format!(
            "At the level “{}” there are {} with {} in them: {} more than one of each would be, {} of all. {} of these duplicates are on the site of their original, {} on other sites.",
            main.title,
            plural(whole.clusters, "cluster", "clusters"),
            plural(whole.clustered, "document", "documents"),
            grouped(whole.duplicates()),
            percent(whole.duplicate_share()),
            grouped(same),
            grouped(cross)
        ));
    }
    let rows = findings.levels.iter().map(|level| {
        let whole = &level.counts.whole;
        let (same, cross) = by_site(level);
        [
            level.title.clone().into(),
            whole.documents.into(),
            whole.clusters.into(),
            whole.duplicates().into(),
            Cell::Share(whole.duplicate_share()),
            whole.unique().into(),
            same.into(),
            cross.into(),
            Cell::Bytes(level.counts.duplicate_bytes),
            whole.sizes.last_key_value().map(|(size, _)| *size).into(),
        ]
    });
    let columns = [
        "Level",
        "Documents",
        "Clusters",
        "Duplicates",
        "Duplicates, %",
        "Unique",
        "On the same site",
        "On other sites",
        "Bytes in duplicates",
        "Largest cluster",
    ];
    section.table(Table::of("levels", "Duplicates at each level of likeness", columns, rows));
    section.say("A duplicate is a document of a cluster that is not its original, the smallest one. Documents without a text are not counted.");
    section
}

/// Duplicates on the site of their original and on others.
fn by_site(level: &Level) -> (u64, u64) {
    let classes = &level.counts.classes;
    (
        classes.iter().map(|class| class.same_site_duplicates).sum(),
        classes.iter().map(|class| class.cross_site_duplicates).sum(),
    )
}

fn replication(findings: &Findings) -> Section {
    let mut section = Section::new("replication", "How often documents are replicated");
    let names: Vec<String> = (0..REPLICA_CLASSES.len()).map(|at| class_name(&REPLICA_CLASSES, at)).collect();
    let shares = |level: &Level| {
        let whole = &level.counts.whole;
        whole.by_replicas().map(|n| 100.0 * share(n, whole.documents)).to_vec()
    };
    // Classes past the last one that anything is in say nothing.
    let used = findings
        .levels
        .iter()
        .flat_map(|level| level.counts.whole.by_replicas().into_iter().enumerate().filter(|(_, n)| *n > 0))
        .map(|(at, _)| at + 1)
        .max()
        .unwrap_or(1)
        .max(2);
    let figure = Bars {
        title: "Documents by number of replicas".to_owned(),
        x_label: "replicas of a document, itself counted".to_owned(),
        y_label: "documents, %".to_owned(),
        groups: names[..used].to_vec(),
        series: findings
            .levels
            .iter()
            .map(|level| (level.title.clone(), shares(level)[..used].to_vec()))
            .collect(),
        stacked: false,
        lying: false,
    };
    let first = &findings.levels[0];
    let last = findings.levels.iter().max_by_key(|level| level.counts.whole.clustered).unwrap_or(first);
    let copied = |level: &Level| percent(share(level.counts.whole.clustered, level.counts.whole.documents));
    let mut sentence =
        format!("{} of the documents have a copy at the level “{}”", copied(first), first.title);
    if last.name != first.name {
        sentence += &format!(", {} at the level “{}”", copied(last), last.title);
    }
    let largest = last.counts.whole.sizes.last_key_value().map_or(1, |(size, _)| *size);
    sentence += &if largest > 1 {
        format!("; the largest cluster there has {} documents.", grouped(largest))
    } else {
        ".".to_owned()
    };
    section.show("replicas", Figure::Bars(figure), sentence);
    let mut columns = vec!["Replicas"];
    columns.extend(findings.levels.iter().map(|level| level.title.as_str()));
    let mut table = Table::new("replicas", "Documents by number of replicas", &columns).folded();
    for (at, name) in names.iter().enumerate().take(used) {
        let mut row: Vec<Cell> = vec![name.clone().into()];
        row.extend(findings.levels.iter().map(|level| Cell::Count(level.counts.whole.by_replicas()[at])));
        table.row(row);
    }
    section.table(table);
    section
}

fn savings(findings: &Findings) -> Section {
    let mut section = Section::new("savings", "What could be saved");
    let pages = |level: &Level| level.counts.whole.duplicate_share();
    let in_bytes = |level: &Level| share(level.counts.duplicate_bytes, findings.bytes);
    let figure = Bars {
        title: "Savings when one document of each cluster is kept".to_owned(),
        x_label: "level of likeness".to_owned(),
        y_label: "saved, %".to_owned(),
        groups: findings.levels.iter().map(|level| level.title.clone()).collect(),
        series: vec![
            ("documents".to_owned(), findings.levels.iter().map(|level| 100.0 * pages(level)).collect()),
            ("bytes".to_owned(), findings.levels.iter().map(|level| 100.0 * in_bytes(level)).collect()),
        ],
        stacked: false,
        lying: true,
    };
    let best = findings.levels.iter().max_by_key(|level| level.counts.duplicate_bytes);
    let sentence = match best.filter(|level| level.counts.whole.clusters > 0) {
        Some(level) => format!(
            "Whoever keeps one document of each cluster saves {} of the documents and {} of {} at the level “{}”.",
            percent(pages(level)),
            bytes(level.counts.duplicate_bytes),
            bytes(findings.bytes),
            level.title
        ),
        None => "There is nothing to save: no document is a copy of another.".to_owned(),
    };
    section.show("savings", Figure::Bars(figure), sentence);
    let columns = ["Level", "Documents saved", "Documents saved, %", "Bytes saved", "Bytes saved, %"];
    let mut table = Table::new("savings", "Savings at each level", &columns).folded();
    for level in &findings.levels {
        table.row([
            level.title.clone().into(),
            level.counts.whole.duplicates().into(),
            Cell::Share(pages(level)),
            Cell::Bytes(level.counts.duplicate_bytes),
            Cell::Share(in_bytes(level)),
        ]);
    }
    section.table(table);
    section
}

fn near_duplicates(findings: &Findings) -> Section {
    let mut section = Section::new("near", "Near-duplicates by shingle paragraphs");
    let equal = findings.levels.iter().find(|level| level.name == "paragraphs-100");
    let documents = equal.map_or(findings.texts, |level| level.counts.whole.documents);
    let mut rows: Vec<(String, u64)> = Vec::new();
    if let Some(level) = equal {
        rows.push(("100".to_owned(), level.counts.whole.duplicates()));
    }
    rows.extend(
        findings
            .near
            .iter()
            .filter(|(percent, _)| *percent < 100)
            .map(|(percent, n)| (percent.to_string(), *n)),
    );
    let figure = Bars {
        title: "Duplicates and near-duplicates".to_owned(),
        x_label: "identical shingle paragraphs, at least, %".to_owned(),
        y_label: "documents, %".to_owned(),
        groups: rows.iter().map(|(level, _)| level.clone()).collect(),
        series: vec![(
            "documents".to_owned(),
            rows.iter().map(|(_, n)| 100.0 * share(*n, documents)).collect(),
        )],
        stacked: false,
        lying: false,
    };
    let told: Vec<String> =
        rows.iter().map(|(level, n)| format!("{} at {level} %", percent(share(*n, documents)))).collect();
    let sentence = format!(
        "Of {} documents, these are copies of another when so many of their paragraphs are the same: {}.",
        grouped(documents),
        told.join(", ")
    );
    section.show("near", Figure::Bars(figure), sentence);
    let columns = ["Identical paragraphs, at least, %", "Near-duplicates", "Near-duplicates, %"];
    let mut table = Table::new("near", "Near-duplicates at each percentage", &columns);
    for (level, n) in rows {
        table.row([level.into(), n.into(), Cell::Share(share(n, documents))]);
    }
    section.table(table);
    section.say("A paragraph is three sentences. Percentages are of the document that has more of them; whatever is connected by such pairs is one cluster.");
    section
}

fn costs(findings: &Findings) -> Section {
    let mut section = Section::new("costs", "What it cost");
    if findings.costs.is_empty() {
        section.say("What the stages cost was not noted.");
    } else {
        let total: f64 = findings.costs.iter().map(|cost| cost.cpu_seconds).sum();
        section.say(format!("All stages together took {} of processor time.", seconds(total)));
        let columns = [
            "Stage",
            "Of",
            "Time",
            "Processor time",
            "Documents a second of processor time",
            "Memory at most",
            "Remark",
        ];
        let mut table = Table::new("time", "Time by stage", &columns);
        for cost in &findings.costs {
            let rate = if cost.cpu_seconds > 0.0 {
                Cell::Number(findings.documents as f64 / cost.cpu_seconds, 0)
            } else {
                Cell::None
            };
            table.row([
                cost.stage.clone().into(),
                cost.of.clone().into(),
                Cell::Seconds(cost.seconds),
                Cell::Seconds(cost.cpu_seconds),
                rate,
                cost.peak_memory.map_or(Cell::None, Cell::Bytes),
                if cost.resumed {
                    "went on after a stop; the time before is not counted".into()
                } else {
                    Cell::None
                },
            ]);
        }
        section.table(table);
    }
    let mut table = Table::new("space", "Space by table", &["Table", "Rows", "Bytes", "Bytes a document"]);
    for (name, rows, bytes) in &findings.tables {
        table.row([
            name.clone().into(),
            (*rows).into(),
            Cell::Bytes(*bytes),
            if findings.documents > 0 {
                Cell::Number(*bytes as f64 / findings.documents as f64, 1)
            } else {
                Cell::None
            },
        ]);
    }
    section.table(table);
    section
}

fn method(findings: &Findings) -> Section {
    let mut section = Section::new("method", "How this was measured");
    section.say(format!(
        "The recipe of the scan is {}. Every pair behind these numbers was verified on the chunks of its two documents; nothing is a collision of hashes.",
        findings.recipe
    ));
    if let Some(level) = findings.main_level() {
        section.say(format!(
            "Where only one level is told, it is “{}” ({}), that of the last search, which later stages use.",
            level.title, level.name
        ));
    }
    if let Some((sampled, [value, low, high])) = findings.recall {
        section.say(format!(
            "That search finds candidates by features and may miss some. Measured on {} by an exact join, it found {} of the documents that belong together (95 % interval {} to {}).",
            plural(sampled, "document", "documents"),
            percent(value),
            percent(low),
            percent(high)
        ));
    }
    section.say(
        "Levels: the same text is equality of canonical tokens; chunks of lines are those of Shivakumar and Garcia-Molina 1998; paragraphs are the shingle paragraphs of Pereira, Baeza-Yates and Ziviani 2006; resemblance is that of Broder 2000 over sets of shingles. Sites are always told apart, since most near-duplicates on one site are templates. Parts of the web are those of the bow tie of Broder et al. 2000. Exponents are maximum-likelihood estimates for whole numbers from two on, with 95 % intervals.",
    );
    section
}
