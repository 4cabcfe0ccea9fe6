//! The `Host` of a request, read strictly.
//!
//! A lenient reader and a strict one behind it disagree, and the difference is a way in. Browsers
//! send one `Host`, a name or an IP address, and perhaps a port; nothing else is taken.

use std::net::{IpAddr, Ipv6Addr};

use axum::http::uri::Uri;
use axum::http::{HeaderMap, header};

/// A host by which a server is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// The name in lower case, or the IP address as it was written.
    name: String,
    port: Option<u16>,
}

/// Why a request has no usable host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadHost {
    #[error("the request has no Host")]
    Missing,
    #[error("the request has more than one Host")]
    Several,
    #[error("the Host of the request is not a name or an IP address with or without a port")]
    Malformed,
}

impl Host {
    /// The host that a request is for. A whole address in the request line overrules the header.
    pub(super) fn of(headers: &HeaderMap, uri: &Uri) -> Result<Host, BadHost> {
        let mut all = headers.get_all(header::HOST).iter();
        let first = all.next();
        if all.next().is_some() {
            return Err(BadHost::Several);
        }
        let told = match uri.authority() {
            Some(authority) => authority.as_str(),
            None => first.ok_or(BadHost::Missing)?.to_str().map_err(|_| BadHost::Malformed)?,
        };
        Host::parse(told).ok_or(BadHost::Malformed)
    }

    pub(super) fn parse(text: &str) -> Option<Host> {
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (inside, rest) = rest.split_once(']')?;
                inside.parse::<Ipv6Addr>().ok()?;
                let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
                (format!("[{inside}]"), port)
            }
            None => match text.split_once(':') {
                Some((name, port)) => (name.to_owned(), Some(port)),
                None => (text.to_owned(), None),
            },
        };
        let port = match port {
            None => None,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(digits.parse().ok()?),
            Some(_) => return None,
        };
        (name.starts_with('[') || is_name(&name)).then(|| Host { name: name.to_ascii_lowercase(), port })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether this is how a machine calls itself.
    pub(super) fn is_loopback(&self) -> bool {
        let ip = self.name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        self.name == "localhost" || self.name.ends_with(".localhost") || ip.is_ok_and(|ip| ip.is_loopback())
    }

    /// Whether an address, as in `Origin` or `Referer`, leads to this host.
    pub(super) fn is_of(&self, address: &str) -> bool {
        let rest = address.strip_prefix("http://").or_else(|| address.strip_prefix("https://"));
        let authority = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
        authority.and_then(Host::parse).is_some_and(|host| host == *self)
    }
}

/// Labels of letters, digits, hyphens and underscores, with points between them.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_browsers_send() {
        for (text, name, port) in [
            ("localhost", "localhost", None),
            ("LocalHost:7311", "localhost", Some(7311)),
            ("127.0.0.1:0", "127.0.0.1", Some(0)),
            ("[::1]:7311", "[::1]", Some(7311)),
            ("[::1]", "[::1]", None),
            ("a_b.xn--caf-dma.example", "a_b.xn--caf-dma.example", None),
        ] {
            assert_eq!(Host::parse(text), Some(Host { name: name.to_owned(), port }), "{text}");
        }
    }

    #[test]
    fn hosts_that_nobody_sends_in_good_faith() {
        for text in [
            "",
            ":80",
            "localhost:",
            "localhost:80:80",
            "localhost:65536",
            "localhost:+80",
            "127.0.0.1:7401@evil.example",
            "localhost@evil.example",
            "user:pass@localhost",
            "localhost/evil",
            "localhost?x",
            "localhost#x",
            "local host",
            "localhost\t",
            "a..b",
            ".localhost",
            "localhost.",
            "[::1",
            "[::1]x",
            "[::1]:x",
            "[localhost]",
            "::1",
            "a%2eb",
            "a,b",
        ] {
            assert_eq!(Host::parse(text), None, "{text}");
        }
        assert_eq!(Host::parse(&"a".repeat(64)), None);
    }

    #[test]
    fn origins_are_compared_whole() {
        let host = Host::parse("localhost:7311").unwrap();
        assert!(host.is_of("http://localhost:7311") && host.is_of("https://LOCALHOST:7311/compare?a=1"));
        for other in [
            "null",
            "http://localhost",
            "http://localhost:7312",
            "ftp://localhost:7311",
            "http://localhost:7311@evil.example",
            "http://evil.example/http://localhost:7311",
        ] {
            assert!(!host.is_of(other), "{other}");
        }
    }
}
