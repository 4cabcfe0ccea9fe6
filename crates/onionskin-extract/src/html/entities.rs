//! Character references: `&eacute;`, `&#233;`, `&#xe9;`, and the ways they are written wrong.
//!
//! Names are looked up by the longest one that fits, because some may stand without their
//! semicolon: `&notit;` is `¬it;` while `&notin;` is `∉`. The naive way tries every name; here the
//! range of names that begin with the bytes seen so far is narrowed byte by byte, in a sorted
//! table.

use super::entity_table::NAMED;

/// Where a reference stands. In attributes, where addresses are full of ampersands, a name without
/// its semicolon counts only if no letter, digit or `=` follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Text,
    Attribute,
}

/// What a reference stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    Named(&'static str),
    Numeric(char),
}

impl Reference {
    /// Its characters, kept in `buffer` if need be.
    pub(crate) fn as_str<'a>(&'a self, buffer: &'a mut [u8; 4]) -> &'a str {
        match self {
            Reference::Named(text) => text,
            Reference::Numeric(character) => character.encode_utf8(buffer),
        }
    }
}

/// The reference that begins at the front of `rest`, which is what follows an ampersand, and how
/// many bytes it takes. `None` when the ampersand is just one.
pub(crate) fn reference(rest: &[u8], place: Place) -> Option<(Reference, usize)> {
    match rest.first()? {
        b'#' => numeric(rest),
        first if first.is_ascii_alphabetic() => {
            let (text, length) = common(rest).or_else(|| longest_name(rest))?;
            let closed = rest[length - 1] == b';';
            if place == Place::Attribute
                && !closed
                && rest.get(length).is_some_and(|&next| next == b'=' || next.is_ascii_alphanumeric())
            {
                return None;
            }
            Some((Reference::Named(text), length))
        }
        _ => None,
    }
}

/// The handful that make up nearly all references in real pages.
fn common(rest: &[u8]) -> Option<(&'static str, usize)> {
    match rest {
        [b'a', b'm', b'p', b';', ..] => Some(("&", 4)),
        [b'l', b't', b';', ..] => Some(("<", 3)),
        [b'g', b't', b';', ..] => Some((">", 3)),
        [b'q', b'u', b'o', b't', b';', ..] => Some(("\"", 5)),
        [b'n', b'b', b's', b'p', b';', ..] => Some(("\u{a0}", 5)),
        _ => None,
    }
}

fn longest_name(rest: &[u8]) -> Option<(&'static str, usize)> {
    let mut range = &NAMED[..];
    let mut longest = None;
    for (at, &byte) in rest.iter().enumerate() {
        // All names in the range share the first `at` bytes; one that ends there is sorted first.
        let begin =
            range.partition_point(|(name, _)| name.as_bytes().get(at).is_none_or(|&other| other < byte));
        let end = begin + range[begin..].partition_point(|(name, _)| name.as_bytes().get(at) == Some(&byte));
        range = &range[begin..end];
        let Some((name, text)) = range.first() else { break };
        if name.len() == at + 1 {
            longest = Some((*text, at + 1));
        }
    }
    longest
}

fn numeric(rest: &[u8]) -> Option<(Reference, usize)> {
    let (radix, digits_at) = match rest.get(1)? {
        b'x' | b'X' => (16, 2),
        _ => (10, 1),
    };
    let mut code = 0u32;
    let mut at = digits_at;
    while let Some(digit) = rest.get(at).and_then(|&byte| char::from(byte).to_digit(radix)) {
        code = code.saturating_mul(radix).saturating_add(digit);
        at += 1;
    }
    if at == digits_at {
        return None;
    }
    if rest.get(at) == Some(&b';') {
        at += 1;
    }
    Some((Reference::Numeric(character(code)), at))
}

/// The character of a code, as browsers have it: 128 to 159 are read as windows-1252, where authors
/// meant them.
fn character(code: u32) -> char {
    const WINDOWS_1252: [char; 32] = [
        '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}',
        '\u{2c6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}', '\u{8f}', '\u{90}',
        '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}', '\u{2dc}',
        '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\u{9d}', '\u{17e}', '\u{178}',
    ];
    match code {
        0 => '\u{fffd}',
        0x80..=0x9f => WINDOWS_1252[(code - 0x80) as usize],
        _ => char::from_u32(code).unwrap_or('\u{fffd}'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tries every name.
    fn naive_longest_name(rest: &[u8]) -> Option<(&'static str, usize)> {
        NAMED
            .iter()
            .filter(|(name, _)| rest.starts_with(name.as_bytes()))
            .max_by_key(|(name, _)| name.len())
            .map(|(name, text)| (*text, name.len()))
    }

    #[test]
    fn the_table_is_sorted_and_each_name_is_found() {
        assert!(NAMED.is_sorted_by(|a, b| a.0 < b.0));
        for (name, text) in &NAMED {
            assert_eq!(longest_name(name.as_bytes()), Some((*text, name.len())), "{name}");
            for tail in ["x", ";", "\u{e9}", "0"] {
                let longer = format!("{name}{tail}");
                assert_eq!(
                    longest_name(longer.as_bytes()),
                    naive_longest_name(longer.as_bytes()),
                    "{longer}"
                );
            }
            let shorter = &name.as_bytes()[..name.len() - 1];
            assert_eq!(longest_name(shorter), naive_longest_name(shorter), "{name}");
        }
    }

    #[test]
    fn attributes_leave_ampersands_of_addresses_alone() {
        assert_eq!(reference(b"copy=1", Place::Attribute), None);
        assert_eq!(reference(b"copyx", Place::Attribute), None);
        assert_eq!(reference(b"copy=1", Place::Text), Some((Reference::Named("\u{a9}"), 4)));
        assert_eq!(reference(b"copy;=1", Place::Attribute), Some((Reference::Named("\u{a9}"), 5)));
        assert_eq!(reference(b"copy", Place::Attribute), Some((Reference::Named("\u{a9}"), 4)));
    }

    #[test]
    fn numbers_are_read_as_browsers_read_them() {
        for (text, expected) in [
            ("#65;", Some(('A', 4))),
            ("#x41", Some(('A', 4))),
            ("#X4a;", Some(('J', 5))),
            ("#150;", Some(('\u{2013}', 5))),
            ("#0;", Some(('\u{fffd}', 3))),
            ("#99999999999999999999;", Some(('\u{fffd}', 22))),
            ("#xd800;", Some(('\u{fffd}', 7))),
            ("#;", None),
            ("#x;", None),
            ("#", None),
        ] {
            let expected = expected.map(|(character, length)| (Reference::Numeric(character), length));
            assert_eq!(reference(text.as_bytes(), Place::Text), expected, "{text}");
        }
    }
}
