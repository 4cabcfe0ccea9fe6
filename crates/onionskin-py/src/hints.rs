//! What to try after an error, with the names of arguments.
//!
//! Libraries know no arguments: the hints in their messages are general. Where an argument helps,
//! the hint here replaces the one of the library.

use std::error::Error;

use onionskin::seen::SeenError;
use onionskin::similar::MembershipError;
use onionskin::{DedupError, ScanError, causes};
use onionskin_corpus::DiscoverError;
use onionskin_similar::SimilarError;
use onionskin_store::{StageName, StagingError};

/// The first hint for an error or for what is inside it.
pub(crate) fn of(error: &(dyn Error + 'static)) -> Option<String> {
    causes(error).into_iter().find_map(|error| of_making(error).or_else(|| of_results(error)))
}

/// Of what makes an atlas.
fn of_making(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(ScanError::Resume(_)) = error.downcast_ref() {
        return said("overwrite=True starts over");
    }
    match error.downcast_ref() {
        // Only a scan can replace what is there.
        Some(StagingError::AlreadyFinished { stage, .. }) if *stage == StageName::Scan => {
            return said("use another folder, or overwrite=True");
        }
        Some(StagingError::NoManifest { .. }) => {
            return said("put manifest.json back from a copy, use another folder, or overwrite=True");
        }
        Some(StagingError::OtherJob { stage, .. }) if *stage == StageName::Scan => {
            return said("run that job again to finish it, or overwrite=True");
        }
        Some(StagingError::State { stage, .. }) if *stage == StageName::Scan => {
            return said("overwrite=True starts over");
        }
        _ => {}
    }
    if let Some(DiscoverError::UnknownFormat { known, .. }) = error.downcast_ref() {
        return said(&format!("say which with format=, if it is one of {known}"));
    }
    match error.downcast_ref()? {
        SimilarError::BelowStored { wanted, .. } => said(&format!("run similar with threshold={wanted}")),
        SimilarError::NoFeatures { .. } => {
            said("scan again with a recipe that has +sketch, or search with exact=True")
        }
        SimilarError::LargeComponent { .. } => said("give more memory=, or use merge=\"strict\""),
        SimilarError::TolerantAnySite => said("merge=\"extended\" and \"strict\" go with any_site=True"),
        _ => None,
    }
}

/// Of what works on what was found.
fn of_results(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(MembershipError::Transitive) = error.downcast_ref() {
        return said(
            "anything that deletes uses centred clusters; run similar with cluster=\"centred\", or use annotate=True",
        );
    }
    match error.downcast_ref() {
        Some(DedupError::Gone { .. }) => return said("base= names the folder that inputs were moved to"),
        Some(DedupError::NotCopied { .. }) => {
            return said("shards= chooses which formats are copied, shards=\"none\" writes only the lists");
        }
        _ => {}
    }
    match error.downcast_ref()? {
        SeenError::Damaged { .. } => {
            said("the program `onionskin seen verify` can repair an index and keeps what is sound")
        }
        _ => None,
    }
}

fn said(words: &str) -> Option<String> {
    Some(words.to_owned())
}
