use onionskin_store::MemoryBudget;

use super::*;

fn auth(listen: &str, token: Option<&str>) -> Result<Auth, AuthError> {
    let mut config = Config::new(MemoryBudget::from_mib(16));
    config.listen = listen.parse().unwrap();
    config.token = token.map(|token| Token::new(token).unwrap());
    Auth::new(&config)
}

/// On loopback, under more names than its own.
fn named(name: &str, token: Option<&str>) -> Result<Auth, AuthError> {
    let mut config = Config::new(MemoryBudget::from_mib(16));
    config.token = token.map(|token| Token::new(token).unwrap());
    config.allow_hosts = vec![name.to_owned()];
    Auth::new(&config)
}

const TOKEN: &str = "0123456789abcdef";

#[test]
fn a_name_that_others_can_use_needs_a_token() {
    assert!(matches!(named("search.example.org", None), Err(AuthError::HostNeedsToken(_))));
    assert!(matches!(named("192.0.2.7", None), Err(AuthError::HostNeedsToken(_))));
    assert!(!named("search.example.org", Some(TOKEN)).unwrap().is_open());
    assert!(named("atlas.localhost", None).unwrap().is_open());
    for name in ["http://a.example", "a.example:80", "user@a.example", ""] {
        assert!(matches!(named(name, Some(TOKEN)), Err(AuthError::BadHost(_))), "{name}");
    }
    let mut config = Config::new(MemoryBudget::from_mib(16));
    config.require_token = true;
    assert!(matches!(Auth::new(&config), Err(AuthError::NoToken)));
    config.token = Some(Token::new(TOKEN).unwrap());
    assert!(!Auth::new(&config).unwrap().is_open());
}

#[test]
fn an_open_address_needs_a_token() {
    for listen in ["0.0.0.0:1", "192.168.0.1:1", "[::]:1", "[2001:db8::1]:1"] {
        assert!(matches!(auth(listen, None), Err(AuthError::NeedsToken(_))), "{listen}");
        assert!(!auth(listen, Some("0123456789abcdef")).unwrap().is_open());
    }
    for listen in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1"] {
        assert!(auth(listen, None).unwrap().is_open(), "{listen}");
    }
}

#[test]
fn tokens_are_long_and_can_be_sent() {
    assert!(Token::new(" 0123456789abcdef\n").unwrap().is("0123456789abcdef"));
    assert!(matches!(Token::new("0123456789abcde "), Err(AuthError::ShortToken(15))));
    assert!(matches!(Token::new("0123456789 abcdef"), Err(AuthError::BadToken)));
    assert!(matches!(Token::new("0123456789äbcdef"), Err(AuthError::BadToken)));
    let token = Token::new("0123456789abcdef").unwrap();
    for guess in ["", "0123456789abcde", "0123456789abcdeg", "0123456789abcdef0", "1123456789abcdef"] {
        assert!(!token.is(guess), "{guess}");
    }
    assert_eq!(format!("{token:?}"), "Token(..)");
}

#[test]
fn hosts_of_loopback() {
    let auth = named("Crawl.Example", Some(TOKEN)).unwrap();
    let is_ours = |host: &str| Host::parse(host).is_some_and(|host| auth.is_our_host(&host));
    for host in [
        "localhost",
        "localhost:7311",
        "LOCALHOST:1",
        "127.0.0.1",
        "127.0.0.1:7311",
        "[::1]",
        "[::1]:7311",
        "a.localhost",
        "crawl.example:7311",
    ] {
        assert!(is_ours(host), "{host}");
    }
    for host in
        ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "10.0.0.1", "evillocalhost"]
    {
        assert!(!is_ours(host), "{host}");
    }
}

#[test]
fn origins() {
    let host = Host::parse("localhost:7311").unwrap();
    let check = |name: &'static str, value: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        same_origin(&headers, &host)
    };
    assert!(same_origin(&HeaderMap::new(), &host));
    assert!(check("origin", "http://localhost:7311"));
    assert!(check("sec-fetch-site", "same-origin"));
    assert!(!check("origin", "http://localhost:7312"));
    assert!(!check("origin", "null"));
    assert!(!check("origin", "http://evil.example"));
    assert!(!check("sec-fetch-site", "cross-site"));
    assert!(!check("sec-fetch-site", "same-site"));
    let mut two = HeaderMap::new();
    two.append("origin", "http://localhost:7311".parse().unwrap());
    two.append("origin", "http://evil.example".parse().unwrap());
    assert!(!same_origin(&two, &host));
}

#[test]
fn sessions_are_bounded_and_end() {
    let sessions = Sessions::default();
    let headers = |id: &str| {
        let mut headers = HeaderMap::new();
        let cookie = format!("a=b; {}={id}; c=d", Sessions::COOKIE);
        headers.insert(header::COOKIE, cookie.parse().unwrap());
        headers
    };
    let first = headers(&sessions.begin().unwrap());
    assert!(sessions.has(&first));
    assert!(!sessions.has(&headers("0")));
    let second = headers(&sessions.begin().unwrap());
    for _ in 0..Sessions::MOST - 1 {
        sessions.begin().unwrap();
    }
    assert!(!sessions.has(&first), "the oldest made room");
    assert!(sessions.has(&second));
    sessions.end(&second);
    assert!(!sessions.has(&second));
    assert!(sessions.list().len() <= Sessions::MOST);
}
