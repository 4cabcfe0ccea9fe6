//! Hosts, paths and rules that are what they say.
//!
//! A rule ends up in files where a line break, a quote or an unescaped sign would make it another
//! rule. So nothing is a rule that is not spelt as a normalised address is: printable ASCII,
//! percent-encoded, without dot segments.

use std::fmt;
use std::str::FromStr;

/// Not a host or a path that a rule can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// No host, or not as a normalised address has it.
    #[error("{0:?} is no host in its normalised spelling")]
    Host(String),
    /// A port that is no number up to 65535, or is spelt with zeros in front.
    #[error("{0:?} has no port that an address can have")]
    Port(String),
    /// A path that does not begin with a slash.
    #[error("{0:?} does not begin with a slash")]
    NotAbsolute(String),
    /// A directory that does not end with a slash.
    #[error("{0:?} does not end with a slash")]
    NotADirectory(String),
    /// A sign that normalised addresses do not have there.
    #[error("{path:?} is not a normalised path: byte {at}")]
    NotNormalised {
        /// The path.
        path: String,
        /// Where, in bytes.
        at: usize,
    },
    /// `.` or `..` between slashes.
    #[error("{0:?} has dot segments")]
    DotSegments(String),
}

/// The host that rules hold for: a name or an IP address in lower case, as in normalised addresses,
/// and a port after it if that is the default of neither http nor https on this host.
///
/// Without a port it stands for `http://host/` and `https://host/`. With one, `host:8080`, it stands for that port only. `host:443` is
/// `http://host:443/`, and `host:80` is `https://host:80/`, as these are what keeps its port when it is normalised.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleHost(String);

impl RuleHost {
    /// The host, and port if any, as it stands in a normalised address.
    pub fn new(authority: &str) -> Result<RuleHost, AddressError> {
        let (host, port) = split_port(authority).ok_or_else(|| AddressError::Port(authority.to_owned()))?;
        if let Some(digits) = port {
            parse_port(digits).ok_or_else(|| AddressError::Port(authority.to_owned()))?;
        }
        if !is_host(host) {
            return Err(AddressError::Host(authority.to_owned()));
        }
        Ok(RuleHost(authority.to_owned()))
    }

    /// The host of a normalised address; `None` when it has none that a rule can hold for, or has a
    /// user name.
    ///
    /// ```
    /// use onionskin_mirror::avoid::RuleHost;
    /// let host = RuleHost::of_url("http://example.org:8080/a").unwrap();
    /// assert_eq!((host.as_str(), host.name(), host.port()), ("example.org:8080", "example.org", Some(8080)));
    /// ```
    pub fn of_url(url: &str) -> Option<RuleHost> {
        let address = Address::split(url).filter(|address| !address.has_user)?;
        RuleHost::new(address.authority).ok()
    }

    /// Name and port.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The host without its port, which is what is called a site. IPv6 addresses are in brackets.
    pub fn name(&self) -> &str {
        split_port(&self.0).map_or(&self.0, |(host, _)| host)
    }

    /// The port, when it is not the default one.
    pub fn port(&self) -> Option<u16> {
        split_port(&self.0).and_then(|(_, port)| parse_port(port?))
    }

    /// Schemes that the rules hold on. A port that is the default of one scheme says which it is
    /// not.
    pub(super) fn schemes(&self) -> &'static [&'static str] {
        match self.port() {
            Some(80) => &["https"],
            Some(443) => &["http"],
            _ => &["http", "https"],
        }
    }
}

impl fmt::Display for RuleHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RuleHost {
    type Err = AddressError;

    fn from_str(authority: &str) -> Result<RuleHost, AddressError> {
        RuleHost::new(authority)
    }
}

/// A directory: begins and ends with a slash, has no query, is not the root, and is spelt as in
/// normalised addresses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathPrefix(String);

impl PathPrefix {
    /// The directory.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A path with its query, if it has one: begins with a slash, and is spelt as in normalised
/// addresses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathAndQuery(String);

impl PathAndQuery {
    /// Path and query.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What to skip of a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkipRule {
    /// All of it.
    Host,
    /// A directory and all that is below it.
    Prefix(PathPrefix),
    /// One address.
    Exact(PathAndQuery),
}

impl SkipRule {
    /// A directory and all below it. The root directory is the whole host.
    ///
    /// ```
    /// use onionskin_mirror::avoid::SkipRule;
    /// assert!(SkipRule::prefix("/mirror/").is_ok());
    /// assert_eq!(SkipRule::prefix("/"), Ok(SkipRule::Host));
    /// assert!(SkipRule::prefix("/mirror").is_err());
    /// assert!(SkipRule::prefix("/mirror/\n+/").is_err());
    /// ```
    pub fn prefix(path: &str) -> Result<SkipRule, AddressError> {
        check_path(path)?;
        if path == "/" {
            return Ok(SkipRule::Host);
        }
        if let Some(at) = path.find('?') {
            return Err(AddressError::NotNormalised { path: path.to_owned(), at });
        }
        if !path.ends_with('/') {
            return Err(AddressError::NotADirectory(path.to_owned()));
        }
        Ok(SkipRule::Prefix(PathPrefix(path.to_owned())))
    }

    /// One path, with its query if it has one.
    ///
    /// ```
    /// use onionskin_mirror::avoid::SkipRule;
    /// assert!(SkipRule::exact("/a.html?b=%C3%A9").is_ok());
    /// assert!(SkipRule::exact("/a.html?b=é").is_err());
    /// ```
    pub fn exact(path_and_query: &str) -> Result<SkipRule, AddressError> {
        check_path(path_and_query)?;
        Ok(SkipRule::Exact(PathAndQuery(path_and_query.to_owned())))
    }
}

/// An address cut into what rules look at. Nothing is checked beyond what the cuts need.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address<'a> {
    /// Host and port, without the default port of the scheme.
    pub authority: &'a str,
    /// Whether there is a user name before the host.
    pub has_user: bool,
    /// Begins with a slash; without the fragment.
    pub path_and_query: &'a str,
}

impl<'a> Address<'a> {
    /// `None` when it is not http or https, or has no host, or no path before its query.
    pub(super) fn split(url: &'a str) -> Option<Address<'a>> {
        let (after, default_port) = match url.strip_prefix("http") {
            Some(rest) => match rest.strip_prefix("://") {
                Some(after) => (after, 80),
                None => (rest.strip_prefix("s://")?, 443),
            },
            None => return None,
        };
        let end = after.bytes().position(|b| matches!(b, b'/' | b'?' | b'#')).unwrap_or(after.len());
        let (authority, rest) = after.split_at(end);
        let path_and_query = match rest.as_bytes().first() {
            None | Some(b'#') => "/",
            Some(b'?') => return None,
            Some(_) => rest.bytes().position(|b| b == b'#').map_or(rest, |at| &rest[..at]),
        };
        let (has_user, authority) =
            authority.rsplit_once('@').map_or((false, authority), |(_, host)| (true, host));
        let (host, port) = split_port(authority)?;
        let is_default =
            port.is_some_and(|digits| digits.is_empty() || parse_port(digits) == Some(default_port));
        let authority = if is_default { host } else { authority };
        (!host.is_empty()).then_some(Address { authority, has_user, path_and_query })
    }
}

/// What is before the query.
pub(super) fn path_of(path_and_query: &str) -> &str {
    path_and_query.bytes().position(|b| b == b'?').map_or(path_and_query, |at| &path_and_query[..at])
}

/// Host, and what stands after its colon. `None` when brackets do not close, or something else
/// follows them.
pub(super) fn split_port(authority: &str) -> Option<(&str, Option<&str>)> {
    if authority.starts_with('[') {
        let (host, after) = authority.split_at(authority.find(']')? + 1);
        return match after.strip_prefix(':') {
            Some(port) => Some((host, Some(port))),
            None => after.is_empty().then_some((host, None)),
        };
    }
    Some(authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))))
}

/// One spelling a port: no zeros in front.
fn parse_port(digits: &str) -> Option<u16> {
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    plain.then(|| digits.parse().ok()).flatten()
}

fn is_host(host: &str) -> bool {
    if let Some(inside) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inside.contains(':')
            && inside.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f' | b':' | b'.'));
    }
    // The URL standard lets hosts have more signs than the name system does, brackets and quotes
    // among them.
    let allowed = |b: u8| {
        b.is_ascii_graphic()
            && !b.is_ascii_uppercase()
            && !matches!(
                b,
                b'#' | b'/' | b':' | b'<' | b'>' | b'?' | b'@' | b'[' | b'\\' | b']' | b'^' | b'|' | b'%'
            )
    };
    !host.is_empty() && host.bytes().all(allowed)
}

/// Whether this could be path and query of a normalised address.
fn check_path(text: &str) -> Result<(), AddressError> {
    if !text.starts_with('/') {
        return Err(AddressError::NotAbsolute(text.to_owned()));
    }
    let bytes = text.as_bytes();
    let mut in_query = false;
    for (at, &byte) in bytes.iter().enumerate() {
        let fits = match byte {
            b'?' => {
                in_query = true;
                true
            }
            b'%' => is_needed_escape(bytes.get(at + 1..at + 3)),
            b'"' | b'#' | b'<' | b'>' => false,
            b'\'' => !in_query,
            b'\\' | b'`' | b'{' | b'}' => in_query,
            _ => byte.is_ascii_graphic(),
        };
        if !fits {
            return Err(AddressError::NotNormalised { path: text.to_owned(), at });
        }
    }
    if path_of(text).split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err(AddressError::DotSegments(text.to_owned()));
    }
    Ok(())
}

/// Two upper-case digits that stand for a byte that has to be escaped.
fn is_needed_escape(digits: Option<&[u8]>) -> bool {
    let Some(digits) = digits else { return false };
    if !digits.iter().all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F')) {
        return false;
    }
    let byte = std::str::from_utf8(digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok());
    byte.is_some_and(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'-' | b'.' | b'_' | b'~'))
}
