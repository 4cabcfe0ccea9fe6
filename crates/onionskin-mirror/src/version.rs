//! Version numbers in folders and titles.

use std::cmp::Ordering;

/// Folders that stand for the newest version.
const NEWEST: [&str; 11] =
    ["latest", "current", "stable", "main", "master", "trunk", "dev", "devel", "next", "nightly", "edge"];
/// Folders that stand for one that is over.
const OLDEST: [&str; 5] = ["old", "legacy", "archive", "archived", "previous"];

/// A version that can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Old,
    Numbers(Vec<u64>),
    Newest,
}

impl Version {
    pub(crate) fn parse(word: &str) -> Version {
        let plain = word.to_lowercase();
        if NEWEST.contains(&plain.as_str()) {
            return Version::Newest;
        }
        if OLDEST.contains(&plain.as_str()) {
            return Version::Old;
        }
        let numbers = plain.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
        Version::Numbers(numbers.map(|part| part.parse().unwrap_or(u64::MAX)).collect())
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Version) -> Ordering {
        let rank = |version: &Version| match version {
            Version::Old => 0,
            Version::Numbers(_) => 1,
            Version::Newest => 2,
        };
        match (self, other) {
            (Version::Numbers(a), Version::Numbers(b)) => a.cmp(b),
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Version) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Whether a word looks like a version: `1.0`, `v2`, `3.11.2`, `2.x`, `1_74_0`, `1.0rc1`, or one of
/// the words for the newest and the oldest.
pub(crate) fn is_version(word: &str) -> bool {
    let plain = word.to_lowercase();
    if NEWEST.contains(&plain.as_str()) || OLDEST.contains(&plain.as_str()) {
        return true;
    }
    let plain = ["version", "release", "ver", "v", "r"]
        .iter()
        .find_map(|lead| plain.strip_prefix(lead))
        .unwrap_or(&plain)
        .trim_start_matches(['-', '_', '.']);
    plain.len() <= 16
        && plain.starts_with(|c: char| c.is_ascii_digit())
        && plain.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
        && plain.chars().filter(char::is_ascii_alphabetic).count() <= 6
}

/// The words that differ between two titles, when they are versions and all else is the same.
pub(crate) fn difference<'a>(a: &'a str, b: &'a str) -> Option<(&'a str, &'a str)> {
    let words = |title: &'a str| {
        title
            .split(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '-' | '_')))
            .filter(|word| !word.is_empty())
    };
    let trim = |word: &'a str| word.trim_matches(['.', '-', '_']);
    let (mut a, mut b) = (words(a).map(trim), words(b).map(trim));
    let mut found = None;
    loop {
        match (a.next(), b.next()) {
            (None, None) => return found,
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) if is_version(a) && is_version(b) => {
                if found.is_some_and(|found| found != (a, b)) {
                    return None;
                }
                found = Some((a, b));
            }
            _ => return None,
        }
    }
}

/// Versions that tell two folders apart: the first segments that differ, when one of them is a
/// version; the folder above the versions is the newest.
pub(crate) fn in_folders<'a>(a: &'a str, b: &'a str) -> Option<(&'a str, &'a str)> {
    let segments = |folder: &'a str| folder.split('/').filter(|part| !part.is_empty());
    let (mut left, mut right) = (segments(a), segments(b));
    loop {
        match (left.next(), right.next()) {
            (None, None) => return None,
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => return same_shape(a, b),
            (Some(a), None) => return is_version(a).then_some((a, "latest")),
            (None, Some(b)) => return is_version(b).then_some(("latest", b)),
        }
    }
}

/// Two names that are versions, or are the same around one: `boost_1_74_0` and `boost_1_81_0`.
fn same_shape<'a>(a: &'a str, b: &'a str) -> Option<(&'a str, &'a str)> {
    if is_version(a) && is_version(b) {
        return Some((a, b));
    }
    let stem = |name: &str| name.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    let has_digits = |name: &str| name.bytes().any(|byte| byte.is_ascii_digit());
    (has_digits(a) && has_digits(b) && stem(a) == stem(b)).then_some((a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_version() {
        for word in ["1.0", "v2", "3.11.2", "2.x", "1_74_0", "1.0rc1", "latest", "release-4", "10"] {
            assert!(is_version(word), "{word}");
        }
        for word in ["docs", "vim", "x86", "howto", "", "1234567890123456789", "3columnlayouts"] {
            assert!(!is_version(word), "{word}");
        }
    }

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        let newer = |a: &str, b: &str| assert!(Version::parse(a) > Version::parse(b), "{a} {b}");
        newer("3.11", "3.9");
        newer("v2", "1.99.9");
        newer("latest", "999");
        newer("1", "old");
        newer("boost_1_81_0", "boost_1_74_0");
        newer("1.0.1", "1.0");
    }

    #[test]
    fn titles_that_differ_in_a_version() {
        assert_eq!(
            difference("os — Python 3.9 documentation", "os — Python 3.11 documentation"),
            Some(("3.9", "3.11"))
        );
        assert_eq!(difference("os (3.9)", "sys (3.11)"), None);
        assert_eq!(difference("same", "same"), None);
        assert_eq!(difference("chapter 1 of 3.9", "chapter 2 of 3.11"), None);
        assert_eq!(difference("a", "a b"), None);
    }

    #[test]
    fn folders_that_differ_in_a_version() {
        assert_eq!(in_folders("/docs/1.0/", "/docs/1.1/"), Some(("1.0", "1.1")));
        assert_eq!(in_folders("/docs/", "/docs/1.1/"), Some(("latest", "1.1")));
        assert_eq!(in_folders("/boost_1_74_0/", "/boost_1_81_0/"), Some(("boost_1_74_0", "boost_1_81_0")));
        assert_eq!(in_folders("/a/", "/b/"), None);
        assert_eq!(in_folders("/a/", "/a/"), None);
    }
}
