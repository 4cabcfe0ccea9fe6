//! `kill -9` at random moments; the run after the last one ends in the same bytes.

use std::process::Stdio;
use std::time::Duration;

use crate::util::{Dir, files};

#[test]
fn kills_at_random_moments_do_not_change_a_byte() {
    let dir = Dir::new();
    let outcome = dir.run(&[
        "generate",
        "mirrors",
        "--pages",
        "3000",
        "--format",
        "warc",
        "--compress",
        "gz",
        "-o",
        "web",
        "-q",
    ]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let scan = |atlas: &str| {
        let sizes = ["--task-bytes", "65536", "--commit-bytes", "300000"];
        dir.onionskin(&[&["scan", "web", "-o", atlas, "-q", "--threads", "2"], sizes.as_slice()].concat())
    };
    let start = std::time::Instant::now();
    assert!(scan("whole").stdout(Stdio::null()).status().unwrap().success());
    let whole = start.elapsed();

    // Long enough to get somewhere, short enough to be killed; the moments differ from run to run and the result must not.
    let kills = if std::env::var_os("ONIONSKIN_SLOW_TESTS").is_some() { 12 } else { 4 };
    let mut killed = 0;
    for attempt in 0..1000 {
        let mut child = scan("killed").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        if killed < kills {
            let share = [0.05, 0.3, 0.12, 0.5, 0.2, 0.7, 0.35, 0.15][attempt % 8];
            std::thread::sleep(whole.mul_f64(share).max(Duration::from_millis(5)));
            if child.try_wait().unwrap().is_none() {
                child.kill().unwrap();
                child.wait().unwrap();
                killed += 1;
                continue;
            }
        }
        let status = child.wait().unwrap();
        assert!(status.success() || dir.path("killed/manifest.json").exists());
        break;
    }
    assert!(killed > 0, "no run was killed");
    let (expected, found) = (files(&dir.path("whole")), files(&dir.path("killed")));
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, bytes) in &found {
        assert!(bytes == &expected[name], "{name} differs after {killed} kills");
    }
}
