//! `cargo xtask`: what is run on this workspace by people and by CI.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for people")]

mod bench;
mod fuzz;
mod hostile;
mod package;
mod shell;
mod test;
mod tidy;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask test                        install what the tests need, then run everything that CI runs
cargo xtask tidy                        rules that a machine can check: arrows between crates, unsafe code, flags in messages
cargo xtask bench scan [--mb N]         scan against peers, on the same text, in one run
cargo xtask bench similar [--mb N] [--large-mb N] [--growth-mb N] [--formats-mb N] [--work DIR] [--only PEER,...]  whole jobs against peers
cargo xtask bench quality [--only SET,...]  precision and recall against labels, ours and peers; writes docs/quality.md
cargo xtask bench collections [--pages N] [--memory SIZE]  the search for mirrors at 1, 2, 4 and 8 times a web
cargo xtask bench python [--documents N] [--seen N]  kernel calls from Python against rensa and datasketch; a million documents through Deduplicator
cargo xtask bench serve [--pages N] [--memory SIZE]  searching under load, and ten thousand connections that say nothing
cargo xtask bench spark [--pages N M]   the whole job on Spark, one and two executors, against the program
cargo xtask package                     build the Python package, install it where nothing else is, and test it, with a debug build of the program that is there
cargo xtask spark                       test the package on Spark 4 and 3.5, with a debug build of the program that is there
cargo xtask fuzz [TARGET] [--seconds N | --runs N]  run the fuzz targets, all or one, 60 seconds each
cargo xtask hostile [--minutes N] [--small] [--seed S] [--only PART] [--case N] [--binary PATH]  damage, kills, bombs, requests, full disks and attackers; --only sanitizer runs tests of unsafe code under AddressSanitizer
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["test"] => test::run(),
        ["tidy"] => tidy::run(),
        ["bench", "scan", options @ ..] => bench::scan(options),
        ["bench", "similar", options @ ..] => bench::similar(options),
        ["bench", "quality", options @ ..] => bench::quality(options),
        ["bench", "collections", options @ ..] => bench::collections(options),
        ["bench", "serve", options @ ..] => bench::serve(options),
        ["bench", "python", options @ ..] => bench::python_calls(options),
        ["bench", "spark", options @ ..] => bench::spark(options),
        ["package"] => package::test(&shell::root().join("target/debug/onionskin")),
        ["spark"] => package::spark(&shell::root().join("target/debug/onionskin")),
        ["fuzz", options @ ..] => fuzz::run(options),
        ["hostile", options @ ..] => hostile::run(options),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(anyhow::anyhow!("unknown task `{}`\n\n{HELP}", other.join(" "))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
