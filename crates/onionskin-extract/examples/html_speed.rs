//! How fast HTML is read: `html_speed FOLDER...` reads every `.html` file under the folders into memory, extracts them
//! three times over, and prints megabytes for each second of CPU time in the best round.

use onionskin_extract::{Hints, HtmlExtractor, Page};
use rustix::time::{ClockId, clock_gettime};
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    let mut files = Vec::new();
    for folder in std::env::args_os().skip(1) {
        collect(Path::new(&folder), &mut files)?;
    }
    files.sort();
    let pages: Vec<Vec<u8>> = files.iter().map(std::fs::read).collect::<Result<_, _>>()?;
    let bytes: usize = pages.iter().map(Vec::len).sum();
    let mut extractor = HtmlExtractor::new();
    let mut page = Page::default();
    let mut best = f64::MAX;
    let (mut text, mut links) = (0, 0);
    for _ in 0..3 {
        (text, links) = (0, 0);
        let begin = cpu_seconds();
        for bytes in &pages {
            let hints = Hints { url: Some("http://docs.example.org/a/b/c.html"), charset: None };
            extractor.extract(bytes, &hints, &mut page);
            text += page.text.len();
            links += page.links.len();
        }
        best = best.min(cpu_seconds() - begin);
    }
    let report = format!(
        "{} pages, {:.1} MB, {:.1} MB of text, {links} links: {:.0} MB/s\n",
        pages.len(),
        bytes as f64 / 1e6,
        text as f64 / 1e6,
        bytes as f64 / 1e6 / best,
    );
    std::io::Write::write_all(&mut std::io::stdout(), report.as_bytes())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(&entry.path(), files)?;
        } else if kind.is_file() && entry.path().extension().is_some_and(|extension| extension == "html") {
            files.push(entry.path());
        }
    }
    Ok(())
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
