//! `explain ATLAS collection:N`: how the copies of a collection differ, page by page.

use std::fmt::Write;
use std::path::Path;

use onionskin::explain::{ReplicaDifferences, explain_collection};
use onionskin_core::CollectionId;
use onionskin_store::Atlas;
use onionskin_store::table::Newer;

use crate::args::Global;
use crate::output::{grouped, print, print_tagged};

/// Pages of each sort that are listed, unless all are wanted.
const LISTED: usize = 10;

pub(super) fn run(atlas: &Path, number: CollectionId, full: bool, global: &Global) -> anyhow::Result<()> {
    let explained = explain_collection(&Atlas::open(atlas)?, number)?;
    if global.json {
        for replica in &explained.replicas {
            print_tagged("replica", replica)?;
        }
        return Ok(());
    }
    let group = &explained.group;
    let mut text = format!(
        "collection {number}: {}\n{}: {}\n{} copies of {} pages on {} sites\n",
        group.name,
        group.kind,
        group.evidence,
        grouped(group.replicas),
        grouped(group.slots),
        grouped(group.sites)
    );
    if let Some(evidence) = &group.principal_evidence {
        let _ = writeln!(text, "the principal: {evidence}");
    }
    for replica in &explained.replicas {
        describe(&mut text, replica, full);
    }
    print(&text)
}

fn describe(text: &mut String, replica: &ReplicaDifferences, full: bool) {
    let row = &replica.row;
    let root = row.root_url.as_deref().unwrap_or(&row.folder);
    let newer = match row.newer {
        Newer::Principal => "; the principal is newer",
        Newer::Replica => "; it is newer than the principal",
        Newer::Same if !row.is_principal => "; the same version",
        Newer::Same | Newer::Unknown => "",
    };
    let _ = writeln!(
        text,
        "\n{root}\n  {}: {} pages, {:.0} % of the principal{newer}",
        row.kind,
        grouped(row.pages),
        100.0 * row.coverage
    );
    let most = if full { usize::MAX } else { LISTED };
    let mut list = |name: &str, pages: &[String]| {
        if !pages.is_empty() {
            let _ = writeln!(text, "  {name}: {}", grouped(pages.len() as u64));
            pages.iter().take(most).for_each(|page| {
                let _ = writeln!(text, "    {page}");
            });
            if pages.len() > most {
                let _ = writeln!(
                    text,
                    "    and {} more; --full lists them",
                    grouped((pages.len() - most) as u64)
                );
            }
        }
    };
    list("missing here", &replica.missing);
    list("only linked to", &replica.linked);
    let changed: Vec<String> = replica.changed.iter().map(|(_, here)| here.clone()).collect();
    list("changed", &changed);
    list("added", &replica.added);
}
