//! A stage in a thread of its own, while the thread that called it listens: to events, which go to
//! Python, and to Ctrl-C, which stops the stage.
//!
//! Signals reach Python only where the interpreter runs on the main thread, and a stage must not
//! wait for the interpreter. So the caller comes by twenty times a second and the stage never does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, unbounded};
use onionskin::{Event, Progress};
use onionskin_store::cancel::{self, Cancel};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{OnionskinError, raise};

/// How often it is asked whether to stop.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// An event that can leave its thread.
struct Told {
    kind: &'static str,
    numbers: Vec<(&'static str, u64)>,
    words: Vec<(&'static str, String)>,
}

impl Told {
    fn of(event: &Event<'_>) -> Told {
        let (kind, numbers, words) = match *event {
            Event::Discovered { sources, bytes } => {
                ("discovered", vec![("sources", sources as u64), ("bytes", bytes)], vec![])
            }
            Event::Resumed { documents, input_bytes } => {
                ("resumed", vec![("documents", documents), ("input_bytes", input_bytes)], vec![])
            }
            Event::Scanned { documents, input_bytes, bad_records } => {
                let numbers = vec![
                    ("documents", documents),
                    ("input_bytes", input_bytes),
                    ("bad_records", bad_records),
                ];
                ("scanned", numbers, vec![])
            }
            Event::BadRecord { place, reason } => {
                ("bad_record", vec![], vec![("place", place.to_owned()), ("reason", reason.to_owned())])
            }
            Event::Copied { input_bytes } => ("copied", vec![("input_bytes", input_bytes)], vec![]),
            Event::Step { name } => ("step", vec![], vec![("name", name.to_owned())]),
            _ => ("other", vec![], vec![]),
        };
        Told { kind, numbers, words }
    }

    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, number) in &self.numbers {
            dict.set_item(name, number)?;
        }
        for (name, word) in &self.words {
            dict.set_item(name, word)?;
        }
        dict.set_item("type", self.kind)?;
        Ok(dict)
    }
}

struct Teller(Sender<Told>);

impl Progress for Teller {
    fn event(&self, event: Event<'_>) {
        // Nobody listens any more when the caller has gone, which it never does before the stage.
        let _ = self.0.send(Told::of(&event));
    }
}

/// Does a stage without the interpreter lock, and tells `listener` how it goes.
pub(crate) fn stage<T: Send, E: std::error::Error + Send + 'static>(
    py: Python<'_>,
    listener: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&dyn Progress) -> Result<T, E> + Send,
) -> PyResult<T> {
    let cancel = Cancel::default();
    let (sender, receiver) = unbounded();
    std::thread::scope(|scope| {
        let flag = cancel.clone();
        let worker = scope.spawn(move || {
            let teller = Teller(sender);
            catch_unwind(AssertUnwindSafe(|| cancel::with(&flag, || work(&teller))))
        });
        let mut stopped: Option<PyErr> = None;
        loop {
            let told = py.detach(|| receiver.recv_timeout(ASK_EVERY));
            let said = match told {
                Err(RecvTimeoutError::Disconnected) => break,
                Ok(_) if stopped.is_some() => continue,
                Ok(told) => match listener {
                    Some(listener) => told.as_dict(py).and_then(|dict| listener.call1((dict,))).map(|_| ()),
                    None => Ok(()),
                },
                Err(RecvTimeoutError::Timeout) => Ok(()),
            };
            if stopped.is_none()
                && let Err(error) = said.and_then(|()| py.check_signals())
            {
                cancel.cancel();
                stopped = Some(error);
            }
        }
        let result = py.detach(|| worker.join());
        match (stopped, result) {
            (Some(error), _) => Err(error),
            (None, Ok(Ok(Ok(value)))) => Ok(value),
            (None, Ok(Ok(Err(error)))) => Err(raise(&error)),
            (None, _) => {
                Err(OnionskinError::new_err("a stage failed; this is a bug, and what was committed is safe"))
            }
        }
    })
}
