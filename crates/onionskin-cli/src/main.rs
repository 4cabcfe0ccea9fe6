//! `onionskin`: finds the copies in a web.
//!
//! stdout carries data, stderr talks. Exit codes: 0 done, 1 a clear negative answer, 2 an error.

mod allocator;
mod args;
mod commands;
mod hints;
mod output;
mod progress;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Args, Command, Global};

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// Done, and the answer is no.
    No,
    /// Not done.
    Error,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        match exit {
            Exit::Done => ExitCode::SUCCESS,
            Exit::No => ExitCode::from(1),
            Exit::Error => ExitCode::from(2),
        }
    }
}

fn main() -> ExitCode {
    allocator::keep_freed_memory();
    let args = Args::parse();
    start_logging(&args.global);
    hush_caught_panics();
    match run(&args) {
        Ok(exit) => exit,
        Err(error) if is_broken_pipe(&error) => Exit::Done,
        Err(error) => {
            complain(&error);
            Exit::Error
        }
    }
    .into()
}

/// Decoders of foreign formats panic on damaged files. Workers catch that and report a bad record,
/// or an error that carries the message; the traces in between would only frighten.
fn hush_caught_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().name() == Some("main") {
            default(info);
        } else {
            tracing::debug!(%info, "caught a panic");
        }
    }));
    onionskin_store::table::hush_decoders();
}

fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.command {
        Command::Demo(demo) => commands::demo::run(demo, &args.global),
        Command::Run(run) => commands::run::run(run, &args.global),
        Command::Scan(scan) => commands::scan::run(scan, &args.global),
        Command::Similar(similar) => commands::similar::run(similar, &args.global),
        Command::Collections(collections) => commands::collections::run(collections, &args.global),
        Command::Report(report) => commands::report::run(report, &args.global),
        Command::Avoid(avoid) => commands::avoid::run(avoid, &args.global),
        Command::Explain(explain) => commands::explain::run(explain, &args.global),
        Command::Evaluate(evaluate) => commands::evaluate::run(evaluate, &args.global),
        Command::Dedup(dedup) => commands::dedup::run(dedup, &args.global),
        Command::Size(size) => commands::size::run(size, &args.global),
        Command::Seen(seen) => commands::seen::run(seen, &args.global),
        #[cfg(feature = "serve")]
        Command::Serve(serve) => commands::serve::run(serve, &args.global),
        Command::Plan(plan) => commands::plan::run(plan, &args.global),
        Command::Generate(generate) => commands::generate::run(generate, &args.global),
        Command::Verify(verify) => commands::verify::run(verify, &args.global),
        Command::Completions { shell } => {
            clap_complete::generate(*shell, &mut Args::command(), "onionskin", &mut std::io::stdout());
            Ok(Exit::Done)
        }
        Command::PdfWorker => {
            onionskin_extract::pdf_worker(std::io::stdin().lock(), std::io::stdout().lock())?;
            Ok(Exit::Done)
        }
        Command::Man { folder } => commands::man::run(folder),
    }
}

#[expect(clippy::print_stderr, reason = "this is where errors are told")]
fn complain(error: &anyhow::Error) {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let (on, off) = if colour { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    eprintln!("{on}error:{off} {}", hints::message(error));
}

/// A reader such as `head` that has seen enough is no error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

fn start_logging(global: &Global) {
    use tracing_subscriber::EnvFilter;
    let level = match (global.quiet, global.verbose) {
        (true, _) => "error",
        (false, 0) => "warn",
        (false, 1) => "info",
        (false, 2) => "debug",
        (false, _) => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match global.log_format {
        // Without colours: then no escape sequence in a line is ours, and none is let through.
        args::LogFormat::Text => subscriber.with_ansi(false).with_writer(output::ShownStderr::new).init(),
        args::LogFormat::Json => subscriber.json().init(),
    }
}
