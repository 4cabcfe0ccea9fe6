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
    assert_eq!(seen.bad[0].reason.to_string(), "no column \"text\"; there are a, b");
    assert_eq!(read_csv(b"", &in_blocks_of(100)), Seen::default());
    assert_eq!(read_csv(b"text\n", &in_blocks_of(100)), Seen::default());
}

#[test]
fn a_quote_that_nobody_closed_is_not_held() {
    let mut bytes = b"text\na\n\"".to_vec();
    bytes.resize(30 << 20, b'x');
    let seen = read_csv(&bytes, &Options { max_record_bytes: 1000, ..in_blocks_of(100) });
    assert_eq!((seen.texts(), seen.bad_codes()), (vec!["a"], vec![(7, "too_large")]));

    // A long record that does end is passed over.
    let text = format!("text\na\n\"{}\"\nb\n", "x\n".repeat(10_000));
    let seen = read_csv(text.as_bytes(), &Options { max_record_bytes: 1000, ..in_blocks_of(100) });
    assert_eq!((seen.texts(), seen.bad_codes()), (vec!["a", "b"], vec![(7, "too_large")]));
    // And so is one of a million columns.
    let text = format!("text\na\n{}\nb\n", ",".repeat(1_000_000));
    let seen = read_csv(text.as_bytes(), &in_blocks_of(100));
    assert_eq!((seen.texts(), seen.bad_codes()), (vec!["a", "b"], vec![(7, "broken_csv")]));
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

    #[test]
    fn no_bytes_make_it_fail_differently_by_task_size(bytes in prop::collection::vec(prop::sample::select(b"ab,\"\n\r\xff".to_vec()), 0..120), task_bytes in 1_u64..40, max_record_bytes in 1_u64..40) {
        let bytes = [b"text,id\n".as_slice(), &bytes].concat();
        let options = |task_bytes| Options { max_record_bytes: max_record_bytes.max(9), ..in_blocks_of(task_bytes) };
        prop_assert_eq!(read_csv(&bytes, &options(task_bytes)), read_csv(&bytes, &options(1 << 20)));
    }
}
