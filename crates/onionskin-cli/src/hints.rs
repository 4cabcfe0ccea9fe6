//! What to try after an error, in the words of the command line.
//!
//! Libraries know no flags: the hints in their messages are general. Where a flag helps, the hint
//! here replaces the one of the library.

use std::error::Error;

use onionskin::dedup::DedupError;
use onionskin::seen::SeenError;
use onionskin::similar::MembershipError;
use onionskin::size::{Remedy, SizeError};
use onionskin::{ScanError, causes};
use onionskin_core::format::shown;
use onionskin_corpus::DiscoverError;
use onionskin_similar::SimilarError;
use onionskin_store::{AtlasError, StageName, StagingError, TableError, TableName};

/// Between a message and its hint.
const MARK: &str = "\nhint: ";

/// What happened, each cause once, and a line with what to try where that is known.
pub(crate) fn message(error: &anyhow::Error) -> String {
    let mut said = String::new();
    let mut hints = Vec::new();
    for cause in error.chain() {
        let text = cause.to_string();
        let (text, hint) = text.split_once(MARK).map_or((text.as_str(), None), |(a, b)| (a, Some(b)));
        // Names of files are in them, and quotations of what was read.
        let text = &*shown(text);
        // Wrappers repeat the text of what is inside.
        if !said.contains(text) {
            said = if said.is_empty() { text.to_owned() } else { format!("{said}: {text}") };
        }
        hints.extend(hint.map(|hint| shown(hint).into_owned()));
    }
    let known = error.chain().find_map(hint).or_else(|| hints.into_iter().next());
    known.map_or(said.clone(), |hint| format!("{said}{MARK}{hint}"))
}

/// The first hint for an error or for what is inside it.
fn hint(error: &(dyn Error + 'static)) -> Option<String> {
    #[cfg(feature = "serve")]
    let error = serving::inside(error);
    causes(error).into_iter().find_map(|error| {
        let hint = of_tables(error)
            .or_else(|| of_reading(error))
            .or_else(|| of_searching(error))
            .or_else(|| of_results(error));
        #[cfg(feature = "serve")]
        let hint = hint.or_else(|| serving::hint(error));
        hint
    })
}

/// Of a table that is not what a stage has left.
fn of_tables(error: &(dyn Error + 'static)) -> Option<String> {
    let table = match (error.downcast_ref(), error.downcast_ref()) {
        (Some(TableError::Value { table, .. } | TableError::Damaged { table, .. }), _) => table.clone(),
        (_, Some(AtlasError::Damaged { table, .. })) => table.to_string(),
        _ => return None,
    };
    let stage = TableName::from(table.as_str()).table()?.stage();
    said(&format!(
        "`onionskin verify --deep` names all that is wrong; `onionskin {stage}` makes this table again"
    ))
}

fn of_reading(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(ScanError::Resume(_)) = error.downcast_ref() {
        return said("--overwrite starts over");
    }
    match error.downcast_ref() {
        // Only a scan can replace what is there.
        Some(StagingError::AlreadyFinished { stage, .. }) if *stage == StageName::Scan => {
            return said("use another folder, or --overwrite");
        }
        Some(StagingError::NoManifest { .. }) => {
            return said("put manifest.json back from a copy, use another folder, or --overwrite");
        }
        Some(StagingError::OtherJob { stage, .. }) if *stage == StageName::Scan => {
            return said("run that job again to finish it, or --overwrite");
        }
        Some(StagingError::State { stage, .. }) if *stage == StageName::Scan => {
            return said("--overwrite starts over");
        }
        _ => {}
    }
    match error.downcast_ref()? {
        DiscoverError::UnknownFormat { known, .. } => {
            said(&format!("say which with --format, if it is one of {known}"))
        }
        DiscoverError::RemoteNotBuilt { .. } => said("build with `--features remote`"),
        _ => None,
    }
}

fn of_searching(error: &(dyn Error + 'static)) -> Option<String> {
    match error.downcast_ref()? {
        SimilarError::BelowStored { wanted, .. } => said(&format!("run similar with --threshold {wanted}")),
        SimilarError::NoFeatures { .. } => {
            said("scan again with a recipe that has +sketch, or search with --exact")
        }
        SimilarError::LargeComponent { .. } => said("give more with --memory, or use --merge strict"),
        SimilarError::TolerantAnySite => said("--merge extended or strict go with --any-site"),
        _ => None,
    }
}

/// Of what works on what was found.
fn of_results(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(MembershipError::Transitive) = error.downcast_ref() {
        return said(
            "anything that deletes uses centred clusters; run `onionskin similar` with --cluster centred, or use --annotate",
        );
    }
    match error.downcast_ref() {
        Some(DedupError::Gone { .. }) => return said("--base names the folder that inputs were moved to"),
        Some(DedupError::NotCopied { .. }) => {
            return said("--shards chooses which formats are copied, `--shards none` writes only the lists");
        }
        _ => {}
    }
    match error.downcast_ref() {
        Some(SeenError::Damaged { .. }) => {
            return said("`onionskin seen verify --repair` keeps what is sound");
        }
        Some(SeenError::NoTexts) => {
            return said("name the atlas whose documents were added with --texts ATLAS");
        }
        Some(SeenError::NoSketches) => {
            return said(
                "sketches are kept from the beginning or not at all; make an index with --threshold",
            );
        }
        _ => {}
    }
    match error.downcast_ref()? {
        SizeError::NoAddresses { .. } => said("--by text"),
        SizeError::NoContents { .. } => said("--by url"),
        SizeError::NoWords { .. } => {
            said("give --lexicon, or an atlas with --texts whose inputs are still there")
        }
        SizeError::Incomparable { remedy, .. } => said(match remedy {
            Remedy::SketchesOrText => "scan with a recipe that has +sketch, or use --by text",
            Remedy::TextOrUrl => "indexes of seen documents are compared with --by text or --by url",
            Remedy::Url => "use --by url",
            Remedy::AlikeOrText => "use --by text, or scan both alike",
            Remedy::AlikeOrUrl => "use --by url, or scan both alike",
        }),
        _ => None,
    }
}

fn said(words: &str) -> Option<String> {
    Some(words.to_owned())
}

#[cfg(feature = "serve")]
mod serving {
    use std::error::Error;

    use onionskin::seen::intake::OpenError;
    use onionskin_search::SearchError;
    use onionskin_serve::{RunError, StartError, StateError};

    /// What the errors of a server that does not start have inside.
    pub(super) fn inside<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
        match error.downcast_ref() {
            Some(RunError::State(StateError::Atlas(error))) => error,
            Some(RunError::State(StateError::Seen(StartError::Open(OpenError::Seen(error))))) => error,
            Some(RunError::State(error)) => error,
            _ => error,
        }
    }

    pub(super) fn hint(error: &(dyn Error + 'static)) -> Option<String> {
        match error.downcast_ref() {
            Some(SearchError::Memory { .. }) => return super::said("give more with --memory"),
            Some(SearchError::NotWritten { .. }) => {
                return super::said(
                    "--index puts the full-text index into another folder or on another disk",
                );
            }
            _ => {}
        }
        match error.downcast_ref()? {
            StateError::Memory { needed, .. } => super::said(&format!("give --memory {needed}")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    fn check(error: impl Error + Send + Sync + 'static, wanted: &str) {
        let message = message(&anyhow::Error::new(error));
        assert_eq!(message.matches("hint: ").count(), 1, "{message}");
        assert!(message.ends_with(&format!("\nhint: {wanted}")), "{message}");
    }

    #[test]
    fn general_hints_become_flags() {
        let name = || "x".to_owned();
        let state = StagingError::State { stage: StageName::Scan, reason: name() };
        check(ScanError::from(state), "--overwrite starts over");
        let unknown = DiscoverError::UnknownFormat { input: name(), known: "warc, jsonl".to_owned() };
        let unknown = onionskin::RunError::from(ScanError::from(unknown));
        check(unknown, "say which with --format, if it is one of warc, jsonl");
        let stage = StageName::Scan;
        let finished = StagingError::AlreadyFinished { dir: "atlas".into(), stage, difference: None };
        check(ScanError::from(finished), "use another folder, or --overwrite");
        let below = || SimilarError::BelowStored { stored: 0.9, wanted: 0.8 };
        check(MembershipError::from(below()), "run similar with --threshold 0.8");
        check(
            DedupError::Memberships(Box::new(MembershipError::from(below()))),
            "run similar with --threshold 0.8",
        );
        let missing = SimilarError::NoFeatures { what: name(), recipe: name() };
        check(missing, "scan again with a recipe that has +sketch, or search with --exact");
        let large = SimilarError::LargeComponent { pages: 1, links: 2, mib: 3 };
        check(large, "give more with --memory, or use --merge strict");
        check(SimilarError::TolerantAnySite, "--merge extended or strict go with --any-site");
        check(
            MembershipError::Transitive,
            "anything that deletes uses centred clusters; run `onionskin similar` with --cluster centred, or use --annotate",
        );
        let remote = DiscoverError::RemoteNotBuilt { input: name() };
        check(ScanError::from(remote), "build with `--features remote`");
        check(SizeError::NoAddresses { name: name() }, "--by text");
        check(SizeError::NoContents { name: name() }, "--by url");
        for (remedy, words) in [
            (Remedy::SketchesOrText, "scan with a recipe that has +sketch, or use --by text"),
            (Remedy::TextOrUrl, "indexes of seen documents are compared with --by text or --by url"),
            (Remedy::Url, "use --by url"),
            (Remedy::AlikeOrText, "use --by text, or scan both alike"),
            (Remedy::AlikeOrUrl, "use --by url, or scan both alike"),
        ] {
            let (a, b) = (name(), name());
            check(SizeError::Incomparable { a, b, what: "by text", why: name(), remedy }, words);
        }
        check(
            SizeError::from(SeenError::NoSketches),
            "sketches are kept from the beginning or not at all; make an index with --threshold",
        );
    }

    #[cfg(feature = "serve")]
    #[test]
    fn hints_of_a_server_that_does_not_start() {
        use onionskin_search::SearchError;
        use onionskin_serve::{RunError, StateError};
        let started = |error: StateError| RunError::from(error);
        let memory = onionskin_store::MemoryBudget::from_mib;
        let little = StateError::Memory { needed: memory(96), budget: memory(64) };
        check(started(little), "give --memory 96M");
        let little = SearchError::Memory { what: "this", needed: 2, budget: 1 };
        check(started(little.into()), "give more with --memory");
        let full = || SearchError::NotWritten {
            path: "atlas".into(),
            source: std::io::ErrorKind::StorageFull.into(),
        };
        let hint = "--index puts the full-text index into another folder or on another disk";
        check(started(full().into()), hint);
        check(full(), hint);
    }

    #[test]
    fn hints_of_libraries_stay_where_no_flag_helps() {
        let dir = || "index".into();
        check(SeenError::NotEmpty { dir: dir(), entry: "x".to_owned() }, "name a new folder");
        let stage = StageName::Similar;
        let other = StagingError::OtherJob { dir: dir(), stage, difference: "seed".to_owned() };
        check(other, "run that job again to finish it, or overwrite");
    }

    #[test]
    fn words_from_outside_do_not_steer() {
        let name = "a\u{1b}]0;title\u{7}\u{202e}\nb".to_owned();
        let message = message(&anyhow::Error::new(DiscoverError::NotFound { input: name }));
        assert_eq!(message, "a\\u{1b}]0;title\\u{7}\\u{202e}\\nb: no such file or folder");
    }

    #[test]
    fn a_hint_comes_after_every_cause() {
        let error = Err::<(), _>(SeenError::NoSketches).context("opening").unwrap_err();
        assert_eq!(
            message(&error),
            "opening: the index keeps no sketches, which a threshold is compared with\n\
             hint: sketches are kept from the beginning or not at all; make an index with --threshold"
        );
        assert_eq!(message(&anyhow::anyhow!("plain")), "plain");
    }
}
