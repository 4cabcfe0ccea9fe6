use proptest::prelude::*;

use super::*;
use crate::Format;
use crate::testing::{Folder, Seen, gzip, read};

fn read_csv(bytes: &[u8], options: &Options) -> Seen {
    let folder = Folder::new();
    folder.file("x.csv", bytes);
    read(folder.sources(&["x.csv"], options), options)
}

fn in_blocks_of(task_bytes: u64) -> Options {
    Options { task_bytes, format: Some(Format::Csv), ..Options::default() }
}

#[test]
fn columns_become_a_document() {
    let table = "id,lang,text,url\r\n1,en,\"one, \"\"two\"\"\nthree\",http://A.org\r\n\r\n2,de,vier,\r\n";
    for task_bytes in [1, 1 << 20] {
        for bytes in
            [table.as_bytes().to_vec(), gzip(table.as_bytes()), format!("\u{feff}{table}").into_bytes()]
        {
            let seen = read_csv(&bytes, &in_blocks_of(task_bytes));
            assert_eq!((seen.texts(), seen.bad_codes()), (vec!["one, \"two\"\nthree", "vier"], vec![]));
            assert_eq!(seen.documents[0].id.as_deref(), Some("1"));
            assert_eq!(seen.documents[0].url.as_deref(), Some("http://a.org/"));
            assert_eq!(seen.documents[1].url, None);
        }
    }
    let seen = read_csv(table.as_bytes(), &in_blocks_of(1));
    assert_eq!(seen.documents.iter().map(|document| document.offset).collect::<Vec<_>>(), [18, 60]);
}

#[test]
fn tabs() {
    let folder = Folder::new();
    folder.file("x.tsv", "text\tid\na, b\t1\n");
    let options = Options::default();
    assert_eq!(read(folder.sources(&["x.tsv"], &options), &options).texts(), ["a, b"]);
}

#[test]
fn bad_records_are_told_and_the_others_read() {
    let seen = read_csv(b"text,id\na,1\nb\nc,2,3\n\xff,4\nd,\xff\n", &in_blocks_of(3));
    assert_eq!(seen.texts(), ["a", "d"]);
    assert_eq!(seen.bad_codes(), [(12, "broken_csv"), (14, "broken_csv"), (20, "invalid_utf8")]);
}

#[test]
fn a_missing_column_names_those_there_are() {
    let seen = read_csv(b"a,b\n1,2\n", &in_blocks_of(100));
    assert_eq!(seen.bad.len(), 1);
    assert_eq!(
        seen.bad[0].reason.to_string(),
        "no column \"text\", \"content\" or \"raw_content\"; there are a, b"
    );
    assert_eq!(read_csv(b"", &in_blocks_of(100)), Seen::default());
    assert_eq!(read_csv(b"text\n", &in_blocks_of(100)), Seen::default());
}

#[test]
fn a_quote_that_nobody_closed_is_not_held() {
    let mut bytes = b"text\na\n\"".to_vec();
    bytes.resize(30 << 20, b'x');
    let seen = read_csv(&bytes, &Options { max_record_bytes: 1000, ..in_blocks_of(100) });
    assert_eq!((seen.texts(), seen.bad_codes()), (vec!["a"], vec![(7, "too_large")]));

    // One that goes on over lines is the fault of its first line; the others are read.
    let text = format!("text\na\n\"{}\"\nb\n", "x\n".repeat(600));
    let seen = read_csv(text.as_bytes(), &Options { max_record_bytes: 1000, ..in_blocks_of(100) });
    assert_eq!((seen.documents.len(), seen.texts()[..2].to_vec()), (601, vec!["a", "x"]));
    assert_eq!(seen.bad_codes(), [(7, "broken_csv"), (7 + 1201, "broken_csv")]);
    assert_eq!(seen.texts().last(), Some(&"b"));
    // One of a million columns is passed over.
    let text = format!("text\na\n{}\nb\n", ",".repeat(1_000_000));
    let seen = read_csv(text.as_bytes(), &in_blocks_of(100));
    assert_eq!((seen.texts(), seen.bad_codes()), (vec!["a", "b"], vec![(7, "broken_csv")]));
}

/// Rows 3 and 4 were part of the text of row 2, without a word.
#[test]
fn a_quote_that_is_not_balanced_swallows_no_record() {
    let table = "id,text,url\n1,one,\n2,\"unbalanced,u\n3,three,u\n4,\"x\",u\n5,five,u\n";
    for task_bytes in [1, 1 << 20] {
        let seen = read_csv(table.as_bytes(), &in_blocks_of(task_bytes));
        assert_eq!(seen.texts(), ["one", "three", "x", "five"]);
        assert_eq!(seen.bad_codes(), [(19, "broken_csv")]);
        assert_eq!((seen.bad[0].records, seen.bad[0].bytes), (1, 16));
        assert!(seen.bad[0].reason.to_string().contains("text after a closing quote"));
    }
    let open = read_csv(b"text\n\"open\ntwo\nthree\n", &in_blocks_of(100));
    assert_eq!((open.texts(), open.bad_codes()), (vec!["two", "three"], vec![(5, "broken_csv")]));
    // Spaces behind a quote, and quotes inside a field that has none around it, are nothing bad.
    let spaced = read_csv(b"text,id\n\"a\" ,1\nsay \"b\",2\n", &in_blocks_of(100));
    assert_eq!((spaced.texts(), spaced.bad_codes()), (vec!["a", "say \"b\""], vec![]));
}

#[test]
fn a_stream_that_is_cut_off_keeps_what_came_before() {
    let table: String = (0_u32..3000).map(|i| format!("{:x}\n", i.wrapping_mul(2_654_435_761))).collect();
    let packed = gzip(format!("text\n{table}").as_bytes());
    let seen = read_csv(&packed[..packed.len() - 20], &in_blocks_of(1000));
    assert!(seen.documents.len() > 1000);
    assert!(seen.documents.iter().zip(table.lines()).all(|(document, line)| document.text == line));
    assert_eq!(seen.bad.iter().map(|bad| bad.reason.code()).collect::<Vec<_>>(), ["cut_off"]);
}

/// The records of a whole text by the parser of the `csv` crate, which is the truth where all
/// quotes are balanced.
fn naive(bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut parser = csv_core::Reader::new();
    let (mut fields, mut ends) = (vec![0; bytes.len() + 8], vec![0; bytes.len() + 8]);
    let (mut rest, mut records) = (bytes, Vec::new());
    let (mut written, mut columns) = (0, 0);
    loop {
        let (result, read, wrote, ended) =
            parser.read_record(rest, &mut fields[written..], &mut ends[columns..]);
        (rest, written, columns) = (&rest[read..], written + wrote, columns + ended);
        match result {
            csv_core::ReadRecordResult::Record => {
                let starts = std::iter::once(0).chain(ends.iter().copied());
                let ranges = starts.zip(&ends[..columns]).map(|(start, end)| fields[start..*end].to_vec());
                records.push(ranges.collect());
                (written, columns) = (0, 0);
            }
            csv_core::ReadRecordResult::End => return records,
            _ => {}
        }
    }
}

/// All records and all bytes of a stream that gives a few bytes at a time.
fn cut(bytes: &[u8], max_record: u64) -> (Vec<Vec<Vec<u8>>>, Vec<u8>, usize) {
    struct Slow<'a>(&'a [u8]);
    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let n = self.0.len().min(into.len()).min(3);
            into[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }
    let mut reader = CsvRecords::new(Slow(bytes), b',', max_record);
    let (mut records, mut all, mut broken) = (Vec::new(), Vec::new(), 0);
    loop {
        let offset = reader.offset();
        let Some(item) = reader.next_item() else { break };
        assert_eq!(offset, all.len() as u64);
        let is_record = matches!(item, CsvItem::Record { .. });
        let piece = match item {
            CsvItem::Record { offset: at, bytes } => {
                assert_eq!(at, offset);
                bytes
            }
            CsvItem::Broken { bytes, .. } => {
                broken += 1;
                bytes
            }
            CsvItem::TooLong { bytes, ends, .. } => {
                broken += usize::from(ends);
                bytes
            }
            CsvItem::Between(bytes) => bytes,
        };
        assert!(!piece.is_empty());
        all.extend_from_slice(piece);
        if is_record {
            let field = |column| {
                let mut field = Vec::new();
                reader.unpack(column, &mut field);
                field
            };
            records.push((0..reader.columns()).map(field).collect());
        }
    }
    (records, all, broken)
}

proptest! {
    /// The naive twin is the whole-file reader of the csv crate's own parser, one record at a time
    /// with no blocks.
    #[test]
    fn any_task_size_reads_the_same(rows in prop::collection::vec(("[a\",\n\r ]{0,8}", "[b\",]{0,3}"), 0..20), task_bytes in 1_u64..40) {
        let quoted = |field: &str| format!("\"{}\"", field.replace('"', "\"\""));
        let mut table = "id,text\n".to_owned();
        for (text, id) in &rows {
            table += &format!("{},{}\n", quoted(id), quoted(text));
        }
        let seen = read_csv(table.as_bytes(), &in_blocks_of(task_bytes));
        prop_assert_eq!(seen.bad_codes(), vec![]);
        prop_assert_eq!(seen.texts(), rows.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>());
    }

    /// Where nothing is broken the records are those of the other parser; and whatever the bytes,
    /// all of them come by.
    #[test]
    fn records_are_those_of_the_other_parser(bytes in prop::collection::vec(prop::sample::select(b"ab,\"\n\r".to_vec()), 0..60), max_record in 1_u64..70) {
        let (records, all, broken) = cut(&bytes, max_record);
        prop_assert_eq!(&all, &bytes);
        if broken == 0 {
            prop_assert_eq!(records, naive(&bytes));
        }
        let (all_records, _, none) = cut(&bytes, 1000);
        if none == 0 {
            prop_assert_eq!(all_records, naive(&bytes));
        }
    }

    #[test]
    fn no_bytes_make_it_fail_differently_by_task_size(bytes in prop::collection::vec(prop::sample::select(b"ab,\"\n\r\xff".to_vec()), 0..120), task_bytes in 1_u64..40, max_record_bytes in 1_u64..40) {
        let bytes = [b"text,id\n".as_slice(), &bytes].concat();
        let options = |task_bytes| Options { max_record_bytes: max_record_bytes.max(9), ..in_blocks_of(task_bytes) };
        prop_assert_eq!(read_csv(&bytes, &options(task_bytes)), read_csv(&bytes, &options(1 << 20)));
    }
}
