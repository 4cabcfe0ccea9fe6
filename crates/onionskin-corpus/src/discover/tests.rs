use super::*;
use crate::testing::{Folder, gzip};

fn names(folder: &Folder, inputs: &[&str]) -> Vec<String> {
    let inputs: Vec<String> = inputs.iter().map(|input| folder.input(input)).collect();
    let prefix = format!("{}/", slashed(folder.path()));
    let sources = discover(&inputs, &Options::default()).unwrap();
    sources.iter().map(|source| format!("{}:{}", source.name.replace(&prefix, ""), source.format)).collect()
}

fn error(folder: &Folder, input: &str) -> String {
    let error = discover(&[folder.input(input)], &Options::default()).unwrap_err();
    error.to_string().replace(&format!("{}/", slashed(folder.path())), "")
}

const LINE: &str = "{\"text\":\"a\"}\n";

#[test]
fn inputs_stay_in_order_and_folders_are_sorted_bytewise() {
    let folder = Folder::new();
    for name in
        ["f/b.jsonl", "f/a/x.jsonl", "f/a-b.jsonl", "f/B.jsonl", "f/.hidden/x.jsonl", "f/.x.jsonl", "z.jsonl"]
    {
        folder.file(name, LINE);
    }
    assert_eq!(
        names(&folder, &["z.jsonl", "f"]),
        ["z.jsonl:jsonl", "f/B.jsonl:jsonl", "f/a-b.jsonl:jsonl", "f/a/x.jsonl:jsonl", "f/b.jsonl:jsonl"]
    );
}

#[test]
fn globs() {
    let folder = Folder::new();
    for name in ["f/a/1.jsonl", "f/a/2.txt", "f/b/c/3.jsonl", "f/4.jsonl", "f/b/.5.jsonl"] {
        folder.file(name, LINE);
    }
    assert_eq!(names(&folder, &["f/*.jsonl"]), ["f/4.jsonl:jsonl"]);
    assert_eq!(
        names(&folder, &["f/**/*.jsonl"]),
        ["f/4.jsonl:jsonl", "f/a/1.jsonl:jsonl", "f/b/c/3.jsonl:jsonl"]
    );
    assert_eq!(names(&folder, &["f/?/*.{jsonl,txt}"]), ["f/a/1.jsonl:jsonl", "f/a/2.txt:jsonl"]);
    assert_eq!(names(&folder, &["f/[b-z]"]), ["f/b/c/3.jsonl:jsonl"], "a folder that matches is taken whole");
    assert_eq!(error(&folder, "f/*.gz"), "f/*.gz: no file matches");
    assert_eq!(error(&folder, "nowhere/*"), "nowhere/*: no file matches");
    assert!(error(&folder, "f/[").contains("not a valid pattern"));
}

#[test]
fn a_file_whose_name_looks_like_a_pattern() {
    let folder = Folder::new();
    folder.file("x[1].jsonl", LINE);
    folder.file("x1.jsonl", LINE);
    assert_eq!(names(&folder, &["x[1].jsonl"]), ["x[1].jsonl:jsonl"]);
}

#[test]
fn lists_of_inputs() {
    let folder = Folder::new();
    folder.file("a.jsonl", LINE);
    folder.file("b.jsonl", LINE);
    let list = format!("{}\r\n\n  {}\n", folder.input("b.jsonl"), folder.input("[a].jsonl"));
    let list = folder.file("list.txt", list);
    let input = [format!("@{}", list.display())];
    let found = discover(&input, &Options::default()).unwrap();
    assert_eq!(
        found.iter().map(|source| &*source.name).collect::<Vec<_>>(),
        [folder.input("b.jsonl"), folder.input("a.jsonl")]
    );

    folder.file("list.txt", "@other.txt");
    assert!(matches!(discover(&input, &Options::default()), Err(DiscoverError::NestedList { .. })));
    let missing = [format!("@{}", folder.input("none.txt"))];
    assert!(matches!(discover(&missing, &Options::default()), Err(DiscoverError::Io { .. })));
}

#[test]
fn what_is_not_there_or_not_ours() {
    let folder = Folder::new();
    folder.file("image.html", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    fs::create_dir(folder.path().join("empty")).unwrap();
    assert_eq!(error(&folder, "none.jsonl"), "none.jsonl: no such file or folder");
    assert_eq!(error(&folder, "empty"), "empty: the folder has no files in it");
    assert!(
        error(&folder, "image.html")
            .starts_with("image.html: neither text nor a format that is known\nhint:")
    );
    assert!(matches!(discover(&[], &Options::default()), Err(DiscoverError::NoInput)));
    let forced = Options { format: Some(Format::Jsonl), ..Options::default() };
    assert_eq!(discover(&[folder.input("image.html")], &forced).unwrap()[0].format, Format::Jsonl);
}

#[cfg(not(feature = "remote"))]
#[test]
fn remote_inputs_say_how_to_build_for_them() {
    for input in ["s3://bucket/key", "gs://bucket/key", "https://example.org/x.jsonl"] {
        let error = discover(&[input.to_owned()], &Options::default()).unwrap_err().to_string();
        assert!(error.starts_with(input) && error.contains("the feature `remote`"), "{error}");
    }
}

#[test]
fn neighbouring_pages_are_one_source() {
    let folder = Folder::new();
    for name in ["f/a.html", "f/b/c.html", "f/m.jsonl", "f/x.png", "f/y.txt"] {
        let bytes = if name.ends_with("png") {
            "\0\0"
        } else if name.ends_with("jsonl") {
            LINE
        } else {
            "<html>"
        };
        folder.file(name, bytes);
    }
    assert_eq!(names(&folder, &["f"]), ["f:tree", "f/m.jsonl:jsonl"]);
    assert_eq!(names(&folder, &["f/a.html"]), ["f/a.html:tree"]);
    assert_eq!(
        names(&folder, &["f/a.html", "f/y.txt", "f/b"]),
        ["f/a.html and 1 more files:tree", "f/b/c.html:tree"]
    );
    let sources = folder.sources(&["f"], &Options::default());
    assert_eq!(sources.iter().map(Source::files).collect::<Vec<_>>(), [4, 1]);
    assert_eq!(sources[0].bytes, 20);
    assert_ne!(sources[0].identity(), sources[1].identity());
}

#[test]
fn content_decides() {
    let folder = Folder::new();
    folder.file("a", gzip(LINE.as_bytes()));
    folder.file("b.gz", "<p>not gzip</p>");
    assert_eq!(names(&folder, &["a", "b.gz"]), ["a:jsonl", "b.gz:tree"]);
}

#[cfg(unix)]
#[test]
fn links_are_followed_inside_the_folder_but_not_in_circles() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    folder.file("f/a/x.jsonl", LINE);
    folder.file("elsewhere.jsonl", LINE);
    symlink(folder.path().join("f"), folder.path().join("f/a/up")).unwrap();
    symlink(folder.path().join("elsewhere.jsonl"), folder.path().join("f/link.jsonl")).unwrap();
    symlink(folder.path().join("nothing"), folder.path().join("f/zz")).unwrap();
    symlink(folder.path().join("f/a/x.jsonl"), folder.path().join("f/inside.jsonl")).unwrap();
    symlink(folder.path(), folder.path().join("f/whole")).unwrap();
    let found = names(&folder, &["f"]);
    assert_eq!(found, ["f:tree", "f/a/x.jsonl:jsonl", "f/inside.jsonl:jsonl"]);
    let tree = &folder.sources(&["f"], &Options::default())[0];
    let Location::Tree(files) = &tree.location else { panic!("a tree") };
    let skipped: Vec<_> = (0..files.len()).map(|at| (files.name(at), files.skip_reason(at))).collect();
    use crate::SkipReason::{LinkOutside, UnreadableFile};
    let wanted = [("link.jsonl", LinkOutside), ("whole", LinkOutside), ("zz", UnreadableFile)];
    assert_eq!(skipped, wanted.map(|(name, reason)| (name, Some(reason))));
    // On request, all of them; the folder that holds the folder leads back up.
    let options = Options { follow_links: true, ..Options::default() };
    let found: Vec<String> = folder.sources(&["f"], &options).into_iter().map(|source| source.name).collect();
    assert!(found.iter().any(|name| name.ends_with("f/link.jsonl")), "{found:?}");
    assert!(found.iter().any(|name| name.ends_with("f/whole/elsewhere.jsonl")), "{found:?}");
}

#[test]
fn patterns_split_at_the_first_part_with_a_star() {
    let split = |input| split_glob(input).map(|(base, pattern)| (slashed(&base), pattern));
    let expected = |base: &str, pattern: &str| Some((base.to_owned(), pattern.to_owned()));
    assert_eq!(split("a/b/*.gz"), expected("a/b", "*.gz"));
    assert_eq!(split("*/x"), expected("", "*/x"));
    assert_eq!(split("/*/x"), expected("/", "*/x"));
    assert_eq!(split("a/b"), None);
}
