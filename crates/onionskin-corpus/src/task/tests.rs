use std::io::{self, Read};

use super::*;
use crate::discover;
use crate::options::Format;
use crate::sniff::Encoding;
use crate::source::{Location, Stream};
use crate::testing::{Folder, gzip, read, run_tasks};

fn pipe(bytes: &[u8], format: Format) -> Source {
    let stream = Stream::new(Box::new(io::Cursor::new(bytes.to_vec())));
    Source {
        name: "-".to_owned(),
        bytes: 0,
        format,
        encoding: Encoding::of(bytes),
        location: Location::Stream(stream),
    }
}

#[test]
fn a_pipe_is_read_in_order() {
    let text = b"{\"text\":\"a\"}\n{\"text\":\"b\"}\n{\"text\":\"c\"}";
    for task_bytes in [1, 20, 1 << 20] {
        let options = Options { task_bytes, ..Options::default() };
        assert_eq!(read(vec![pipe(text, Format::Jsonl)], &options).texts(), ["a", "b", "c"]);
        assert_eq!(read(vec![pipe(&gzip(text), Format::Jsonl)], &options).texts(), ["a", "b", "c"]);
    }
    let seen = read(vec![pipe(b"one document", Format::Tree)], &Options::default());
    assert_eq!((seen.texts(), seen.documents[0].id.as_deref()), (vec!["one document"], Some("-")));
}

/// Compressed or not, what is read moves within a source and ends with its size; a run that goes on
/// in the middle says the same.
#[test]
fn progress_moves_within_sources() {
    let folder = Folder::new();
    let word = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ n.wrapping_mul(n) << 7;
    let lines: String = (0..40_000).map(|n| format!("{{\"text\":\"{:x}\"}}\n", word(n))).collect();
    folder.file("a.jsonl", &lines);
    folder.file("b.jsonl.gz", gzip(lines.as_bytes()));
    folder.file("c.jsonl.zst", zstd::encode_all(lines.as_bytes(), 1).unwrap());
    let options = Arc::new(Options { task_bytes: 100_000, ..Options::default() });
    let sources: Arc<[Source]> = folder.sources(&["a.jsonl", "b.jsonl.gz", "c.jsonl.zst"], &options).into();
    let read = |mut tasks: Tasks| -> Vec<(Position, u64)> {
        std::iter::from_fn(|| tasks.next_task()).map(|task| (task.position(), task.read_bytes())).collect()
    };
    let all = read(Tasks::new(Arc::clone(&sources), Arc::clone(&options)));
    assert!(all.is_sorted_by_key(|(_, bytes)| *bytes));
    let mut before = 0;
    for (index, source) in (1..).zip(sources.iter()) {
        let inside = all.iter().filter(|(_, bytes)| (before + 1..before + source.bytes).contains(bytes));
        assert!(inside.count() >= 4, "{all:?}");
        before += source.bytes;
        assert!(all.contains(&(Position { source: index, task: 0 }, before)), "{all:?}");
    }
    let middle = all.len() * 2 / 3;
    let taken_up = Tasks::starting_at(Arc::clone(&sources), options, all[middle - 1].0).unwrap();
    assert_eq!(read(taken_up), all[middle..]);
}

#[test]
fn a_pipe_cannot_be_taken_up_in_the_middle() {
    let options = Arc::new(Options { task_bytes: 1, ..Options::default() });
    let text = b"{\"text\":\"a\"}\n{\"text\":\"b\"}\n";
    let sources: Arc<[Source]> = vec![pipe(text, Format::Jsonl)].into();
    let positions: Vec<_> = run_tasks(Tasks::new(Arc::clone(&sources), Arc::clone(&options)), &options)
        .into_iter()
        .map(|(at, _)| at)
        .collect();
    // After the last task the source is behind us, and that position is fine.
    assert_eq!(positions, [Position { source: 0, task: 1 }, Position { source: 1, task: 0 }]);
    let resume =
        |position| Tasks::starting_at(Arc::clone(&sources), Arc::clone(&options), position).map(|_| ());
    assert_eq!(resume(positions[0]), Err(ResumeError::InsideStream { name: "-".to_owned() }));
    assert_eq!(resume(positions[1]), Ok(()));
}

#[test]
fn positions_outside_the_inputs_are_refused() {
    let folder = Folder::new();
    folder.file("a.jsonl", "{\"text\":\"a\"}\n");
    let options = Arc::new(Options::default());
    let sources: Arc<[Source]> = folder.sources(&["a.jsonl"], &options).into();
    for (source, task) in [(0, 2), (1, 1), (2, 0)] {
        let position = Position { source, task };
        let error =
            Tasks::starting_at(Arc::clone(&sources), Arc::clone(&options), position).map(|_| ()).unwrap_err();
        assert_eq!(error, ResumeError::Outside { position });
    }
}

#[test]
fn sources_follow_each_other_and_empty_ones_do_no_harm() {
    let folder = Folder::new();
    folder.file("a.jsonl", "{\"text\":\"a\"}\n{\"text\":\"b\"}\n");
    folder.file("b.jsonl", "");
    folder.file("c.jsonl.gz", gzip(b"{\"text\":\"c\"}\n{\"text\":\"d\"}\n"));
    folder.file("d.jsonl.gz", gzip(b""));
    folder.file("e.txt", "e");
    folder.file("f.txt", "f");
    for task_bytes in [1, 5, 13, 1 << 20] {
        let options = Options { task_bytes, ..Options::default() };
        let sources = discover(&[folder.path().to_str().unwrap().to_owned()], &options).unwrap();
        let seen = read(sources, &options);
        // The pages of a folder are one source, before its other files.
        assert_eq!(seen.texts(), ["e", "f", "a", "b", "c", "d"]);
        let order: Vec<_> =
            seen.documents.iter().map(|document| (document.source, document.offset)).collect();
        assert_eq!(order, [(0, 0), (0, 1), (1, 0), (1, 13), (3, 0), (3, 13)]);
    }
}

#[test]
fn a_pipe_that_breaks_is_told() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(5))
        }
    }
    let mut source = pipe(b"", Format::Jsonl);
    source.location = Location::Stream(Stream::new(Box::new(b"{\"text\":\"a\"}\n{\"te".chain(Broken))));
    let seen = read(vec![source], &Options::default());
    assert_eq!((seen.texts(), seen.bad_codes()), (vec!["a"], vec![(13, "io")]));
    let failed: Vec<_> = seen.failed.iter().map(|failure| (failure.source, failure.byte)).collect();
    assert_eq!(failed, [(0, 17)]);
}
