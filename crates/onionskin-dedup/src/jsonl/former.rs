//! The annotation that a line has from an earlier run.
//!
//! A second annotation replaces the first: two values under one key are read differently by
//! different parsers. A parser and a writer would change numbers, spaces and escapes of the rest,
//! so the members are cut out of the bytes of the line.

use std::ops::Range;

/// The keys of an annotation.
const KEYS: [&[u8]; 4] = [b"dup_cluster", b"dup_size", b"dup_of", b"dup_resemblance"];

/// A member of an object, in places of the line.
struct Member {
    /// The comma before it.
    comma: Option<usize>,
    /// Without its quotes.
    key: Range<usize>,
    /// Behind its value.
    end: usize,
}

impl Member {
    /// Its first byte, a quote.
    fn start(&self) -> usize {
        self.key.start - 1
    }

    fn is_ours(&self, line: &[u8]) -> bool {
        KEYS.contains(&&line[self.key.clone()])
    }
}

/// What is left of the line without the members of an annotation, in stretches; the whole line when
/// it has none, or is no object.
///
/// What goes is what was added: a comma and the member behind it. Members in front of all others go
/// with the comma that follows them.
pub(super) fn without(line: &[u8]) -> Vec<Range<usize>> {
    let mut left = Vec::new();
    let mut from = 0;
    for cut in cuts(line).unwrap_or_default() {
        left.push(from..cut.start);
        from = cut.end;
    }
    left.push(from..line.len());
    left
}

/// The stretches of an annotation, ascending.
fn cuts(line: &[u8]) -> Option<Vec<Range<usize>>> {
    // Nearly all lines end here.
    memchr::memmem::find(line, b"\"dup_")?;
    let members = members(line)?;
    let others = members.iter().position(|member| !member.is_ours(line));
    let mut cuts = Vec::new();
    match (members.first(), others) {
        (Some(first), None) => cuts.push(first.start()..members.last()?.end),
        (Some(first), Some(kept)) if kept > 0 => cuts.push(first.start()..members[kept].start()),
        _ => {}
    }
    for member in members.iter().skip(others.unwrap_or(members.len())) {
        if let Some(comma) = member.comma.filter(|_| member.is_ours(line)) {
            cuts.push(comma..member.end);
        }
    }
    Some(cuts)
}

/// The members of the object that a line is. Values are passed over by their brackets: the line has
/// been parsed before.
fn members(line: &[u8]) -> Option<Vec<Member>> {
    let mut members: Vec<Member> = Vec::new();
    let (mut depth, mut comma, mut is_inside) = (0_usize, None, false);
    let mut at = if line.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    while let Some(byte) = line.get(at) {
        let mut end = at + 1;
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {
                at = end;
                continue;
            }
            b'"' => {
                end = string_end(line, at)?;
                if depth == 1 && !is_inside {
                    members.push(Member { comma, key: at + 1..end - 1, end });
                    is_inside = true;
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b',' if depth == 1 => (comma, is_inside) = (Some(at), false),
            _ => {}
        }
        match depth {
            // The line ends with the object.
            0 => return (*byte == b'}' && super::is_blank(&line[end..])).then_some(members),
            _ if is_inside => members.last_mut()?.end = end,
            _ => {}
        }
        at = end;
    }
    None
}

/// Behind the quote that closes the string which begins at `start`.
fn string_end(line: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', line.get(at..)?)?;
        match line[at] {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn left(line: &str) -> String {
        without(line.as_bytes()).into_iter().map(|stretch| &line[stretch]).collect()
    }

    /// Nothing is said of a line that stays as it is.
    fn check(line: &str, wanted: Option<&str>) {
        assert_eq!(left(line), wanted.unwrap_or(line), "{line}");
    }

    #[test]
    fn members_go_and_all_other_bytes_stay() {
        check(r#"{"text":"a rose"}"#, None);
        check(r#"{"text":"\"dup_of\": 1","n":{"dup_of":2},"dup_ofs":3}"#, None);
        check("{\"text\": \"x\" ,\"dup_size\":2,\"dup_of\":null} \t\r\n", Some("{\"text\": \"x\" } \t\r\n"));
        check(
            r#"{"a":1.0e5 , "dup_of" : "x,}\\" , "b":[{"dup_of":1}, 2]}"#,
            Some(r#"{"a":1.0e5  , "b":[{"dup_of":1}, 2]}"#),
        );
        check(r#"{ "dup_cluster": 1, "dup_size":2 , "text":"x"}"#, Some(r#"{ "text":"x"}"#));
        check(r#"{ "dup_cluster": 1, "dup_size":2 }"#, Some("{  }"));
        check("\u{feff}{\"a\":1,\"dup_of\":2}", Some("\u{feff}{\"a\":1}"));
        for broken in [
            r#"{"a":1,"dup_of":2"#,
            r#"[{"dup_of":1}]"#,
            r#"{"dup_of":1} x"#,
            r#"{"dup_of"#,
            "\"dup_of\"",
            "]\"dup_of\"",
        ] {
            check(broken, None);
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<i32>().prop_map(Value::from),
            r#"[a,:{}\[\]"\\ ]{0,6}"#.prop_map(Value::from),
            Just(Value::Null)
        ];
        leaf.prop_recursive(2, 8, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map(key(), inner, 0..3).prop_map(|map| json!(map)),
            ]
        })
    }

    fn key() -> impl Strategy<Value = String> {
        prop::sample::select(vec!["a", "b\"", "text", "dup_of", "dup_size", "dup_"]).prop_map(str::to_owned)
    }

    proptest! {
        /// Against a parser, a map and a writer.
        #[test]
        fn lines_are_those_of_a_parser(members in prop::collection::vec((key(), value()), 0..6), space in "[ \t]{0,2}") {
            let spelled: Vec<String> =
                members.iter().map(|(key, value)| format!("{}{space}:{value}{space}", json!(key))).collect();
            let line = format!("{{{space}{}}}\n", spelled.join(&format!(",{space}")));
            let ours = |key: &str| KEYS.contains(&key.as_bytes());
            let wanted: std::collections::BTreeMap<_, _> =
                members.iter().filter(|(key, _)| !ours(key)).cloned().collect();
            let found = left(&line);
            prop_assert_eq!(found != line, members.iter().any(|(key, _)| ours(key)));
            prop_assert_eq!(serde_json::from_str::<Value>(&found).unwrap(), json!(wanted));
        }
    }
}
