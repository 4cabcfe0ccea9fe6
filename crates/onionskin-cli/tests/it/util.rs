//! A folder for a test and the program in it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch, StringArray, StructArray};
use parquet::arrow::ArrowWriter;

/// A folder that goes with the test.
pub struct Dir(tempfile::TempDir);

impl Dir {
    pub fn new() -> Dir {
        Dir(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// The program, with this folder as its own.
    pub fn onionskin(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onionskin"));
        command.args(arguments).current_dir(self.0.path()).env_remove("RUST_LOG").env("NO_COLOR", "1");
        command.env_remove("ONIONSKIN_MEMORY").env_remove("ONIONSKIN_THREADS").env_remove("ONIONSKIN_TOKEN");
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Outcome {
        Outcome::of(self.onionskin(arguments).stdin(Stdio::null()).output().unwrap())
    }

    /// Runs a command line of words without spaces.
    pub fn line(&self, line: &str) -> Outcome {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }

    pub fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Outcome {
        let mut child = self
            .onionskin(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let feeder = std::thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
        let outcome = Outcome::of(child.wait_with_output().unwrap());
        feeder.join().unwrap();
        outcome
    }

    /// Runs with `--json` and gives the one object that was printed.
    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let mut all = arguments.to_vec();
        all.push("--json");
        let outcome = self.run(&all);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        serde_json::from_str(&outcome.stdout).unwrap()
    }
}

pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    pub fn of(output: Output) -> Outcome {
        Outcome {
            code: output.status.code().expect("the program was not killed"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Runs a command again and again, killing it at moments that differ from run to run, until it has
/// been killed `kills` times and then ended by itself. `whole` is about how long it takes. Returns
/// how often it was killed.
pub fn run_through_kills(command: impl Fn() -> Command, whole: Duration, kills: u32) -> u32 {
    let mut killed = 0;
    for attempt in 0..1000 {
        let mut child = command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        if killed < kills {
            // Long enough to get somewhere, short enough to be killed.
            let share = [0.05, 0.3, 0.12, 0.5, 0.2, 0.7, 0.35, 0.15][attempt % 8];
            std::thread::sleep(whole.mul_f64(share).max(Duration::from_millis(5)));
            if child.try_wait().unwrap().is_none() {
                child.kill().unwrap();
                child.wait().unwrap();
                killed += 1;
                continue;
            }
        }
        child.wait().unwrap();
        break;
    }
    assert!(killed > 0, "no run was killed");
    killed
}

/// How often to kill: more where there is time.
pub fn kills() -> u32 {
    if std::env::var_os("ONIONSKIN_SLOW_TESTS").is_some() { 12 } else { 4 }
}

/// Fails on the first file that differs.
pub fn assert_same_files(
    found: &BTreeMap<String, Vec<u8>>,
    expected: &BTreeMap<String, Vec<u8>>,
    when: &str,
) {
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, bytes) in found {
        assert!(bytes == &expected[name], "{name} differs {when}");
    }
}

/// A Parquet file of columns that may have nulls.
pub fn parquet_file(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    out
}

/// A column of strings.
pub fn strings(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// A column of objects with one string each.
pub fn nested(name: &str, values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StructArray::try_from(vec![(name, strings(values))]).unwrap())
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Every file below a folder, by path, but for the one that tells of the run.
pub fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(here) = folders.pop() {
        for entry in std::fs::read_dir(here).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name != "costs.jsonl") {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    found
}
