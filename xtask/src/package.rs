//! The Python package: built as a wheel, installed where nothing else is, and tested there.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::shell::{command, has, python, root, step};

/// What the tests of the package need: whoever takes Arrow data, whoever is replaced, and who
/// checks types.
const TEST_PACKAGES: &[&str] = &[
    "datasets",
    "datasketch==2.0.0",
    "duckdb",
    "mypy",
    "numpy",
    "pandas>=2.2",
    "polars",
    "pyarrow",
    "pyright",
    "pytest",
    "tqdm",
];

/// What Spark needs beside itself. Two lines of it are tested, the older one with what was current
/// then.
const SPARK_4: &[&str] = &["pyspark==4.3.0", "pandas<3", "pyarrow", "pytest", "mypy"];
const SPARK_3_5: &[&str] = &["pyspark==3.5.9", "pandas<3", "pyarrow==17.0.0", "pytest", "numpy<2"];

/// Where the package is.
const FOLDER: &str = "crates/onionskin-py";

/// Builds the wheel with a profile of cargo, and tells where it is.
pub(crate) fn wheel(profile: &str) -> anyhow::Result<PathBuf> {
    let maturin = python("python-package", &["maturin>=1.16,<2"])?.with_file_name("maturin");
    let out = root().join("target/wheels").join(profile);
    // One wheel at a time, so that there is no doubt which it is.
    let _ = std::fs::remove_dir_all(&out);
    let manifest = root().join(FOLDER).join("Cargo.toml").display().to_string();
    let out_text = out.display().to_string();
    let arguments = ["build", "--profile", profile, "--manifest-path", &manifest, "--out", &out_text];
    step(&format!("wheel ({profile})"), &mut command(&maturin, &arguments))?;
    let made = std::fs::read_dir(&out).with_context(|| format!("reading {}", out.display()))?;
    let wheels = made.filter_map(|entry| Some(entry.ok()?.path()));
    wheels
        .into_iter()
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .with_context(|| format!("maturin left no wheel in {}", out.display()))
}

/// Puts a wheel into a virtual environment that has what it needs, in place of an earlier one.
pub(crate) fn install(interpreter: &Path, wheel: &Path) -> anyhow::Result<()> {
    let wheel = wheel.display().to_string();
    let arguments = ["-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", &wheel];
    step("pip install of the wheel", &mut command(interpreter, &arguments))
}

/// Builds, installs and tests the package, which must answer as `binary` does. The profile is that
/// of other tests, so that most of it is compiled already; `ONIONSKIN_WHEEL_PROFILE=release` tests
/// what people get.
pub(crate) fn test(binary: &Path) -> anyhow::Result<()> {
    let profile = std::env::var("ONIONSKIN_WHEEL_PROFILE").unwrap_or_else(|_| "dev".to_owned());
    let wheel = wheel(&profile)?;
    alone(&wheel)?;
    let interpreter = python("python-package-tests", TEST_PACKAGES)?;
    install(&interpreter, &wheel)?;
    let tests = format!("{FOLDER}/tests");
    // A million documents through the online filter take half a minute.
    step(
        "the package",
        command(&interpreter, &["-m", "pytest", "-q", &tests])
            .env("ONIONSKIN_SLOW_TESTS", "1")
            .env("ONIONSKIN", binary),
    )?;
    let sources = format!("{FOLDER}/python/onionskin");
    let typed = format!("{FOLDER}/tests/typed.py");
    let config = format!("{FOLDER}/pyproject.toml");
    step(
        "types by mypy",
        // The Spark part is checked where Spark is.
        &mut command(
            &interpreter,
            &["-m", "mypy", "--strict", "--exclude", "/spark/", "--config-file", &config, &sources, &typed],
        ),
    )?;
    step(
        "stubs against the module",
        &mut command(&interpreter, &["-m", "mypy.stubtest", "onionskin._onionskin"]),
    )?;
    let interpreter_text = interpreter.display().to_string();
    step(
        "types by pyright",
        &mut command(
            &interpreter,
            &["-m", "pyright", "--pythonpath", &interpreter_text, "-p", &config, &sources, &typed],
        ),
    )
}

/// The package on Spark: executors that are processes of their own, a master with two workers, and
/// the older Spark through its command line.
pub(crate) fn spark(binary: &Path) -> anyhow::Result<()> {
    if !has("java") {
        println!("java is not installed: nothing was run on Spark");
        return Ok(());
    }
    let profile = std::env::var("ONIONSKIN_WHEEL_PROFILE").unwrap_or_else(|_| "dev".to_owned());
    let wheel = wheel(&profile)?;
    let tests = format!("{FOLDER}/tests_spark");
    let run = |interpreter: &Path, name: &str, master: &str, which: &str| {
        let arguments = ["-m", "pytest", "-q", "-x", "--durations=5", "-k", which, &tests];
        step(
            name,
            command(interpreter, &arguments).env("ONIONSKIN", binary).env("ONIONSKIN_SPARK_MASTER", master),
        )
    };
    let newer = python("python-spark-4", SPARK_4)?;
    install(&newer, &wheel)?;
    // What is a matter of processes is tried with processes; the rest is quicker without.
    let alone = "not features_and_mirrors and not test_overlap and not command_line";
    run(&newer, "Spark 4, in one process", "local[2]", alone)?;
    run(&newer, "Spark 4, a local cluster", "local-cluster[2,1,1024]", "features_and_mirrors")?;
    run(&newer, "Spark 4, a master and two workers", "standalone", "test_overlap")?;
    let (sources, config) = (format!("{FOLDER}/python/onionskin/spark"), format!("{FOLDER}/pyproject.toml"));
    step(
        "types of the Spark part by mypy",
        &mut command(&newer, &["-m", "mypy", "--strict", "--config-file", &config, &sources]),
    )?;
    let older = python("python-spark-3.5", SPARK_3_5)?;
    install(&older, &wheel)?;
    run(&older, "Spark 3.5, by its command line", "local[2]", "command_line")
}

/// The wheel where nothing else is installed.
fn alone(wheel: &Path) -> anyhow::Result<()> {
    let folder = root().join("target/python-package-clean");
    let folder_text = folder.display().to_string();
    step("a clean environment", &mut command("python3", &["-m", "venv", "--clear", &folder_text]))?;
    let interpreter = folder.join("bin/python");
    let wheel = wheel.display().to_string();
    step(
        "pip install of the wheel alone",
        &mut command(&interpreter, &["-m", "pip", "install", "--quiet", "--no-index", &wheel]),
    )?;
    let program = "import onionskin; assert onionskin.resemblance('a b c d', 'A B, c d') == 1.0; print('onionskin', onionskin.__version__)";
    step("it imports", &mut command(&interpreter, &["-c", program]))
}
