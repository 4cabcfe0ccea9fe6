//! `collections`: replicated collections of linked pages.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::ValueHint;
use onionskin::mirror::{CheckReport, Collection, Trivial, Violation, check_collections};
use onionskin::{CollectionsParams, CollectionsSummary, collections};
use onionskin_mirror::Merge;
use onionskin_store::table::UrlRuleRow;
use onionskin_store::{Atlas, TableName};
use onionskin_study::figure::{CollectionPoint, Figure, Ink};

use super::similar::apply;
use crate::Exit;
use crate::args::{Global, ResourceArgs};
use crate::output::{Counts, bytes, grouped, print, print_tagged, seconds, table};
use crate::progress::Bar;

#[derive(Debug, clap::Args)]
pub(crate) struct CollectionsArgs {
    /// The folder of the atlas.
    #[arg(value_hint = ValueHint::DirPath)]
    pub atlas: PathBuf,
    /// When similar pages grow together: tolerant (most copies have most pages), strict (all copies
    /// have all pages) or extended (copies may link to pages that they do not have).
    #[arg(long, default_value_t = Merge::Tolerant, value_name = "CONDITION")]
    pub merge: Merge,
    /// Let a copy stand on several sites; with strict and extended only.
    #[arg(long)]
    pub any_site: bool,
    /// What makes pages similar: transitive (everything that pairs connect) or clusters (the table
    /// as it is).
    #[arg(long, default_value_t = Trivial::Transitive, value_name = "CLUSTERS")]
    pub trivial: Trivial,
    /// Do not learn which rewritings of addresses lead to the same page.
    #[arg(long)]
    pub no_url_rules: bool,
    /// Prove every collection by the definitions of Cho et al. 2000; exit 1 when one does not hold.
    #[arg(long)]
    pub check: bool,
    /// Do not search; show what an earlier search found.
    #[arg(long, conflicts_with_all = ["merge", "any_site", "trivial", "no_url_rules"])]
    pub show: bool,
    /// Search again, although the atlas has the result of this very search.
    #[arg(long, conflicts_with = "show")]
    pub overwrite: bool,
    /// How many collections to list; 0 for all.
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub list: usize,
    /// List collections of fewer than ten pages too.
    #[arg(long)]
    pub noise: bool,
    /// Draw cardinality against size of every collection into this file, .svg or .png; may be given
    /// twice.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub figure: Vec<PathBuf>,
    #[command(flatten)]
    pub resources: ResourceArgs,
}

pub(crate) fn run(args: &CollectionsArgs, global: &Global) -> anyhow::Result<Exit> {
    if let Some(file) = args.figure.iter().find(|file| !is_picture(file)) {
        bail!("{}: a figure ends in .svg or .png", file.display());
    }
    let mut params = CollectionsParams::new(args.atlas.clone());
    params.merge = args.merge;
    params.single_site = !args.any_site;
    params.trivial = args.trivial;
    params.url_rules = !args.no_url_rules;
    apply(&args.resources, &mut params.memory, &mut params.threads);
    let bar = Bar::steps(global);
    let atlas = Atlas::open(&args.atlas)?;
    let is_there = !args.show && !args.overwrite && params.is_done(&atlas)?;
    if is_there {
        let groups = [("collections", super::rows_of(&atlas, &TableName::CollectionGroups))];
        super::nothing_to_do(global, "collections", &args.atlas, &groups, "--overwrite searches again")?;
    }
    drop(atlas);
    let summary = if args.show || is_there { None } else { Some(collections(&params, &bar)) };
    bar.finish();
    let summary = summary.transpose()?;
    let found = Found::read(&args.atlas)?;
    for file in &args.figure {
        found.draw(file)?;
    }
    let report = if args.check {
        let work = tempfile::tempdir().context("making a folder for temporary files")?;
        Some(check_collections(&args.atlas, params.memory, work.path())?)
    } else {
        None
    };
    if global.json {
        if let Some(summary) = &summary {
            print_tagged("collections", summary)?;
        }
        found.print_json(args)?;
        if let Some(report) = &report {
            print_tagged("check", report)?;
        }
    } else {
        let mut text = found.describe(args);
        if let Some(summary) = &summary {
            text += &describe(summary);
        }
        if let Some(report) = &report {
            text += &describe_check(report);
        }
        print(&text)?;
    }
    Ok(if report.is_some_and(|report| report.violations > 0) { Exit::No } else { Exit::Done })
}

fn is_picture(file: &Path) -> bool {
    let known =
        |extension: &OsStr| extension.eq_ignore_ascii_case("svg") || extension.eq_ignore_ascii_case("png");
    file.extension().is_some_and(known)
}

/// The collections of an atlas.
pub(crate) struct Found {
    /// Those that a crawler can spare most of, first.
    collections: Vec<Collection>,
    rules: Vec<UrlRuleRow>,
}

impl Found {
    pub(crate) fn read(atlas: &Path) -> anyhow::Result<Found> {
        let atlas = Atlas::open(atlas)?;
        if !atlas.has(&TableName::CollectionGroups) {
            bail!("the atlas has no collections\nhint: run onionskin collections first");
        }
        let mut collections: Vec<Collection> = Vec::new();
        for group in atlas.collection_groups()? {
            collections.push(Collection { group: group?, members: Vec::new() });
        }
        for replica in atlas.collections()? {
            let replica = replica?;
            let at = collections.binary_search_by_key(&replica.group, |found| found.group.group);
            let at = at.ok().with_context(|| format!("collections: no group {}", replica.group))?;
            collections[at].members.push(replica);
        }
        collections.sort_by_key(|Collection { group, .. }| {
            (group.is_noise, std::cmp::Reverse(group.duplicate_pages), group.group)
        });
        let rules = if atlas.has(&TableName::UrlRules) {
            atlas.url_rules()?.collect::<Result<_, _>>()?
        } else {
            Vec::new()
        };
        Ok(Found { collections, rules })
    }

    /// The scatter of Cho et al. 2000, figure 12.
    fn draw(&self, file: &Path) -> anyhow::Result<()> {
        let point = |Collection { group, .. }: &Collection| CollectionPoint {
            cardinality: group.replicas,
            size: group.slots,
            name: group.name.clone(),
            kind: group.kind.to_string(),
        };
        let figure = Figure::Collections(self.collections.iter().map(point).collect());
        let is_png = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("png"));
        let bytes = if is_png { figure.png()? } else { figure.svg(Ink::File, "collections").into_bytes() };
        std::fs::write(file, bytes).with_context(|| format!("writing {}", file.display()))
    }

    fn listed(&self, args: &CollectionsArgs) -> impl Iterator<Item = &Collection> {
        let most = if args.list == 0 { usize::MAX } else { args.list };
        self.collections.iter().filter(|found| args.noise || !found.group.is_noise).take(most)
    }

    fn describe(&self, args: &CollectionsArgs) -> String {
        let mut text = String::new();
        let mut listed =
            table(&["collection", "kind", "copies", "sites", "pages", "to spare", "principal copy", "since"]);
        let mut n = 0;
        for Collection { group, members } in self.listed(args) {
            n += 1;
            let principal = members.iter().find(|replica| replica.is_principal);
            listed.add_row([
                group.name.clone(),
                group.kind.to_string(),
                grouped(group.replicas),
                grouped(group.sites),
                grouped(group.slots),
                grouped(group.duplicate_pages),
                principal.and_then(|replica| replica.root_url.clone()).unwrap_or_default(),
                group.principal_evidence.clone().unwrap_or_else(|| "unknown".to_owned()),
            ]);
        }
        if n > 0 {
            let _ = writeln!(text, "{listed}");
        }
        let hidden = self.collections.len() - n;
        if hidden > 0 {
            let noise = self.collections.iter().filter(|found| found.group.is_noise).count();
            let _ = writeln!(
                text,
                "{} more are not listed, {} of them of fewer than ten pages\nhint: --list 0 and --noise show them, --json all that is known",
                grouped(hidden as u64),
                grouped(if args.noise { 0 } else { noise as u64 })
            );
        }
        if !self.rules.is_empty() {
            let mut rules = table(&["rewriting", "of", "host", "copies", "of pairs", "example"]);
            for rule in self.rules.iter().take(10) {
                rules.add_row([
                    rule.kind.clone(),
                    rule.pattern.clone(),
                    rule.host.clone().unwrap_or_else(|| "all".to_owned()),
                    grouped(rule.support),
                    grouped(rule.checked),
                    rule.example_from.clone(),
                ]);
            }
            let _ = writeln!(text, "{rules}");
        }
        text
    }

    fn print_json(&self, args: &CollectionsArgs) -> anyhow::Result<()> {
        for collection in self.listed(args) {
            print_tagged("collection", collection)?;
        }
        for rule in &self.rules {
            print_tagged("url_rule", rule)?;
        }
        Ok(())
    }
}

/// The summary for people.
pub(crate) fn describe(summary: &CollectionsSummary) -> String {
    let counts = &summary.counts;
    let mut found = Counts::new("found");
    found.row("documents", summary.documents);
    found.row("links between them", summary.links);
    found.row("trivial clusters", counts.trivial_clusters);
    found.row("  documents in them", counts.clustered_documents);
    found.row("  pairs of them that are linked", counts.linked_pairs);
    found.row("  pairs that merge", counts.edges);
    found.row("  joined across break points", counts.bridged);
    found.row("collections", counts.groups);
    found.row("  of fewer than ten pages (noise)", counts.noise_groups);
    found.rows("  ", &counts.kinds);
    found.row("replicas", counts.replicas);
    found.row("pages in them", counts.pages);
    found.row("copies that a crawler can spare", counts.duplicate_pages);
    found.row("rewritings of addresses", counts.url_rules);
    let resumed = if summary.resumed { " (went on where an earlier run stopped)" } else { "" };
    format!(
        "{found}\n{} of copies to spare\n{}, {} of processor time, {} of memory at most{resumed}\n",
        bytes(counts.duplicate_bytes),
        seconds(summary.seconds),
        seconds(summary.cpu_seconds),
        summary.peak_memory.map_or_else(|| "unknown amount".to_owned(), bytes),
    )
}

fn describe_check(report: &CheckReport) -> String {
    let mut text = String::from("checked by the definitions:");
    if report.verdicts.is_empty() {
        text += " no collections";
    }
    for (verdict, n) in &report.verdicts {
        let _ = write!(text, " {} {verdict}", grouped(*n));
    }
    let _ = writeln!(text, "; {} violations", grouped(report.violations));
    for Violation { group, problem } in &report.examples {
        let _ = writeln!(text, "  collection {group}: {problem}");
    }
    text
}
