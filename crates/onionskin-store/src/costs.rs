//! What the stages of an atlas have cost, in `costs.jsonl` beside the manifest.
//!
//! One line for every stage that came to its end, in the order they were run: time, CPU time,
//! memory. It is the only file in an atlas that tells of a run and not of the web, so it is no part
//! of what is the same for the same inputs, and not in the manifest. A file that cannot be written
//! costs a warning, not the work; lines that cannot be read are passed over.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::stage::StageName;

/// The name of the file.
pub const COSTS_FILE: &str = "costs.jsonl";
/// A longer file is not read into memory.
const MAX_BYTES: u64 = 16 << 20;

/// What stands before the checksum of a line, and behind it.
const SEAL: &str = ",\"crc32c\":\"";
const SEAL_END: &str = "\"}";

/// What one run of a stage has cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// The stage.
    pub stage: StageName,
    /// What it found, where a stage finds several things: the level of a search, the condition of a
    /// merge.
    #[serde(default)]
    pub of: String,
    /// Seconds.
    pub seconds: f64,
    /// CPU seconds.
    pub cpu_seconds: f64,
    /// The most memory that was resident in the process until then, where the system tells.
    pub peak_memory: Option<u64>,
    /// Whether it went on where an earlier run had stopped, whose time is not told.
    pub resumed: bool,
}

/// Adds a line. A scan begins an atlas, and with it an empty file.
pub fn record(atlas: &Path, cost: &Cost) {
    let fresh = cost.stage == StageName::Scan;
    let write = || -> std::io::Result<()> {
        let mut line = serde_json::to_vec(cost)?;
        // The checksum is the last key, so that a line stays JSON.
        line.pop();
        let sum = crc32c::crc32c(&line);
        line.extend_from_slice(format!("{SEAL}{sum:08x}{SEAL_END}\n").as_bytes());
        let path = atlas.join(COSTS_FILE);
        let mut file =
            OpenOptions::new().create(true).write(true).truncate(fresh).append(!fresh).open(path)?;
        file.write_all(&line)
    };
    if let Err(error) = write() {
        tracing::warn!(%error, "costs were not noted");
    }
}

/// All lines that can be read.
pub fn costs(atlas: &Path) -> Vec<Cost> {
    let path = atlas.join(COSTS_FILE);
    if fs::metadata(&path).is_ok_and(|file| file.len() > MAX_BYTES) {
        return Vec::new();
    }
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(parse).collect()
}

/// `None` for a line that is not what was written. Older versions wrote no checksums.
fn parse(line: &str) -> Option<Cost> {
    let (body, sum) = match line.strip_suffix(SEAL_END).and_then(|line| line.rsplit_once(SEAL)) {
        Some((body, sum)) => (body, sum),
        None if line.contains("crc32c") => return None,
        None => return serde_json::from_str(line).ok(),
    };
    let is_sound = format!("{:08x}", crc32c::crc32c(body.as_bytes())) == sum;
    is_sound.then(|| serde_json::from_str(&format!("{body}}}")).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_and_bad_ones_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let cost = |stage| Cost {
            stage,
            of: String::new(),
            seconds: 1.5,
            cpu_seconds: 2.5,
            peak_memory: Some(7),
            resumed: false,
        };
        record(folder.path(), &cost(StageName::Scan));
        record(folder.path(), &cost(StageName::Similar));
        let path = folder.path().join(COSTS_FILE);
        fs::write(&path, fs::read_to_string(&path).unwrap() + "{\"stage\":\"cut o").unwrap();
        assert_eq!(costs(folder.path()), [cost(StageName::Scan), cost(StageName::Similar)]);
        // As older versions wrote them, and a digit that has changed.
        let old = serde_json::to_string(&cost(StageName::Collections)).unwrap();
        let text = fs::read_to_string(&path).unwrap().replacen("2.5", "3.5", 1);
        fs::write(&path, format!("{old}\n{text}")).unwrap();
        assert_eq!(costs(folder.path()), [cost(StageName::Collections), cost(StageName::Similar)]);
        record(folder.path(), &cost(StageName::Scan));
        assert_eq!(costs(folder.path()), [cost(StageName::Scan)]);
        assert!(costs(&folder.path().join("nowhere")).is_empty());
        record(&folder.path().join("nowhere"), &cost(StageName::Scan));
    }
}
