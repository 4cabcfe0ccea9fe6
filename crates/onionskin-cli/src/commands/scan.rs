//! `scan`: from a crawl to an atlas.

use std::fmt::Write;

use onionskin::scan::{BadRecord, FieldNotFound, LinkRemedy, RecordField};
use onionskin::{ScanParams, ScanSummary, scan};
use onionskin_core::format::plural;
use onionskin_corpus::Options;
use onionskin_extract::ExtractOptions;
use onionskin_store::{Atlas, MemoryBudget, TableName};

use crate::Exit;
use crate::args::{Global, ReadingArgs, ScanArgs};
use crate::output::{Counts, bytes, grouped, print_summary, seconds, shown, tell};
use crate::progress::Bar;

pub(crate) fn run(args: &ScanArgs, global: &Global) -> anyhow::Result<Exit> {
    let params = params(args);
    if params.is_done()? {
        let atlas = Atlas::open(&params.atlas)?;
        let found = [("documents", documents(&atlas)), ("inputs", atlas.manifest().inputs.len() as u64)];
        let hint = format!("{SAME_INPUTS}; --overwrite scans again");
        super::nothing_to_do(global, "scan", &params.atlas, &found, &hint)?;
        return Ok(answer(&atlas));
    }
    let summary = Bar::new(global).during(|bar| scan(&params, bar))?;
    print_summary(global, "scan", &summary, describe)?;
    Ok(warn(&summary, global))
}

/// Documents of a finished scan.
pub(super) fn documents(atlas: &Atlas) -> u64 {
    super::rows_of(atlas, &TableName::Documents)
}

/// The answer of an earlier scan, again: no if it read not one document.
pub(super) fn answer(atlas: &Atlas) -> Exit {
    if documents(atlas) > 0 {
        return Exit::Done;
    }
    tell(NOTHING_READ);
    Exit::No
}

/// What was compared of the inputs of a finished scan.
pub(super) const SAME_INPUTS: &str = "names, lengths and formats of the inputs are the same as then";

const NOTHING_READ: &str = "warning: not one document could be read";

/// Warns of inputs that gave nothing. An atlas of nothing is hardly what was wanted: then the
/// answer is no.
pub(super) fn warn(summary: &ScanSummary, global: &Global) -> Exit {
    let empty = summary.inputs_without_documents;
    let is_nothing = summary.documents == 0;
    if global.quiet && !is_nothing {
        return Exit::Done;
    }
    let examples = &summary.inputs_without_documents_examples;
    for BadRecord { place, reason } in examples.iter().take(SHOWN) {
        tell(&format!("warning: {}: no document: {}", shown(place), shown(reason)));
    }
    if empty > SHOWN as u64 {
        tell(&format!("warning: {} inputs in all have no document", grouped(empty)));
    }
    if is_nothing {
        tell(NOTHING_READ);
    }
    if examples
        .iter()
        .any(|input| input.reason.starts_with("no field") || input.reason.starts_with("no column"))
    {
        tell("hint: name the fields that hold texts with --text-field, as in --text-field text,body");
    }
    for FieldNotFound { field, names } in &summary.fields_not_found {
        let (what, option) = match field {
            RecordField::Id => ("an id", "--id-field"),
            RecordField::Url => ("a URL", "--url-field"),
            RecordField::Date => ("a date", "--date-field"),
        };
        tell(&format!("warning: no record has {what} in {} ({option})", shown(names)));
    }
    if is_nothing { Exit::No } else { Exit::Done }
}

pub(super) fn params(args: &ScanArgs) -> ScanParams {
    let mut params = ScanParams::new(args.inputs.clone(), args.output.clone());
    params.recipe = args.recipe.clone();
    params.seed = args.seed;
    params.overwrite = args.overwrite;
    params.options = options(&args.reading);
    params.options.task_bytes = args.task_bytes;
    params.commit_bytes = args.commit_bytes;
    params.max_bad_records = args.reading.max_bad_records;
    params.strict = args.reading.strict;
    params.memory = args.resources.memory.unwrap_or_else(MemoryBudget::default_for_machine);
    if let Some(threads) = args.resources.threads {
        params.threads = usize::from(threads);
    }
    params
}

fn options(reading: &ReadingArgs) -> Options {
    Options {
        text_field: reading.text_field.clone(),
        id_field: reading.id_field.clone(),
        url_field: reading.url_field.clone(),
        date_field: reading.date_field.clone(),
        text_is_html: reading.text_is_html,
        text_digests: reading.text_digests,
        format: reading.format,
        max_record_bytes: reading.max_record_bytes.bytes(),
        any_status: reading.any_status,
        hosts: reading.hosts,
        base_url: reading.base_url.clone(),
        follow_links: reading.follow_links,
        extract: ExtractOptions {
            pdf: reading.pdf,
            postscript: reading.postscript,
            pdf_worker: super::pdf_worker(),
            ..ExtractOptions::default()
        },
        ..Options::default()
    }
}

/// Says so if pages have links and none leads to a document, and what may help.
fn describe_lost_links(text: &mut String, summary: &ScanSummary) {
    let links = summary.links_found + summary.links_unresolved;
    if links == 0 || summary.links > 0 {
        return;
    }
    let _ = write!(text, "none of the {} leads to a document", plural(links, "link", "links"));
    if summary.links_unresolved > 0 {
        let _ = write!(text, "; {} are relative to pages without a URL", grouped(summary.links_unresolved));
    }
    text.push('\n');
    for remedy in &summary.link_remedies {
        text.push_str(match remedy {
            LinkRemedy::Hosts => "hint: --hosts if the folders in the folder are named after hosts\n",
            LinkRemedy::BaseUrl => "hint: --base-url URL gives the files the place that they come from\n",
            LinkRemedy::UrlField => "hint: --url-field NAME says in which field records have their URLs\n",
        });
    }
}

/// How many bad records are shown; the manifest has more.
const SHOWN: usize = 10;

/// Names files that were skipped: those that could not be opened first.
fn describe_skipped_files(text: &mut String, summary: &ScanSummary) {
    if summary.unreadable_files > 0 {
        let files = plural(summary.unreadable_files, "unreadable file", "unreadable files");
        let _ = writeln!(text, "{files}; the atlas is made of the others");
    }
    let (unreadable, others): (Vec<_>, Vec<_>) =
        summary.skipped_files.iter().partition(|file| file.reason.starts_with("unreadable file"));
    let files = unreadable.iter().chain(&others);
    for file in files.take(SHOWN) {
        let _ = writeln!(text, "  {}: {}", shown(&file.place), shown(&file.reason));
    }
    if summary.skipped_files.len() > SHOWN {
        let _ = writeln!(text, "  … more are in manifest.json under skipped_files");
    }
}

/// How much could not be read, and the first of it.
fn describe_bad_records(text: &mut String, summary: &ScanSummary) {
    let bad = summary.bad_record_count();
    if bad == 0 {
        return;
    }
    let all = grouped(summary.documents.saturating_add(bad));
    let size = match summary.bad_record_bytes {
        0 => String::new(),
        lost => format!(" ({} of the input)", bytes(lost)),
    };
    let _ = writeln!(text, "{} of {all} records could not be read{size}:", grouped(bad));
    for record in summary.bad_record_examples.iter().take(SHOWN) {
        let _ = writeln!(text, "  {}: {}", shown(&record.place), shown(&record.reason));
    }
    if bad > SHOWN as u64 {
        let _ = writeln!(text, "  … the first 100 are in manifest.json under bad_record_examples");
    }
}

/// The summary for people.
pub(crate) fn describe(summary: &ScanSummary) -> String {
    let mut seen = Counts::new("seen");
    seen.row("documents", summary.documents);
    seen.row("  of them empty", summary.empty_documents);
    if summary.revisits > 0 {
        seen.row("  of them revisits", summary.revisits);
    }
    seen.row("words", summary.tokens);
    seen.row("sites", summary.sites);
    seen.row("links in pages", summary.links_found);
    seen.row("links between documents", summary.links);
    seen.rows("chunks ", &summary.chunks);
    let mut text = format!("{seen}\n");
    describe_lost_links(&mut text, summary);
    if summary.no_text > 0 {
        let records = plural(summary.no_text, "record has", "records have");
        let _ = writeln!(text, "{records} no text: it is null or not there");
    }
    for (reason, count) in &summary.skipped {
        let _ = writeln!(text, "passed over: {} × {}", grouped(*count), shown(reason));
    }
    describe_skipped_files(&mut text, summary);
    describe_bad_records(&mut text, summary);
    let resumed = match summary.resumed_documents {
        0 => String::new(),
        n => format!(" ({} documents were there from an earlier run)", grouped(n)),
    };
    let _ = writeln!(
        text,
        "{} of input, {} of text in {}, {} of processor time, {} of memory at most{resumed}",
        bytes(summary.input_bytes),
        bytes(summary.text_bytes),
        seconds(summary.seconds),
        seconds(summary.cpu_seconds),
        summary.peak_memory.map_or_else(|| "unknown amount".to_owned(), bytes),
    );
    text
}
