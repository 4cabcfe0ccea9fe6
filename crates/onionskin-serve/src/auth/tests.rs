use onionskin_store::MemoryBudget;

use super::*;

fn auth(listen: &str, token: Option<&str>) -> Result<Auth, AuthError> {
    let mut config = Config::new(MemoryBudget::from_mib(16));
    config.listen = listen.parse().unwrap();
    config.token = token.map(|token| Token::new(token).unwrap());
    config.allow_hosts = vec!["Crawl.Example".to_owned()];
    Auth::new(&config)
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
    let auth = auth("127.0.0.1:1", None).unwrap();
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
        assert!(auth.is_our_host(host), "{host}");
    }
    for host in
        ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "10.0.0.1", "evillocalhost"]
    {
        assert!(!auth.is_our_host(host), "{host}");
    }
}

#[test]
fn origins() {
    let check = |name: &'static str, value: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        same_origin(&headers, "localhost:7311")
    };
    assert!(same_origin(&HeaderMap::new(), "localhost:7311"));
    assert!(check("origin", "http://localhost:7311"));
    assert!(check("sec-fetch-site", "same-origin"));
    assert!(!check("origin", "http://localhost:7312"));
    assert!(!check("origin", "null"));
    assert!(!check("origin", "http://evil.example"));
    assert!(!check("sec-fetch-site", "cross-site"));
    assert!(!check("sec-fetch-site", "same-site"));
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
