//! Sort-friendly forms of an address: the host turned round, so that a domain and all under it sort
//! together.
//!
//! The CDX key is what Wayback indexes are sorted by. It is deliberately lossy: case, `www.`,
//! session ids, the order of query arguments and trailing slashes go, so that captures of one page
//! meet under one key. It has no standard; the Python package `surt` is what archives run, and the
//! pairs in `testdata/surt.tsv` are its answers. The Heritrix form loses nothing but the difference
//! of http and https, because crawlers match prefixes of it.

use super::{hex_value, push_escaped};
use std::net::Ipv4Addr;

/// The key of an address in a CDX or CDXJ index: `com,example)/path?a=1`. `None` for an empty
/// address and for one whose port is not a number.
///
/// ```
/// use onionskin_extract::url::cdx_key;
/// assert_eq!(cdx_key("http://www.Example.com/B/?z=1&a=2").as_deref(), Some("com,example)/b?a=2&z=1"));
/// ```
pub fn cdx_key(url: &str) -> Option<String> {
    let url: String = url.trim_ascii().chars().filter(|c| !matches!(c, '\n' | '\r' | '\t')).collect();
    if url.is_empty() {
        return None;
    }
    if url.starts_with("filedesc") {
        return Some(url);
    }
    let mut parts = Parts::split(&url)?;
    let mut path = unescape_fully(parts.path.as_bytes());
    if parts.host.is_empty() && parts.scheme.starts_with("http") {
        // `http:////example.org/` and its kind.
        let start = path.iter().position(|&b| b != b'/').unwrap_or(path.len());
        let rest = path.split_off(start);
        let end = rest.iter().position(|&b| b == b'/').unwrap_or(rest.len());
        parts.host = String::from_utf8_lossy(&rest[..end]).into_owned();
        path = if end < rest.len() { rest[end..].to_vec() } else { b"/".to_vec() };
    }

    let mut key = String::with_capacity(url.len() + 4);
    let host = canonical_host(&parts.host);
    let has_host = !host.is_empty();
    if has_host {
        let host = if parts.scheme == "dns" { &host } else { without_www(&host) };
        push_reversed(&mut key, host);
        let default_port = match parts.scheme.to_ascii_lowercase().as_str() {
            "http" => 80,
            "https" => 443,
            _ => 0,
        };
        if let Some(port) = parts.port.filter(|&port| port != default_port && port != 0) {
            key.push(':');
            key.push_str(&port.to_string());
        }
        key.push(')');
        path = flat_path(&path);
    } else {
        key.push_str(&parts.scheme);
        key.push(':');
    }

    let mut path = escape(&path).to_ascii_lowercase();
    strip_path_session(&mut path);
    if path.len() > 1 && path.ends_with('/') {
        path.pop();
    }
    let query = canonical_query(&parts.query);
    if path.is_empty() && !query.is_empty() {
        path.push('/');
    }
    key.push_str(&path);
    if !query.is_empty() {
        key.push('?');
        key.push_str(&query);
    }
    Some(key)
}

/// The form crawlers filter by: `http://(com,example,www,)/path`, with case kept and https written as http. Numeric
/// addresses are not turned round. `None` when the address is not http or https.
///
/// ```
/// use onionskin_extract::url::heritrix_surt;
/// assert_eq!(heritrix_surt("https://www.example.com:8080/A").as_deref(), Some("http://(com,example,www,:8080)/A"));
/// ```
pub fn heritrix_surt(url: &str) -> Option<String> {
    let url = super::normalize(url)?;
    let after = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let (authority, path) = after.split_at(after.find(['/', '?']).unwrap_or(after.len()));
    let (user, host_and_port) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let host = super::site(&url)?;
    let mut surt = String::with_capacity(url.len() + 4);
    surt.push_str("http://(");
    if host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok() {
        surt.push_str(host);
    } else {
        for label in host.rsplit('.').filter(|label| !label.is_empty()) {
            surt.push_str(label);
            surt.push(',');
        }
    }
    surt.push_str(host_and_port.get(host.len()..).unwrap_or_default());
    if let Some(user) = user {
        surt.push('@');
        surt.push_str(user);
    }
    surt.push(')');
    surt.push_str(path);
    Some(surt)
}

/// An address cut where RFC 2396 cuts it, without a word on what each part may hold.
struct Parts {
    scheme: String,
    host: String,
    port: Option<u32>,
    path: String,
    query: String,
}

impl Parts {
    /// `None` when the port is no number.
    fn split(url: &str) -> Option<Parts> {
        let with_scheme;
        let mut url = url;
        if scheme_length(url).is_none() {
            with_scheme = format!("http://{url}");
            url = &with_scheme;
        }
        // `http://https://example.org/`: the last of several protocols is the one that was meant.
        loop {
            let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
            match rest {
                Some(rest) if rest.starts_with("http://") || rest.starts_with("https://") => url = rest,
                _ => break,
            }
        }
        let colon = scheme_length(url)?;
        let (scheme, rest) = (&url[..colon], &url[colon + 1..]);
        let rest = &rest[..rest.find('#').unwrap_or(rest.len())];
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("", rest),
        };
        let authority = authority.trim_end_matches(':');
        let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let (host, port) = match host_and_port.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, after)) => (host, after.strip_prefix(':')),
            None => host_and_port.split_once(':').map_or((host_and_port, None), |(h, p)| (h, Some(p))),
        };
        let port = match port {
            None | Some("") => None,
            Some(digits) => Some(digits.parse().ok().filter(|&port: &u32| port <= 0xffff)?),
        };
        Some(Parts {
            scheme: scheme.to_owned(),
            host: host.to_lowercase(),
            port,
            path: path.to_owned(),
            query: query.to_owned(),
        })
    }
}

/// Where the colon after the scheme stands.
fn scheme_length(url: &str) -> Option<usize> {
    let colon = url.find(':')?;
    let (first, rest) = url.as_bytes()[..colon].split_first()?;
    let legal = first.is_ascii_alphabetic()
        && rest.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    legal.then_some(colon)
}

fn canonical_host(host: &str) -> String {
    let host = String::from_utf8_lossy(&unescape_fully(host.as_bytes())).into_owned();
    let host = if host.is_ascii() {
        host
    } else {
        // An international name goes to ASCII as the resolver would have it; what cannot is escaped
        // below.
        match ::url::Host::parse(&host) {
            Ok(::url::Host::Domain(ascii)) => ascii,
            _ => host,
        }
    };
    let host = host.replace("..", ".");
    let host = host.trim_matches('.');
    match numeric_address(host) {
        Some(address) => address.to_string(),
        None => escape(host.to_ascii_lowercase().as_bytes()),
    }
}

/// `www.`, `www2.` and so on, once.
fn without_www(host: &str) -> &str {
    host.strip_prefix("www")
        .and_then(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix('.'))
        .unwrap_or(host)
}

fn push_reversed(out: &mut String, host: &str) {
    for (n, label) in host.rsplit('.').enumerate() {
        if n > 0 {
            out.push(',');
        }
        out.push_str(label);
    }
}

/// The address a host of digits and dots stands for, as the resolver reads it: `10.1` is
/// `10.0.0.1`, a leading zero means octal, and a number alone is all four bytes, of which higher
/// ones are cut off.
fn numeric_address(host: &str) -> Option<Ipv4Addr> {
    if host.is_empty() || !host.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    if !host.contains('.') {
        let low = host.bytes().fold(0u32, |n, b| n.wrapping_mul(10).wrapping_add(u32::from(b - b'0')));
        return Some(Ipv4Addr::from(low));
    }
    let parts: Vec<u32> = host
        .split('.')
        .map(|part| match part.strip_prefix('0') {
            Some("") => Some(0),
            Some(octal) => u32::from_str_radix(octal, 8).ok(),
            None => part.parse().ok(),
        })
        .collect::<Option<_>>()?;
    let (&last, bytes) = parts.split_last()?;
    if bytes.len() > 3 || bytes.iter().any(|&byte| byte > 0xff) {
        return None;
    }
    let room = 32 - 8 * bytes.len() as u32;
    if room < 32 && last >> room != 0 {
        return None;
    }
    let high = bytes.iter().fold(0u32, |n, &byte| n << 8 | byte);
    Some(Ipv4Addr::from(if room == 32 { last } else { high << room | last }))
}

/// The path without dot segments and doubled slashes. A `..` above the root stays, as it does in
/// the archives' keys.
fn flat_path(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for part in path.split(|&b| b == b'/').skip(1) {
        match part {
            b"." => {}
            b".." if !kept.is_empty() => {
                kept.pop();
            }
            _ => kept.push(part),
        }
    }
    let mut flat = vec![b'/'];
    if let Some((last, before)) = kept.split_last() {
        for part in before.iter().filter(|part| !part.is_empty()) {
            flat.extend_from_slice(part);
            flat.push(b'/');
        }
        flat.extend_from_slice(last);
    }
    flat
}

/// Escapes undone until none is left. Each pass makes the bytes shorter, but `%2525...25` gives up
/// one level a pass, so the passes are counted.
fn unescape_fully(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..64 {
        if memchr::memchr(b'%', &bytes).is_none() {
            break;
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at..] {
                [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                    out.push(hex_value(high) << 4 | hex_value(low));
                    at += 3;
                }
                _ => {
                    out.push(bytes[at]);
                    at += 1;
                }
            }
        }
        if out.len() == bytes.len() {
            break;
        }
        bytes = out;
    }
    bytes
}

/// Escapes what is not printable ASCII, and the two signs that would be read as something else.
fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_graphic() && byte != b'#' && byte != b'%' {
            out.push(char::from(byte));
        } else {
            push_escaped(&mut out, byte);
        }
    }
    out
}

/// Takes ASP.NET session ids out of a lower-case path: `/(s(24 letters))/page.aspx` and
/// `/(24 letters)/page.aspx`.
fn strip_path_session(path: &mut String) {
    for with_letter in [true, false] {
        // The last folder that has the shape is the one that goes.
        let found = path.rmatch_indices("/(").find_map(|(slash, _)| {
            let begin = slash + 1;
            let end = begin + session_folder_length(&path[begin..], with_letter)?;
            let page = path[end..].split('?').next()?;
            let is_page = page.find(".aspx").is_some_and(|at| at > 0)
                || path[end..]
                    .match_indices(".aspx")
                    .any(|(at, _)| at > 0 && !path[end..end + at].contains('?'));
            is_page.then_some((begin, end))
        });
        if let Some((begin, end)) = found {
            path.replace_range(begin..end, "");
        }
    }
}

/// Length of `(a(24)b(24))/` or of `(24)/`, whichever is asked for.
fn session_folder_length(text: &str, with_letter: bool) -> Option<usize> {
    fn token(bytes: &[u8]) -> bool {
        bytes.len() == 24 && bytes.iter().all(u8::is_ascii_alphanumeric)
    }
    let bytes = text.as_bytes();
    if !with_letter {
        return (token(bytes.get(1..25)?) && bytes.get(25..27)? == b")/").then_some(27);
    }
    let mut at = 1;
    while bytes.get(at).is_some_and(u8::is_ascii_alphabetic) {
        let group = bytes.get(at + 1..at + 27)?;
        if group[0] != b'(' || !token(&group[1..25]) || group[25] != b')' {
            return None;
        }
        at += 27;
    }
    (at > 1 && bytes.get(at..at + 2)? == b")/").then_some(at + 2)
}

fn canonical_query(query: &str) -> String {
    let mut query = escape(&unescape_fully(query.as_bytes()));
    for session in SESSIONS {
        session.strip(&mut query);
    }
    query.make_ascii_lowercase();
    let mut arguments: Vec<(&str, Option<&str>)> = query
        .split('&')
        .map(|argument| {
            argument.split_once('=').map_or((argument, None), |(name, value)| (name, Some(value)))
        })
        .collect();
    arguments.sort_unstable();
    let mut sorted = String::with_capacity(query.len());
    for (n, (name, value)) in arguments.into_iter().enumerate() {
        if n > 0 {
            sorted.push('&');
        }
        sorted.push_str(name);
        if let Some(value) = value {
            sorted.push('=');
            sorted.push_str(value);
        }
    }
    sorted
}

/// One kind of session id in a query. It ends at `&` or at the end of the query, and the last one
/// goes.
enum Session {
    /// A name, `=`, and so many letters or digits.
    Token { name: &'static str, length: usize },
    /// ASP's own: a name with eight letters after it, `=`, and 24 letters.
    Asp,
    /// ColdFusion's pair of arguments.
    ColdFusion,
}

const SESSIONS: [Session; 5] = [
    Session::Token { name: "jsessionid=", length: 32 },
    Session::Token { name: "phpsessid=", length: 32 },
    Session::Token { name: "sid=", length: 32 },
    Session::Asp,
    Session::ColdFusion,
];

impl Session {
    fn strip(&self, query: &mut String) {
        let lower = query.to_ascii_lowercase();
        let first = match self {
            Session::Token { name, .. } => name,
            Session::Asp => "aspsessionid",
            Session::ColdFusion => "cfid=",
        };
        for (begin, _) in lower.rmatch_indices(first) {
            let after = begin + first.len();
            let Some(end) = self.end(&lower, after) else { continue };
            if end == lower.len() {
                query.truncate(begin);
            } else if lower.as_bytes()[end] == b'&' {
                query.replace_range(begin..=end, "");
            } else {
                continue;
            }
            break;
        }
    }

    /// Where the session id whose name ends at `after` ends.
    fn end(&self, query: &str, after: usize) -> Option<usize> {
        let run = |from: usize, length: usize, test: fn(&u8) -> bool| {
            let bytes = query.as_bytes().get(from..from + length)?;
            bytes.iter().all(test).then_some(from + length)
        };
        let argument = |from: usize| {
            let end = query[from..].find('&').map_or(query.len(), |at| from + at);
            (end > from).then_some(end)
        };
        match self {
            Session::Token { length, .. } => run(after, *length, u8::is_ascii_alphanumeric),
            Session::Asp => {
                let equals = run(after, 8, u8::is_ascii_alphabetic)?;
                let value = query.as_bytes().get(equals).filter(|&&b| b == b'=').map(|_| equals + 1)?;
                run(value, 24, u8::is_ascii_alphabetic)
            }
            Session::ColdFusion => {
                let end = argument(after)?;
                let second = query[end..].strip_prefix("&cftoken=")?;
                argument(query.len() - second.len())
            }
        }
    }
}
