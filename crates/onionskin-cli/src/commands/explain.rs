//! `explain`: why two documents are alike.

mod collection;
mod view;

use std::fmt::Write as _;
use std::io::{self, BufWriter, IsTerminal, Write as _};
use std::path::PathBuf;

use anyhow::Context;
use clap::ValueHint;
use onionskin::explain::{
    DocRef, DocumentExplanation, DocumentFacts, DocumentFields, Numbers, Texts, explain_cluster,
    explain_document,
};
use onionskin::{ExplainError, ExplainParams, Explanation, explain};
use onionskin_core::ClusterId;
use onionskin_store::Atlas;
use onionskin_store::table::ClusterRow;
use onionskin_warc::format_date;

use crate::Exit;
use crate::args::Global;
use crate::output::{
    Tagged, bytes, grouped, percent, print, print_as_is, print_tagged, shown, table, tell, write_json,
};
use view::Look;

/// Columns where nobody says how many there are.
const WIDTH: usize = 100;

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// The folder of the atlas.
    #[arg(value_hint = ValueHint::DirPath)]
    pub atlas: PathBuf,
    /// A document: number, URL or id. Alone, it is shown with its cluster; so are `cluster:N` and
    /// `collection:N`.
    pub a: String,
    /// Another document.
    pub b: Option<String>,
    /// Show both texts whole; otherwise long parts are shortened in the middle.
    #[arg(long)]
    pub full: bool,
    /// Words of an equal part that are shown at each of its ends.
    #[arg(long, default_value_t = 12, value_name = "N", conflicts_with = "full")]
    pub context: u16,
    /// Numbers only.
    #[arg(long)]
    pub no_text: bool,
    /// Columns of the output [default: those of the terminal, else 100]
    #[arg(long, value_name = "N")]
    pub width: Option<u16>,
    /// The directory below which inputs with relative names are now [default: the current one]
    #[arg(long, alias = "inputs", value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub base: Option<PathBuf>,
}

pub(crate) fn run(args: &ExplainArgs, global: &Global) -> anyhow::Result<Exit> {
    if let (Some(number), None) = (args.a.strip_prefix("collection:"), &args.b) {
        let number =
            number.parse().with_context(|| format!("{number:?} is not the number of a collection"))?;
        return answered(collection::run(&args.atlas, number, args.full, global));
    }
    let result = match (args.a.strip_prefix("cluster:"), &args.b) {
        (Some(number), None) => {
            let number =
                number.parse().with_context(|| format!("{number:?} is not the number of a cluster"))?;
            cluster(args, number, global)
        }
        (_, Some(b)) => documents(args, b, global),
        (None, None) => document(args, global),
    };
    answered(result)
}

/// Done, or no.
fn answered(result: anyhow::Result<()>) -> anyhow::Result<Exit> {
    match result {
        Err(error) if is_no(&error) => {
            say(&error.to_string());
            Ok(Exit::No)
        }
        result => result.map(|()| Exit::Done),
    }
}

/// Not finding what was asked for is an answer.
fn is_no(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<ExplainError>(),
        Some(
            ExplainError::NotFound { .. }
                | ExplainError::NoCluster { .. }
                | ExplainError::NoCollection { .. }
        )
    )
}

/// One line, whatever names are in it.
fn say(text: &str) {
    tell(&shown(text));
}

fn documents(args: &ExplainArgs, b: &str, global: &Global) -> anyhow::Result<()> {
    let params = ExplainParams {
        atlas: args.atlas.clone(),
        a: args.a.parse()?,
        b: b.parse()?,
        base: args.base.clone(),
        pdf_worker: super::pdf_worker(),
        limits: None,
    };
    let explained = explain(&params)?;
    for (facts, name) in [(&explained.a, &params.a), (&explained.b, &params.b)] {
        note_same_name(facts, name, global);
    }
    if global.json {
        if args.no_text {
            print_tagged("explain", &Numbers::from(&explained))?;
        } else {
            print_tagged("explain", &explained)?;
        }
    } else {
        print(&describe(&explained))?;
    }
    match &explained.texts {
        _ if args.no_text => {}
        Ok(texts) => {
            told_of_changes(&explained, texts);
            if !global.json {
                // With colours of its own; what steers is taken out of the texts.
                print_as_is(&passages(texts, args))?;
            }
        }
        Err(error) => {
            say(&format!("note: the texts cannot be shown: {}", with_causes(error)));
            if args.base.is_none() && !explained.a.source.starts_with('/') {
                say("hint: inputs were given by a relative name; --base says where they are");
            }
        }
    }
    Ok(())
}

/// Others may have the name that a document was called by.
fn note_same_name(facts: &DocumentFacts, name: &DocRef, global: &Global) {
    if facts.same_name > 1 && !global.quiet {
        let n = grouped(facts.same_name);
        say(&format!("note: {n} documents are called {name}; this is the first, doc:{}", facts.doc));
    }
}

/// One document and the members of its cluster.
fn document(args: &ExplainArgs, global: &Global) -> anyhow::Result<()> {
    let atlas = Atlas::open(&args.atlas)?;
    let name: DocRef = args.a.parse()?;
    let DocumentExplanation { document, has_clusters, cluster: row } = explain_document(&atlas, &name)?;
    note_same_name(&document, &name, global);
    if global.json {
        print_tagged("document", &DocumentFields::from(&document))?;
    } else {
        let mut text = String::new();
        describe_document(&mut text, "", &document);
        match row {
            Some(row) => text.push_str(&format!("   cluster  {}\n\n", membership(Some(&row)))),
            None if has_clusters => text.push_str("   cluster  none: no other document is similar\n"),
            None => text.push_str("   cluster  not known: `onionskin similar` finds clusters\n"),
        }
        print(&text)?;
    }
    row.map_or(Ok(()), |row| cluster(args, row.cluster, global))
}

/// An error and what is behind it.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn told_of_changes(explained: &Explanation, texts: &Texts) {
    for (facts, changed) in [&explained.a, &explained.b].into_iter().zip(texts.changed) {
        if changed {
            say(&format!("warning: doc:{} has another text now than when it was scanned", facts.doc));
        }
    }
}

fn clean(text: &str) -> String {
    shown(text).into_owned()
}

/// The numbers, for people.
fn describe(explained: &Explanation) -> String {
    let mut text = String::new();
    for (name, facts) in [("A  ", &explained.a), ("B  ", &explained.b)] {
        describe_document(&mut text, name, facts);
    }
    let mut counts = table(&["chunks", "in A", "in B", "shared", "resemblance", "of A in B", "of B in A"]);
    for overlap in &explained.overlaps {
        counts.add_row([
            format!("{}{}", overlap.chunking, if overlap.from_text { ", counted now" } else { "" }),
            grouped(overlap.size_a),
            grouped(overlap.size_b),
            grouped(overlap.shared),
            format!("{:.4}", overlap.resemblance()),
            percent(overlap.containment_a()),
            percent(overlap.containment_b()),
        ]);
    }
    if explained.overlaps.is_empty() {
        text.push_str("the scan kept no chunks, and there are no texts to count them in\n");
    } else {
        let _ = writeln!(text, "{counts}");
    }
    let mut row = |name: &str, value: String| {
        let _ = writeln!(text, "{name:10} {value}");
    };
    if let Some(sketch) = explained.sketch {
        let (value, error) = (sketch.estimate.value, sketch.estimate.standard_error);
        row("sketch", format!("resemblance {value:.3} ± {error:.3} by {} minima", sketch.length));
    }
    if let Some(features) = explained.features {
        let (equal, filter) = (features.equal, features.filter);
        let candidate = if equal >= filter.r() { "a candidate" } else { "no candidate" };
        row(
            "features",
            format!("{equal} of {} equal, {} needed: {candidate} ({filter})", filter.k(), filter.r()),
        );
    }
    let equal = |equal: Option<bool>, unknown: &str| match equal {
        Some(true) => "equal".to_owned(),
        Some(false) => "different".to_owned(),
        None => unknown.to_owned(),
    };
    row("payload", equal(explained.payload_equal, "not known"));
    row("words", equal(explained.text_equal, "one of the two has none"));
    row("site", site(explained));
    if explained.has_pairs {
        row(
            "pair",
            match &explained.pair {
                Some(pair) => {
                    let shared = grouped(pair.shared);
                    format!("listed by {}: resemblance {:.4}, {shared} shared", pair.method, pair.resemblance)
                }
                None => "not listed".to_owned(),
            },
        );
    }
    if explained.has_clusters {
        let [a, b] = &explained.clusters;
        row("cluster A", membership(a.as_ref()));
        row("cluster B", membership(b.as_ref()));
    }
    text
}

fn describe_document(text: &mut String, name: &str, facts: &DocumentFacts) {
    let address = facts.url.as_deref().or(facts.id.as_deref()).map(clean).unwrap_or_default();
    let _ = writeln!(text, "{name}doc:{}  {address}", facts.doc);
    let mut row = |label: &str, value: &str| {
        let _ = writeln!(text, "   {label:8} {}", clean(value));
    };
    if let Some(title) = &facts.title {
        row("title", title.trim());
    }
    if let Some(id) = facts.id.as_deref().filter(|_| facts.url.is_some()) {
        row("id", id);
    }
    row("place", &facts.place());
    row(
        "size",
        &format!("{} words in {} of {}", grouped(facts.tokens), bytes(facts.bytes), facts.media_type),
    );
    if let Some(fetched) = facts.fetched_at {
        row("fetched", &format_date(fetched));
    }
}

fn site(explained: &Explanation) -> String {
    let host = |facts: &DocumentFacts| facts.host.as_deref().map(clean).unwrap_or_default();
    let (a, b) = (host(&explained.a), host(&explained.b));
    match (explained.same_site, explained.same_domain) {
        (Some(true), _) => format!("the same, {a}"),
        (Some(false), Some(true)) => format!("different, {a} and {b}, of one domain"),
        (Some(false), _) => format!("different, {a} and {b}"),
        (None, _) => "not known".to_owned(),
    }
}

fn membership(row: Option<&ClusterRow>) -> String {
    match row {
        None => "none".to_owned(),
        Some(row) if row.is_centre => format!("{}, its centre", row.cluster),
        Some(row) => {
            format!("{}, {}, {:.4} to the centre", row.cluster, row.kind.as_str(), row.resemblance_to_centre)
        }
    }
}

/// The texts, for people.
fn passages(texts: &Texts, args: &ExplainArgs) -> String {
    let comparison = &texts.comparison;
    let moved = comparison.passages.iter().filter(|passage| passage.moved).count();
    let mut text = format!(
        "\n{} words stand in both, of {} in A and {} in B, in {} of {} words and more{}\n\n",
        grouped(comparison.shared_words() as u64),
        grouped(comparison.words_a as u64),
        grouped(comparison.words_b as u64),
        match comparison.passages.len() {
            1 => "one passage".to_owned(),
            n => format!("{} passages", grouped(n as u64)),
        },
        comparison.shingle,
        match moved {
            0 => String::new(),
            n => format!("; {} in another order (~)", grouped(n as u64)),
        },
    );
    let terminal = || {
        let size = io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
        size.map_or(WIDTH, |(width, _)| usize::from(width.0))
    };
    let look = Look {
        width: args.width.map_or_else(terminal, usize::from),
        context: (!args.full).then_some(usize::from(args.context)),
        colour: io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    };
    text.push_str(&view::side_by_side(comparison, look));
    text
}

fn cluster(args: &ExplainArgs, number: ClusterId, global: &Global) -> anyhow::Result<()> {
    let atlas = Atlas::open(&args.atlas)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut begun = false;
    let stats = explain_cluster::<anyhow::Error>(&atlas, number, &mut |member| {
        if global.json {
            write_json(&mut out, &Tagged { r#type: "member", value: &member })?;
            out.write_all(b"\n")?;
            return Ok(());
        }
        if !std::mem::replace(&mut begun, true) {
            writeln!(out, "{:>10}  {:>6}  {:6}  {:>9}  address", "doc", "to it", "", "words")?;
        }
        let row = member.row;
        let kind = if row.is_centre { "centre" } else { row.kind.as_str() };
        let name = member.url.or(member.id).map(clean).unwrap_or_default();
        let title = member.title.map(|title| format!("  {}", clean(title.trim()))).unwrap_or_default();
        let words = grouped(member.tokens);
        writeln!(
            out,
            "{:>10}  {:.4}  {kind:6}  {words:>9}  {name}{title}",
            row.doc, row.resemblance_to_centre
        )?;
        Ok(())
    })?;
    match stats {
        Some(stats) if global.json => {
            write_json(&mut out, &Tagged { r#type: "cluster", value: &stats })?;
            out.write_all(b"\n")?;
        }
        Some(stats) => writeln!(
            out,
            "cluster {number}: {} documents on {} sites, {} exact copies of the centre, {} on its site, lowest resemblance {:.4}",
            grouped(stats.documents),
            grouped(stats.sites),
            grouped(stats.exact_copies),
            grouped(stats.same_site),
            stats.lowest_resemblance,
        )?,
        None => {}
    }
    out.flush()?;
    Ok(())
}
