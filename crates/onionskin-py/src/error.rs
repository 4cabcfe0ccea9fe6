//! Errors as exceptions. Mistakes in arguments are `ValueError`; what goes wrong with files and
//! data is an `OnionskinError`.

use std::error::Error;

use onionskin::seen::SeenError;
use onionskin::similar::membership::MembershipError;
use onionskin::{AvoidError, DedupError, ExplainError, ReportError, RunError, ScanError};
use onionskin_similar::SimilarError;
use onionskin_store::{StagingError, TableError};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;

create_exception!(
    onionskin,
    OnionskinError,
    PyException,
    "Something went wrong with files or data. `hint` says what can be done about it, where that is known."
);
create_exception!(
    onionskin,
    InputError,
    OnionskinError,
    "The inputs cannot be read, or are not what they were."
);
create_exception!(onionskin, AtlasError, OnionskinError, "A folder is no atlas, or a damaged one.");
create_exception!(
    onionskin,
    BusyError,
    OnionskinError,
    "Another process writes there. Trying again later helps."
);

/// Between a message and its hint.
const HINT: &str = "\nhint: ";

/// A mistake in an argument.
pub(crate) fn value_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// What a caller may want to tell apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Atlas,
    Input,
    Busy,
    Other,
}

/// Errors pass through others unchanged, so that their kind is found by asking each what it holds.
fn cause(error: &(dyn Error + 'static)) -> Cause {
    let of_staging = |error: &StagingError| match error {
        StagingError::Busy { .. } => Cause::Busy,
        StagingError::Atlas(_) | StagingError::Table(_) => Cause::Atlas,
        _ => Cause::Other,
    };
    if let Some(error) = error.downcast_ref::<ScanError>() {
        return match error {
            ScanError::Discover(_) | ScanError::Resume(_) | ScanError::Changed(_) => Cause::Input,
            ScanError::Staging(error) => of_staging(error),
            _ => Cause::Other,
        };
    }
    if let Some(error) = error.downcast_ref::<SimilarError>() {
        return match error {
            SimilarError::Atlas(_) | SimilarError::Table(_) => Cause::Atlas,
            SimilarError::Changed(_) => Cause::Input,
            SimilarError::Staging(error) => of_staging(error),
            _ => Cause::Other,
        };
    }
    match error.downcast_ref::<RunError>() {
        Some(RunError::Scan(error)) => return cause(error),
        Some(RunError::Search(error)) => return cause(error),
        Some(RunError::Report(error)) => return cause(error.as_ref()),
        Some(RunError::Atlas(_)) => return Cause::Atlas,
        _ => {}
    }
    match error.downcast_ref::<ReportError>() {
        Some(ReportError::Atlas(_) | ReportError::Table(_)) => return Cause::Atlas,
        Some(ReportError::Similar(error)) => return cause(error),
        _ => {}
    }
    match error.downcast_ref::<MembershipError>() {
        Some(MembershipError::Atlas(_) | MembershipError::Table(_)) => return Cause::Atlas,
        Some(MembershipError::Similar(error)) => return cause(error.as_ref()),
        _ => {}
    }
    match error.downcast_ref::<DedupError>() {
        Some(DedupError::Atlas(_) | DedupError::Table(_)) => return Cause::Atlas,
        Some(DedupError::Busy { .. }) => return Cause::Busy,
        Some(DedupError::Memberships(error)) => return cause(error.as_ref()),
        _ => {}
    }
    match error.downcast_ref::<AvoidError>() {
        Some(AvoidError::Atlas(_) | AvoidError::Table(_) | AvoidError::Missing { .. }) => {
            return Cause::Atlas;
        }
        Some(AvoidError::Similar(error)) => return cause(error.as_ref()),
        _ => {}
    }
    if let Some(ExplainError::Atlas(_) | ExplainError::Table(_)) = error.downcast_ref::<ExplainError>() {
        return Cause::Atlas;
    }
    if matches!(error.downcast_ref(), Some(SeenError::Busy(_))) {
        return Cause::Busy;
    }
    if error.is::<onionskin_store::AtlasError>() || error.is::<TableError>() {
        return Cause::Atlas;
    }
    Cause::Other
}

/// What went wrong, by kind.
pub(crate) fn raise(error: &(dyn Error + 'static)) -> PyErr {
    let (mut text, mut hint) = split(error);
    let mut source = error.source();
    while let Some(error) = source {
        let (said, advice) = split(error);
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        hint = hint.or(advice);
        source = error.source();
    }
    let hint = crate::hints::of(error).or(hint);
    if let Some(hint) = &hint {
        text = format!("{text}{HINT}{hint}");
    }
    let raised = match cause(error) {
        Cause::Busy => BusyError::new_err(text),
        Cause::Atlas => AtlasError::new_err(text),
        Cause::Input => InputError::new_err(text),
        Cause::Other => OnionskinError::new_err(text),
    };
    Python::attach(|py| {
        // An exception without its hint is better than another exception.
        let _ = raised.value(py).setattr("hint", hint);
    });
    raised
}

/// The message of an error and its hint.
fn split(error: &(dyn Error + 'static)) -> (String, Option<String>) {
    let text = error.to_string();
    match text.split_once(HINT) {
        Some((text, hint)) => (text.to_owned(), Some(hint.to_owned())),
        None => (text, None),
    }
}

/// The same for a boxed or plain error.
pub(crate) fn failed<E: Error + 'static>(error: E) -> PyErr {
    raise(&error)
}
