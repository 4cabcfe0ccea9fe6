//! From what is known of a web to a report of it.

use super::{Cell, Document, Headline, Section, Table, bytes, grouped, percent, plural};
use crate::figure::{Bars, Figure, LineSeries, Lines, SizeSeries, Sizes};
use crate::findings::{Collections, Findings, Level, WebParts};
use crate::graph::Part;
use crate::power_law::{PowerLaw, fit};
use crate::replication::{PartCounts, REPLICA_CLASSES, SIZE_CLASSES, class_name, share};

/// The report of one web.
pub fn overview(findings: &Findings) -> Document {
    let mut sections = vec![at_a_glance(findings)];
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
    let mut table = Table::new("levels", "Duplicates at each level of likeness", &columns);
    for level in &findings.levels {
        let whole = &level.counts.whole;
        let (same, cross) = by_site(level);
        table.row([
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
        ]);
    }
    section.table(table);
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
        format!("; the most replicated text stands in {} places.", grouped(largest))
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

fn connected(findings: &Findings, parts: &WebParts) -> Section {
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
    let columns = ["Part", "Documents", "Documents, %", "In clusters", "In clusters, %"];
    let mut table = Table::new("bow-tie", "Parts of the bow tie", &columns);
    for part in Part::ALL {
        table.row([
            part.name().into(),
            count(part).into(),
            Cell::Share(share(count(part), findings.documents)),
            clustered(part).into(),
            Cell::Share(share(clustered(part), count(part))),
        ]);
    }
    section.table(table);
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
    let columns = [
        "Level",
        "Complete",
        "Complete, %",
        "Connected",
        "Connected, %",
        "Disconnected",
        "Disconnected, %",
        "Clusters that fall apart",
    ];
    let mut table =
        Table::new("duplicates-by-part", "Duplicates in the complete web and in its parts", &columns);
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
    let mut table = Table::new("coverage", "What the crawl covers", &columns);
    for level in &findings.levels {
        let counts = &level.counts;
        let whole = &counts.whole;
        table.row([
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
        ]);
    }
    section.table(table);
    section.say("Clusters are cut down to the documents of a part before its duplicates are counted. A cluster falls apart when each part has one document of it. Useful documents are the unique ones and one of each cluster.");
}

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

fn cluster_sizes(findings: &Findings) -> Section {
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

/// Sizes in a table of a page; the figure has them all.
const SIZES_LISTED: usize = 200;

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
    let columns = [
        "Size",
        "Clusters",
        "Documents",
        "On one site",
        "On one site, %",
        "Duplicates on the same site",
        "Duplicates on other sites",
    ];
    let mut table =
        Table::new("one-site", &format!("Clusters on one site or several: {}", level.title), &columns);
    for (name, class) in names.iter().zip(classes) {
        table.row([
            name.clone().into(),
            class.clusters.into(),
            class.documents.into(),
            class.one_site.into(),
            Cell::Share(share(class.one_site, class.clusters)),
            class.same_site_duplicates.into(),
            class.cross_site_duplicates.into(),
        ]);
    }
    section.table(table);
}

fn largest(section: &mut Section, level: &Level) {
    let columns = ["Documents", "Sites", "Original", "Title"];
    let mut table =
        Table::new("largest-clusters", &format!("The largest clusters: {}", level.title), &columns);
    for (cluster, (url, title)) in level.counts.largest.iter().zip(&level.largest) {
        table.row([
            cluster.documents.into(),
            cluster.sites.into(),
            url.clone().map_or_else(|| Cell::Text(format!("document {}", cluster.original())), Cell::Address),
            title.clone().into(),
        ]);
    }
    section.table(table);
}

fn growth(findings: &Findings) -> Section {
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

fn collections(findings: &Findings) -> Section {
    let mut section = Section::new("collections", "Replicated collections");
    let Some(found) = &findings.collections else {
        section.say("Collections of linked pages that stand in several places have not been looked for; `onionskin collections` does that.");
        return section;
    };
    if found.groups + found.noise == 0 {
        section.say("No collection of linked pages stands in more than one place.");
        return section;
    }
    let kinds: Vec<String> = found.kinds.iter().map(|(kind, n)| format!("{kind} {}", grouped(*n))).collect();
    let mut sentence = format!(
        "{} of ten pages and more {} replicated; {} outside the principal copies could be skipped, {}.",
        plural(found.groups, "collection", "collections"),
        if found.groups == 1 { "is" } else { "are" },
        plural(found.duplicate_pages, "page", "pages"),
        bytes(found.duplicate_bytes)
    );
    if !kinds.is_empty() {
        sentence += &format!(" By kind: {}.", kinds.join(", "));
    }
    if found.noise > 0 {
        sentence += &format!(" {} smaller ones are taken for noise.", grouped(found.noise));
    }
    section.show("collections", Figure::Collections(found.points.clone()), sentence);
    let columns =
        ["Collection", "Principal copy", "Kind", "Copies", "Pages", "Sites", "Pages outside the principal"];
    let mut table = Table::new("collections", "The most replicated collections", &columns);
    for row in &found.top {
        table.row([
            row.name.clone().into(),
            row.root.clone().map_or(Cell::None, Cell::Address),
            row.kind.clone().into(),
            row.replicas.into(),
            row.size.into(),
            row.sites.into(),
            row.duplicate_pages.into(),
        ]);
    }
    section.table(table);
    section
}

fn sites(findings: &Findings) -> Section {
    let mut section = Section::new("sites", "Sites by how much of them is copied");
    let Some(level) = findings.main_level() else {
        section.say("No search for copies has been made.");
        return section;
    };
    if findings.sites == 0 {
        section.say("These documents have no addresses, so nothing can be said about sites.");
        return section;
    }
    let names = ["none", "up to 25", "up to 50", "up to 75", "below 100", "all"];
    let figure = Bars {
        title: format!("Sites by the share of their documents that have copies: {}", level.title),
        x_label: "documents of a site that are in clusters, %".to_owned(),
        y_label: "sites".to_owned(),
        groups: names.map(str::to_owned).to_vec(),
        series: vec![("sites".to_owned(), findings.site_shares.map(|n| n as f64).to_vec())],
        stacked: false,
        lying: false,
    };
    let [none, .., all] = findings.site_shares;
    let sentence = match findings.sites {
        1 => format!(
            "There is one site; {} of its documents have a copy.",
            grouped(level.counts.whole.clustered)
        ),
        n => format!(
            "Of {} sites, {} {} no document with a copy; on {} every document has one.",
            grouped(n),
            grouped(none),
            if none == 1 { "has" } else { "have" },
            grouped(all)
        ),
    };
    section.show("sites", Figure::Bars(figure), sentence);
    let columns = ["Share of documents in clusters, %", "Sites"];
    let mut table =
        Table::new("site-shares", "Sites by the share of their documents that have copies", &columns)
            .folded();
    for (name, n) in names.iter().zip(findings.site_shares) {
        table.row([(*name).into(), n.into()]);
    }
    section.table(table);
    if findings.copied_sites.is_empty() {
        return section;
    }
    let columns = [
        "Site",
        "Documents",
        "In clusters",
        "In clusters, %",
        "With copies on other sites",
        "Duplicates",
        "Duplicates, %",
    ];
    let mut table =
        Table::new("sites", &format!("Sites with the most duplicates: {}", level.title), &columns);
    for site in &findings.copied_sites {
        let counts = site.counts;
        let of = |n: u32| Cell::Share(share(u64::from(n), u64::from(counts.documents)));
        table.row([
            site.host.clone().into(),
            u64::from(counts.documents).into(),
            u64::from(counts.clustered).into(),
            of(counts.clustered),
            u64::from(counts.elsewhere).into(),
            u64::from(counts.duplicates).into(),
            of(counts.duplicates),
        ]);
    }
    section.table(table);
    section
}

fn aliases(found: &Collections) -> Section {
    let mut section = Section::new("aliases", "Aliases");
    if found.aliases.is_empty() {
        section.say("No host was seen to be another name of a host.");
    } else {
        section.say(format!(
            "{} other {} of hosts: the same pages stand under both.",
            plural(found.aliases.len() as u64, "host is", "hosts are"),
            if found.aliases.len() == 1 { "name" } else { "names" }
        ));
        let mut table =
            Table::new("aliases", "Hosts that are other names of hosts", &["Alias", "Principal", "Pages"]);
        for (alias, principal, pages) in &found.aliases {
            table.row([alias.clone().into(), principal.clone().into(), (*pages).into()]);
        }
        section.table(table);
    }
    if found.rules.is_empty() {
        section.say("No rewriting of addresses was seen under which pages stay the same.");
    } else {
        let columns = ["Rewriting", "Of", "Host", "Pairs that are copies", "Pairs seen", "From", "To"];
        let mut table =
            Table::new("rewritings", "Rewritings of addresses under which pages stay the same", &columns);
        for rule in &found.rules {
            table.row([
                rule.kind.clone().into(),
                rule.pattern.clone().into(),
                rule.host.clone().map_or_else(|| "everywhere".into(), Cell::Text),
                rule.support.into(),
                rule.checked.into(),
                rule.from.clone().into(),
                rule.to.clone().into(),
            ]);
        }
        section.table(table);
    }
    section
}

fn costs(findings: &Findings) -> Section {
    let mut section = Section::new("costs", "What it cost");
    if findings.costs.is_empty() {
        section.say("What the stages cost was not noted.");
    } else {
        let total: f64 = findings.costs.iter().map(|cost| cost.cpu_seconds).sum();
        section.say(format!("All stages together took {} of processor time.", super::seconds(total)));
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
