//! The hostile suite: damage, kills, bombs, requests, full disks and attackers, against the binary.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{command, python, root, step};
use crate::test::PYTHON_PACKAGES;

/// The part that needs a build of its own, of the places with unsafe code.
const SANITIZER: &str = "sanitizer";

/// The large run. Options are those of the suite; `--binary` is a release build if there is none.
pub(crate) fn run(options: &[&str]) -> anyhow::Result<()> {
    if options.windows(2).any(|pair| pair == ["--only", SANITIZER]) {
        return sanitizer();
    }
    let interpreter = python("python", PYTHON_PACKAGES)?;
    let mut suite = suite(&interpreter, &["-m", "hostile"]);
    suite.args(options);
    let only_help = options.iter().any(|option| matches!(*option, "--help" | "-h"));
    if !options.contains(&"--binary") && !only_help {
        suite.env("ONIONSKIN", built(options.contains(&"--small"))?);
    }
    step("hostile", &mut suite)
}

/// The small run, as a test.
pub(crate) fn test(interpreter: &Path, binary: &Path) -> anyhow::Result<()> {
    step(
        "hostile, small",
        suite(interpreter, &["-m", "pytest", "-q", "tests/hostile"]).env("ONIONSKIN", binary),
    )
}

fn suite(interpreter: &Path, arguments: &[&str]) -> Command {
    let mut suite = command(interpreter, arguments);
    suite.env("PYTHONPATH", root().join("tests"));
    suite
}

/// The program: debug for the small run, release for the large one.
fn built(small: bool) -> anyhow::Result<PathBuf> {
    let profile = if small { "debug" } else { "release" };
    let mut build = command("cargo", &["build", "-p", "onionskin-cli", "--features", "onionskin-cli/remote"]);
    if !small {
        build.arg("--release");
    }
    step(&format!("{profile} build"), &mut build)?;
    Ok(root().join("target").join(profile).join("onionskin"))
}

/// AddressSanitizer over the tests of `onionskin-core`, which has the kernels for vector registers.
/// Miri would run their portable twins only: it reports a processor without the instructions.
pub(crate) fn sanitizer() -> anyhow::Result<()> {
    let triple = crate::fuzz::host_triple()?;
    // An explicit target keeps the flag away from build scripts and macros.
    step(
        "AddressSanitizer over onionskin-core",
        command("cargo", &["test", "-p", "onionskin-core", "--lib", "--target", &triple])
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", "-Zsanitizer=address")
            .env("CARGO_TARGET_DIR", root().join("target/sanitizer")),
    )
}
