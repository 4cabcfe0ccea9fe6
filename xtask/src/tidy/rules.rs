//! Rules about single lines. Each takes a file and gives the lines that break it.

use super::source::Line;

/// A file and how it is cut; only Rust is.
pub(super) struct File<'a> {
    /// From the root of the workspace, with `/`.
    pub name: &'a str,
    pub text: &'a str,
    pub lines: Vec<Line>,
}

impl<'a> File<'a> {
    pub(super) fn new(name: &'a str, text: &'a str) -> File<'a> {
        let lines = if name.ends_with(".rs") { super::source::lines(text) } else { Vec::new() };
        File { name, text, lines }
    }

    fn is_test(&self) -> bool {
        ["/tests/", "/testing/", "/examples/", "/benches/"].iter().any(|part| self.name.contains(part))
            || ["/tests.rs", "/testing.rs"].iter().any(|end| self.name.ends_with(end))
    }

    /// Numbers and lines of code outside tests.
    fn product(&self) -> impl Iterator<Item = (usize, &Line)> {
        let product = !self.is_test();
        (1..).zip(&self.lines).filter(move |(_, line)| product && !line.test)
    }
}

/// A line that breaks a rule, and how.
pub(super) type Complaint = (usize, &'static str);

/// Columns of a comment or of a line of Markdown.
pub(super) const WIDTH: usize = 100;

/// Files that may have unsafe code, by the end of their path.
const UNSAFE_PLACES: &[&str] = &[
    "onionskin-cli/src/allocator.rs",
    "onionskin-core/src/simd.rs",
    "onionskin-core/src/simd/avx512.rs",
    "onionskin-core/src/simd/x86.rs",
    "onionskin-py/src/arrow.rs",
];

/// Crates that speak to people in words of their own, by the beginning of their path. All others
/// are libraries.
const EDGES: &[&str] = &[
    "bench/",
    "crates/onionskin-cli/",
    "crates/onionskin-py/",
    "crates/onionskin-serve/",
    "crates/onionskin-testkit/",
    "fuzz/",
    "xtask/",
];

/// Where a number may mean that there is none.
const SENTINEL_PLACE: &str = "crates/onionskin-core/src/id.rs";

/// Calls that name a stage or a table by a string.
const STRING_KEYS: &[&str] =
    &["stages.get(\"", "stages.insert(\"", "stages[\"", ".has(\"", ".table(\"", "tables.get(\""];

pub(super) fn no_unsafe_code(file: &File<'_>) -> Vec<Complaint> {
    if UNSAFE_PLACES.iter().any(|place| file.name.ends_with(place)) {
        return Vec::new();
    }
    find(file, "unsafe code outside the places that may have it", |line| line.code.contains("unsafe {"))
}

pub(super) fn nothing_unfinished(file: &File<'_>) -> Vec<Complaint> {
    let marks = ["todo!(", "unimplemented!(", "dbg!("];
    find(file, "unfinished", |line| marks.iter().any(|mark| line.code.contains(mark)))
}

/// Libraries do not know who calls them: a flag means nothing to Python or over HTTP.
pub(super) fn no_flags_in_libraries(file: &File<'_>) -> Vec<Complaint> {
    if EDGES.iter().any(|edge| file.name.starts_with(edge)) {
        return Vec::new();
    }
    let found = file.product().filter(|(_, line)| line.strings.iter().any(|string| names_a_flag(string)));
    found.map(|(number, _)| (number, "a message of a library names a command-line flag")).collect()
}

/// Two hyphens and a letter at the beginning of a word; `var(--line)` is CSS.
fn names_a_flag(string: &str) -> bool {
    string.match_indices("--").any(|(at, _)| {
        let (before, after) = (&string[..at], &string[at + 2..]);
        let begins = before.is_empty() || before.ends_with([' ', '\n', '`', '\'', '(']);
        begins && !before.ends_with("var(") && after.starts_with(|c: char| c.is_ascii_lowercase())
    })
}

pub(super) fn no_string_keys(file: &File<'_>) -> Vec<Complaint> {
    let words = "a stage or a table by a string; there is a type for it";
    find(file, words, |line| STRING_KEYS.iter().any(|key| line.code.contains(key)))
}

pub(super) fn no_sentinels(file: &File<'_>) -> Vec<Complaint> {
    if file.name == SENTINEL_PLACE {
        return Vec::new();
    }
    let marks = [": u32 = u32::MAX", "== u32::MAX"];
    let found = file.product().filter(|(_, line)| marks.iter().any(|mark| line.code.contains(mark)));
    found.map(|(number, _)| (number, "u32::MAX for nothing; use an Option or a type of ids")).collect()
}

pub(super) fn narrow_comments(file: &File<'_>) -> Vec<Complaint> {
    let hashes = [".py", ".toml", ".yml", ".sh"].iter().any(|end| file.name.ends_with(end));
    let comment = |number: usize, line: &str| match hashes {
        true => line.trim_start().starts_with('#'),
        false => file.lines.get(number - 1).is_some_and(|cut| cut.comment),
    };
    let mut fenced = false;
    let wide = (1..).zip(file.text.lines()).filter(|(number, line)| {
        let text = line.trim_start().trim_start_matches(['/', '!']).trim_start();
        comment(*number, line) && is_wide(line, text, &mut fenced)
    });
    wide.map(|(number, _)| (number, "a comment over 100 columns")).collect()
}

pub(super) fn narrow_markdown(file: &File<'_>) -> Vec<Complaint> {
    if !file.name.ends_with(".md") {
        return Vec::new();
    }
    let mut fenced = false;
    let lines = (1..).zip(file.text.lines());
    let wide = lines.filter(|(_, line)| is_wide(line, line.trim_start(), &mut fenced));
    wide.map(|(number, _)| (number, "a line over 100 columns")).collect()
}

/// Rows of tables, lines with a URL, and code and diagrams between fences cannot be broken.
fn is_wide(line: &str, text: &str, fenced: &mut bool) -> bool {
    *fenced ^= text.starts_with("```");
    line.chars().count() > WIDTH && !*fenced && !text.starts_with('|') && !text.contains("://")
}

fn find(file: &File<'_>, words: &'static str, breaks: impl Fn(&Line) -> bool) -> Vec<Complaint> {
    let lines = (1..).zip(&file.lines).filter(|(_, line)| breaks(line));
    lines.map(|(number, _)| (number, words)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the lines that break a rule.
    fn broken(rule: fn(&File<'_>) -> Vec<Complaint>, name: &str, text: &str) -> Vec<usize> {
        rule(&File::new(name, text)).into_iter().map(|(number, _)| number).collect()
    }

    #[test]
    fn unfinished_and_unsafe_are_seen() {
        let text = "fn f() { todo!() }\n// todo!() in words\nlet x = \"todo!()\";\n";
        assert_eq!(broken(nothing_unfinished, "a.rs", text), [1]);
        assert_eq!(broken(no_unsafe_code, "a.rs", "unsafe { g() }\n// unsafe { g() }"), [1]);
        assert!(broken(no_unsafe_code, "crates/onionskin-core/src/simd.rs", "unsafe { g() }").is_empty());
    }

    #[test]
    fn flags_in_messages_of_libraries_are_seen() {
        let text = "#[error(\"{0}\\nhint: --overwrite starts over\")]\n\
            // --overwrite in a comment\n\
            let x = \"stroke: var(--line); a -- b; x--y\";\n\
            let y = \"or `--shards none`\\n--more\";\n\
            #[cfg(test)]\nmod tests {\n    \"--flag\"\n}\n";
        assert_eq!(broken(no_flags_in_libraries, "crates/onionskin-scan/src/lib.rs", text), [1, 4]);
        assert!(broken(no_flags_in_libraries, "crates/onionskin-cli/src/hints.rs", text).is_empty());
        assert!(broken(no_flags_in_libraries, "crates/onionskin-scan/src/lib/tests.rs", text).is_empty());
    }

    #[test]
    fn string_keys_are_seen() {
        let text = "atlas.has(\"pairs\");\natlas.has(Table::Pairs);\nstages.get(\"scan\");\n// .has(\"x\")\n";
        assert_eq!(broken(no_string_keys, "a.rs", text), [1, 3]);
    }

    #[test]
    fn sentinels_are_seen() {
        let text = "const NONE: u32 = u32::MAX;\nlet most = u64::from(u32::MAX);\nif a == u32::MAX {}\n";
        assert_eq!(broken(no_sentinels, "crates/onionskin-mirror/src/grow.rs", text), [1, 3]);
        assert!(broken(no_sentinels, SENTINEL_PLACE, text).is_empty());
    }

    #[test]
    fn wide_comments_are_seen() {
        let words = "word ".repeat(21);
        let text = format!(
            "/// {words}\n/// short\nlet x = \"{words}// {words}\";\n// https://a.example/ {words}\n/// | {words}\nlet x = 1; // {words}\n"
        );
        assert_eq!(broken(narrow_comments, "a.rs", &text), [1, 6]);
        let text = format!("# {words}\nx = \"{words}\"\n");
        assert_eq!(broken(narrow_comments, "a.toml", &text), [1]);
        // Columns, not bytes.
        assert!(broken(narrow_comments, "a.rs", &format!("// {}", "ä".repeat(90))).is_empty());
    }

    #[test]
    fn wide_markdown_is_seen() {
        let words = "word ".repeat(21);
        let text = format!("{words}\n| {words} |\n[a]: https://a.example/{words}\nshort\n    {words}\n");
        assert_eq!(broken(narrow_markdown, "docs/a.md", &text), [1, 5]);
        assert!(broken(narrow_markdown, "docs/a.txt", &text).is_empty());
    }
}
