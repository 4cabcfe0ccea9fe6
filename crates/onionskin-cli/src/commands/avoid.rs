//! `avoid`: what the next crawl can skip.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::ValueHint;
use onionskin::avoid::{AuditedEntry, Savings, alternates, audit, read_list, simulate_crawl};
use onionskin::{AvoidParams, AvoidReport, avoid};
use onionskin_mirror::avoid::{
    AuditParams, AvoidEntry, AvoidList, CrawlCounts, Date, Format, Protected, Rendered, SkipRule,
};
use onionskin_mirror::describe::Kind;
use onionskin_store::MemoryBudget;
use onionskin_store::table::document::FetchedAt;

use crate::Exit;
use crate::args::Global;
use crate::output::{bytes, grouped, harmless_json, percent, print, print_as_is, print_tagged, table, tell};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct AvoidArgs {
    #[command(subcommand)]
    pub command: Option<AvoidCommand>,
    /// The folder of the atlas.
    #[arg(value_hint = ValueHint::DirPath, required = true)]
    pub atlas: Option<PathBuf>,
    /// Write files into this folder; made where it is missing.
    #[arg(short, long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// Which files: nutch-fast, nutch-regex, nutch-domaindeny, stormcrawler-fast,
    /// stormcrawler-regex, heritrix, browsertrix, scrapy, prefixes, hosts, urls, csv, json. With -o
    /// all of them, unless told; without -o one, which goes to stdout.
    #[arg(long, value_name = "FORMAT", value_delimiter = ',')]
    pub format: Vec<Format>,
    /// Kinds of copies to skip, as `collections` names them, separated by commas, or `all`
    /// [default: mirrors and aliases; not versioned documentation]
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kind)]
    pub kinds: Vec<KindChoice>,
    /// Leave out copies that have a smaller part of their principal.
    #[arg(long, default_value_t = 0.5, value_name = "SHARE")]
    pub min_coverage: f64,
    /// The largest share of a directory's pages that may be no copies, and are lost by skipping it.
    #[arg(long, default_value_t = 0.1, value_name = "SHARE")]
    pub max_unique: f64,
    /// Rules in all, at most.
    #[arg(long, default_value_t = onionskin_mirror::avoid::MAX_RULES, value_name = "N")]
    pub max_rules: usize,
    /// Collections of fewer than ten pages too.
    #[arg(long)]
    pub noise: bool,
    /// Include copies of collections whose principal was chosen by size, depth or the like: nothing
    /// tells there which copy is the original, and the list may skip it.
    #[arg(long)]
    pub weak: bool,
    /// Never skip anything on this host or its subdomains; @FILE names a file with one host per
    /// line. May be given several times.
    #[arg(long, value_name = "HOST|@FILE")]
    pub protect: Vec<String>,
    /// How many entries to list; 0 for all.
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub list: usize,
    /// Memory for addresses [default: half of what the machine has]
    #[arg(long, value_name = "SIZE", env = "ONIONSKIN_MEMORY")]
    pub memory: Option<MemoryBudget>,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum AvoidCommand {
    /// Replay a crawl against a list: the share of similar pages before and after.
    Simulate {
        /// The list, as avoid.json.
        #[arg(value_hint = ValueHint::FilePath)]
        list: PathBuf,
        /// The atlas of the crawl.
        #[arg(value_hint = ValueHint::DirPath)]
        atlas: PathBuf,
    },
    /// Judge an old list by a new crawl: which entries hold, which changed and must come off, when
    /// to look again. Exit 1 when one must.
    Audit {
        /// The old list, as avoid.json.
        #[arg(value_hint = ValueHint::FilePath)]
        list: PathBuf,
        /// The atlas of the new crawl.
        #[arg(value_hint = ValueHint::DirPath)]
        atlas: PathBuf,
        /// The day of the new crawl, as 2026-11-16 [default: when its last page was fetched, else
        /// today]
        #[arg(long, value_name = "DATE")]
        date: Option<Date>,
        /// Write the list again, without what must come off, and with the day on what holds.
        #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
        /// An entry has changed when more than this share of its pages are copies of nothing.
        #[arg(long, default_value_t = AuditParams::default().max_unique, value_name = "SHARE")]
        max_unique: f64,
    },
    /// Pages that can stand in for one that is gone. Exit 1 when there is none.
    Alternate {
        /// The folder of the atlas.
        #[arg(value_hint = ValueHint::DirPath)]
        atlas: PathBuf,
        /// The address of the page.
        url: String,
    },
}

/// One kind, or all.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KindChoice {
    All,
    One(Kind),
}

fn kind(name: &str) -> Result<KindChoice, String> {
    let spoken = name.trim().replace(['-', '_'], " ").to_lowercase();
    if spoken == "all" {
        return Ok(KindChoice::All);
    }
    let known = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Principal);
    known.clone().find(|kind| kind.as_str() == spoken).map(KindChoice::One).ok_or_else(|| {
        let names: Vec<&str> = known.map(Kind::as_str).collect();
        format!("known are all, {}", names.join(", "))
    })
}

pub(crate) fn run(args: &AvoidArgs, global: &Global) -> anyhow::Result<Exit> {
    match &args.command {
        None => make(args, global),
        Some(AvoidCommand::Simulate { list, atlas }) => simulate(list, atlas, global),
        Some(AvoidCommand::Audit { list, atlas, date, output, max_unique }) => {
            let params = AuditParams { max_unique: *max_unique, ..AuditParams::default() };
            judge(list, atlas, *date, output.as_deref(), &params, global)
        }
        Some(AvoidCommand::Alternate { atlas, url }) => stand_ins(atlas, url, global),
    }
}

fn say(global: &Global, text: &str) {
    if !global.quiet {
        tell(text);
    }
}

fn make(args: &AvoidArgs, global: &Global) -> anyhow::Result<Exit> {
    let mut params = AvoidParams::new(args.atlas.clone().context("say which atlas")?);
    if args.kinds.iter().any(|choice| matches!(choice, KindChoice::All)) {
        params.kinds = Kind::ALL.to_vec();
    } else if !args.kinds.is_empty() {
        let chosen = args.kinds.iter().filter_map(|choice| match choice {
            KindChoice::One(kind) => Some(*kind),
            KindChoice::All => None,
        });
        params.kinds = chosen.collect();
    }
    for (name, share) in [("--min-coverage", args.min_coverage), ("--max-unique", args.max_unique)] {
        if !(0.0..=1.0).contains(&share) {
            bail!("{name} is a share from 0 to 1, not {share}");
        }
    }
    params.min_coverage = args.min_coverage;
    params.limits.max_unique = args.max_unique;
    params.max_rules = args.max_rules;
    params.noise = args.noise;
    params.weak = args.weak;
    params.protect = protected(&args.protect)?;
    params.memory = args.memory.unwrap_or(params.memory);
    let report = avoid(&params)?;
    match (&args.output, args.format.as_slice()) {
        (None, [format]) => {
            let rendered = format.render(&report.list)?;
            tell_left_out(*format, &rendered, global);
            match format {
                Format::Json => print_as_is(&harmless_json(&rendered.text))?,
                // For people; programs get every byte.
                _ if io::stdout().is_terminal() => print(&rendered.text.replace("\r\n", "\n"))?,
                _ => print_as_is(&rendered.text)?,
            }
            return Ok(Exit::Done);
        }
        (None, [_, _, ..]) => bail!("several formats need a folder: say -o FOLDER"),
        (None, []) => {}
        (Some(folder), formats) => write_files(folder, formats, &report.list, global)?,
    }
    if global.json {
        print_tagged("avoid", &report)?;
    } else {
        print(&describe(&report, args))?;
    }
    Ok(Exit::Done)
}

/// Hosts that were given, and those of files: one per line, `#` begins a remark.
fn protected(given: &[String]) -> anyhow::Result<Protected> {
    let mut hosts = Vec::new();
    for given in given {
        match given.strip_prefix('@') {
            None => hosts.push((given.clone(), "--protect".to_owned())),
            Some(file) => {
                let text = std::fs::read_to_string(file).with_context(|| format!("reading {file}"))?;
                for (line, text) in (1..).zip(text.lines()) {
                    let host = text.split('#').next().unwrap_or_default().trim();
                    if !host.is_empty() {
                        hosts.push((host.to_owned(), format!("{file}, line {line}")));
                    }
                }
            }
        }
    }
    for (host, place) in &hosts {
        Protected::new([host]).with_context(|| place.clone())?;
    }
    Ok(Protected::new(hosts.into_iter().map(|(host, _)| host))?)
}

fn tell_left_out(format: Format, rendered: &Rendered, global: &Global) {
    for left_out in &rendered.left_out {
        say(global, &format!("{format}: {} rules left out: {}", grouped(left_out.rules), left_out.why));
    }
}

fn write_files(folder: &Path, formats: &[Format], list: &AvoidList, global: &Global) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let formats = if formats.is_empty() { &Format::ALL } else { formats };
    for format in formats {
        let rendered = format.render(list)?;
        tell_left_out(*format, &rendered, global);
        write_whole(&folder.join(format.file_name()), &rendered.text)?;
    }
    Ok(())
}

/// A crawler that reads the file while it is written must see the old one or the new one.
fn write_whole(path: &Path, text: &str) -> anyhow::Result<()> {
    let beside = path.with_extension("new");
    let written = std::fs::write(&beside, text)
        .with_context(|| format!("writing {}", beside.display()))
        .and_then(|()| std::fs::rename(&beside, path).with_context(|| format!("writing {}", path.display())));
    if written.is_err() {
        // Half a file, or one that cannot go where it belongs, is of no use to anybody.
        let _ = std::fs::remove_file(&beside);
    }
    written
}

/// A dash where there is nothing to have a part of.
fn percent_of(part: u64, all: u64) -> String {
    if all == 0 { "–".to_owned() } else { percent(part as f64 / all as f64) }
}

/// What a list is worth, for people.
pub(crate) fn describe(report: &AvoidReport, args: &AvoidArgs) -> String {
    let mut text = String::new();
    let most = if args.list == 0 { usize::MAX } else { args.list };
    let mut entries = table(&["skip", "kind", "pages", "unique", "rules", "kept instead", "since"]);
    for entry in report.list.entries.iter().take(most) {
        let first = entry.rules.first().map(|rule| rule_words(entry, rule)).unwrap_or_default();
        let skip = match entry.rules.len() {
            0 | 1 => first,
            n => format!("{first} and {} more", n - 1),
        };
        entries.add_row([
            skip,
            entry.kind.clone(),
            grouped(entry.similar + entry.unique),
            grouped(entry.unique),
            grouped(entry.rules.len() as u64),
            entry.principal.clone(),
            entry.principal_evidence.clone().unwrap_or_else(|| "unknown".to_owned()),
        ]);
    }
    if !report.list.entries.is_empty() {
        let _ = writeln!(text, "{entries}");
    }
    let hidden = report.list.entries.len().saturating_sub(most);
    if hidden > 0 {
        let _ = writeln!(text, "{} more entries; --list 0 shows them", grouped(hidden as u64));
    }
    text += &savings(report);
    let share = |counts: &CrawlCounts| {
        (percent_of(counts.similar, counts.pages), percent_of(counts.exact, counts.pages))
    };
    let (before, after) = (share(&report.simulation.before), share(&report.simulation.after));
    let _ = writeln!(
        text,
        "replayed: similar pages {} before, {} after; exact copies {} before, {} after",
        before.0, after.0, before.1, after.1
    );
    if report.simulation.lost > 0 {
        let _ = writeln!(
            text,
            "{} pages under the rules are copies of nothing, and would not be fetched; --max-unique 0 keeps them",
            grouped(report.simulation.lost)
        );
    }
    for (why, n) in &report.left_out {
        let _ = writeln!(text, "not on the list: {} copies: {why}", grouped(*n));
    }
    if report.weak > 0 {
        let _ = writeln!(
            text,
            "not on the list: {} copies of collections where nothing tells which copy is the original; --weak includes them",
            grouped(report.weak)
        );
    }
    if report.protected > 0 {
        let _ = writeln!(text, "not on the list: {} copies on protected hosts", grouped(report.protected));
    }
    if report.uncovered + report.spared > 0 {
        let _ = writeln!(
            text,
            "{} copies have no rule, and {} rules went, since they would have held for a page to be fetched",
            grouped(report.uncovered),
            grouped(report.spared)
        );
    }
    if report.capped.rules > 0 {
        let _ = writeln!(
            text,
            "{} rules of {} entries are over the limit; --max-rules raises it",
            grouped(report.capped.rules),
            grouped(report.capped.entries + report.capped.shortened)
        );
    }
    text
}

fn savings(report: &AvoidReport) -> String {
    let mut levels = table(&["to spare", "pages", "of all", "bytes", "of all"]);
    let skipped = Savings { pages: report.simulation.skipped, bytes: report.simulation.skipped_bytes };
    let rows = [("exact copies", report.exact), ("near copies too", report.near), ("by this list", skipped)];
    for (name, level) in rows {
        levels.add_row([
            name.to_owned(),
            grouped(level.pages),
            percent_of(level.pages, report.all.pages),
            bytes(level.bytes),
            percent_of(level.bytes, report.all.bytes),
        ]);
    }
    format!("{levels}\n")
}

fn rule_words(entry: &AvoidEntry, rule: &SkipRule) -> String {
    match rule {
        SkipRule::Host => entry.host.as_str().to_owned(),
        SkipRule::Prefix(prefix) => format!("{}{}", entry.host.as_str(), prefix.as_str()),
        SkipRule::Exact(path) => format!("{}{}", entry.host.as_str(), path.as_str()),
    }
}

fn simulate(list: &Path, atlas: &Path, global: &Global) -> anyhow::Result<Exit> {
    let list = read_list(list)?;
    let seen = simulate_crawl(&list, atlas)?;
    if global.json {
        print_tagged("avoid_simulate", &seen)?;
        return Ok(Exit::Done);
    }
    let mut rows = table(&["crawl", "pages", "bytes", "similar", "exact copies"]);
    for (name, counts) in [("as it was", &seen.before), ("with the list", &seen.after)] {
        rows.add_row([
            name.to_owned(),
            grouped(counts.pages),
            bytes(counts.bytes),
            percent_of(counts.similar, counts.pages),
            percent_of(counts.exact, counts.pages),
        ]);
    }
    let text = format!(
        "{rows}\n{} pages skipped, {}; {} of them are copies of nothing that is left\n",
        grouped(seen.skipped),
        bytes(seen.skipped_bytes),
        grouped(seen.lost + seen.lost_with_cluster)
    );
    print(&text)?;
    Ok(Exit::Done)
}

fn judge(
    path: &Path,
    atlas: &Path,
    date: Option<Date>,
    output: Option<&Path>,
    params: &AuditParams,
    global: &Global,
) -> anyhow::Result<Exit> {
    let list = read_list(path)?;
    let date = match date {
        Some(date) => date,
        None => crawl_date(atlas)?,
    };
    let audited = audit(&list, atlas, date, params)?;
    if let Some(output) = output {
        let mut next = list.clone();
        for entry in &audited {
            if entry.audited.verdict == avoid::Verdict::Holds {
                next.entries[entry.entry].checked = Some(date.to_string());
            }
        }
        let mut stays = audited.iter().map(|entry| entry.audited.verdict.stays());
        next.entries.retain(|_| stays.next().unwrap_or(true));
        write_whole(output, &next.to_json()?)?;
    }
    if global.json {
        for entry in &audited {
            print_tagged("avoid_audit", entry)?;
        }
    } else {
        print(&describe_audit(&list, &audited))?;
    }
    let all_stay = audited.iter().all(|entry| entry.audited.verdict.stays());
    Ok(if all_stay { Exit::Done } else { Exit::No })
}

/// When the last page of a crawl was fetched, else today.
fn crawl_date(atlas: &Path) -> anyhow::Result<Date> {
    let mut last = None;
    for batch in onionskin_store::Atlas::open(atlas)?.documents()?.select::<(FetchedAt,)>() {
        last = batch?.rows().filter_map(|(fetched_at,)| fetched_at).max().max(last);
    }
    let now = || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| since.as_micros() as i64)
    };
    let days = u32::try_from(last.unwrap_or_else(now).div_euclid(86_400_000_000)).unwrap_or(0);
    Ok(Date::new(1970, 1, 1).context("the first day")?.plus_days(days))
}

fn describe_audit(list: &AvoidList, audited: &[AuditedEntry]) -> String {
    let mut rows = table(&["entry", "verdict", "why", "look again"]);
    for entry in audited {
        let of = &list.entries[entry.entry];
        rows.add_row([
            if of.root.is_empty() { of.host.as_str().to_owned() } else { of.root.clone() },
            entry.audited.verdict.to_string(),
            entry.audited.reason.clone(),
            entry.audited.look_again.to_string(),
        ]);
    }
    let off = audited.iter().filter(|entry| !entry.audited.verdict.stays()).count();
    format!(
        "{rows}\n{} of {} entries must come off the list\n",
        grouped(off as u64),
        grouped(audited.len() as u64)
    )
}

fn stand_ins(atlas: &Path, url: &str, global: &Global) -> anyhow::Result<Exit> {
    let found = alternates(atlas, url)?;
    if global.json {
        for alternate in &found {
            print_tagged("avoid_alternate", alternate)?;
        }
    } else if found.is_empty() {
        say(global, "nothing can stand in for it: no copy is known, and it is in the folder of no mirror");
    } else {
        let mut rows = table(&["address", "why", "resemblance", "collection"]);
        for alternate in &found {
            rows.add_row([
                alternate.url.clone(),
                alternate.why.as_str().to_owned(),
                alternate.resemblance.map(|value| format!("{value:.3}")).unwrap_or_default(),
                alternate.group.map(|group| group.to_string()).unwrap_or_default(),
            ]);
        }
        print(&format!("{rows}\n"))?;
    }
    Ok(if found.is_empty() { Exit::No } else { Exit::Done })
}
