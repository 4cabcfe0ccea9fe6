//! A bar, on a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use onionskin::{Event, Progress};

use crate::args::Global;

/// Draws what a stage tells.
pub(crate) struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// Hidden unless stderr is a terminal, and under `--quiet` and `--verbose`. `--json` changes
    /// nothing: it is about stdout.
    pub fn new(global: &Global) -> Bar {
        let shown = std::io::stderr().is_terminal() && !global.quiet && global.verbose == 0;
        let bar = if shown { ProgressBar::new(0) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template(
            "{spinner} {msg}  {bar:28} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left",
        );
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(200));
        Bar { bar }
    }

    /// A bar for pages being written, whose bytes are not known beforehand.
    pub fn pages(global: &Global, pages: u64) -> Bar {
        let bar = Bar::new(global);
        let style = ProgressStyle::with_template(
            "{spinner} {msg}  {bar:28} {human_pos}/{human_len} pages  {per_sec}  {eta} left",
        );
        bar.bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.bar.set_length(pages);
        bar
    }

    /// A bar for work that is told in steps.
    pub fn steps(global: &Global) -> Bar {
        let bar = Bar::new(global);
        bar.bar.set_style(Bar::step_style());
        bar
    }

    fn step_style() -> ProgressStyle {
        let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}");
        style.unwrap_or_else(|_| ProgressStyle::default_spinner())
    }

    /// Shows the bar while the work is done.
    pub fn during<T>(self, work: impl FnOnce(&Bar) -> T) -> T {
        let done = work(&self);
        self.finish();
        done
    }

    pub fn set(&self, position: u64, message: impl Into<String>) {
        self.bar.set_position(position);
        self.bar.set_message(message.into());
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Discovered { sources, bytes } => {
                tracing::info!(sources, bytes, "inputs found");
                self.bar.set_length(bytes);
            }
            Event::Resumed { documents, input_bytes } => {
                tracing::info!(documents, input_bytes, "going on where an earlier run stopped");
                self.bar.set_position(input_bytes);
                self.bar.reset_eta();
            }
            Event::Scanned { documents, input_bytes, bad_records } => {
                // Pipes tell no size, and some compressed inputs are counted as they are decoded.
                if self.bar.length().is_none_or(|length| length < input_bytes) {
                    self.bar.set_length(input_bytes);
                }
                self.bar.set_position(input_bytes);
                let bad = if bad_records > 0 { format!(", {bad_records} bad") } else { String::new() };
                self.bar.set_message(format!("{} documents{bad}", crate::output::grouped(documents)));
            }
            Event::BadRecord { place, reason } => tracing::debug!(place, reason, "bad record"),
            Event::Copied { input_bytes } => {
                self.bar.set_position(input_bytes);
            }
            Event::Step { name } => {
                tracing::info!(step = name);
                // All is read; what is left is told in steps.
                self.bar.set_style(Bar::step_style());
                self.bar.set_message(name);
            }
            _ => {}
        }
    }
}
