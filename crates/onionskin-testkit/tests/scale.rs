//! Size and speed, in a process of its own so that its memory can be measured.
//!
//! Long; runs with `ONIONSKIN_SLOW_TESTS=1 cargo test --release -p onionskin-testkit --test
//! scale -- --nocapture`.

#![expect(clippy::print_stdout, reason = "measurements are what a person runs this for")]

use std::{io, time::Instant};

use onionskin_testkit::{Preset, TruthOptions, WarcOptions, Web, WebSpec};

/// The most memory the process has held, in bytes, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Seconds that this thread has computed, where the system tells; a busy machine does not disturb
/// them.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(stat.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}

fn timed(what: &str, mut work: impl FnMut() -> u64) {
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let megabytes = work() as f64 / 1e6;
    let seconds = match (cpu, cpu_seconds()) {
        (Some(before), Some(after)) => after - before,
        _ => start.elapsed().as_secs_f64(),
    };
    println!("{what}: {megabytes:.0} MB in {seconds:.2} s, {:.0} MB/s", megabytes / seconds);
}

/// Counts what it is given.
struct Count(u64);

impl io::Write for Count {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.0 += data.len() as u64;
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn large_webs_in_little_memory() {
    // The test is always compiled and its paths always taken; the environment makes it large, and a
    // release build larger.
    let slow = std::env::var_os("ONIONSKIN_SLOW_TESTS").is_some();
    let scale = match (slow, cfg!(debug_assertions)) {
        (false, _) => 1,
        (true, true) => 200,
        (true, false) => 1_000,
    };
    let webs =
        [(Preset::Short, 20_000), (Preset::Text, 1_000), (Preset::Crowd, 2_000), (Preset::Template, 200)];
    for (preset, pages) in webs {
        let pages = pages * scale;
        let web = Web::new(&WebSpec::of(preset, pages, 1)).unwrap();
        let name = preset.as_str();
        timed(&format!("{name}: {pages} pages of JSON lines"), || {
            let written = web.write_jsonl(&mut io::sink(), 0..pages, &mut |_, _| {}).unwrap();
            assert_eq!(written.pages, pages);
            written.bytes
        });
        timed(&format!("{name}: truth"), || {
            let mut count = Count(0);
            let options = TruthOptions { pages: false, copies: true };
            web.write_truth(&mut count, options, &mut |_, _| {}).unwrap();
            count.0
        });
    }
    let pages = 50 * scale;
    let web = Web::new(&WebSpec::of(Preset::Mirrors, pages.max(200), 1)).unwrap();
    for gzip in [false, true] {
        timed(&format!("mirrors: {pages} pages of WARC, gzip {gzip}"), || {
            let options = WarcOptions { gzip, requests: true };
            web.write_warc(&mut io::sink(), 0..pages, options, &mut |_, _| {}).unwrap().bytes
        });
    }
    if let Some(peak) = peak_memory() {
        println!("peak memory: {:.0} MB", peak as f64 / 1e6);
        assert!(peak < 200_000_000, "{peak} bytes");
    }
}
