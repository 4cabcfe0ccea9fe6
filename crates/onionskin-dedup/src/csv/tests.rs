use onionskin_store::TableName;
use proptest::prelude::*;

use super::super::testing::{Bench, exact, gunzip, gzip, near};
use super::super::{Copying, DedupParams};
use onionskin_corpus::Format;

fn with_csv(params: &mut DedupParams) {
    params.formats = [Format::Csv, Format::Tsv].into();
}

#[test]
fn records_stay_as_they_are_and_the_header_too() {
    let bench = Bench::new();
    let text = "\u{feff}id,text,url\r\n1,a rose,\r\n\r\n2,\"a \"\"rose\"\",\nwith lines\",http://a.example/\r\n3,short\r\n4,last,";
    bench.write("in/a.csv", text);
    bench.write("in/b.tsv.gz", gzip(b"text\tid\na rose\t5\n\"a\trose\"\t6\n"));
    bench.atlas(&[near(0, &[(1, 0.9), (4, 0.8)])]);
    let summary = bench.dedup(with_csv).unwrap();
    assert_eq!((summary.removed_records, summary.other_records), (2, 1));
    let removed = "2,\"a \"\"rose\"\",\nwith lines\",http://a.example/\r\n\"a\trose\"\t6\n";
    assert_eq!(summary.removed_record_bytes, removed.len() as u64);
    assert_eq!(bench.out_text("shards/a.csv"), "\u{feff}id,text,url\r\n1,a rose,\r\n\r\n3,short\r\n4,last,");
    assert_eq!(gunzip(&bench.out("shards/b.tsv.gz")), b"text\tid\na rose\t5\n");
}

#[test]
fn tables_without_types_are_not_annotated_and_not_copied_unasked() {
    let bench = Bench::new();
    bench.write("in/a.csv", "text\na\na\n");
    bench.atlas(&[exact(0, &[1])]);
    let summary = bench.dedup(|_| {}).unwrap();
    assert_eq!((summary.files, &summary.left_out), (0, &[("csv".to_owned(), 1)].into()));
    bench.clear();
    let annotated = bench.dedup(|params| {
        with_csv(params);
        params.copying = Copying::Annotate;
    });
    assert_eq!(annotated.unwrap().left_out, [("csv".to_owned(), 1)].into());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Records are found exactly where the scan's reader finds them: every verdict meets its
    /// record, whatever the quoting, and a filter that removes nothing copies every byte.
    #[test]
    fn records_are_where_the_scan_found_them(
        text in "text,id\r?\na,b\nb,a\r\n([ab]|,|\"|\"\"|\r|\n|\r\n){0,60}",
        share in 1..4_usize,
    ) {
        let bench = Bench::new();
        bench.write("in/a.csv", &text);
        bench.scan(|_| {});
        let atlas = onionskin_store::Atlas::open(bench.path("atlas")).unwrap();
        let documents = u32::try_from(atlas.table(&TableName::Documents).unwrap().rows).unwrap();
        bench.clusters(&[], &[], "centred");
        bench.dedup(with_csv).unwrap();
        prop_assert_eq!(bench.out_text("shards/a.csv"), text.clone());

        bench.clear();
        let removed: Vec<u32> = (1..documents).step_by(share).collect();
        bench.clusters(&[exact(0, &removed)], &[], "centred");
        let summary = bench.dedup(with_csv).unwrap();
        prop_assert_eq!(summary.removed_records, removed.len() as u64);
        // What is left are the documents that were not removed, in order.
        let left = texts(bench.out("shards/a.csv"));
        let all = texts(text.clone().into_bytes());
        prop_assert_eq!(all.len(), documents as usize);
        let expected: Vec<String> = (0..documents)
            .zip(all)
            .filter(|(doc, _)| !removed.contains(doc))
            .map(|(_, text)| text)
            .collect();
        prop_assert_eq!(left, expected);
    }
}

/// The texts of a file, by the reader of the scan.
fn texts(bytes: Vec<u8>) -> Vec<String> {
    use onionskin_corpus::{
        BadRecord, Document, InputFailure, Options, Scratch, SkipReason, Tasks, Visitor, discover,
    };
    struct Texts(Vec<String>);
    impl Visitor for Texts {
        fn document(&mut self, document: Document<'_>) {
            self.0.push(document.text.to_owned());
        }
        fn bad_record(&mut self, _: BadRecord) {}
        fn skipped(&mut self, _: SkipReason) {}
        fn failed(&mut self, failure: InputFailure) {
            panic!("{failure:?}");
        }
    }
    let bench = Bench::new();
    let path = bench.write("a.csv", bytes);
    let options = std::sync::Arc::new(Options::default());
    let sources = discover(&[path.display().to_string()], &options).unwrap();
    let mut tasks = Tasks::new(sources.into(), std::sync::Arc::clone(&options));
    let (mut scratch, mut texts) = (Scratch::new(&options), Texts(Vec::new()));
    while let Some(task) = tasks.next_task() {
        task.run(&mut scratch, &mut texts);
    }
    texts.0
}
