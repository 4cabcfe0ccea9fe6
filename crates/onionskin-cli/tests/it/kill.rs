//! `kill -9` at random moments; the run after the last one ends in the same bytes.

use std::process::Stdio;

use crate::util::{Dir, assert_same_files, files, kills, run_through_kills};

#[test]
fn kills_at_random_moments_do_not_change_a_byte() {
    let dir = Dir::new();
    let outcome = dir.line("generate mirrors --pages 3000 --format warc --compress gz -o web -q");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let scan = |atlas: &str| {
        let sizes = ["--task-bytes", "65536", "--commit-bytes", "300000"];
        dir.onionskin(&[&["scan", "web", "-o", atlas, "-q", "--threads", "2"], sizes.as_slice()].concat())
    };
    let start = std::time::Instant::now();
    assert!(scan("whole").stdout(Stdio::null()).status().unwrap().success());
    let whole = start.elapsed();

    let killed = run_through_kills(|| scan("killed"), whole, kills());
    assert_same_files(
        &files(&dir.path("killed")),
        &files(&dir.path("whole")),
        &format!("after {killed} kills"),
    );
}
