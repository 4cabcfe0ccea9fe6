//! A bar, on a terminal.

use std::cell::Cell;
use std::fmt::Write;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use onionskin::{Event, Progress};

use crate::args::Global;

/// Work that is known by its bytes.
const BYTES: &str = "{spinner} {msg}  {wide_bar} {percent:>3} %  {decimal_bytes_per_sec}{left}";

/// Bytes of which nobody knows how many there are: those of a pipe.
const STREAM: &str = "{spinner} {msg}  {decimal_bytes} read  {decimal_bytes_per_sec}";

/// Work whose end is not known.
const STEPS: &str = "{spinner} {msg}  {elapsed}";

const PAGES: &str = "{spinner} {msg}  {wide_bar} {human_pos} of {human_len} pages{left}";

/// The time that is left is not shown before there is something to estimate it by.
const LEAST_ELAPSED: Duration = Duration::from_secs(2);

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.with_key("left", |state: &ProgressState, line: &mut dyn Write| {
        let known = state.elapsed() >= LEAST_ELAPSED && state.pos() > 0 && state.len() > Some(state.pos());
        let left = state.eta();
        if known && left >= Duration::from_secs(1) {
            // A terminal that takes no more is not worth an error.
            let _ = write!(line, "  {:#} left", HumanDuration(left));
        }
    })
}

/// Draws what a stage tells.
pub(crate) struct Bar {
    bar: ProgressBar,
    drawn: Cell<Drawn>,
    /// Bytes that are to be read; 0 while that is not known.
    bytes: Cell<u64>,
}

/// What a bar shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Drawn {
    Steps,
    Stream,
    Bytes,
    Pages,
}

impl Drawn {
    fn template(self) -> &'static str {
        match self {
            Drawn::Steps => STEPS,
            Drawn::Stream => STREAM,
            Drawn::Bytes => BYTES,
            Drawn::Pages => PAGES,
        }
    }
}

impl Bar {
    /// For a stage that begins with looking for its inputs.
    pub fn new(global: &Global) -> Bar {
        let bar = Bar::steps(global);
        bar.bar.set_message("finding inputs");
        bar
    }

    /// Hidden unless stderr is a terminal, and under `--quiet` and `--verbose`. `--json` changes
    /// nothing: it is about stdout.
    fn of(global: &Global, drawn: Drawn) -> Bar {
        let shown = std::io::stderr().is_terminal() && !global.quiet && global.verbose == 0;
        // A length of 0 would be drawn as a hundred per cent.
        let bar = if shown { ProgressBar::no_length() } else { ProgressBar::hidden() };
        bar.set_style(style(drawn.template()));
        Bar { bar, drawn: Cell::new(drawn), bytes: Cell::new(0) }
    }

    /// A bar for pages being written, whose bytes are not known beforehand.
    pub fn pages(global: &Global, pages: u64) -> Bar {
        let bar = Bar::of(global, Drawn::Pages);
        bar.bar.set_length(pages);
        bar.ticking()
    }

    /// A bar for work that is told in steps.
    pub fn steps(global: &Global) -> Bar {
        Bar::of(global, Drawn::Steps).ticking()
    }

    fn ticking(self) -> Bar {
        self.bar.enable_steady_tick(Duration::from_millis(200));
        self
    }

    fn draw(&self, drawn: Drawn) {
        if self.drawn.replace(drawn) != drawn {
            self.bar.set_style(style(drawn.template()));
            if matches!(drawn, Drawn::Bytes | Drawn::Stream) {
                self.bar.reset_elapsed();
                self.bar.reset_eta();
            }
        }
    }

    /// So many bytes are to be read; 0 if nobody knows.
    fn expect(&self, bytes: u64) {
        self.bytes.set(bytes);
        match bytes {
            0 => self.bar.unset_length(),
            bytes => self.bar.set_length(bytes),
        }
    }

    /// So many bytes of input were read or copied.
    fn read(&self, bytes: u64) {
        // A pipe among files: nobody knows any more where the end is.
        if self.bytes.get() > 0 && bytes > self.bytes.get() {
            self.expect(0);
        }
        self.draw(if self.bytes.get() == 0 { Drawn::Stream } else { Drawn::Bytes });
        self.bar.set_position(bytes);
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
                self.bar.set_message("reading");
                self.expect(bytes);
                self.read(0);
            }
            Event::Resumed { documents, input_bytes } => {
                tracing::info!(documents, input_bytes, "going on where an earlier run stopped");
                self.read(input_bytes);
                self.bar.reset_eta();
            }
            Event::Scanned { documents, input_bytes, bad_records } => {
                self.read(input_bytes);
                let bad = if bad_records > 0 { format!(", {bad_records} bad") } else { String::new() };
                self.bar.set_message(format!("{} documents{bad}", crate::output::grouped(documents)));
            }
            Event::BadRecord { place, reason } => tracing::debug!(place, reason, "bad record"),
            Event::Copied { input_bytes } => self.read(input_bytes),
            Event::Step { name } => {
                tracing::info!(step = name);
                // Until bytes are read again.
                self.draw(Drawn::Steps);
                self.bar.set_message(name);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::{ProgressDrawTarget, TermLike};

    use super::*;

    /// A terminal of 80 columns that keeps what is written.
    #[derive(Clone, Debug, Default)]
    struct Paper(Arc<Mutex<String>>);

    impl TermLike for Paper {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, line: &str) -> io::Result<()> {
            self.write_str(line)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn drawn(message: &str, (position, length): (u64, u64), elapsed: Duration) -> String {
        let paper = Paper::default();
        let target = ProgressDrawTarget::term_like(Box::new(paper.clone()));
        let bar = ProgressBar::with_draw_target(Some(length), target).with_elapsed(elapsed);
        bar.set_style(style(BYTES));
        bar.set_message(message.to_owned());
        bar.set_position(position);
        paper.0.lock().unwrap().clear();
        bar.force_draw();
        paper.0.lock().unwrap().trim().to_owned()
    }

    #[test]
    fn a_line_fits_80_columns_and_promises_nothing_at_the_start() {
        let begun = drawn("0 documents", (0, 5 << 30), Duration::ZERO);
        assert!(!begun.contains("left") && begun.contains("  0 %"), "{begun}");
        let message = "12,345,678 documents, 123,456 bad";
        let under_way = drawn(message, (3 << 40, 5 << 40), Duration::from_secs(3600));
        assert!(under_way.chars().count() <= 80, "{under_way}");
        assert!(under_way.contains("60 %") && under_way.contains('░'), "{under_way}");
        // One byte in the moment since the bar was made: years are left.
        let slow = drawn(message, (1, 5 << 50), Duration::from_secs(3600));
        assert!(slow.chars().count() <= 80 && slow.contains("left"), "{slow}");
        let nearly = drawn(message, (5, 5), Duration::from_secs(3600));
        assert!(!nearly.contains("left"), "{nearly}");
    }
}
