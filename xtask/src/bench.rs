//! Benches that compare with peers, in one run, on the same data.

use crate::shell::{command, python, root, step};

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
];

/// The scan in parts and whole, against the signature stage of peers.
pub(crate) fn scan(options: &[&str]) -> anyhow::Result<()> {
    run("scan", &[], options)
}

/// Whole jobs, JSONL in and clusters out, against whole jobs of peers. One peer is a crate, which is built for this alone.
pub(crate) fn similar(options: &[&str]) -> anyhow::Result<()> {
    run("similar", &["--features", "onionskin-bench/peers"], options)
}

/// Builds what is measured and hands over to the script, which knows the options.
fn run(name: &str, features: &[&str], options: &[&str]) -> anyhow::Result<()> {
    let interpreter = python("python-bench", PEERS)?;
    let mut build = vec!["build", "--release", "-p", "onionskin-cli", "-p", "onionskin-bench"];
    build.extend(features);
    step("release build", &mut command("cargo", &build))?;
    let script = format!("bench/{name}.py");
    let results = format!("bench/results/{name}.json");
    let mut arguments = vec![script.as_str(), "--out", &results];
    arguments.extend(options);
    let release = root().join("target/release");
    step(
        &format!("bench {name}"),
        command(&interpreter, &arguments)
            .env("ONIONSKIN", release.join("onionskin"))
            .env("ONIONSKIN_BENCH", release.join("onionskin-bench"))
            .env("PEER_GAOYA", release.join("peer-gaoya")),
    )
}
