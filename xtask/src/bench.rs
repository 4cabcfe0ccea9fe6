//! Benches that compare with peers, in one run, on the same data.

use crate::package;
use crate::shell::{apt, command, python, root, step};

/// Peers that are measured beside us, and what reads the tables of an atlas.
const PEERS: &[&str] = &[
    "datasketch",
    "rensa",
    "datatrove",
    "spacy",
    "regex",
    "nltk",
    "tokenizers",
    "xxhash<4",
    "orjson",
    "pyarrow",
    "zstandard",
];

/// Where scripts write what they measured, one file per bench and day.
const RESULTS: &str = "bench/results";

/// The scan in parts and whole, against the signature stage of peers.
pub(crate) fn scan(options: &[&str]) -> anyhow::Result<()> {
    run("scan", options)
}

/// Whole jobs, JSONL in and clusters out, against whole jobs of peers.
pub(crate) fn similar(options: &[&str]) -> anyhow::Result<()> {
    build_gaoya()?;
    run("similar", options)
}

/// How well ours and peers find what labels say is the same; writes `docs/quality.md`.
pub(crate) fn quality(options: &[&str]) -> anyhow::Result<()> {
    build_gaoya()?;
    let mut arguments = vec!["--work", "target/quality", "--page", "docs/quality.md"];
    arguments.extend(options);
    run("quality", &arguments)
}

/// The peer that is a crate. It is built apart from the workspace, so that nothing of ours knows
/// it.
fn build_gaoya() -> anyhow::Result<()> {
    let target = root().join("target/gaoya").display().to_string();
    let build = ["build", "--release", "--manifest-path", "bench/gaoya/Cargo.toml", "--target-dir", &target];
    step("release build of gaoya", &mut command("cargo", &build))
}

/// The search for mirrors on webs of four sizes. There is no peer to compare with.
pub(crate) fn collections(options: &[&str]) -> anyhow::Result<()> {
    run("mirror_search", options)
}

/// A server under load. wrk asks it.
pub(crate) fn serve(options: &[&str]) -> anyhow::Result<()> {
    apt(&[("wrk", "wrk")])?;
    run("serve", options)
}

/// Kernel calls from Python against peers in the same process, with the wheel that people get.
pub(crate) fn python_calls(options: &[&str]) -> anyhow::Result<()> {
    let interpreter = python("python-bench-package", &["datasketch==2.0.0", "numpy", "rensa"])?;
    package::install(&interpreter, &package::wheel("release")?)?;
    let mut arguments = vec!["bench/python.py", "--out", RESULTS];
    arguments.extend(options);
    step("bench python", &mut command(&interpreter, &arguments))
}

/// The whole job on Spark against the program on the same machine.
pub(crate) fn spark(options: &[&str]) -> anyhow::Result<()> {
    let interpreter = python("python-bench-spark", &["pyspark==4.3.0", "pandas<3", "pyarrow"])?;
    package::install(&interpreter, &package::wheel("release")?)?;
    step("release build", &mut command("cargo", &["build", "--release", "-p", "onionskin-cli"]))?;
    let mut arguments = vec!["bench/spark.py", "--out", RESULTS];
    arguments.extend(options);
    let program = root().join("target/release/onionskin");
    step("bench spark", command(&interpreter, &arguments).env("ONIONSKIN", program))
}

/// Builds what is measured and hands over to the script, which knows the options.
fn run(name: &str, options: &[&str]) -> anyhow::Result<()> {
    let interpreter = python("python-bench", PEERS)?;
    let build = ["build", "--release", "-p", "onionskin-cli", "-p", "onionskin-bench"];
    step("release build", &mut command("cargo", &build))?;
    let script = format!("bench/{name}.py");
    let mut arguments = vec![script.as_str(), "--out", RESULTS];
    arguments.extend(options);
    let target = root().join("target");
    step(
        &format!("bench {name}"),
        command(&interpreter, &arguments)
            .env("ONIONSKIN", target.join("release/onionskin"))
            .env("ONIONSKIN_BENCH", target.join("release/onionskin-bench"))
            .env("PEER_GAOYA", target.join("gaoya/release/peer-gaoya")),
    )
}
