//! Running other programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_owned)
}

/// A command in the root of the workspace.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

/// Runs a step, tells it and how long it took, and fails with it.
pub(crate) fn step(name: &str, command: &mut Command) -> anyhow::Result<()> {
    println!("── {name}");
    let start = Instant::now();
    let status =
        command.status().with_context(|| format!("{name}: cannot start {:?}", command.get_program()))?;
    if !status.success() {
        bail!("{name} failed: {status}");
    }
    println!("── {name}: {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Whether a program can be started.
pub(crate) fn has(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Installs Debian packages that are missing; does nothing where there is no apt.
pub(crate) fn apt(programs: &[(&str, &str)]) -> anyhow::Result<()> {
    let missing: Vec<&str> =
        programs.iter().filter(|(program, _)| !has(program)).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !has("apt-get") {
        println!(
            "not installed, and there is no apt-get: {}; their tests will be told apart",
            missing.join(", ")
        );
        return Ok(());
    }
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.starts_with(b"0\n"));
    let apt = |arguments: &[&str]| {
        let mut command = if root { command("apt-get", &[]) } else { command("sudo", &["apt-get"]) };
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        command
    };
    step("apt-get update", &mut apt(&["update", "-qq"]))?;
    let mut install = vec!["install", "-y", "-qq", "--no-install-recommends"];
    install.extend(&missing);
    step(&format!("apt-get install {}", missing.join(" ")), &mut apt(&install))
}

/// A folder with packages, made once: `install` gets the folder and has to fill it.
fn made_once(
    name: &str,
    packages: &[&str],
    install: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<PathBuf> {
    let folder = root().join("target").join(name);
    let stamp = folder.join("packages");
    let wanted = packages.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return Ok(folder);
    }
    install(&folder)?;
    std::fs::write(&stamp, wanted).with_context(|| format!("writing {}", stamp.display()))?;
    Ok(folder)
}

/// A virtual environment with packages, made once; returns its interpreter.
pub(crate) fn python(name: &str, packages: &[&str]) -> anyhow::Result<PathBuf> {
    let folder = made_once(name, packages, |folder| {
        let folder_text = folder.display().to_string();
        step("python -m venv", &mut command("python3", &["-m", "venv", "--clear", &folder_text]))?;
        let mut arguments = vec!["-m", "pip", "install", "--quiet"];
        arguments.extend(packages);
        let install = &mut command(folder.join("bin/python"), &arguments);
        step(&format!("pip install {}", packages.join(" ")), install)
    })?;
    Ok(folder.join("bin/python"))
}

/// A folder with packages from npm, made once; returns where they are.
pub(crate) fn node(name: &str, packages: &[&str]) -> anyhow::Result<PathBuf> {
    let folder = made_once(name, packages, |folder| {
        std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        let folder_text = folder.display().to_string();
        let mut arguments =
            vec!["install", "--silent", "--no-audit", "--no-fund", "--no-save", "--prefix", &folder_text];
        arguments.extend(packages);
        // A browser is Debian's own.
        let mut install = command("npm", &arguments);
        install.env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1");
        step(&format!("npm install {}", packages.join(" ")), &mut install)
    })?;
    Ok(folder.join("node_modules"))
}
