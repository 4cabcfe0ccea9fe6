use super::*;
use proptest::prelude::*;

/// The rules, a character at a time.
fn naive(pieces: &[(String, Option<Break>)], keep_lines: bool) -> String {
    let mut out = String::new();
    let mut pending = Break::None;
    for (text, after) in pieces {
        let characters: Vec<char> = text.chars().collect();
        for (at, &character) in characters.iter().enumerate() {
            match character {
                ' ' | '\t' | '\n' | '\x0c' | '\r' | '\u{a0}' => {
                    pending = pending.max(Break::Space);
                    let ends_line =
                        character == '\n' || (character == '\r' && characters.get(at + 1) != Some(&'\n'));
                    if keep_lines && ends_line {
                        pending = if pending >= Break::Line { Break::Paragraph } else { Break::Line };
                    }
                }
                '\u{ad}' => {}
                _ if character.is_control() => {}
                _ => {
                    if !out.is_empty() {
                        out.push_str(pending.as_str());
                    }
                    pending = Break::None;
                    out.push(character);
                }
            }
        }
        pending = pending.max(after.unwrap_or(Break::None));
    }
    out
}

fn pieces() -> impl Strategy<Value = Vec<(String, Option<Break>)>> {
    let breaks = prop::sample::select(vec![Break::Space, Break::Tab, Break::Line, Break::Paragraph]);
    prop::collection::vec(("[a-c \n\r\té\u{a0}\u{ad}\u{85}\0日]{0,40}", prop::option::of(breaks)), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn pieces_become_lines(pieces in pieces(), keep_lines: bool) {
        let mut writer = TextWriter::new(String::new());
        for (text, after) in &pieces {
            if keep_lines { writer.push_lines(text) } else { writer.push(text) }
            writer.break_at_least(after.unwrap_or(Break::None));
        }
        prop_assert_eq!(writer.finish(), naive(&pieces, keep_lines));
    }

    #[test]
    fn plain_text_loses_nothing_but_controls(text in "[a-c \n\r\té\u{a0}\u{85}\0\u{7f}\x0c日]{0,60}") {
        let mut out = String::new();
        copy_plain(&text, &mut out);
        let naive: String = text
            .replace("\r\n", "\n")
            .replace(['\r', '\x0c'], "\n")
            .chars()
            .filter(|c| !c.is_control() || *c == '\n' || *c == '\t')
            .collect();
        prop_assert_eq!(out, naive);
    }
}
