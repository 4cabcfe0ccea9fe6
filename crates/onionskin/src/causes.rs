//! An error and everything inside it.
//!
//! An error of a stage passes through the errors of its callers unchanged. Such a wrapper has the
//! text and the `source` of what is inside, so that a walk along `source` never meets the inner
//! error itself.

use std::error::Error;

use onionskin_similar::SimilarError;

use crate::seen::AtlasDocumentsError;
use crate::seen::intake::OpenError;
use crate::{AvoidError, DedupError, ReportError, RunError, ScanError, SizeError};
use onionskin_similar::MembershipError;

/// The error, then what is inside it or what caused it, and so on.
///
/// ```
/// use onionskin::ScanError;
/// use onionskin_corpus::DiscoverError;
///
/// let missing = DiscoverError::EmptyFolder { input: "web".to_owned() };
/// let error = onionskin::RunError::from(ScanError::from(missing));
/// let causes = onionskin::causes(&error);
/// assert!(causes[1].is::<ScanError>() && causes[2].is::<DiscoverError>());
/// ```
pub fn causes<'e>(error: &'e (dyn Error + 'static)) -> Vec<&'e (dyn Error + 'static)> {
    let mut found = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        found.push(error);
        next = inside(error).or_else(|| error.source());
    }
    found
}

/// What a wrapper hides from `source`.
fn inside<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    match error.downcast_ref::<RunError>() {
        Some(RunError::Scan(error)) => return Some(error),
        Some(RunError::Search(error)) => return Some(error),
        Some(RunError::Report(error)) => return Some(error.as_ref()),
        _ => {}
    }
    match error.downcast_ref::<ScanError>() {
        Some(ScanError::Discover(error)) => return Some(error),
        Some(ScanError::Staging(error)) => return Some(error.as_ref()),
        _ => {}
    }
    match error.downcast_ref::<SimilarError>() {
        Some(SimilarError::Atlas(error)) => return Some(error.as_ref()),
        Some(SimilarError::Table(error)) => return Some(error.as_ref()),
        Some(SimilarError::Staging(error)) => return Some(error.as_ref()),
        _ => {}
    }
    match error.downcast_ref::<ReportError>() {
        Some(ReportError::Atlas(error)) => return Some(error.as_ref()),
        Some(ReportError::Table(error)) => return Some(error.as_ref()),
        Some(ReportError::Similar(error)) => return Some(error),
        _ => {}
    }
    if let Some(AvoidError::Similar(error)) = error.downcast_ref() {
        return Some(error.as_ref());
    }
    if let Some(MembershipError::Similar(error)) = error.downcast_ref() {
        return Some(error.as_ref());
    }
    if let Some(DedupError::Memberships(error)) = error.downcast_ref() {
        return Some(error.as_ref());
    }
    if let Some(SizeError::Seen(error)) = error.downcast_ref() {
        return Some(error);
    }
    match error.downcast_ref::<OpenError>() {
        Some(OpenError::Seen(error)) => return Some(error),
        Some(OpenError::Atlas(error)) => return Some(error.as_ref()),
        _ => {}
    }
    if let Some(AtlasDocumentsError::Seen(error)) = error.downcast_ref() {
        return Some(error);
    }
    None
}
