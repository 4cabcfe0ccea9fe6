//! Addresses: one spelling for each, their sites, and the keys archives sort by.
//!
//! Two spellings of one address would be two documents and a missing link between them.
//! [`normalize`] gives each address one spelling without changing what it fetches: scheme and host
//! in lower case, no default port, no dot segments, no fragment, and percent-encoding only where it
//! is needed, with upper-case digits.
//!
//! Three keys are different things and are never mixed: the normalised URL (what is fetched), the
//! [`cdx_key`] (what CDX files sort by) and the [`heritrix_surt`] (what crawlers filter by).

mod joiner;
mod surt;

pub(crate) use joiner::Joiner;
pub use surt::{cdx_key, heritrix_surt};

use ::url::Url;
use std::borrow::Cow;
use std::path::{Component, Path};

/// Longest address that is taken; longer ones are traps or mistakes, and browsers refuse them too.
pub const MAX_URL_BYTES: usize = 64 << 10;

/// The one spelling of an absolute http or https address; `None` when it is neither, or no address
/// at all.
///
/// ```
/// use onionskin_extract::url::normalize;
/// assert_eq!(normalize("HTTP://Example.ORG:80/a/../%7Eb?q=%c3#top").as_deref(), Some("http://example.org/~b?q=%C3"));
/// assert_eq!(normalize("mailto:a@example.org"), None);
/// ```
pub fn normalize(url: &str) -> Option<String> {
    normalized(url).map(Cow::into_owned)
}

/// The same, which copies nothing where the address is normal already.
pub fn normalized(url: &str) -> Option<Cow<'_, str>> {
    if url.len() > MAX_URL_BYTES {
        return None;
    }
    if is_plainly_normal(url) {
        return Some(Cow::Borrowed(url));
    }
    finish(Url::parse(url).ok()?).map(Cow::Owned)
}

/// Characters that stand for themselves in a path or query; the full stop does where it is not the
/// first of a segment.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0u8;
    while byte < 128 {
        plain[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"-_~!$&()*+,;=:@/?";
    let mut i = 0;
    while i < others.len() {
        plain[others[i] as usize] = true;
        i += 1;
    }
    plain
};

/// Whether an address is its own normal spelling, as far as can be known without parsing it: a host
/// of lower-case ASCII labels that cannot be a number, and a path and a query of characters that
/// stand for themselves, without dot segments. Most addresses that come out of a crawl are like
/// that.
fn is_plainly_normal(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")) else {
        return false;
    };
    let Some(slash) = memchr::memchr(b'/', rest.as_bytes()) else { return false };
    let (host, path) = rest.as_bytes().split_at(slash);
    // Letters and digits on both sides of every hyphen and full stop: no empty label, no label in
    // Punycode.
    let mut before = b'.';
    for &byte in host {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => {}
            b'.' | b'-' if before.is_ascii_alphanumeric() => {}
            _ => return false,
        }
        before = byte;
    }
    let last_label = memchr::memrchr(b'.', host).map_or(host, |dot| &host[dot + 1..]);
    if host.len() > 253 || !last_label.first().is_some_and(u8::is_ascii_lowercase) || before == b'-' {
        return false;
    }
    let mut before = 0;
    for &byte in path {
        if !PLAIN[usize::from(byte)] && (byte != b'.' || before == b'/') {
            return false;
        }
        before = byte;
    }
    true
}

/// The normalised address that `reference` stands for on a page at `base`; `None` when it is not
/// http or https.
pub fn join(base: &str, reference: &str) -> Option<String> {
    if reference.len() > MAX_URL_BYTES {
        return None;
    }
    finish(Url::parse(base).ok()?.join(reference).ok()?)
}

/// Does the work of [`normalize`] that the parser leaves undone.
fn finish(mut url: Url) -> Option<String> {
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return None;
    }
    url.set_fragment(None);
    let text = String::from(url);
    Some(if memchr::memchr(b'%', text.as_bytes()).is_some() { tidy_percents(&text) } else { text })
}

/// Decodes escaped characters that never need an escape, writes the other escapes in upper case,
/// and escapes percent signs that are not part of an escape, so that a second pass changes nothing.
fn tidy_percents(url: &str) -> String {
    let mut out = String::with_capacity(url.len() + 8);
    let mut rest = url;
    while let Some(at) = memchr::memchr(b'%', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        match after.as_bytes() {
            [high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let byte = hex_value(*high) << 4 | hex_value(*low);
                if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
                    out.push(char::from(byte));
                } else {
                    out.push('%');
                    out.push(char::from(high.to_ascii_uppercase()));
                    out.push(char::from(low.to_ascii_uppercase()));
                }
                rest = &after[2..];
            }
            _ => {
                out.push_str("%25");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The value of a hexadecimal digit.
fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit.wrapping_sub(b'A').wrapping_add(10),
    }
}

/// The host of a normalised address, which is what is called a site; IPv6 addresses keep their
/// brackets.
///
/// ```
/// use onionskin_extract::url::site;
/// assert_eq!(site("http://www.example.org:8080/a"), Some("www.example.org"));
/// ```
pub fn site(url: &str) -> Option<&str> {
    let after = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    let authority = &after[..memchr::memchr3(b'/', b'?', b'#', after.as_bytes()).unwrap_or(after.len())];
    let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = if host_and_port.starts_with('[') {
        &host_and_port[..=host_and_port.find(']')?]
    } else {
        host_and_port.split(':').next()?
    };
    (!host.is_empty()).then_some(host)
}

/// An http or https address without the user name and the password in it, if it has any: what may
/// be in lists and reports that are passed on.
///
/// ```
/// use onionskin_extract::url::without_user;
/// assert_eq!(without_user("http://me:secret@example.org:81/a@b"), "http://example.org:81/a@b");
/// assert_eq!(without_user("http://example.org/a@b"), "http://example.org/a@b");
/// ```
pub fn without_user(url: &str) -> Cow<'_, str> {
    let rest =
        url.strip_prefix("http").and_then(|rest| rest.strip_prefix('s').unwrap_or(rest).strip_prefix("://"));
    let Some(after) = rest else { return Cow::Borrowed(url) };
    let authority = &after[..memchr::memchr3(b'/', b'?', b'#', after.as_bytes()).unwrap_or(after.len())];
    match authority.rfind('@') {
        Some(at) => Cow::Owned(format!("{}{}", &url[..url.len() - after.len()], &after[at + 1..])),
        None => Cow::Borrowed(url),
    }
}

/// Who casts a vote when a page of a host links somewhere: the part of the host that costs money to
/// have. `None` for an IP address; a bare name, or a public suffix, votes for itself.
///
/// This is not [`registered_domain`] where a company hands out names below one of its own:
/// `a.github.io` and `b.github.io` have different owners, but anyone can have a thousand of them,
/// so that all of them together have one vote.
///
/// ```
/// use onionskin_extract::url::voter;
/// assert_eq!(voter("s7.farm.example.co.uk"), Some("example.co.uk"));
/// assert_eq!(voter("anyone.github.io"), Some("github.io"));
/// assert_eq!(voter("intranet"), Some("intranet"));
/// assert_eq!(voter("192.0.2.7"), None);
/// ```
pub fn voter(host: &str) -> Option<&str> {
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.is_empty() || host.starts_with('[') || host.parse::<std::net::IpAddr>().is_ok() {
        return None;
    }
    let is_private = |name: &str| {
        psl::suffix(name.as_bytes()).is_some_and(|suffix| suffix.typ() == Some(psl::Type::Private))
    };
    // The domain that a registry sold is one label more than a suffix that is no company's.
    let mut name = psl::domain_str(host).unwrap_or(host);
    while is_private(name) {
        let Some((_, above)) = name.split_once('.') else { break };
        match psl::domain_str(above) {
            // Still a company's: `s3.example.com` below `example.com`.
            Some(domain) => name = domain,
            None => {
                // `above` is a suffix itself: a company's is climbed over, a registry's ends it.
                if !is_private(above) {
                    break;
                }
                name = above;
            }
        }
    }
    Some(name)
}

/// The part of a host that someone registered: `example.co.uk` of `www.example.co.uk`, by the
/// public suffix list. `None` for IP addresses, for bare names such as `localhost`, and for public
/// suffixes themselves.
pub fn registered_domain(host: &str) -> Option<&str> {
    let host = host.strip_suffix('.').unwrap_or(host);
    // The list would answer `0.1` for `127.0.0.1`.
    if host.starts_with('[') || host.parse::<std::net::IpAddr>().is_ok() {
        return None;
    }
    psl::domain_str(host)
}

/// The address of a file in a mirrored tree, `host/path/page.html` being `http://host/path/page.html`. `None` when the
/// first part of the path does not look like a host: a name with a known top-level domain,
/// `localhost` or an IP address, with a port after `:`, `_` or `+` (how mirroring tools write it)
/// if any.
///
/// ```
/// use onionskin_extract::url::from_tree_path;
/// use std::path::Path;
/// assert_eq!(from_tree_path(Path::new("example.org/a b.html")).as_deref(), Some("http://example.org/a%20b.html"));
/// assert_eq!(from_tree_path(Path::new("pages/a.html")), None);
/// ```
pub fn from_tree_path(relative: &Path) -> Option<String> {
    below_host(relative, plausible_authority)
}

/// As [`from_tree_path`], where the first part of the path is known to be a host, whatever its
/// name: one under a private or reserved suffix, or a bare name. `None` when it cannot be one, as a
/// name with spaces or of digits alone.
///
/// ```
/// use onionskin_extract::url::from_host_path;
/// use std::path::Path;
/// assert_eq!(from_host_path(Path::new("intranet/a.html")).as_deref(), Some("http://intranet/a.html"));
/// assert_eq!(from_host_path(Path::new("abc.onion/a.html")).as_deref(), Some("http://abc.onion/a.html"));
/// assert_eq!(from_host_path(Path::new("2024/a.html")), None);
/// ```
pub fn from_host_path(relative: &Path) -> Option<String> {
    below_host(relative, |name| plausible_authority(name).or_else(|| named_authority(name)))
}

/// The URL of a file below a base, which ends in a slash. What a path does to leave the folder is
/// left out.
///
/// ```
/// use onionskin_extract::url::below;
/// use std::path::Path;
/// assert_eq!(below("http://a.test/x/", Path::new("./b/c.html")).as_deref(), Some("http://a.test/x/b/c.html"));
/// assert_eq!(below("http://a.test/", Path::new("../b/c.html")).as_deref(), Some("http://a.test/b/c.html"));
/// ```
pub fn below(base: &str, relative: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for component in relative.components() {
        match component {
            Component::Normal(part) => parts.push(part.as_encoded_bytes()),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => parts.clear(),
        }
    }
    with_path(base.strip_suffix('/')?.to_owned(), &parts)
}

fn below_host(relative: &Path, authority: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut parts = Vec::new();
    for component in relative.components() {
        match component {
            Component::Normal(part) => parts.push(part.as_encoded_bytes()),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    let (host, path) = parts.split_first()?;
    if path.is_empty() {
        // A lone file called `example.org` is a file, not a site.
        return None;
    }
    with_path(format!("http://{}", authority(std::str::from_utf8(host).ok()?)?), path)
}

fn with_path(mut url: String, path: &[&[u8]]) -> Option<String> {
    for part in path {
        url.push('/');
        for &byte in *part {
            // A percent sign stays when it begins an escape: mirroring tools keep them in file
            // names. A question mark is part of the name here, as tools write the query of
            // `page?id=1` into it.
            match byte {
                b'#' | b'\\' => push_escaped(&mut url, byte),
                _ if byte.is_ascii_graphic() => url.push(char::from(byte)),
                _ => push_escaped(&mut url, byte),
            }
        }
    }
    normalize(&url)
}

fn push_escaped(out: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    out.push(char::from(DIGITS[usize::from(byte >> 4)]));
    out.push(char::from(DIGITS[usize::from(byte & 15)]));
}

/// `host` or `host:port` when the name could be that of a site.
fn plausible_authority(name: &str) -> Option<String> {
    let (host, port) = match name.rsplit_once([':', '_', '+']) {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            (host, Some(port.parse::<u16>().ok()?))
        }
        _ => (name, None),
    };
    let host = host.to_ascii_lowercase();
    let is_ip = host.parse::<std::net::Ipv4Addr>().is_ok();
    if !is_ip && host != "localhost" {
        let labels_are_plain = host.split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && label.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_')
        });
        // File names have dots too: only a suffix that is on the list and is no common file
        // extension makes a host.
        let known = psl::suffix(host.as_bytes()).is_some_and(|suffix| suffix.is_known());
        let extension = host.rsplit('.').next().is_some_and(is_file_extension);
        if !host.contains('.') || !labels_are_plain || !known || extension {
            return None;
        }
    }
    Some(match port {
        Some(port) => format!("{host}:{port}"),
        None => host,
    })
}

/// `host` or `host:port` when the name can be that of a host at all.
fn named_authority(name: &str) -> Option<String> {
    let (host, port) = match name.rsplit_once([':', '+']) {
        Some((host, port)) => (host, Some(port.parse::<u16>().ok()?)),
        None => (name, None),
    };
    let is_plain = host.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
    // Browsers take a number for an IPv4 address.
    let is_number = host.rsplit('.').next().is_none_or(|label| label.bytes().all(|b| b.is_ascii_digit()));
    if !is_plain || is_number {
        return None;
    }
    let host = host.to_lowercase();
    Some(port.map_or(host.clone(), |port| format!("{host}:{port}")))
}

/// Top-level domains that far more often end the name of a folder than that of a host.
fn is_file_extension(label: &str) -> bool {
    matches!(label, "zip" | "mov" | "java" | "data" | "download")
}

#[cfg(test)]
mod tests;
