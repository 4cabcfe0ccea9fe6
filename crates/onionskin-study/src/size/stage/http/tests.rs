use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use super::*;

/// Gives these answers, one a connection, and keeps the requests. `None` takes the request and says
/// nothing for longer than the client waits.
fn serve(answers: Vec<Option<&'static str>>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    std::thread::spawn(move || {
        for answer in answers {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n == 1) {
                request.push(byte[0]);
            }
            kept.lock().unwrap().push(String::from_utf8(request).unwrap());
            match answer {
                Some(answer) => stream.write_all(answer.as_bytes()).unwrap(),
                None => std::thread::sleep(Duration::from_millis(400)),
            }
        }
    });
    (address, seen)
}

fn client() -> HttpClient {
    HttpClient::new(HttpParams {
        rate: 10_000.0,
        timeout: Duration::from_millis(300),
        backoff: Duration::from_millis(5),
        ..HttpParams::default()
    })
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

#[test]
fn a_request_says_who_asks_and_what_for() {
    let (address, seen) = serve(vec![Some(OK), Some("HTTP/1.1 200 OK\r\n\r\nuntil the end")]);
    let mut client = client();
    let (answer, from) = client.get(&format!("{address}/search?q=a%20b")).unwrap();
    assert_eq!((answer.body.as_slice(), from), (b"hello".as_slice(), format!("{address}/search?q=a%20b")));
    assert_eq!(client.get(&address).unwrap().0.body, b"until the end");
    let seen = seen.lock().unwrap();
    assert!(seen[0].starts_with("GET /search?q=a%20b HTTP/1.1\r\nHost: 127.0.0.1:"), "{}", seen[0]);
    assert!(seen[0].contains("User-Agent: onionskin/"), "{}", seen[0]);
    assert!(seen[1].starts_with("GET / HTTP/1.1\r\n"), "{}", seen[1]);
}

#[test]
fn what_may_pass_is_tried_again() {
    let (address, seen) = serve(vec![
        Some("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"),
        None,
        Some("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\ncut off"),
        Some(OK),
    ]);
    let mut client = client();
    assert_eq!(client.get(&address).unwrap().0.body, b"hello");
    assert_eq!((client.requests(), seen.lock().unwrap().len()), (4, 4));
}

#[test]
fn retry_after_is_honoured_and_retries_end() {
    let busy = "HTTP/1.1 429 Slow\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n";
    let (address, _) = serve(vec![Some(busy), Some(OK)]);
    let start = Instant::now();
    assert!(client().get(&address).is_ok());
    assert!(start.elapsed() >= Duration::from_secs(1));
    let (address, _) = serve(vec![Some("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"); 4]);
    let mut client = client();
    assert!(matches!(client.get(&address), Err(HttpFailure::Status { status: 500 })));
    assert_eq!(client.requests(), 4);
}

#[test]
fn a_clear_no_is_not_asked_again() {
    let (address, _) = serve(vec![Some("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")]);
    let mut client = client();
    assert!(matches!(client.get(&address), Err(HttpFailure::Status { status: 404 })));
    assert_eq!(client.requests(), 1);
    #[cfg(not(feature = "remote"))]
    assert!(matches!(client.get("https://e.example/"), Err(HttpFailure::Encrypted { .. })));
    assert!(matches!(client.get("gopher://e.example/"), Err(HttpFailure::Address { .. })));
    assert!(matches!(client.get("http://e.example/a b"), Err(HttpFailure::Address { .. })));
    assert_eq!(client.requests(), 1);
}

#[test]
fn redirects_are_followed_and_requests_are_counted() {
    let (address, seen) =
        serve(vec![Some("HTTP/1.1 302 There\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n"), Some(OK)]);
    let mut limited = client();
    limited.params.max_requests = Some(2);
    assert!(limited.get(&format!("{address}/here")).unwrap().1.ends_with("/there"));
    assert!(seen.lock().unwrap()[1].starts_with("GET /there "));
    assert!(matches!(limited.get(&address), Err(HttpFailure::Exhausted)));
}

#[test]
fn requests_are_apart() {
    let (address, _) = serve(vec![Some(OK); 4]);
    let mut slow = client();
    slow.params.rate = 20.0;
    let start = Instant::now();
    for _ in 0..4 {
        slow.get(&address).unwrap();
    }
    assert!(start.elapsed() >= Duration::from_millis(150), "{:?}", start.elapsed());
}
