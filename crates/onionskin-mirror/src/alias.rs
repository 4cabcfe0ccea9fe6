//! Addresses that lead to the same page: rewritings that can be tried on an address, to see whether
//! the page stays the same.
//!
//! Shivakumar and Garcia-Molina 1998 call it URL aliasing: one document of a server under several
//! addresses. Nothing here knows whether a rewriting holds; every address is rewritten in every way
//! that applies to it, and the web says how often what is found there is a copy.

use std::fmt;

/// A way to rewrite addresses. The rewritten form is the simpler one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rewriting<'a> {
    /// A parameter of the query is dropped.
    Parameter(&'a str),
    /// A parameter of a path segment is dropped: `;jsessionid=…`.
    PathParameter(&'a str),
    /// The name of an index page is dropped.
    Index(&'a str),
    /// The slash at the end is dropped.
    TrailingSlash,
    /// Slashes that follow each other become one.
    DoubledSlashes,
    /// The path in lower case.
    LowerCase,
    /// `www.` is dropped.
    Www,
    /// `https` becomes `http`.
    Scheme,
}

impl<'a> Rewriting<'a> {
    /// The words in the table.
    pub fn kind(self) -> &'static str {
        match self {
            Rewriting::Parameter(_) => "drop parameter",
            Rewriting::PathParameter(_) => "drop path parameter",
            Rewriting::Index(_) => "drop index page",
            Rewriting::TrailingSlash => "drop trailing slash",
            Rewriting::DoubledSlashes => "single slashes",
            Rewriting::LowerCase => "lower case",
            Rewriting::Www => "drop www",
            Rewriting::Scheme => "https to http",
        }
    }

    /// What it drops, where that has a name.
    pub fn pattern(self) -> &'a str {
        match self {
            Rewriting::Parameter(name) | Rewriting::PathParameter(name) | Rewriting::Index(name) => name,
            Rewriting::TrailingSlash => "/",
            Rewriting::DoubledSlashes => "//",
            Rewriting::LowerCase => "A-Z",
            Rewriting::Www => "www.",
            Rewriting::Scheme => "https",
        }
    }

    /// Whether it may hold on every host, so that it is learned for all of them together as well.
    pub fn is_general(self) -> bool {
        !matches!(self, Rewriting::Parameter(_))
    }
}

impl fmt::Display for Rewriting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.pattern())
    }
}

/// Parameters of one address that are tried, at most.
const MOST_PARAMETERS: usize = 16;

/// Tries every rewriting that changes an address. The new address is handed out in a buffer that is
/// used again.
///
/// ```
/// use onionskin_mirror::alias::rewritings;
/// let mut found = Vec::new();
/// rewritings("http://www.a.org/x/index.html?sid=7", &mut String::new(), |how, url| {
///     found.push(format!("{how}: {url}"));
/// });
/// assert_eq!(found, ["drop www www.: http://a.org/x/index.html?sid=7", "drop parameter sid: http://www.a.org/x/index.html"]);
/// ```
pub fn rewritings<'u>(url: &'u str, buffer: &mut String, mut tell: impl FnMut(Rewriting<'u>, &str)) {
    let Some(scheme_end) = url.find("://") else { return };
    let host_start = scheme_end + 3;
    let path_start = url[host_start..].find('/').map_or(url.len(), |at| host_start + at);
    let query_start = url[path_start..].find('?').map_or(url.len(), |at| path_start + at);
    let (front, path, query) = (&url[..path_start], &url[path_start..query_start], &url[query_start..]);
    let mut give = |how: Rewriting<'u>, parts: &[&str]| {
        buffer.clear();
        parts.iter().for_each(|part| buffer.push_str(part));
        if buffer != url {
            tell(how, buffer);
        }
    };
    if let Some(rest) = url.strip_prefix("https") {
        give(Rewriting::Scheme, &["http", rest]);
    }
    if let Some(rest) = url[host_start..].strip_prefix("www.") {
        give(Rewriting::Www, &[&url[..host_start], rest]);
    }
    let name_start = path.rfind('/').map_or(0, |at| at + 1);
    let name = &path[name_start..];
    if query.is_empty() && is_index(name) {
        give(Rewriting::Index(name), &[front, &path[..name_start]]);
    }
    if path.len() > 1 && path.ends_with('/') {
        give(Rewriting::TrailingSlash, &[front, &path[..path.len() - 1], query]);
    }
    if path.contains("//") {
        let mut single = path.to_owned();
        while single.contains("//") {
            single = single.replace("//", "/");
        }
        give(Rewriting::DoubledSlashes, &[front, &single, query]);
    }
    if path.bytes().any(|byte| byte.is_ascii_uppercase()) {
        give(Rewriting::LowerCase, &[front, &path.to_ascii_lowercase(), query]);
    }
    if let Some(at) = path.rfind(';')
        && let Some(equals) = path[at..].find('=')
        && !path[at..].contains('/')
    {
        give(Rewriting::PathParameter(&path[at + 1..at + equals]), &[front, &path[..at], query]);
    }
    if query.len() > 1 {
        let parameters: Vec<&str> = query[1..].split('&').collect();
        for (nth, parameter) in parameters.iter().enumerate().take(MOST_PARAMETERS) {
            let name = parameter.split('=').next().unwrap_or_default();
            let mut parts = vec![front, path];
            for (_, other) in parameters.iter().enumerate().filter(|(other, _)| *other != nth) {
                parts.push(if parts.len() == 2 { "?" } else { "&" });
                parts.push(other);
            }
            if !name.is_empty() {
                give(Rewriting::Parameter(name), &parts);
            }
        }
    }
}

/// Names that servers give for a folder: `index.html`, `Default.aspx`.
pub(crate) fn is_index(name: &str) -> bool {
    let Some((stem, extension)) = name.split_once('.') else { return false };
    let known = ["index", "default", "welcome"].iter().any(|known| stem.eq_ignore_ascii_case(known));
    known && (2..=5).contains(&extension.len()) && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_rewritten(url: &str, expected: &[&str]) {
        let mut found = Vec::new();
        rewritings(url, &mut String::new(), |how, url| found.push(format!("{how} > {url}")));
        assert_eq!(found, expected, "{url}");
    }

    #[test]
    fn every_way_that_applies() {
        check_rewritten("http://a.org/x", &[]);
        check_rewritten("http://a.org/", &[]);
        check_rewritten("http://a.org", &[]);
        check_rewritten("https://a.org/x", &["https to http https > http://a.org/x"]);
        check_rewritten("http://a.org/x/", &["drop trailing slash / > http://a.org/x"]);
        check_rewritten("http://a.org/x/index.php", &["drop index page index.php > http://a.org/x/"]);
        check_rewritten("http://a.org//x///y", &["single slashes // > http://a.org/x/y"]);
        check_rewritten("http://a.org/Xy", &["lower case A-Z > http://a.org/xy"]);
        check_rewritten(
            "http://a.org/x;jsessionid=1f?q=2",
            &[
                "drop path parameter jsessionid > http://a.org/x?q=2",
                "drop parameter q > http://a.org/x;jsessionid=1f",
            ],
        );
        check_rewritten(
            "http://a.org/x?a=1&b=2&a=3",
            &[
                "drop parameter a > http://a.org/x?b=2&a=3",
                "drop parameter b > http://a.org/x?a=1&a=3",
                "drop parameter a > http://a.org/x?a=1&b=2",
            ],
        );
        check_rewritten("http://a.org/x?", &[]);
        check_rewritten("mailto:x", &[]);
    }
}
