//! Hosts that nothing is skipped of, whatever was found out about them.

use std::collections::BTreeSet;

use onionskin_extract::url;

use super::AddressError;

/// Hosts with their subdomains, on every port.
///
/// ```
/// use onionskin_mirror::avoid::Protected;
/// let protected = Protected::new(["Example.org", "https://www.example.net:8080/a"])?;
/// assert!(protected.covers("example.org") && protected.covers("en.example.org"));
/// assert!(!protected.covers("notexample.org") && !protected.covers("example.net"));
/// # Ok::<(), onionskin_mirror::avoid::AddressError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Protected(BTreeSet<String>);

impl Protected {
    /// Hosts as people write them: in any case, international names, `*.` in front, or whole
    /// addresses, of which the host counts.
    pub fn new<S: AsRef<str>>(hosts: impl IntoIterator<Item = S>) -> Result<Protected, AddressError> {
        let normal = |text: &str| {
            let text = text.trim();
            let address = if text.contains("://") {
                text.to_owned()
            } else if text.contains(['@', '/', '?', '#']) {
                return None;
            } else {
                format!("http://{}", text.strip_prefix("*.").unwrap_or(text))
            };
            let address = url::normalize(&address)?;
            url::site(&address).map(|host| host.strip_suffix('.').unwrap_or(host).to_owned())
        };
        let host = |text: S| {
            let text = text.as_ref();
            normal(text).ok_or_else(|| AddressError::Host(text.to_owned()))
        };
        hosts.into_iter().map(host).collect::<Result<_, _>>().map(Protected)
    }

    /// Whether a host is one of them, or a subdomain of one.
    pub fn covers(&self, host: &str) -> bool {
        let mut name = host.strip_suffix('.').unwrap_or(host);
        loop {
            if self.0.contains(name) {
                return true;
            }
            match name.split_once('.') {
                Some((_, above)) => name = above,
                None => return false,
            }
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subdomains_and_ports_are_covered() {
        let protected =
            Protected::new(["famous.org", "*.wild.example", "BÜCHER.example", "[::1]:81"]).unwrap();
        for host in ["famous.org", "en.famous.org", "a.b.famous.org", "wild.example", "x.wild.example"] {
            assert!(protected.covers(host), "{host}");
        }
        assert!(protected.covers("xn--bcher-kva.example") && protected.covers("[::1]"));
        for host in ["infamous.org", "org", "famous.org.evil.net", "famous", "192.0.2.7", ""] {
            assert!(!protected.covers(host), "{host}");
        }
        assert!(!Protected::default().covers("famous.org"));
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in ["", "http://", "a b", "ftp://x.org/", "mailto:x@y"] {
            assert!(matches!(Protected::new([text]), Err(AddressError::Host(_))), "{text:?}");
        }
    }
}
