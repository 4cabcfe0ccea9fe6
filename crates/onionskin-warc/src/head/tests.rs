use super::*;

const WARC: ContainerKind = ContainerKind::Warc;
const ARC: ContainerKind = ContainerKind::Arc;

#[test]
fn beginnings_of_warc_records() {
    assert_eq!(record_begins(b"", WARC), Begins::TooShort);
    assert_eq!(record_begins(b"WAR", WARC), Begins::TooShort);
    assert_eq!(record_begins(b"WARC/1", WARC), Begins::Yes);
    assert_eq!(record_begins(b"WARC/x", WARC), Begins::No);
    assert_eq!(record_begins(b"X", WARC), Begins::No);
}

#[test]
fn a_search_wants_a_version_and_a_field() {
    let check =
        |text: &str, own_line, expected| assert_eq!(find_record(text.as_bytes(), WARC, own_line), expected);
    check("xx\nWARC/1.0\r\nWARC-Type: x", true, Some(3));
    check("xx\nWARC/1.1\nContent-Length: 0", true, Some(3));
    check("xx\nWARC/0.18\r\nWARC-Type: x", true, Some(3));
    check("xxWARC/1.0\r\nWARC-Type: x", true, None);
    check("xxWARC/1.0\r\nWARC-Type: x", false, Some(2));
    check("the WARC/1.0 format\nWARC/1.0 is\nWARC/\nWARC/1.0\r\nhello", false, None);
    check("\nWARC/1.0\r\nWAR", true, None);
}

#[test]
fn ends_of_heads() {
    assert_eq!(head_end(b"WARC/1.0\r\nA: b\r\n\r\nrest", WARC, 0), Some(18));
    assert_eq!(head_end(b"WARC/1.0\nA: b\n\nrest", WARC, 0), Some(15));
    assert_eq!(head_end(b"WARC/1.0\r\nA: b\r\n", WARC, 0), None);
    let whole = b"WARC/1.0\r\nA: b\r\n\r\n";
    for from in 0..whole.len() {
        assert_eq!(head_end(whole, WARC, from), Some(18), "searched {from} before");
    }
}

#[test]
fn lengths_are_digits() {
    for (text, expected) in [("12", Some(12)), ("+12", None), ("-1", None), ("", None), ("12x", None)] {
        assert_eq!(parse_length(text), expected, "{text}");
    }
    assert_eq!(parse_length("99999999999999999999999"), None);
}

#[test]
fn both_arc_versions_and_spaces() {
    let check = |line: &str, url: &str, media_type: &str, length: u64| {
        let head = parse_head(line.as_bytes(), ARC).unwrap();
        assert_eq!(head.headers.get("WARC-Target-URI"), Some(url), "{line}");
        assert_eq!(head.headers.get("ARC-Content-Type"), Some(media_type), "{line}");
        assert_eq!(head.headers.get("WARC-Date"), Some("2014-01-26T20:06:24Z"), "{line}");
        assert_eq!(head.length, length, "{line}");
        assert_eq!(record_begins(line.as_bytes(), ARC), Begins::Yes, "{line}");
    };
    check(
        "http://a.example/ 93.184.216.119 20140126200624 text/html 1591\n",
        "http://a.example/",
        "text/html",
        1591,
    );
    check("http://a.example/ ::1 20140126200624 text/html 7\n", "http://a.example/", "text/html", 7);
    check(
        "http://a.example/a b c 1.2.3.4 20140126200624 text/html 7\r\n",
        "http://a.example/a b c",
        "text/html",
        7,
    );
    check(
        "http://a/ 1.2.3.4 20140126200624 text/html 200 cksum - 12345678 f.arc.gz 9\n",
        "http://a/",
        "text/html",
        9,
    );
}

#[test]
fn lines_that_are_no_arc_heads() {
    for line in [
        "\n",
        "hello world\n",
        "http://a/ 1.2.3.4 20140126200624 text/html x\n",
        "a b c d e\n",
        "http://a/ nowhere 20140126200624 text/html 5\n",
        "http://a/ 1.2.3.4 20140126200624 5\n",
        ": 1.2.3.4\n",
        "http: 1.2.3.4 \n",
        "1.2.3.4 20140126200624 text/html 5\n",
    ] {
        assert_eq!(record_begins(line.as_bytes(), ARC), Begins::No, "{line}");
        assert!(parse_head(line.as_bytes(), ARC).is_none(), "{line}");
    }
}
