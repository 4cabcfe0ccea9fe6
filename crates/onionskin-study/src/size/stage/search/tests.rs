use super::*;

#[test]
fn paths_are_spelled_in_two_ways() {
    let path = |spelling: &str| spelling.parse::<ResultPath>();
    assert_eq!(path("json:hits.hits[]._source.url"), path("json:/hits/hits/*/_source/url"));
    assert_eq!(path("json:[].url").unwrap().to_string(), "json:/*/url");
    assert_eq!(path("json:/a~1b/*").unwrap().to_string(), "json:/a~1b/*");
    assert_eq!(path("text"), Ok(ResultPath::Lines));
    assert_eq!(EngineSettings::default().results, path("json:results[].url").unwrap());
    for bad in ["", "xml:a", "json:", "json:a.b", "json:a..b[]", "json:/a//*"] {
        assert!(path(bad).is_err(), "{bad}");
    }
}

#[test]
fn addresses_are_taken_out_of_answers() {
    let take = |path: &str, body: &str| path.parse::<ResultPath>().unwrap().take(body.as_bytes());
    let urls = |urls: &[&str]| Some(urls.iter().map(|url| (*url).to_owned()).collect::<Vec<_>>());
    assert_eq!(take("text", "http://a/\n\n http://b/ \n"), urls(&["http://a/", "http://b/"]));
    assert_eq!(take("json:r[].u", r#"{"r":[{"u":"x"},{"t":"none"},{"u":"y"}]}"#), urls(&["x", "y"]));
    assert_eq!(take("json:/r/*/0", r#"{"r":[["x",1],["y",2]]}"#), urls(&["x", "y"]));
    assert_eq!(take("json:r[]", r#"{"r":[]}"#), urls(&[]));
    // An answer that is not that of a search is a failure and not an empty result.
    assert_eq!(take("json:r[].u", r#"{"error":"busy"}"#), None);
    assert_eq!(take("json:r[].u", "<html>busy</html>"), None);
    assert_eq!(take("json:r[].u", r#"{"r":"busy"}"#), None);
}

#[test]
fn templates_are_filled_in() {
    let client = Rc::new(RefCell::new(HttpClient::new(super::super::http::HttpParams::default())));
    let engine = HttpEngine::new(
        "http://e.example/s?q={query}&n={count}&f={start}",
        EngineSettings::default(),
        client,
    );
    assert_eq!(engine.name(), "http://e.example/s");
    assert_eq!(
        engine.address("a b {count} é", 10, 20),
        "http://e.example/s?q=a%20b%20%7Bcount%7D%20%C3%A9&n=10&f=20"
    );
}
