//! Benches that compare with peers, in one run, on the same data.

use anyhow::{Context, bail};

use crate::shell::{command, python, root, step};

/// Peers whose signature stage is measured beside ours.
const PEERS: &[&str] =
    &["datasketch", "rensa", "datatrove", "spacy", "regex", "nltk", "tokenizers", "xxhash<4", "orjson"];

pub(crate) fn scan(options: &[&str]) -> anyhow::Result<()> {
    let mut megabytes = 64u32;
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        match *option {
            "--mb" => {
                let value = rest.next().context("--mb wants a number")?;
                megabytes = value.parse().with_context(|| format!("--mb {value}"))?;
            }
            other => bail!("unknown option {other}"),
        }
    }
    let interpreter = python("python-bench", PEERS)?;
    step(
        "release build",
        &mut command("cargo", &["build", "--release", "-p", "onionskin-cli", "-p", "onionskin-bench"]),
    )?;
    step(
        "bench scan",
        command(&interpreter, &["bench/scan.py", "--mb", &megabytes.to_string()])
            .env("ONIONSKIN", root().join("target/release/onionskin"))
            .env("ONIONSKIN_BENCH", root().join("target/release/onionskin-bench")),
    )
}
