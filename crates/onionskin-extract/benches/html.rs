//! Text and links out of HTML, beside a tokenizer by the letter of the standard that does nothing
//! with its tokens.
//!
//! `ONIONSKIN_BENCH_INPUT` names a directory whose `.html` files are read instead of a page that is
//! made up.
#![allow(clippy::unwrap_used, reason = "a bench")]

use std::path::{Path, PathBuf};

use divan::Bencher;
use divan::counter::BytesCount;
use onionskin_extract::{Hints, HtmlExtractor, Page};

fn main() {
    divan::main();
}

fn pages() -> Vec<Vec<u8>> {
    let Some(directory) = std::env::var_os("ONIONSKIN_BENCH_INPUT") else { return vec![page()] };
    let mut files = Vec::new();
    collect(Path::new(&directory), &mut files);
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "html") {
            files.push(path);
        }
    }
}

/// A page of the web as it is: a menu, paragraphs with entities and links, a script.
fn page() -> Vec<u8> {
    let mut html =
        String::from("<!DOCTYPE html><html><head><title>A page</title></head><body><ul class=menu>");
    for n in 0..30 {
        html.push_str(&format!("<li><a href=\"/section/{n}\" class='item'>Section {n}</a></li>\n"));
    }
    html.push_str("</ul><script>if (a < b && c > d) { document.write(\"<p>not text</p>\") }</script>");
    for n in 0..200 {
        html.push_str(&format!(
            "<p id=p{n}>Paragraph {n} of <b>some</b> length &amp; with <a href=\"../page/{n}.html\">a link</a>, \
             which goes on for a while &mdash; as paragraphs do &#8212; and then ends.</p>\n"
        ));
    }
    html.push_str("</body></html>");
    html.into_bytes()
}

#[divan::bench]
fn extracted(bencher: Bencher<'_, '_>) {
    let pages = pages();
    let mut extractor = HtmlExtractor::new();
    let mut page = Page::default();
    let hints = Hints { url: Some("http://docs.example.org/a/b/c.html"), charset: None };
    bencher.counter(BytesCount::new(pages.iter().map(Vec::len).sum::<usize>())).bench_local(|| {
        let mut found = 0;
        for bytes in &pages {
            extractor.extract(bytes, &hints, &mut page);
            found += page.text.len() + page.links.len();
        }
        found
    });
}

#[divan::bench]
fn naive_tokens_alone(bencher: Bencher<'_, '_>) {
    let pages: Vec<String> =
        pages().iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect();
    bencher.counter(BytesCount::new(pages.iter().map(String::len).sum::<usize>())).bench_local(|| {
        pages.iter().map(|html| html5gum::Tokenizer::new(html.as_str()).count()).sum::<usize>()
    });
}
