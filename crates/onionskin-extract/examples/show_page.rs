//! What is read from a file: `show_page FILE [URL]` prints its kind, charset, title, links and
//! text.

use onionskin_extract::{ExtractOptions, Extractor, Hints, Page};
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: show_page FILE [URL]")?;
    let url = arguments.next();
    let mut page = Page::default();
    let hints = Hints { url: url.as_deref(), charset: None };
    let kind =
        Extractor::new(ExtractOptions::default()).extract(&std::fs::read(file)?, None, &hints, &mut page)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "kind: {}\ncharset: {}\ntitle: {}", kind.as_str(), page.charset, page.title)?;
    writeln!(out, "canonical: {:?}\nlinks:", page.canonical)?;
    for link in &page.links {
        writeln!(out, "  {link}")?;
    }
    writeln!(out, "text:\n{}", page.text)?;
    Ok(())
}
