use super::*;
use crate::source::FileKind;
use crate::testing::{Folder, gzip, read};

#[test]
fn groups_are_bounded_in_bytes_and_files() {
    let mut files = TreeFiles::default();
    for size in [5, 5, 5, 100, 0, 0, 3] {
        files.push(Path::new("x"), size, FileKind::Document, "");
    }
    let groups = |task_bytes| {
        let mut next = 0;
        std::iter::from_fn(move || {
            let group = next_group(&files, next, task_bytes);
            next = group.end;
            (!group.is_empty()).then_some(group)
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(groups(10), [0..2, 2..3, 3..4, 4..7]);
    let mut many = TreeFiles::default();
    (0..2500).for_each(|_| many.push(Path::new("x"), 0, FileKind::Document, ""));
    assert_eq!(next_group(&many, 1024, 10), 1024..2048);
    assert_eq!(next_group(&many, 2048, 10), 2048..2500);
    assert!(next_group(&many, 2500, 10).is_empty());
}

#[test]
fn files_become_documents_in_order() {
    let folder = Folder::new();
    folder.file("web/example.org/b.txt", "two");
    folder.file("web/example.org/a.txt", "one");
    folder.file("web/image.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    folder.file("web/packed.txt.gz", gzip(b"three"));
    folder.file("web/.hidden.txt", "no");
    for task_bytes in [1, 8 << 20] {
        let options = Options { task_bytes, ..Options::default() };
        let seen = read(folder.sources(&["web"], &options), &options);
        assert_eq!(seen.texts(), ["one", "two", "three"]);
        assert_eq!(seen.skipped, [SkipReason::UnknownFile]);
        assert_eq!(seen.bad, []);
        let ids: Vec<_> = seen.documents.iter().map(|document| document.id.as_deref().unwrap()).collect();
        assert_eq!(ids, ["example.org/a.txt", "example.org/b.txt", "packed.txt.gz"]);
        assert_eq!(seen.documents[0].url.as_deref(), Some("http://example.org/a.txt"));
        assert_eq!(seen.documents[0].site.as_deref(), Some("example.org"));
        assert_eq!(seen.documents[2].url, None);
        assert_eq!(seen.documents.iter().map(|document| document.offset).collect::<Vec<_>>(), [0, 1, 3]);
    }
}

#[test]
fn large_and_vanished_files_are_told() {
    let folder = Folder::new();
    folder.file("web/a.txt", "x".repeat(101));
    folder.file("web/b.txt.gz", gzip("x".repeat(10_000).as_bytes()));
    let gone = folder.file("web/c.txt", "x");
    folder.file("web/d.txt", "d");
    let options = Options { max_record_bytes: 100, ..Options::default() };
    let sources = folder.sources(&["web"], &options);
    std::fs::remove_file(gone).unwrap();
    assert!(sources[0].place(2).ends_with("web/c.txt"));
    let seen = read(sources, &options);
    assert_eq!((seen.texts(), seen.bad_codes()), (vec!["d"], vec![(0, "too_large"), (1, "too_large")]));
    assert_eq!(seen.skipped, [SkipReason::UnreadableFile]);
    assert_eq!(seen.bad.iter().map(|bad| (bad.records, bad.bytes)).next(), Some((1, 101)));
}

#[test]
fn pages_are_extracted_with_links() {
    let folder = Folder::new();
    folder.file("web/example.org/a/index.html", "<title>T</title><p>one<a href='../b.html'>two</a>");
    folder.file("web/example.org/c", "<!doctype html><p>by content");
    folder.file("web/x.pdf", "%PDF-1.4 nonsense");
    let options = Options::default();
    let seen = read(folder.sources(&["web"], &options), &options);
    assert_eq!(seen.texts(), ["onetwo", "by content"]);
    assert_eq!(seen.documents[0].links, ["http://example.org/b.html"]);
    assert_eq!((&*seen.documents[0].title, &*seen.documents[0].media_type), ("T", "text/html"));
    assert_eq!(seen.documents[1].media_type, "text/html");
    assert_eq!(seen.bad_codes(), [(2, "extraction_failed")]);
}

/// On a real documentation set, scripts and pictures written as text were two thousand documents,
/// most of them copies.
#[test]
fn scripts_pictures_and_style_sheets_are_passed_over() {
    let folder = Folder::new();
    folder.file("web/app.js", "function words() { return 1 }");
    folder.file("web/logo.svg", "<svg><text>words</text></svg>");
    folder.file("web/style.css", "body { color: red }");
    folder.file("web/page.html", "<p>words");
    let options = Options::default();
    let seen = read(folder.sources(&["web"], &options), &options);
    assert_eq!(seen.texts(), ["words"]);
    assert_eq!(seen.skipped.len(), 3, "{:?}", seen.skipped);
}
