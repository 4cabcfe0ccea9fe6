//! Many references against one base.
//!
//! A page has dozens of links, most of them plain relative paths, and a full parse of each costs
//! more than reading the page around it. Those are put together from the base by hand; everything
//! else goes through the parser.

use super::{MAX_URL_BYTES, finish, normalize};
use ::url::Url;

/// Joins references with a base that is parsed once.
#[derive(Debug)]
pub(crate) struct Joiner {
    base: Option<Base>,
}

#[derive(Debug)]
struct Base {
    url: Url,
    /// The base in its one spelling, up to and with the last slash of its path.
    folder: String,
    /// Where in `folder` the path begins.
    path: usize,
}

impl Joiner {
    /// The page's own address, and what it says its links are relative to. A base that is no web
    /// address (`javascript:`, `data:`) counts as none; without either, only absolute references
    /// can be joined.
    pub(crate) fn new(page: Option<&str>, base: Option<&str>) -> Joiner {
        let own = page.and_then(|page| Url::parse(page).ok());
        let url = base
            .and_then(|base| match &own {
                Some(own) => own.join(base).ok(),
                None => Url::parse(base).ok(),
            })
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .or(own);
        Joiner { base: url.and_then(Base::new) }
    }

    /// How long the base is.
    pub(crate) fn base_length(&self) -> usize {
        self.base.as_ref().map_or(0, |base| base.url.as_str().len())
    }

    /// The normalised address a reference stands for; `None` when it is not http or https.
    pub(crate) fn join(&self, reference: &str) -> Option<String> {
        match &self.base {
            Some(base) => base.join_plain(reference).or_else(|| base.join_parsed(reference)),
            None => normalize(reference),
        }
    }
}

impl Base {
    fn new(url: Url) -> Option<Base> {
        let mut folder = finish(url.clone())?;
        let path = folder.find("://").and_then(|at| Some(at + 3 + folder[at + 3..].find('/')?))?;
        let end = folder.find('?').unwrap_or(folder.len());
        folder.truncate(folder[..end].rfind('/')? + 1);
        Some(Base { url, folder, path })
    }

    fn join_parsed(&self, reference: &str) -> Option<String> {
        if reference.len() > MAX_URL_BYTES {
            return None;
        }
        finish(self.url.join(reference).ok()?)
    }

    /// Joins `name`, `folder/name`, `../name` and `/name`, when none of them holds a byte that
    /// could mean anything else.
    fn join_plain(&self, reference: &str) -> Option<String> {
        let mut rest = reference;
        let mut end = self.folder.len();
        if let Some(path) = reference.strip_prefix('/') {
            rest = path;
            end = self.path + 1;
        } else {
            while let Some(after) = rest.strip_prefix("../") {
                rest = after;
                // Above the root there is nothing to leave.
                if end > self.path + 1 {
                    end = self.folder[..end - 1].rfind('/')? + 1;
                }
            }
        }
        // A dot may be part of a name, but not its first byte: it could be a dot segment. Two
        // slashes in front are a host.
        let mut first = true;
        for &byte in rest.as_bytes() {
            match byte {
                b'/' if !first || rest.len() < reference.len() && !reference.starts_with('/') => first = true,
                b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' | b'~' => first = false,
                b'.' if !first => {}
                _ => return None,
            }
        }
        if rest.is_empty() && end == self.folder.len() {
            return None;
        }
        let mut url = String::with_capacity(end + rest.len());
        url.push_str(&self.folder[..end]);
        url.push_str(rest);
        Some(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(page: &str, reference: &str) {
        let joined = Joiner::new(Some(page), None).join(reference);
        let parsed = Url::parse(page).unwrap().join(reference).ok().and_then(finish);
        assert_eq!(joined, parsed, "{page} {reference}");
    }

    #[test]
    fn plain_references() {
        for page in
            ["http://a.org", "http://a.org/b/c?d/e", "https://u@a.org:8/b/%7ec/d", "http://a.org/b//c/"]
        {
            for reference in [
                "x",
                "x/y",
                "/x",
                "/",
                "//x",
                "///x",
                "../x",
                "../../../x",
                "..",
                ".",
                "../",
                "",
                "x//y",
                "/x//y",
                "..//x",
                "x/./y",
                "x/.y",
                "x/y.",
                ".x",
                "a:b",
                "x%41",
                "x?y",
                "é",
                "x y",
                "/.",
                "/..",
                "../..",
                "x/..",
                "x/../y",
            ] {
                check(page, reference);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn by_hand_as_by_the_parser(path in "[a/.%~7eE2?]{0,12}", reference in "[ab/.~:%2e?\\\\-]{0,10}") {
            check(&format!("http://a.org/{path}"), &reference);
        }

        #[test]
        fn plain_names_by_hand_as_by_the_parser(path in "[a/.]{0,12}", reference in "(\\.\\./){0,3}[ab/.]{0,8}") {
            check(&format!("http://a.org/{path}"), &reference);
        }
    }
}
