//! What a person sees on a terminal while a command works.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use regex::Regex;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::util::Dir;

const COLUMNS: u16 = 80;

/// Lines as they were drawn, each with the time since the command began.
struct Drawn(Vec<(Duration, String)>);

impl Drawn {
    /// Runs a command whose stderr is a terminal. What it says on stdout is thrown away.
    fn of(dir: &Dir, arguments: &[&str], stdin: Stdio, feed: impl FnOnce(&mut Child)) -> Drawn {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let path = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
        let terminal = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let size = Winsize { ws_row: 24, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).unwrap();

        let begun = Instant::now();
        let mut command = dir.onionskin(arguments);
        command.env("TERM", "xterm").env_remove("NO_COLOR").stdin(stdin).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::from(terminal)).spawn().unwrap();
        // The command has the other end of the terminal open; reading fails once it has ended.
        drop(command);
        let reader = std::thread::spawn(move || {
            let (mut master, mut drawn, mut bytes) = (File::from(master), Vec::new(), [0; 4096]);
            while let Ok(n @ 1..) = master.read(&mut bytes) {
                drawn.push((begun.elapsed(), bytes[..n].to_vec()));
            }
            drawn
        });
        feed(&mut child);
        let status = child.wait().unwrap();
        let drawn = reader.join().unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&drawn.concat_bytes()));
        Drawn(lines(&drawn))
    }

    fn percents(&self) -> Vec<u32> {
        let percent = Regex::new(r"(\d+) %").unwrap();
        let found = self.0.iter().filter_map(|(_, line)| percent.captures(line));
        found.map(|found| found[1].parse().unwrap()).collect()
    }

    /// What holds for every command.
    fn check(&self) {
        assert!(!self.0.is_empty());
        for (at, line) in &self.0 {
            assert!(line.chars().count() <= usize::from(COLUMNS), "{line:?}");
            assert!(!line.contains("left") || *at >= Duration::from_secs(2), "{at:?}: {line:?}");
        }
    }
}

trait Concat {
    fn concat_bytes(&self) -> Vec<u8>;
}

impl Concat for Vec<(Duration, Vec<u8>)> {
    fn concat_bytes(&self) -> Vec<u8> {
        self.iter().flat_map(|(_, bytes)| bytes.clone()).collect()
    }
}

/// Cuts what a terminal got at the returns and line feeds, and takes the control sequences out.
fn lines(drawn: &[(Duration, Vec<u8>)]) -> Vec<(Duration, String)> {
    let control = Regex::new(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\[?[0-9;?]*$").unwrap();
    let mut lines = Vec::new();
    let mut line = Vec::new();
    for (at, bytes) in drawn {
        for byte in bytes {
            match byte {
                b'\r' | b'\n' => {
                    let text = String::from_utf8(std::mem::take(&mut line)).unwrap();
                    lines.push((*at, control.replace_all(&text, "").trim().to_owned()));
                }
                byte => line.push(*byte),
            }
        }
        // The end of a drawing is no end of a line.
        if let Ok(text) = std::str::from_utf8(&line) {
            lines.push((*at, control.replace_all(text, "").trim().to_owned()));
        }
    }
    lines.retain(|(_, line)| !line.is_empty());
    lines
}

/// Takes a second or two to read with one thread, in one compressed file.
fn one_file(dir: &Dir) {
    let made = dir.line("generate mirrors --pages 20000 --format jsonl --compress gz -o web -q");
    assert_eq!(made.code, 0, "{}", made.stderr);
}

#[test]
fn a_bar_moves_within_a_file_and_begins_at_nothing() {
    let dir = Dir::new();
    one_file(&dir);
    let input = std::fs::read_dir(dir.path("web")).unwrap().map(|entry| entry.unwrap().path());
    let input = input.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let arguments = ["scan", input.to_str().unwrap(), "-o", "atlas", "--threads", "1"];
    let drawn = Drawn::of(&dir, &arguments, Stdio::null(), |_| ());
    drawn.check();
    let percents = drawn.percents();
    assert!(percents[0] < 50, "{percents:?}");
    assert!(percents.is_sorted() && percents.iter().any(|percent| (1..99).contains(percent)), "{percents:?}");

    // Chunks that are made on demand, and copies, have a bar of bytes after steps without one.
    let search = ["similar", "atlas", "--method", "overlap", "--chunking", "l2", "--threads", "1"];
    for (arguments, step) in [
        (search.as_slice(), "reading the texts again"),
        (&["dedup", "atlas", "-o", "out", "--shards", "all", "--threads", "1"], "copying"),
    ] {
        let drawn = Drawn::of(&dir, arguments, Stdio::null(), |_| ());
        drawn.check();
        let percents = drawn.percents();
        assert!(percents.iter().any(|percent| (1..99).contains(percent)), "{arguments:?} {:?}", drawn.0);
        assert!(drawn.0.iter().any(|(_, line)| line.contains(step)), "{arguments:?} {:?}", drawn.0);
    }
}

#[test]
fn nothing_is_said_of_the_end_of_a_pipe() {
    let dir = Dir::new();
    let drawn = Drawn::of(&dir, &["scan", "-", "-o", "atlas"], Stdio::piped(), |child| {
        let mut stdin = child.stdin.take().unwrap();
        for n in 0..6 {
            let lines: String = (0..1000).map(|m| format!("{{\"text\":\"page {n} and {m}\"}}\n")).collect();
            stdin.write_all(lines.as_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    drawn.check();
    assert!(drawn.percents().is_empty(), "{:?}", drawn.0);
    assert!(drawn.0.iter().any(|(_, line)| line.contains("read")), "{:?}", drawn.0);
}
