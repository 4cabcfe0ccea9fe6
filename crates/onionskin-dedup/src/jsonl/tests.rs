use onionskin_corpus::Options;
use proptest::prelude::*;

use super::super::Copying;
use super::super::testing::{Bench, exact, gunzip, gzip, near};
use super::*;

/// The lines of a stream, put together again.
fn lines(bytes: &[u8], limit: u64) -> Vec<(u64, Vec<u8>)> {
    let mut reader = Lines::new(bytes, limit);
    let mut found: Vec<(u64, Vec<u8>)> = Vec::new();
    while let Some(piece) = reader.next().unwrap() {
        if piece.begins {
            found.push((piece.offset, Vec::new()));
        }
        let last = found.last_mut().unwrap();
        assert_eq!(last.0, piece.offset);
        last.1.extend_from_slice(piece.bytes);
    }
    found
}

#[test]
fn long_lines_come_in_pieces() {
    let long = [vec![b'x'; 3 * BUFFER_BYTES], b"\nshort\n\nlast".to_vec()].concat();
    let mut at = 0;
    let expected: Vec<(u64, Vec<u8>)> = long
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| {
            at += line.len() as u64;
            (at - line.len() as u64, line.to_vec())
        })
        .collect();
    for limit in
        [1, 1000, BUFFER_BYTES as u64, 3 * BUFFER_BYTES as u64, 3 * BUFFER_BYTES as u64 + 1, u64::MAX]
    {
        assert_eq!(lines(&long, limit), expected, "limit {limit}");
    }
    // Up to the limit a line is whole, its line feed included.
    let limit = 3 * BUFFER_BYTES as u64 + 1;
    let mut whole = Lines::new(long.as_slice(), limit);
    let piece = whole.next().unwrap().unwrap();
    assert!(piece.begins && piece.ends);
}

/// A line of a file, and whether it is a document that is removed.
fn arbitrary_line() -> impl Strategy<Value = (String, bool)> {
    prop_oneof![
        6 => ("[a-c ]{1,12}", any::<bool>()).prop_map(|(text, removed)| (format!("{{\"text\": \"{text}\"}}"), removed)),
        1 => "[ \t]{0,3}\r?".prop_map(|line| (line, false)),
        1 => "[a-z{}\"]{1,9}".prop_map(|line| (line, false)),
        1 => Just(("{\"text\": 7}".to_owned(), false)),
        1 => any::<bool>().prop_map(|removed| (format!("{{\"text\":\"{}\"}}\r", "long ".repeat(60_000)), removed)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Against a program that splits the text, drops lines by number, and joins the rest.
    #[test]
    fn filtered_lines_are_those_of_a_naive_filter(
        mut file in proptest::collection::vec(arbitrary_line(), 1..30),
        ends_with_line_feed: bool,
        packing in 0..3,
    ) {
        // The centre; also makes sure that the file is taken for JSON lines.
        file.insert(0, ("{\"text\": \"the first\"}".to_owned(), false));
        let mut text: String = file.iter().map(|(line, _)| format!("{line}\n")).collect();
        if !ends_with_line_feed {
            text.pop();
        }
        let mut reader = JsonLineReader::default();
        let options = Options::default();
        let mut is_document = |line: &str| reader.read(line.as_bytes(), &options, "x").is_some();
        let mut doc = 0;
        let (mut removed, mut expected, mut others) = (Vec::new(), String::new(), 0);
        for (line, (_, wanted)) in text.split_inclusive('\n').zip(&file) {
            let counts = is_document(line);
            if counts && *wanted {
                removed.push(doc);
            } else {
                expected.push_str(line);
                others += u64::from(!counts && !line.trim_matches([' ', '\t', '\r', '\n']).is_empty());
            }
            doc += u32::from(counts);
        }

        let size = text.len();
        let bench = Bench::new();
        let (name, bytes) = match packing {
            1 => ("a.jsonl.gz", gzip(text.as_bytes())),
            2 => ("a.jsonl.zst", zstd::encode_all(text.as_bytes(), 1).unwrap()),
            _ => ("a.jsonl", text.into_bytes()),
        };
        bench.write(&format!("in/{name}"), bytes);
        bench.atlas(&[near(0, &removed.iter().map(|doc| (*doc, 0.9)).collect::<Vec<_>>())]);
        let summary = bench.dedup(|_| {}).unwrap();
        let copy = bench.out(&format!("shards/{name}"));
        let copy = match packing {
            1 => gunzip(&copy),
            2 => zstd::decode_all(copy.as_slice()).unwrap(),
            _ => copy,
        };
        prop_assert_eq!(summary.removed_record_bytes, (size - expected.len()) as u64);
        prop_assert_eq!(String::from_utf8(copy).unwrap(), expected);
        prop_assert_eq!((summary.removed_records, summary.other_records), (removed.len() as u64, others));
    }
}

const LINES: &str = "{\"id\":\"a\",\"text\":\"a rose\"}\r
{ \"text\": \"a rose \u{1f339}\\n\", \"id\": 7, \"source\": \"web\" } \t
[1, 2]

{\"url\":\"http://a.example/\",\"text\":\"alone\"}
{\"text\":\"another \\\"rose\\\" }\"}";

fn roses() -> Bench {
    let bench = Bench::new();
    bench.write("in/documents/x/a.jsonl.gz", gzip(LINES.as_bytes()));
    bench.atlas(&[near(0, &[(1, 0.875), (3, 0.5)])]);
    bench
}

#[test]
fn annotated_lines_say_more_and_are_otherwise_the_same() {
    let bench = roses();
    let summary = bench.dedup(|params| params.copying = Copying::Annotate).unwrap();
    assert_eq!((summary.annotated, summary.other_records, summary.removed_records), (3, 1, 0));
    let copy = String::from_utf8(gunzip(&bench.out("shards/documents/x/a.jsonl.gz"))).unwrap();
    let expected = "{\"id\":\"a\",\"text\":\"a rose\",\"dup_cluster\":0,\"dup_size\":3,\"dup_of\":null,\"dup_resemblance\":1.0}\r
{ \"text\": \"a rose \u{1f339}\\n\", \"id\": 7, \"source\": \"web\" ,\"dup_cluster\":0,\"dup_size\":3,\"dup_of\":\"a\",\"dup_resemblance\":0.875} \t
[1, 2]

{\"url\":\"http://a.example/\",\"text\":\"alone\"}
{\"text\":\"another \\\"rose\\\" }\",\"dup_cluster\":0,\"dup_size\":3,\"dup_of\":\"a\",\"dup_resemblance\":0.5}";
    assert_eq!(copy, expected);
}

/// Other clusters, of a file that was annotated before: as if it had not been.
#[test]
fn a_second_annotation_replaces_the_first() {
    let annotated = |bench: &Bench| {
        bench.dedup(|params| params.copying = Copying::Annotate).unwrap();
        gunzip(&bench.out("shards/documents/x/a.jsonl.gz"))
    };
    let (bench, again) = (roses(), Bench::new());
    again.write("in/documents/x/a.jsonl.gz", gzip(&annotated(&bench)));
    for clusters in [near(0, &[(1, 0.875), (3, 0.5)]), near(3, &[(2, 0.625)])] {
        let made = [&bench, &again].map(|bench| {
            bench.clear();
            bench.atlas(std::slice::from_ref(&clusters));
            annotated(bench)
        });
        assert_eq!(String::from_utf8_lossy(&made[1]), String::from_utf8_lossy(&made[0]));
    }
    // No cluster at all: what comes back is the original.
    again.clear();
    again.atlas(&[]);
    assert_eq!(annotated(&again), LINES.as_bytes());
}

#[test]
fn what_only_looks_like_an_annotation_stays() {
    let bench = Bench::new();
    let lines = "{\"text\":\"a\",\"of\":{\"dup_of\":1}}\n{\"dup_of\":\n{\"dup_of\":1,\"text\":nothing}\n";
    bench.write("in/a.jsonl", lines);
    bench.atlas(&[]);
    bench.dedup(|params| params.copying = Copying::Annotate).unwrap();
    assert_eq!(bench.out_text("shards/a.jsonl"), lines);
}

#[test]
fn dolma_attributes_stand_line_by_line() {
    let bench = roses();
    let summary = bench
        .dedup(|params| {
            params.copying = Copying::None;
            params.dolma = Some("roses".to_owned());
        })
        .unwrap();
    assert_eq!((summary.annotated, summary.files), (2, 1));
    let lines = String::from_utf8(gunzip(&bench.out("attributes/roses/x/a.jsonl.gz"))).unwrap();
    let expected = "{\"id\":\"a\",\"attributes\":{\"roses__near_dup\":[]}}
{\"id\":\"7\",\"source\":\"web\",\"attributes\":{\"roses__near_dup\":[[0,9,0.875]]}}
{\"id\":null,\"attributes\":{\"roses__near_dup\":[]}}
{\"id\":null,\"attributes\":{\"roses__near_dup\":[]}}
{\"id\":null,\"attributes\":{\"roses__near_dup\":[]}}
{\"id\":null,\"attributes\":{\"roses__near_dup\":[[0,16,0.5]]}}
";
    assert_eq!(lines, expected);
}

#[test]
fn a_stream_that_is_cut_off_is_copied_as_far_as_it_goes() {
    let lines: String =
        (0..3000_u64).map(|n| format!("{{\"text\":\"line {n} {}\"}}\n", n * n * 7919 % 10_007)).collect();
    let packed = gzip(lines.as_bytes());
    let bench = Bench::new();
    bench.write("in/a.jsonl.gz", &packed[..packed.len() * 2 / 3]);
    bench.atlas(&[exact(0, &[1, 2])]);
    let summary = bench.dedup(|_| {}).unwrap();
    assert_eq!(summary.damaged.len(), 1, "{:?}", summary.damaged);
    let copy = String::from_utf8(gunzip(&bench.out("shards/a.jsonl.gz"))).unwrap();
    let mut expected = lines.lines();
    let first = expected.next().unwrap();
    let rest: Vec<&str> = expected.skip(2).collect();
    let whole: Vec<&str> = copy.lines().collect();
    assert!(whole.len() > 1000 && whole.len() < 2998);
    assert_eq!(whole[0], first);
    for (found, wanted) in whole[1..].iter().zip(&rest) {
        assert!(found == wanted || wanted.starts_with(found), "{found}");
    }
}

#[test]
fn an_empty_file_has_an_empty_copy() {
    let bench = Bench::new();
    bench.write("in/a.jsonl", "");
    bench.write("in/b.jsonl", "{\"text\":\"a\"}\n{\"text\":\"a\"}\n");
    bench.atlas(&[exact(0, &[1])]);
    bench.dedup(|_| {}).unwrap();
    assert_eq!(
        (bench.out("shards/a.jsonl"), bench.out("shards/b.jsonl")),
        (vec![], b"{\"text\":\"a\"}\n".to_vec())
    );
}
