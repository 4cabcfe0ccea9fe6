use super::*;
use crate::{Headers, RecordKind};

#[test]
fn three_records() {
    let one = "WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 5\r\n\r\nhello\r\n\r\n";
    let file = one.repeat(3);
    let items: Vec<_> =
        Reader::new(file.as_bytes(), Limits::default()).unwrap().map(Result::unwrap).collect();
    assert_eq!(items.len(), 3);
    let _ = (RecordKind::Other, Headers::new());
}
