//! Errors as exceptions. Mistakes in arguments are `ValueError`; what goes wrong with files and data is an `OnionskinError`.

use onionskin::seen::SeenError;
use onionskin_store::AtlasError;
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
create_exception!(onionskin, AtlasDamaged, OnionskinError, "A folder is no atlas, or a damaged one.");
create_exception!(
    onionskin,
    BusyError,
    OnionskinError,
    "Another process writes there. Trying again later helps."
);

/// A mistake in an argument.
pub(crate) fn value_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(in_python(&error.to_string()))
}

/// What went wrong, by kind.
pub(crate) fn raise(error: &(dyn std::error::Error + 'static)) -> PyErr {
    let mut text = error.to_string();
    let (mut busy, mut atlas, mut input) = (false, false, false);
    let mut source = Some(error);
    while let Some(error) = source {
        let said = error.to_string();
        busy |= matches!(error.downcast_ref(), Some(SeenError::Busy(_)))
            || said.contains("is being written to by another")
            || said.contains("another process");
        atlas |= error.is::<AtlasError>() || error.is::<onionskin_store::TableError>();
        input |= error.is::<onionskin_corpus::DiscoverError>() || error.is::<onionskin_corpus::ResumeError>();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        source = error.source();
    }
    let text = in_python(&text);
    let hint = text.split_once("\nhint: ").map(|(_, hint)| hint.to_owned());
    let raised = match (busy, atlas, input) {
        (true, ..) => BusyError::new_err(text),
        (_, true, _) => AtlasDamaged::new_err(text),
        (_, _, true) => InputError::new_err(text),
        _ => OnionskinError::new_err(text),
    };
    Python::attach(|py| {
        // An exception without its hint is better than another exception.
        let _ = raised.value(py).setattr("hint", hint);
    });
    raised
}

/// The same for a boxed or plain error.
pub(crate) fn failed<E: std::error::Error + 'static>(error: E) -> PyErr {
    raise(&error)
}

/// Hints speak of flags; here they are keyword arguments.
fn in_python(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("--") {
        let end = after.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(after.len());
        let (flag, tail) = after.split_at(end);
        let begins = before.is_empty() || before.ends_with([' ', '`', '(', '\n']);
        out.push_str(before);
        match flag {
            "" => out.push_str("--"),
            _ if !begins => {
                out.push_str("--");
                out.push_str(flag);
            }
            "overwrite" | "exact" | "annotate" | "noise" => {
                out.push_str(flag);
                out.push_str("=True");
            }
            _ => {
                out.push_str(&flag.replace('-', "_"));
                out.push('=');
            }
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}
