//! Who is answered, and in which form.

use serde_json::json;

use super::client::{Server, TOKEN};
use crate::headers::CONTENT_SECURITY_POLICY;

const PATHS: [&str; 12] = [
    "/",
    "/filter",
    "/seen",
    "/api",
    "/health",
    "/metrics",
    "/api/v1/openapi.json",
    "/api/v1/filter?k=6&s=14&r=2",
    "/api/v1/seen/stats",
    "/nothing",
    "/api/v1/nothing",
    "/panic",
];

#[test]
fn every_answer_has_the_headers() {
    let server = Server::plain();
    for path in PATHS.into_iter().chain([crate::assets::style(), crate::assets::script()]) {
        let answer = server.get(path);
        assert_eq!(answer.header("content-security-policy"), CONTENT_SECURITY_POLICY, "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("referrer-policy"), "same-origin", "{path}");
        assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin", "{path}");
        assert_eq!(answer.header("cross-origin-opener-policy"), "same-origin", "{path}");
        let caching = if path.starts_with("/assets/") {
            "public, max-age=31536000, immutable"
        } else {
            "private, no-cache"
        };
        assert_eq!(answer.header("cache-control"), caching, "{path}");
    }
}

#[test]
fn pages_have_no_script_or_style_of_their_own() {
    let server = Server::plain();
    for path in PATHS {
        let answer = server.get(path);
        if answer.header("content-type").starts_with("text/html") {
            let text = answer.text();
            assert!(text.contains("<main id=\"main\""), "{path}");
            assert_eq!(text.matches("<script").count(), 1, "{path}");
            for sign in ["<style", " style=", " onclick=", " onload=", "javascript:", "http-equiv"] {
                assert!(!text.contains(sign), "{path} has {sign}");
            }
        }
    }
}

#[test]
fn errors_have_one_form() {
    let server = Server::plain();
    let page = server.get("/nothing");
    assert_eq!((page.status, page.header("content-type")), (404, "text/html; charset=utf-8"));
    assert!(page.text().contains("there is nothing at this address"));
    let api = server.get("/api/v1/nothing");
    assert_eq!((api.status, api.code().as_str()), (404, "not_found"));
    let method = server.request("DELETE", "/api/v1/filter", &[], "");
    assert_eq!((method.status, method.code().as_str()), (405, "method_not_allowed"));
    assert!(method.header("allow").contains("GET"), "{method:?}");
    let query = server.get("/api/v1/filter?k=x");
    assert_eq!((query.status, query.code().as_str()), (400, "bad_request"));
    let range = server.get("/api/v1/filter?k=6&s=14&r=7");
    assert_eq!((range.status, range.code().as_str()), (400, "bad_request"));
    let page = server.request("POST", "/filter", &[], "");
    assert_eq!((page.status, page.header("content-type")), (405, "text/html; charset=utf-8"));
    let head = server.request("HEAD", "/api/v1/nothing", &[], "");
    assert_eq!((head.status, head.body.len()), (404, 0));
}

#[test]
fn panics_are_answers_and_counted() {
    let server = Server::plain();
    for path in ["/panic", "/panic-at-work"] {
        let answer = server.get(path);
        assert_eq!(answer.status, 500, "{path}");
        assert!(!answer.text().contains("on purpose"), "what went wrong is for the log");
    }
    assert!(server.get("/metrics").text().contains("onionskin_panics_total 2"));
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn what_is_counted() {
    let server = Server::plain();
    server.get("/filter?k=1");
    server.get("/no/such/page");
    server.get("/no/such/page/either");
    server.request("GET", "/health", &[("Host", "evil.example")], "");
    let answer = server.get("/metrics");
    assert!(answer.header("content-type").starts_with("application/openmetrics-text"));
    let text = answer.text();
    for line in [
        "onionskin_http_requests_total{route=\"/filter\",method=\"GET\",status=\"2xx\"} 1",
        "onionskin_http_requests_total{route=\"none\",method=\"GET\",status=\"4xx\"} 2",
        "onionskin_http_refused_total{reason=\"misdirected\"} 1",
        "onionskin_http_request_duration_seconds_count{route=\"/filter\"} 1",
        "onionskin_http_requests_in_flight 1",
        "onionskin_connections_accepted_total 5",
        "onionskin_build_info{version=",
        "onionskin_seen_documents 0",
        "# EOF",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn only_our_own_names_on_loopback() {
    let server = Server::new(|config| config.allow_hosts = vec!["atlas.example".to_owned()]);
    let bearer = format!("Bearer {TOKEN}");
    for (host, status) in [
        ("localhost:80", 200),
        ("127.0.0.1", 200),
        ("[::1]:7311", 200),
        ("ATLAS.example:1", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
    ] {
        for path in ["/health", "/filter"] {
            let headers = [("Host", host), ("Authorization", bearer.as_str())];
            assert_eq!(server.request("GET", path, &headers, "").status, status, "{host}");
        }
    }
    for host in ["127.0.0.1:7401@evil.example", "localhost:", "localhost:x", "a b", ""] {
        assert_eq!(server.request("GET", "/health", &[("Host", host)], "").status, 400, "{host}");
    }
    for hosts in [["localhost", "evil.example"], ["evil.example", "localhost"], ["localhost", "localhost"]] {
        let answer = server.request("GET", "/health", &hosts.map(|host| ("Host", host)), "");
        assert_eq!(answer.status, 400, "{hosts:?}");
    }
    // A whole address in the request line overrules the header.
    let answer =
        server.raw("GET http://evil.example/filter HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_eq!(answer.status, 421);
    assert_eq!(server.raw("GET /filter HTTP/1.0\r\n\r\n").status, 400);
}

/// What is served on loopback is read by everybody whom a proxy lets through.
#[test]
fn behind_a_proxy_reading_needs_the_token() {
    let named = Server::new(|config| config.allow_hosts = vec!["search.example.org".to_owned()]);
    let asked = Server::new(|config| config.require_token = true);
    let bearer = format!("Bearer {TOKEN}");
    for path in PATHS.into_iter().filter(|path| *path != "/health") {
        for (server, host) in [(&named, "search.example.org"), (&named, "localhost"), (&asked, "localhost")] {
            let get = |headers: &[(&str, &str)]| {
                server.request("GET", path, &[&[("Host", host)], headers].concat(), "").status
            };
            assert_eq!(get(&[]), 401, "{path} of {host}");
            assert_ne!(get(&[("Authorization", &bearer)]), 401, "{path} of {host}");
        }
    }
    let body = json!({"documents": []}).to_string();
    let check = [("Content-Type", "application/json")];
    assert_eq!(named.request("POST", "/api/v1/seen/check", &check, &body).status, 401);
    assert_eq!(named.get("/health").status, 200);
    // A proxy that nobody has told us of.
    let (open, without) = (Server::plain(), Server::new(|config| config.token = None));
    for (name, value) in [
        ("X-Forwarded-For", "203.0.113.9"),
        ("X-Forwarded-Host", "search.example.org"),
        ("Forwarded", "for=203.0.113.9"),
        ("X-Real-IP", "203.0.113.9"),
        ("Via", "1.1 proxy"),
    ] {
        assert_eq!(open.request("GET", "/filter", &[(name, value)], "").status, 401, "{name}");
        let known = [(name, value), ("Authorization", bearer.as_str())];
        assert_eq!(open.request("GET", "/filter", &known, "").status, 200, "{name}");
        let answer = without.request("GET", "/api/v1/filter?k=6&s=14&r=2", &[(name, value)], "");
        assert_eq!((answer.status, answer.code().as_str()), (403, "forbidden"), "{name}");
    }
    assert_eq!((open.get("/filter").status, without.get("/filter").status), (200, 200));
}

#[test]
fn a_cookie_that_came_encrypted_stays_so() {
    let server = Server::new(|config| config.require_token = true);
    let cookie = |more: &[(&str, &str)]| {
        let form = ("Content-Type", "application/x-www-form-urlencoded");
        let headers = [&[form], more].concat();
        let signed = server.request("POST", "/sign-in", &headers, format!("token={TOKEN}"));
        assert_eq!(signed.status, 303);
        signed.header("set-cookie").to_owned()
    };
    assert!(!cookie(&[]).contains("Secure"));
    assert!(!cookie(&[("X-Forwarded-Proto", "http")]).contains("Secure"));
    for header in [("X-Forwarded-Proto", "https"), ("Forwarded", "for=203.0.113.9;proto=https")] {
        assert!(cookie(&[header]).ends_with("; Secure"), "{header:?}");
    }
    // Who signs in through a proxy that nobody has told us of gets a cookie, too.
    let open = Server::plain();
    let headers = [("Content-Type", "application/x-www-form-urlencoded"), ("Via", "1.1 proxy")];
    let signed = open.request("POST", "/sign-in", &headers, format!("token={TOKEN}"));
    let cookie = ("Cookie", signed.header("set-cookie").split(';').next().unwrap());
    assert_eq!(open.request("GET", "/filter", &[("Via", "1.1 proxy"), cookie], "").status, 200);
}

/// Ten thousand guesses a second find a token that somebody has made up.
#[test]
fn guesses_are_bounded() {
    let server = Server::new(|config| config.require_token = true);
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let from = |address: &'static str| ("X-Forwarded-For", address);
    let sign_in = |address, token: &str| {
        server.request("POST", "/sign-in", &[form, from(address)], format!("token={token}"))
    };
    let read = |address, token: &str| {
        let bearer = format!("Bearer {token}");
        server.request("GET", "/api/v1/seen/stats", &[("Authorization", &bearer), from(address)], "")
    };
    let statuses: Vec<u16> = (0..10).map(|_| sign_in("203.0.113.1", "wrong").status).collect();
    assert_eq!(statuses, [401; 10]);
    let refused = sign_in("203.0.113.1", TOKEN);
    assert_eq!(refused.status, 429, "nobody looks any more");
    assert!((1..=2).contains(&refused.header("retry-after").parse::<u32>().unwrap()), "{refused:?}");
    // There is no way round it, and others are not concerned.
    let refused = read("203.0.113.1", TOKEN);
    assert_eq!((refused.status, refused.code().as_str()), (429, "too_many_guesses"));
    let statuses: Vec<u16> = (0..12).map(|_| read("203.0.113.2", "wrong").status).collect();
    assert_eq!((&statuses[..10], statuses[11]), ([401; 10].as_slice(), 429));
    assert_eq!(read("203.0.113.3", TOKEN).status, 200);
    assert_eq!(sign_in("203.0.113.4", TOKEN).status, 303);
    assert!(
        server
            .request("GET", "/metrics", &[("Authorization", &format!("Bearer {TOKEN}"))], "")
            .text()
            .contains("reason=\"guessed\"}")
    );
}

/// An image of another site's page can be any address of this server.
#[test]
fn what_other_sites_pages_ask_for_is_refused() {
    let server = Server::plain();
    let get = |path: &str, headers: &[(&str, &str)]| server.request("GET", path, headers, "").status;
    let site = |site: &'static str| ("Sec-Fetch-Site", site);
    let (link, image) = (("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Mode", "no-cors"));
    let (window, frame) = (("Sec-Fetch-Dest", "document"), ("Sec-Fetch-Dest", "iframe"));
    for costly in [
        "/compare?a=0&b=1",
        "/api/v1/explain?a=0&b=1",
        "/api/v1/search?q=a",
        "/api/v1/filter?threshold=0.9",
        "/api/v1/seen/stats",
        "/metrics",
        "/downloads/tables/documents/0.parquet",
    ] {
        for elsewhere in ["cross-site", "same-site", "nonsense"] {
            for how in [&[link, window][..], &[image], &[]] {
                let headers = [&[site(elsewhere)], how].concat();
                assert_eq!(get(costly, &headers), 403, "{costly} {headers:?}");
            }
        }
        for here in ["same-origin", "none"] {
            assert_ne!(get(costly, &[site(here), image]), 403, "{costly}");
        }
        assert_eq!(get(costly, &[("Referer", "http://evil.example/page")]), 403, "{costly}");
        assert_ne!(get(costly, &[("Referer", "http://localhost/clusters")]), 403, "{costly}");
        assert_ne!(get(costly, &[]), 403, "{costly}: programs say nothing");
    }
    for page in ["/", "/filter", "/seen"] {
        assert_eq!(get(page, &[site("cross-site"), link, window]), 200, "{page}: a link");
        assert_eq!(get(page, &[site("cross-site"), link, frame]), 403, "{page}");
        assert_eq!(get(page, &[site("cross-site"), image]), 403, "{page}");
        assert_eq!(get(page, &[("Referer", "http://evil.example/page")]), 200, "{page}");
    }
}

#[test]
fn posts_of_other_sites_are_refused() {
    let server = Server::plain();
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let post = |header| server.request("POST", "/seen", &[form, header], "text=a+b+c+d").status;
    assert_eq!(post(("Origin", "http://localhost")), 200);
    assert_eq!(post(("X-None", "")), 200);
    assert_eq!(post(("Origin", "http://evil.example")), 403);
    assert_eq!(post(("Origin", "null")), 403);
    assert_eq!(post(("Sec-Fetch-Site", "cross-site")), 403);
}

#[test]
fn writing_needs_the_token_on_loopback_too() {
    let server = Server::plain();
    let body = json!({"documents": []}).to_string();
    let json = ("Content-Type", "application/json");
    for path in ["/api/v1/seen/add", "/api/v1/seen/remove"] {
        assert_eq!(server.request("POST", path, &[json], &body).code(), "unauthorised");
        let wrong = ("Authorization", "Bearer correct-horse-batterx");
        let answer = server.request("POST", path, &[json, wrong], &body);
        assert_eq!((answer.status, answer.code().as_str()), (401, "unauthorised"));
        assert!(answer.header("www-authenticate").starts_with("Bearer"));
    }
    assert_eq!(server.request("POST", "/api/v1/seen/check", &[json], &body).status, 200);
    assert_eq!(server.post("/api/v1/seen/add", &json!({"documents": []})).status, 200);
    let server = Server::new(|config| config.token = None);
    assert_eq!(server.post("/api/v1/seen/add", &json!({"documents": []})).code(), "forbidden");
}

#[test]
fn elsewhere_everything_needs_the_token() {
    let server = Server::new(|config| config.listen = "0.0.0.0:0".parse().unwrap());
    let bearer = format!("Bearer {TOKEN}");
    for path in PATHS.iter().filter(|path| **path != "/health") {
        assert_eq!(server.get(path).status, 401, "{path}");
        assert_ne!(server.request("GET", path, &[("Authorization", &bearer)], "").status, 401, "{path}");
    }
    assert_eq!(server.get("/health").status, 200);
    assert_eq!(server.get(crate::assets::style()).status, 200);
    // Browsers are led to the page where they can sign in.
    let html = ("Accept", "text/html,application/xhtml+xml");
    let answer = server.request("GET", "/filter", &[html], "");
    assert_eq!((answer.status, answer.header("location")), (303, "/sign-in"));
    let page = server.request("GET", "/sign-in", &[html], "");
    assert_eq!(page.status, 200);
    assert!(!page.text().contains("Filter designer"), "nothing is told of what is here");
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    assert_eq!(server.request("POST", "/sign-in", &[form], "token=wrong").status, 401);
    let signed = server.request("POST", "/sign-in", &[form], format!("token={TOKEN}"));
    assert_eq!((signed.status, signed.header("location")), (303, "/"));
    let cookie = signed.header("set-cookie");
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains(TOKEN));
    let cookie = ("Cookie", cookie.split(';').next().unwrap());
    assert_eq!(server.request("GET", "/filter", &[html, cookie], "").status, 200);
    // A cookie is no permission to write.
    let json = ("Content-Type", "application/json");
    assert_eq!(server.request("POST", "/api/v1/seen/add", &[json, cookie], "{\"documents\":[]}").status, 401);
    assert_eq!(server.request("POST", "/sign-out", &[cookie], "").status, 303);
    assert_eq!(server.request("GET", "/filter", &[html, cookie], "").status, 303);
}

#[test]
fn compressed_where_it_is_worth_it() {
    let server = Server::plain();
    let gzip = ("Accept-Encoding", "gzip");
    let page = server.request("GET", "/filter", &[gzip], "");
    assert_eq!(page.header("content-encoding"), "gzip");
    assert_eq!(page.body[..2], [0x1f, 0x8b]);
    assert_eq!(server.request("GET", "/health", &[gzip], "").header("content-encoding"), "");
    assert_eq!(server.get("/filter").header("content-encoding"), "");
}

#[test]
fn the_document_lists_what_there_is() {
    let server = Server::plain();
    let document = server.get("/api/v1/openapi.json").json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            routes.push(format!("{} {path}", method.to_uppercase()));
            for status in ["400", "401", "403", "404", "421", "500", "503", "504"] {
                assert!(operation["responses"][status].is_object(), "{path} {status}");
            }
            if method == "post" {
                for status in ["408", "413", "415"] {
                    assert!(operation["responses"][status].is_object(), "{path} {status}");
                }
            }
            // What is listed is there.
            let answer = server.request(&method.to_uppercase(), path, &[], "");
            let no_atlas = answer.text().contains("no atlas is served here");
            assert!(no_atlas || ![404, 405].contains(&answer.status), "{method} {path}: {answer:?}");
        }
    }
    routes.sort();
    assert_eq!(
        routes,
        [
            "GET /api/v1/alternates",
            "GET /api/v1/clusters",
            "GET /api/v1/clusters/{cluster}",
            "GET /api/v1/collections",
            "GET /api/v1/collections/{group}",
            "GET /api/v1/documents",
            "GET /api/v1/documents/{doc}",
            "GET /api/v1/explain",
            "GET /api/v1/filter",
            "GET /api/v1/openapi.json",
            "GET /api/v1/search",
            "GET /api/v1/seen/stats",
            "GET /health",
            "GET /metrics",
            "POST /api/v1/seen/add",
            "POST /api/v1/seen/check",
            "POST /api/v1/seen/remove",
        ]
    );
    // Every reference leads somewhere.
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
    let page = server.get("/api").text();
    for route in routes {
        let path = route.split_once(' ').unwrap().1;
        assert!(page.contains(path), "{path}");
    }
}

#[test]
fn the_filter_designer() {
    let server = Server::plain();
    let page = server.get("/filter").text();
    assert!(page.contains("[6, 14, 2]") && page.contains("48 bytes a document"));
    assert!(page.contains("role=\"img\"") && !page.contains("class=\"reference\""));
    let page = server.get("/filter?k=20&s=5&r=1&scale=log").text();
    assert!(page.contains("20x5r1") && page.contains("class=\"reference\"") && page.contains("1e-12"));
    for (query, problem) in [
        ("k=0&s=14&r=2", "a whole number from 1 to 255"),
        ("k=x&s=14&r=2", "a whole number from 1 to 255"),
        ("k=6&s=14&r=7", "not more than there are features, 6"),
        ("k=255&s=255&r=1", "255 times 255 is 65025"),
        ("threshold=2", "a number between 0 and 1"),
        ("threshold=nan", "a number between 0 and 1"),
        ("threshold=0.5&far=0.6", "less than the threshold"),
        ("threshold=0.5&far=0.4999&miss=1e-9&false_accept=1e-9", "no filter of up to 64 features"),
    ] {
        let answer = server.get(&format!("/filter?{query}"));
        assert_eq!(answer.status, 200, "{query}");
        assert!(answer.text().contains(problem), "{query}");
        assert!(answer.text().contains("no curve for these numbers"), "{query}");
    }
    // What was typed comes back as text.
    let answer = server.get("/filter?k=%22%3E%3Cscript%3Ealert(1)%3C/script%3E");
    assert_eq!(answer.text().matches("<script").count(), 1);
    let chosen = server.get("/api/v1/filter?threshold=0.9").json();
    let page = server.get("/filter?threshold=0.9").text();
    assert!(page.contains(chosen["spelling"].as_str().unwrap()), "{chosen}");
    let given = server.get("/api/v1/filter?k=6&s=14&r=2").json();
    // Broder 2000, section 3: two or more of six agree.
    let agree = 0.9f64.powi(14);
    let chance = 1.0 - (1.0 - agree).powi(6) - 6.0 * agree * (1.0 - agree).powi(5);
    assert!((given["points"][90]["acceptance"].as_f64().unwrap() - chance).abs() < 1e-12, "{chance}");
    assert_eq!(given["bytes_per_document"], 48);
}
