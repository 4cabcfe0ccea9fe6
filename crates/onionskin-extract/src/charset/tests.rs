use super::*;

#[track_caller]
fn check(bytes: &[u8], http: Option<&str>, declaration: SelfDeclaration, text: &str, name: &str) {
    let hints = Hints { url: Some("http://example.jp/"), charset: http };
    let mut scratch = String::new();
    let decoded = decode(bytes, &hints, declaration, &mut scratch);
    assert_eq!(decoded, (text, name), "{:?}", String::from_utf8_lossy(bytes));
}

use SelfDeclaration::{Meta, None as Nowhere, XmlOrMeta};

#[test]
fn a_byte_order_mark_wins_over_everything() {
    check(b"\xef\xbb\xbf\xc3\xa9", Some("iso-8859-1"), Meta, "é", "UTF-8");
    check(b"\xff\xfea\0b\0", Some("utf-8"), Meta, "ab", "UTF-16LE");
    check(b"\xfe\xff\0a\0b", None, Meta, "ab", "UTF-16BE");
}

#[test]
fn http_wins_over_the_page() {
    check(b"<meta charset=utf-8>\xe9", Some("ISO-8859-1"), Meta, "<meta charset=utf-8>é", "windows-1252");
    // A label that nobody knows says nothing.
    check(b"<meta charset=koi8-r>\xc1", Some("bogus"), Meta, "<meta charset=koi8-r>а", "KOI8-R");
}

#[test]
fn the_page_may_say_it_in_many_ways() {
    for meta in [
        "<meta charset=windows-1251>",
        "<META CHARSET='windows-1251'/>",
        "<meta http-equiv=Content-Type content='text/html; charset=windows-1251'>",
        "<meta content=\"text/html;charset = 'windows-1251'\" http-equiv=content-type>",
        "<!-- <meta charset=utf-8> --><meta charset=windows-1251>",
        "<!--><meta charset=windows-1251>",
        "<a title='<meta charset=utf-8>'><meta charset=windows-1251>",
        "<!doctype html><html><head></x a=b><meta charset=windows-1251>",
        "<meta name=x content='charset=utf-8'><meta charset=windows-1251>",
        "<metax charset=utf-8><meta charset=windows-1251>",
    ] {
        let mut bytes = meta.as_bytes().to_vec();
        bytes.push(0xe0);
        check(&bytes, None, Meta, &format!("{meta}а"), "windows-1251");
    }
}

#[test]
fn a_page_that_can_be_read_is_not_in_utf_16() {
    check("<meta charset=utf-16>é".as_bytes(), None, Meta, "<meta charset=utf-16>é", "UTF-8");
}

#[test]
fn declarations_count_only_where_they_belong() {
    let xml = b"<?xml version='1.0' encoding='windows-1251'?>\xe0";
    let text = "<?xml version='1.0' encoding='windows-1251'?>а";
    check(xml, None, XmlOrMeta, text, "windows-1251");
    check("<meta charset=koi8-r>é".as_bytes(), None, Nowhere, "<meta charset=koi8-r>é", "UTF-8");
    let late = format!("{}<meta charset=koi8-r>é", " ".repeat(1100));
    check(late.as_bytes(), None, Meta, &late, "UTF-8");
}

#[test]
fn undeclared_text_is_utf_8_if_it_can_be_and_guessed_if_not() {
    check("日本".as_bytes(), None, Meta, "日本", "UTF-8");
    let sentence = "これは日本語の文章です。文字コードを当てます。";
    let (shift_jis, _, _) = encoding_rs::SHIFT_JIS.encode(sentence);
    check(&shift_jis, None, Meta, sentence, "Shift_JIS");
    let far = [&b" ".repeat(GUESS_BYTES + 10)[..], &shift_jis].concat();
    let far_text = format!("{}{sentence}", " ".repeat(GUESS_BYTES + 10));
    check(&far, None, Meta, &far_text, "Shift_JIS");
    check(b"a\0b\0c\0d\0\xe9\0", None, Meta, "abcdé", "UTF-16LE");
}

#[test]
fn labels_without_text_are_guessed_instead() {
    check(b"plain", Some("hz-gb-2312"), Meta, "plain", "UTF-8");
}

#[test]
fn broken_utf_8_is_mended() {
    check(b"a\xffb", Some("utf-8"), Meta, "a\u{fffd}b", "UTF-8");
    check(b"", None, Meta, "", "UTF-8");
}

#[test]
fn expanding_encodings_fit() {
    let bytes = vec![0x80; 10_000];
    check(&bytes, Some("windows-1252"), Meta, &"€".repeat(10_000), "windows-1252");
}
