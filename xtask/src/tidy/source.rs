//! Rust source cut into code, comments and strings, as far as the rules need it.

/// One line of a Rust file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// Without comments; what is inside strings is left out, the quotes are not.
    pub code: String,
    /// Whether a comment begins or goes on in it.
    pub comment: bool,
    /// The parts of string literals in it, with `\n` for line breaks.
    pub strings: Vec<String>,
    /// Whether it belongs to a module of tests.
    pub test: bool,
}

enum State {
    Code,
    LineComment,
    BlockComment(u32),
    /// A string, by the number of `#` of a raw one.
    String(Option<usize>),
}

/// Cuts a file into lines.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let mut state = State::Code;
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut cut = Line::default();
        if matches!(state, State::LineComment) {
            state = State::Code;
        }
        if matches!(state, State::String(_)) {
            cut.strings.push(String::new());
        }
        cut_line(line, &mut state, &mut cut);
        lines.push(cut);
    }
    mark_tests(&mut lines);
    lines
}

fn cut_line(line: &str, state: &mut State, cut: &mut Line) {
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let mut taken = c.len_utf8();
        match state {
            State::Code if rest.starts_with("//") => *state = State::LineComment,
            State::Code if rest.starts_with("/*") => {
                (*state, taken) = (State::BlockComment(1), 2);
                cut.comment = true;
            }
            State::Code => {
                if let Some((opening, hashes)) = opens_string(rest, cut.code.chars().next_back()) {
                    (*state, taken) = (State::String(hashes), opening);
                    cut.code.push('"');
                    cut.strings.push(String::new());
                } else if let Some(length) = char_literal(rest) {
                    taken = length;
                    cut.code.push_str("' '");
                } else {
                    cut.code.push(c);
                }
            }
            State::LineComment => {
                cut.comment = true;
                return;
            }
            State::BlockComment(depth) => {
                cut.comment = true;
                if rest.starts_with("/*") {
                    (*depth, taken) = (*depth + 1, 2);
                } else if rest.starts_with("*/") {
                    (*depth, taken) = (*depth - 1, 2);
                    if *depth == 0 {
                        *state = State::Code;
                    }
                }
            }
            State::String(hashes) => {
                let closing = format!("\"{}", "#".repeat(hashes.unwrap_or(0)));
                let string = cut.strings.last_mut().expect("a string was opened");
                if hashes.is_none() && c == '\\' {
                    let escaped = rest.chars().nth(1);
                    taken += escaped.map_or(0, char::len_utf8);
                    string.push(if escaped == Some('n') { '\n' } else { ' ' });
                } else if rest.starts_with(&closing) {
                    taken = closing.len();
                    cut.code.push('"');
                    *state = State::Code;
                } else {
                    string.push(c);
                }
            }
        }
        rest = &rest[taken..];
    }
}

/// The length of what opens a string here, and the number of `#` of a raw one.
fn opens_string(rest: &str, before: Option<char>) -> Option<(usize, Option<usize>)> {
    if rest.starts_with('"') {
        return Some((1, None));
    }
    let in_a_name = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let raw = rest.strip_prefix('r').filter(|_| !in_a_name || before == Some('b'))?;
    let hashes = raw.bytes().take_while(|b| *b == b'#').count();
    raw[hashes..].starts_with('"').then_some((hashes + 2, Some(hashes)))
}

/// The length of a character literal; a lifetime is none.
fn char_literal(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('\'')?;
    let mut chars = inner.char_indices();
    let (_, first) = chars.next()?;
    if first == '\\' {
        chars.next();
        return chars.find(|(_, c)| *c == '\'').map(|(at, _)| at + 2);
    }
    chars.next().filter(|(_, c)| *c == '\'').map(|(at, _)| at + 2)
}

/// Modules under `#[cfg(test)]` go on to a brace at the beginning of a line.
fn mark_tests(lines: &mut [Line]) {
    let mut inside = false;
    for at in 0..lines.len() {
        let opens = |line: &Line| line.code.starts_with("mod ") && line.code.ends_with('{');
        if lines[at].code == "#[cfg(test)]" && lines.get(at + 1).is_some_and(opens) {
            inside = true;
        }
        lines[at].test = inside;
        inside &= lines[at].code != "}";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Vec<String> {
        lines(text).into_iter().map(|line| line.code).collect()
    }

    #[test]
    fn strings_and_comments_are_no_code() {
        assert_eq!(code("f(\"a // b\"); // c"), ["f(\"\"); "]);
        assert_eq!(code("f(r#\"a \"b\" // c\"#, b\"\\\"\")"), ["f(\"\", b\"\")"]);
        assert_eq!(code("a /* b\n /* c */ d\n e */ f"), ["a ", "", " f"]);
        assert_eq!(code("m('\"', '\\'', '\\u{1b}', &'a x)"), ["m(' ', ' ', ' ', &'a x)"]);
    }

    #[test]
    fn strings_are_kept_line_by_line() {
        let found = lines("f(\"one\\ntwo \\\n    three\")");
        assert_eq!(found[0].strings, ["one\ntwo  "]);
        assert_eq!(found[1].strings, ["    three"]);
        assert!(!found[1].comment && lines("x // y")[0].comment);
    }

    #[test]
    fn modules_of_tests_are_known() {
        let found = lines("a\n#[cfg(test)]\nmod tests {\n    b\n}\nc\n#[cfg(test)]\nmod tests;\nd");
        let inside: Vec<bool> = found.iter().map(|line| line.test).collect();
        assert_eq!(inside, [false, true, true, true, true, false, false, false, false]);
    }
}
