use super::*;

#[track_caller]
fn check(bytes: &[u8], declared: Option<&str>, kind: MediaType, text: &str) -> Page {
    let mut page = Page { text: "old".to_owned(), title: "old".to_owned(), ..Page::default() };
    let decided = Extractor::new(ExtractOptions::default())
        .extract(bytes, declared, &Hints::default(), &mut page)
        .unwrap();
    assert_eq!((decided, page.text.as_str()), (kind, text));
    page
}

#[test]
fn each_kind_goes_its_way() {
    check(b"<p>a<p>b", Some("text/html"), MediaType::Html, "a\n\nb");
    check(b"<p>a\r\n  b", Some("text/plain"), MediaType::Text, "<p>a\n  b");
    let page = check(b"<?xml version='1.0' encoding='koi8-r'?><html>\xc1", None, MediaType::Xhtml, "а");
    assert_eq!((page.charset, page.title.as_str()), ("KOI8-R", ""));
}

#[test]
fn the_declared_charset_counts() {
    let page = check(b"\xe0", Some("text/html; Charset=windows-1251"), MediaType::Html, "а");
    assert_eq!(page.charset, "windows-1251");
}

#[test]
fn errors_leave_no_text_behind() {
    let mut extractor = Extractor::new(ExtractOptions::default());
    let mut page = Page { text: "old".to_owned(), ..Page::default() };
    let result = extractor.extract(b"GIF89a", Some("text/html"), &Hints::default(), &mut page);
    assert!(matches!(result, Err(ExtractError::Unsupported { media_type }) if media_type == "image/gif"));
    assert_eq!(page, Page::default());
    let result = extractor.extract(b"%PDF-1.4 broken", None, &Hints::default(), &mut page);
    assert!(matches!(result, Err(ExtractError::Failed { .. })));
    assert_eq!(page, Page::default());
}

#[test]
fn names_tell_the_pdf_readers_apart() {
    let of = |pdf| Extractor::new(ExtractOptions { pdf, ..ExtractOptions::default() }).names();
    assert_ne!(of(PdfTool::BuiltIn), of(PdfTool::Pdftotext));
}
