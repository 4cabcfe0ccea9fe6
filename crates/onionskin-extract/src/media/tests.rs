use super::*;

#[track_caller]
fn check(bytes: &[u8], declared: Option<&str>, expected: Result<MediaType, &str>) {
    let decided = decide(bytes, declared);
    assert_eq!(decided, expected.map_err(str::to_owned), "{:?} {declared:?}", String::from_utf8_lossy(bytes));
}

#[test]
fn the_declaration_decides_between_kinds_of_text() {
    check(b"<html>", Some("text/plain"), Ok(MediaType::Text));
    check(b"plain", Some("Text/HTML; charset=x"), Ok(MediaType::Html));
    check(b"<html>", Some("application/xhtml+xml"), Ok(MediaType::Xhtml));
    check(b"<?xml version='1.0'?><html xmlns='x'>", Some("text/xml"), Ok(MediaType::Xhtml));
    check(b"<?xml version='1.0'?><rss>", Some("text/xml"), Err("text/xml"));
    check(b"{}", Some("application/json"), Err("application/json"));
    check(b"a{}", Some("text/css"), Err("text/css"));
    check(b"# a", Some("text/markdown"), Ok(MediaType::Text));
    check(b"a\0b", Some("text/plain"), Err("application/octet-stream"));
}

#[test]
fn magic_wins_over_the_declaration() {
    check(b"%PDF-1.4", Some("text/html"), Ok(MediaType::Pdf));
    check(b"junk %PDF-1.4", Some("application/pdf"), Ok(MediaType::Pdf));
    check(b"<html>", Some("application/pdf"), Err("application/pdf"));
    check(b"%!PS-Adobe-3.0", None, Ok(MediaType::PostScript));
    check(b"\x89PNG\r\n\x1a\n", Some("text/html"), Err("image/png"));
    check(b"RIFF....WEBPVP8 ", None, Err("image/webp"));
    check(b"PK\x03\x04broken", Some("application/zip"), Err("application/zip"));
}

#[test]
fn undeclared_bytes_are_looked_at() {
    for html in ["<!DOCTYPE HTML>", " \n<html>", "\u{feff}<HEAD>", "<!-- x --> <body class=x>", "<p>", "<h1>"]
    {
        check(html.as_bytes(), None, Ok(MediaType::Html));
        check(html.as_bytes(), Some("application/octet-stream"), Ok(MediaType::Html));
    }
    check(b"\xff\xfe<\0h\0t\0m\0l\0>\0", None, Ok(MediaType::Html));
    check(b"<?xml version='1.0'?>\n<!DOCTYPE html>", None, Ok(MediaType::Xhtml));
    check(b"<pretty> text", None, Ok(MediaType::Text));
    check(b"just text", None, Ok(MediaType::Text));
    check(b"", None, Ok(MediaType::Text));
    check(b"\x01\x02\x03\x04", None, Err("application/octet-stream"));
}

#[test]
fn names_are_those_of_the_registry() {
    assert_eq!(MediaType::Html.as_str(), "text/html");
    assert_eq!(MediaType::from_extension("HTM"), Some(MediaType::Html));
    assert_eq!(MediaType::from_extension("exe"), None);
}
