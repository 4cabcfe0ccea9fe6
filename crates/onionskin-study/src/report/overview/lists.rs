//! Collections, sites and aliases.

use onionskin_core::format::{bytes, grouped, plural};

use crate::figure::{Bars, Figure};
use crate::findings::{Collections, Findings};
use crate::replication::share;
use crate::report::{Cell, Section, Table};

pub(super) fn collections(findings: &Findings) -> Section {
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
    let rows = found.top.iter().map(|row| {
        [
            row.name.clone().into(),
            row.root.clone().map_or(Cell::None, Cell::Address),
            row.kind.clone().into(),
            row.replicas.into(),
            row.size.into(),
            row.sites.into(),
            row.duplicate_pages.into(),
        ]
    });
    let columns =
        ["Collection", "Principal copy", "Kind", "Copies", "Pages", "Sites", "Pages outside the principal"];
    section.table(Table::of("collections", "The most replicated collections", columns, rows));
    section
}

pub(super) fn sites(findings: &Findings) -> Section {
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
    let rows = findings.copied_sites.iter().map(|site| {
        let counts = site.counts;
        let of = |n: u32| Cell::Share(share(u64::from(n), u64::from(counts.documents)));
        [
            site.host.clone().into(),
            u64::from(counts.documents).into(),
            u64::from(counts.clustered).into(),
            of(counts.clustered),
            u64::from(counts.elsewhere).into(),
            u64::from(counts.duplicates).into(),
            of(counts.duplicates),
        ]
    });
    let columns = [
        "Site",
        "Documents",
        "In clusters",
        "In clusters, %",
        "With copies on other sites",
        "Duplicates",
        "Duplicates, %",
    ];
    section.table(Table::of(
        "sites",
        &format!("Sites with the most duplicates: {}", level.title),
        columns,
        rows,
    ));
    section
}

pub(super) fn aliases(found: &Collections) -> Section {
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
        let rows = found.rules.iter().map(|rule| {
            [
                rule.kind.clone().into(),
                rule.pattern.clone().into(),
                rule.host.clone().map_or_else(|| "everywhere".into(), Cell::Text),
                rule.support.into(),
                rule.checked.into(),
                rule.from.clone().into(),
                rule.to.clone().into(),
            ]
        });
        let columns = ["Rewriting", "Of", "Host", "Pairs that are copies", "Pairs seen", "From", "To"];
        section.table(Table::of(
            "rewritings",
            "Rewritings of addresses under which pages stay the same",
            columns,
            rows,
        ));
    }
    section
}
