//! Everything that CI runs, in the order in which it is cheapest to fail.

use std::path::Path;
use std::process::Command;

use crate::shell::{apt, command, has, node, python, root, step};
use crate::{fuzz, hostile, package, tidy};

/// Oracles and readers of our tables, from the Python index.
pub(crate) const PYTHON_PACKAGES: &[&str] = &[
    "warcio==1.8.1",
    "fastwarc",
    "surt==0.3.1",
    "pyarrow",
    "duckdb",
    "polars",
    "pytest",
    "brotli",
    "scrapy",
    "PyYAML",
    "schemathesis",
    "xxhash",
];

/// What drives a browser, and what looks for obstacles in a page, from npm.
const NODE_PACKAGES: &[&str] = &["playwright-core@1.65.0", "axe-core@4.14.0"];

fn cargo(arguments: &[&str]) -> Command {
    command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), arguments)
}

/// Opens pages in a browser.
fn browser(binary: &Path) -> anyhow::Result<()> {
    // A browser comes without letters.
    apt(&[("chromium", "chromium"), ("chromium", "fonts-dejavu-core")])?;
    if !has("node") || !has("npm") || !has("chromium") {
        println!("node, npm or chromium is not installed: pages were not opened");
        return Ok(());
    }
    let modules = node("browser", NODE_PACKAGES)?;
    step(
        "pages in a browser",
        command("node", &["--test", "tests/browser/"])
            .env("ONIONSKIN", binary)
            .env("CHROMIUM", "chromium")
            .env("NODE_PATH", modules),
    )
}

pub(crate) fn run() -> anyhow::Result<()> {
    step("format", &mut cargo(&["fmt", "--all", "--check"]))?;
    tidy::run()?;
    // Text comes out of PDF and PostScript through these where they are installed.
    apt(&[("pdftotext", "poppler-utils"), ("gs", "ghostscript")])?;
    let interpreter = python("python", PYTHON_PACKAGES)?;

    // With object stores, in one build of everything. The wheel and the fuzz targets are built
    // without.
    let everything = ["--workspace", "--features", "onionskin-cli/remote"];
    step("tests", cargo(&["test", "--all-targets"]).args(everything).env("ONIONSKIN_SLOW_TESTS", "1"))?;
    step("documentation examples", cargo(&["test", "--doc"]).args(everything))?;
    step("lints", cargo(&["clippy", "--all-targets"]).args(everything).args(["--", "-D", "warnings"]))?;
    step("documentation", cargo(&["doc", "--no-deps"]).args(everything).env("RUSTDOCFLAGS", "-D warnings"))?;

    // Of the whole workspace, so that what the tests were built from is used again.
    step("binary", cargo(&["build", "--bin", "onionskin", "--example", "render_avoid"]).args(everything))?;
    let binary = root().join("target/debug/onionskin");
    step(
        "oracles and readers in Python",
        command(&interpreter, &["-m", "pytest", "-q", "tests/python"]).env("ONIONSKIN", &binary),
    )?;
    hostile::test(&interpreter, &binary)?;
    hostile::sanitizer()?;
    package::test(&binary)?;
    package::spark(&binary)?;
    browser(&binary)?;
    fuzz::run(&["--runs", "3000"])?;
    if has("cargo-deny") {
        step("licences and advisories", &mut cargo(&["deny", "check", "licenses", "bans", "sources"]))?;
    } else {
        println!("cargo-deny is not installed: licences were not checked");
    }
    println!("all is well");
    Ok(())
}
