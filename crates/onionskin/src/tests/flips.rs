//! Flipped bits, cut files and zeroed stretches in every file of an atlas: a command answers as it
//! does for the sound atlas, or names what is damaged.

use std::fs;
use std::path::{Path, PathBuf};

use onionskin_core::SplitMix64;
use onionskin_store::testing::copy_folder;

use super::commands::{Answer, COMMANDS, answer, fast_dir, small_atlas};

/// Harms of a file, each in some place.
const HARMS: usize = if cfg!(debug_assertions) { 10 } else { 40 };

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { files_below(&path, found) } else { found.push(path) }
    }
}

/// Changes bytes; says how.
fn harm(bytes: &mut Vec<u8>, nth: usize, rng: &mut SplitMix64) -> String {
    let at = (rng.next_u64() % bytes.len() as u64) as usize;
    match nth % 5 {
        0 => {
            bytes.truncate(at);
            format!("cut to {at}")
        }
        1 => {
            let end = (at + 16).min(bytes.len());
            bytes[at..end].fill(0);
            format!("zeros from {at}")
        }
        _ => {
            let bit = rng.next_u64() % 8;
            bytes[at] ^= 1 << bit;
            format!("bit {bit} of byte {at}")
        }
    }
}

/// Only `verify` looked at checksums: one of eighteen flipped bits gave a wrong answer, exit code
/// 0.
#[test]
fn no_harm_changes_an_answer() {
    let folder = fast_dir();
    small_atlas(folder.path());
    let sound = folder.path().join("atlas");
    let mut files = Vec::new();
    files_below(&sound, &mut files);
    assert!(files.len() >= 16, "{files:?}");
    // A folder for each command: some write into the atlas.
    let places: Vec<PathBuf> = COMMANDS.iter().map(|(name, _)| folder.path().join(name)).collect();
    let begin = |place: &Path| {
        let _ = fs::remove_dir_all(place);
        copy_folder(&sound, &place.join("atlas"));
    };
    let expected: Vec<String> = COMMANDS
        .iter()
        .zip(&places)
        .map(|((name, run), place)| {
            begin(place);
            answer(name, *run, place, "nothing wrong").unwrap_or_else(|error| panic!("{name}: {error}"))
        })
        .collect();
    let mut rng = SplitMix64::new(20);
    let (mut refused, mut case) = (0, 0);
    for file in &files {
        let relative = file.strip_prefix(&sound).unwrap();
        let whole = fs::read(file).unwrap();
        for nth in 0..HARMS {
            let mut bytes = whole.clone();
            let what = format!("{} {}", relative.display(), harm(&mut bytes, nth, &mut rng));
            if bytes == whole {
                continue;
            }
            case += 1;
            // Two of the commands, so that all come up for every file.
            for at in [case, case + 3].map(|at| at % COMMANDS.len()) {
                let ((name, run), place) = (COMMANDS[at], &places[at]);
                begin(place);
                fs::write(place.join("atlas").join(relative), &bytes).unwrap();
                match answer(name, run, place, &what) {
                    Answer::Ok(found) => assert!(found == expected[at], "{name} with {what}: a wrong answer"),
                    Answer::Err(error) => {
                        refused += 1;
                        let named = relative.to_str().unwrap();
                        assert!(error.contains(named), "{name} with {what}: {error}");
                    }
                }
            }
        }
    }
    assert!(case > 150 && refused * 2 > case, "{refused} of {case}");
}
