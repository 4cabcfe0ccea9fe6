//! The Python package: built as a wheel, installed where nothing else is, and tested there.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::shell::{command, python, root, step};

/// What the tests of the package need: whoever takes Arrow data, whoever is replaced, and who checks types.
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

/// Builds, installs and tests the package. The profile is that of other tests, so that most of it is compiled already; `ONIONSKIN_WHEEL_PROFILE=release` tests
/// what people get.
pub(crate) fn test() -> anyhow::Result<()> {
    let profile = std::env::var("ONIONSKIN_WHEEL_PROFILE").unwrap_or_else(|_| "dev".to_owned());
    let wheel = wheel(&profile)?;
    alone(&wheel)?;
    let interpreter = python("python-package-tests", TEST_PACKAGES)?;
    install(&interpreter, &wheel)?;
    let tests = format!("{FOLDER}/tests");
    step("the package", &mut command(&interpreter, &["-m", "pytest", "-q", &tests]))?;
    let sources = format!("{FOLDER}/python/onionskin");
    let typed = format!("{FOLDER}/tests/typed.py");
    let config = format!("{FOLDER}/pyproject.toml");
    step(
        "types by mypy",
        &mut command(&interpreter, &["-m", "mypy", "--strict", "--config-file", &config, &sources, &typed]),
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
