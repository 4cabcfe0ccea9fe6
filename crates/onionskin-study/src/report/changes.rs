//! From what is known of two crawls to a report of what has changed between them.

use onionskin_core::format::{grouped, percent, plural};

use super::{Cell, Document, Headline, Section, Table};
use crate::figure::{Bars, Figure};
use crate::replication::{PartCounts, share};

/// Two crawls, compared.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// What the earlier one is called.
    pub earlier: String,
    /// What the later one is called.
    pub later: String,
    /// The program that made the report.
    pub tool: String,
    /// Documents of both.
    pub documents: [u64; 2],
    /// Different addresses in both.
    pub addresses: [u64; 2],
    /// Documents without an address, which cannot be compared one by one.
    pub without_address: [u64; 2],
    /// Addresses in both crawls with the same text.
    pub unchanged: u64,
    /// Addresses in both crawls with another text.
    pub changed: u64,
    /// Addresses of the later crawl that the earlier one did not have.
    pub new: Fate,
    /// Addresses of the earlier crawl that the later one does not have.
    pub gone: Fate,
    /// The level that copies are told at.
    pub level: String,
    /// Addresses in both crawls that are in clusters in both, in the earlier one alone, in the
    /// later one alone.
    pub still_copied: u64,
    /// Copied in the earlier crawl alone.
    pub no_longer_copied: u64,
    /// Copied in the later crawl alone.
    pub newly_copied: u64,
    /// Levels that both have: title and counts of the earlier and the later.
    pub levels: Vec<(String, [PartCounts; 2])>,
    /// Sites with most changes: host; addresses before and after, new, gone.
    pub sites: Vec<SiteChanges>,
    /// Sites of both crawls, of the later alone, of the earlier alone.
    pub sites_both: u64,
    /// Sites of the later crawl alone.
    pub sites_new: u64,
    /// Sites of the earlier crawl alone.
    pub sites_gone: u64,
    /// Copies of collections; `None` unless both crawls were searched.
    pub mirrors: Option<MirrorChanges>,
}

/// What became of addresses that only one crawl has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// Addresses.
    pub addresses: u64,
    /// Those whose text the other crawl has under another address.
    pub text_elsewhere: u64,
    /// Those without a text.
    pub empty: u64,
    /// Those that are in clusters of their own crawl.
    pub copied: u64,
}

/// A site in two crawls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteChanges {
    /// Its host.
    pub host: String,
    /// Addresses in the earlier crawl.
    pub before: u64,
    /// Addresses in the later one.
    pub after: u64,
    /// Only in the later one.
    pub new: u64,
    /// Only in the earlier one.
    pub gone: u64,
}

/// Copies of collections in two crawls, known by the address of their root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirrorChanges {
    /// Copies in both.
    pub still: u64,
    /// Copies in the later one alone.
    pub new: u64,
    /// Copies in the earlier one alone.
    pub gone: u64,
    /// Some of them: what became of it, root, principal, kind, pages.
    pub listed: Vec<(String, String, String, String, u64)>,
}

/// The report of two crawls.
pub fn changes(changes: &Changes) -> Document {
    let Changes { earlier, later, .. } = changes;
    let mut sections = vec![pages(changes), copies(changes)];
    if !changes.sites.is_empty() {
        sections.push(sites(changes));
    }
    sections.push(mirrors(changes));
    let mut method = Section::new("method", "How this was measured");
    method.say(format!(
        "Pages are the same when their addresses are; where an address was fetched several times, the last document counts. Texts are the same when their canonical tokens are. Copies are told at the level “{}”.",
        changes.level
    ));
    for (name, n) in [earlier, later].into_iter().zip(changes.without_address) {
        if n > 0 {
            method.say(format!(
                "{} of {name} have no address and are not compared.",
                plural(n, "document", "documents")
            ));
        }
    }
    sections.push(method);
    let headline = |value: Cell, label: &str| Headline { value, label: label.to_owned() };
    Document {
        title: format!("{later} after {earlier}"),
        subtitle: format!(
            "{} before, {} now",
            plural(changes.documents[0], "document", "documents"),
            plural(changes.documents[1], "document", "documents")
        ),
        headlines: vec![
            headline((changes.unchanged + changes.changed).into(), "pages in both"),
            headline(changes.new.addresses.into(), "new pages"),
            headline(changes.gone.addresses.into(), "pages gone"),
            headline(changes.still_copied.into(), "pages still copied"),
        ],
        sections,
        footer: format!("Made by {} from the atlases {earlier} and {later}.", changes.tool),
    }
}

fn pages(changes: &Changes) -> Section {
    let mut section = Section::new("pages", "What is new, gone and changed");
    let both = changes.unchanged + changes.changed;
    if both + changes.new.addresses + changes.gone.addresses == 0 {
        section.say("Neither crawl has pages with addresses.");
        return section;
    }
    let fresh = |fate: Fate| fate.addresses - fate.text_elsewhere - fate.empty;
    let figure = Bars {
        title: "Pages of the two crawls".to_owned(),
        x_label: "what became of them".to_owned(),
        y_label: "pages".to_owned(),
        groups: ["unchanged", "changed", "new", "gone"].map(str::to_owned).to_vec(),
        series: vec![
            (
                "with a text that only one of the crawls has".to_owned(),
                vec![0.0, changes.changed as f64, fresh(changes.new) as f64, fresh(changes.gone) as f64],
            ),
            (
                "with a text that both have, or none".to_owned(),
                vec![
                    changes.unchanged as f64,
                    0.0,
                    (changes.new.addresses - fresh(changes.new)) as f64,
                    (changes.gone.addresses - fresh(changes.gone)) as f64,
                ],
            ),
        ],
        stacked: true,
        lying: false,
    };
    let sentence = format!(
        "{} in both crawls, {} of them with another text. {} new; {} of these have a text that was there before under another address. {} gone; the texts of {} are still there under another address.",
        plural(both, "page is", "pages are"),
        grouped(changes.changed),
        plural(changes.new.addresses, "page is", "pages are"),
        grouped(changes.new.text_elsewhere),
        plural(changes.gone.addresses, "page is", "pages are"),
        grouped(changes.gone.text_elsewhere)
    );
    section.show("pages", Figure::Bars(figure), sentence);
    let [before, after] = changes.addresses;
    let kept = [("unchanged", changes.unchanged), ("changed", changes.changed)].map(|(name, n)| {
        let [earlier, later] = [before, after].map(|of| Cell::Share(share(n, of)));
        [name.into(), n.into(), earlier, later, Cell::None, Cell::None, Cell::None]
    });
    let fates = [("new", changes.new, [None, Some(after)]), ("gone", changes.gone, [Some(before), None])];
    let fates = fates.map(|(name, fate, of)| {
        let [earlier, later] =
            of.map(|of| of.map_or(Cell::None, |of| Cell::Share(share(fate.addresses, of))));
        [
            name.into(),
            fate.addresses.into(),
            earlier,
            later,
            fate.text_elsewhere.into(),
            fate.empty.into(),
            fate.copied.into(),
        ]
    });
    let columns = [
        "Pages",
        "Number",
        "Of the earlier crawl",
        "Of the later crawl",
        "Text known elsewhere",
        "Without a text",
        "In clusters",
    ];
    section.table(Table::of("pages", "Pages of the two crawls", columns, kept.into_iter().chain(fates)));
    section
}

fn copies(changes: &Changes) -> Section {
    let mut section = Section::new("copies", "What is still copied");
    let before = changes.still_copied + changes.no_longer_copied;
    section.say(format!(
        "Of the pages that both crawls have, {} had copies before, and {} of these still {}; {} had none and {} now.",
        grouped(before),
        grouped(changes.still_copied),
        if changes.still_copied == 1 { "has" } else { "have" },
        grouped(changes.newly_copied),
        if changes.newly_copied == 1 { "has some" } else { "have some" },
    ));
    section.say(format!(
        "{} of the new pages have copies in their crawl; of the pages that are gone, {} had.",
        grouped(changes.new.copied),
        grouped(changes.gone.copied)
    ));
    let mut table =
        Table::new("still-copied", &format!("Pages in both crawls: {}", changes.level), &["Copied", "Pages"]);
    table.row(["in both crawls".into(), changes.still_copied.into()]);
    table.row(["in the earlier crawl only".into(), changes.no_longer_copied.into()]);
    table.row(["in the later crawl only".into(), changes.newly_copied.into()]);
    section.table(table);
    if changes.levels.is_empty() {
        return section;
    }
    let series = |name: &str, at: usize| {
        let shares = changes.levels.iter().map(|(_, counts)| 100.0 * counts[at].duplicate_share()).collect();
        (name.to_owned(), shares)
    };
    let figure = Bars {
        title: "Duplicates in the two crawls".to_owned(),
        x_label: "level of likeness".to_owned(),
        y_label: "duplicates, % of documents".to_owned(),
        groups: changes.levels.iter().map(|(title, _)| title.clone()).collect(),
        series: vec![series(&changes.earlier, 0), series(&changes.later, 1)],
        stacked: false,
        lying: true,
    };
    let told: Vec<String> = changes
        .levels
        .iter()
        .map(|(title, [before, after])| {
            format!(
                "{title}: {} before, {} now",
                percent(before.duplicate_share()),
                percent(after.duplicate_share())
            )
        })
        .collect();
    section.show(
        "levels",
        Figure::Bars(figure),
        format!("Duplicates at each level of likeness. {}.", told.join("; ")),
    );
    let columns = [
        "Level",
        "Documents before",
        "Clusters before",
        "Duplicates before",
        "Duplicates before, %",
        "Documents now",
        "Clusters now",
        "Duplicates now",
        "Duplicates now, %",
    ];
    let mut table = Table::new("levels", "Duplicates in the two crawls", &columns);
    for (title, counts) in &changes.levels {
        let mut row: Vec<Cell> = vec![title.clone().into()];
        for part in counts {
            row.extend([
                Cell::Count(part.documents),
                Cell::Count(part.clusters),
                Cell::Count(part.duplicates()),
                Cell::Share(part.duplicate_share()),
            ]);
        }
        table.row(row);
    }
    section.table(table);
    section
}

fn sites(changes: &Changes) -> Section {
    let mut section = Section::new("sites", "Sites");
    section.say(format!(
        "{} in both crawls, {} in the later one only, {} in the earlier one only.",
        plural(changes.sites_both, "site is", "sites are"),
        grouped(changes.sites_new),
        grouped(changes.sites_gone)
    ));
    let rows = changes.sites.iter().map(|site| {
        [site.host.clone().into(), site.before.into(), site.after.into(), site.new.into(), site.gone.into()]
    });
    let columns = ["Site", "Pages before", "Pages now", "New", "Gone"];
    section.table(Table::of("sites", "Sites with most changes", columns, rows));
    section
}

fn mirrors(changes: &Changes) -> Section {
    let mut section = Section::new("mirrors", "Replicated collections");
    let Some(found) = &changes.mirrors else {
        section.say("Collections were not looked for in both crawls; `onionskin collections` does that.");
        return section;
    };
    section.say(format!(
        "{} of a collection in both crawls; {} new, {} gone.",
        plural(found.still, "copy is", "copies are"),
        plural(found.new, "is", "are"),
        plural(found.gone, "is", "are")
    ));
    if !found.listed.is_empty() {
        let rows = found.listed.iter().map(|(fate, root, principal, kind, pages)| {
            [
                fate.clone().into(),
                Cell::Address(root.clone()),
                Cell::Address(principal.clone()),
                kind.clone().into(),
                (*pages).into(),
            ]
        });
        let columns = ["What became of it", "Root of the copy", "Principal copy", "Kind", "Pages"];
        section.table(Table::of("mirrors", "Copies of collections", columns, rows));
    }
    section
}
