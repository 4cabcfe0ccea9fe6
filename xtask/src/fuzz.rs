//! Coverage-guided fuzzing on stable Rust: libFuzzer without a sanitizer. `cargo fuzz run -s none`
//! does the same.

use anyhow::{Context, bail};

use crate::shell::{command, root, step};

/// What libFuzzer needs to see which branches were taken.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Cdebug-assertions";

pub(crate) fn run(options: &[&str]) -> anyhow::Result<()> {
    let mut limit = vec!["-max_total_time=60".to_owned()];
    let mut profile = "release";
    let mut only = None;
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        match *option {
            "--seconds" => {
                let value = rest.next().context("--seconds wants a number")?;
                let seconds: u32 = value.parse().with_context(|| format!("--seconds {value}"))?;
                limit = vec![format!("-max_total_time={seconds}")];
            }
            "--runs" => {
                // The same inputs every time: a test, not a search.
                let value = rest.next().context("--runs wants a number")?;
                let runs: u32 = value.parse().with_context(|| format!("--runs {value}"))?;
                limit = vec![format!("-runs={runs}"), "-seed=1".to_owned()];
                profile = "quick";
            }
            target if !target.starts_with('-') => only = Some(target),
            other => bail!("unknown option {other}"),
        }
    }
    let folder = root().join("fuzz");
    let target_dir = root().join("target/fuzz");
    let triple = host_triple()?;
    // An explicit target keeps the flags away from build scripts.
    step(
        "fuzz targets",
        command("cargo", &["build", "--profile", profile, "--target", &triple])
            .current_dir(&folder)
            .env("RUSTFLAGS", COVERAGE)
            .env("CARGO_TARGET_DIR", &target_dir),
    )?;
    let mut names: Vec<String> = std::fs::read_dir(folder.join("targets"))?
        .filter_map(|entry| entry.ok()?.path().file_stem().map(|stem| stem.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    if let Some(only) = only {
        if !names.iter().any(|name| name == only) {
            bail!("no fuzz target {only}; there are {}", names.join(", "));
        }
        names = vec![only.to_owned()];
    }
    for name in names {
        let corpus = folder.join("corpus").join(&name);
        let seeds = folder.join("seeds").join(&name);
        let artifacts = folder.join("artifacts").join(&name);
        for made in [&corpus, &seeds, &artifacts] {
            std::fs::create_dir_all(made).with_context(|| format!("making {}", made.display()))?;
        }
        let binary = target_dir.join(&triple).join(profile).join(&name);
        step(
            &format!("fuzz {name} {}", limit.join(" ")),
            command(&binary, &[])
                .arg(&corpus)
                .arg(&seeds)
                .args(&limit)
                .arg(format!("-artifact_prefix={}/", artifacts.display()))
                .args([
                    "-timeout=60",
                    "-rss_limit_mb=2048",
                    "-print_final_stats=1",
                    "-verbosity=0",
                    "-max_len=65536",
                ]),
        )?;
    }
    Ok(())
}

pub(crate) fn host_triple() -> anyhow::Result<String> {
    let output = command("rustc", &["-vV"]).output().context("asking rustc for the host")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV tells no host")?.to_owned())
}
