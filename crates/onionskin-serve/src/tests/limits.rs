//! Clients that are slow, large or many.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use super::client::{Answer, Server, TOKEN};
use crate::Stop;

#[test]
fn headers_that_dribble() {
    let server = Server::new(|config| config.limits.header_time = Duration::from_millis(300));
    let mut stream = server.connect();
    let start = Instant::now();
    stream.write_all(b"GET /health HTTP/1.1\r\n").unwrap();
    // A header every little while, never the last one.
    let mut closed = false;
    for i in 0..100 {
        std::thread::sleep(Duration::from_millis(20));
        if stream.write_all(format!("X-{i}: y\r\n").as_bytes()).is_err() {
            closed = true;
            break;
        }
    }
    let answer = Answer::read(&mut stream);
    assert!(closed || answer.status == 408 || answer.status == 0, "{answer:?}");
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn connections_that_say_nothing_end() {
    let server = Server::new(|config| config.limits.header_time = Duration::from_millis(200));
    let mut silent = server.connect();
    let mut kept = server.connect();
    kept.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let start = Instant::now();
    let mut bytes = Vec::new();
    silent.read_to_end(&mut bytes).unwrap();
    kept.read_to_end(&mut bytes).unwrap();
    assert!(String::from_utf8(bytes).unwrap().contains("\"status\":\"ok\""));
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn bodies_that_dribble() {
    let server = Server::new(|config| config.limits.body_time = Duration::from_millis(300));
    let mut stream = server.connect();
    let head = "POST /api/v1/seen/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    for _ in 0..25 {
        std::thread::sleep(Duration::from_millis(20));
        if stream.write_all(b" ").is_err() {
            break;
        }
    }
    let answer = Answer::read(&mut stream);
    assert_eq!((answer.status, answer.code().as_str()), (408, "slow_body"));
}

#[test]
fn bodies_that_are_too_large() {
    let server = Server::new(|config| config.limits.body_bytes = 10_000);
    let json = [("Content-Type", "application/json")];
    let body = |len: usize| format!("{{\"documents\":[{{\"text\":\"{}\"}}]}}", "a".repeat(len));
    let answer = server.request("POST", "/api/v1/seen/check", &json, body(20_000));
    assert_eq!((answer.status, answer.code().as_str()), (413, "too_large"));
    assert_eq!(server.request("POST", "/api/v1/seen/check", &json, body(9_000)).status, 200);
    // Without an announced length.
    let chunks: String = (0..20).map(|_| format!("400\r\n{}\r\n", "a".repeat(0x400))).collect();
    let request = format!(
        "POST /api/v1/seen/check HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n"
    );
    assert_eq!(server.raw(request).status, 413);
    // Headers, too.
    let long = "a".repeat(200_000);
    let answer = server.raw(format!("GET /health?{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    assert!([0, 414, 431].contains(&answer.status), "{answer:?}");
    assert!(server.get("/metrics").text().contains("reason=\"too_large\"} 2"));
}

#[test]
fn all_bodies_together_are_bounded() {
    let server = Server::new(|config| {
        config.limits.body_bytes = 64 << 10;
        config.limits.all_body_bytes = 100 << 10;
        config.limits.body_time = Duration::from_secs(3);
    });
    // One that keeps its 60 kB and does not end. It must be there first: who comes second is the
    // one that is refused.
    let mut held = server.connect();
    let head = "POST /api/v1/seen/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 62000\r\n\r\n";
    held.write_all(head.as_bytes()).unwrap();
    held.write_all(&vec![b' '; 60_000]).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let json = [("Content-Type", "application/json")];
    let body = format!("{{\"documents\":[]}}{}", " ".repeat(60_000));
    let waited = Instant::now();
    while server.request("POST", "/api/v1/seen/check", &json, &body).status != 503 {
        assert!(waited.elapsed() < Duration::from_secs(2), "there was always room");
    }
    assert_eq!(server.request("POST", "/api/v1/seen/check", &json, "{\"documents\":[]}").status, 200);
    drop(held);
    while server.request("POST", "/api/v1/seen/check", &json, &body).status != 200 {
        assert!(waited.elapsed() < Duration::from_secs(5), "room was not given back");
    }
}

#[test]
fn more_connections_than_there_is_room_for() {
    let server = Server::new(|config| config.limits.connections = 50);
    // One whose request takes its time; 300 who hold a connection and say nothing.
    let mut slow = server.connect();
    slow.write_all(b"GET /slow HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    // It has begun when it is counted beside the one that asks for the count, or was answered:
    // before, it is as silent as the others.
    let asked = Instant::now();
    loop {
        let told = server.get("/metrics").text();
        if told.contains("onionskin_http_requests_in_flight 2") || told.contains("\"/slow\"") {
            break;
        }
        assert!(asked.elapsed() < Duration::from_secs(8), "it was never read: {told}");
    }
    let crowd: Vec<_> = (0..300).map(|_| server.connect()).collect();
    // The silent make room, long before their ten seconds are over.
    let start = Instant::now();
    let answer = server.get("/metrics");
    assert_eq!(answer.status, 200);
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    let text = answer.text();
    let line = text.lines().find(|line| line.starts_with("onionskin_connections_open ")).unwrap();
    let open: usize = line.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(open <= 50, "{line}");
    // Who is being answered does not.
    assert_eq!(Answer::read(&mut slow).text(), "done");
    drop(crowd);
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn idle_connections_stay_as_long_as_there_is_room() {
    let server = Server::new(|config| config.limits.connections = 3);
    let mut kept = server.connect();
    let ask = |stream: &mut std::net::TcpStream| {
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut bytes = [0; 4096];
        let n = stream.read(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..n]).contains("200 OK")
    };
    assert!(ask(&mut kept));
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(server.get("/health").status, 200);
    assert!(ask(&mut kept), "there was room all the while");
}

#[test]
fn too_much_work_is_refused() {
    let server = Server::new(|config| {
        config.threads = 1;
        config.limits.queue = 1;
    });
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..6).map(|_| scope.spawn(|| server.get("/slow"))).collect();
        asking
            .into_iter()
            .map(|asking| asking.join().unwrap())
            .map(|answer| {
                if answer.status == 503 {
                    assert_eq!(answer.header("retry-after"), "1");
                }
                answer.status
            })
            .collect()
    });
    let count = |wanted| statuses.iter().filter(|status| **status == wanted).count();
    // One runs, one waits; a third may come when the first is done.
    assert!((2..=4).contains(&count(200)), "{statuses:?}");
    assert_eq!(count(200) + count(503), 6, "{statuses:?}");
    // What needs no thread is answered all the while.
    assert_eq!(server.get("/health").status, 200);
    assert!(server.get("/metrics").text().contains("reason=\"busy\"}"));
}

#[test]
fn requests_end_by_their_time() {
    let server = Server::new(|config| config.limits.request_time = Duration::from_millis(100));
    let answer = server.get("/slow");
    assert_eq!(answer.status, 504);
    assert!(answer.header("content-type").starts_with("text/html"));
}

#[test]
fn stopping_waits_for_what_is_running() {
    let mut server = Server::plain();
    let mut stream = server.connect();
    stream.write_all(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut idle = server.connect();
    std::thread::sleep(Duration::from_millis(100));
    server.stop(Stop::Soon);
    let answer = Answer::read(&mut stream);
    assert_eq!((answer.status, answer.text().as_str()), (200, "done"));
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).unwrap();
    server.join();
    assert!(std::net::TcpStream::connect(server.address).is_err(), "nobody listens any more");
}

#[test]
fn stopping_does_not_wait_for_ever() {
    let mut server = Server::new(|config| config.limits.stop_time = Duration::from_millis(50));
    let mut stream = server.connect();
    let head = format!(
        "POST /api/v1/seen/add HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 5\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let start = Instant::now();
    server.stop(Stop::Soon);
    server.join();
    assert!(start.elapsed() < Duration::from_secs(5));
}

/// What nobody has a right to send is not read.
#[test]
fn who_may_is_decided_before_a_body_is_read() {
    let server = Server::new(|config| config.require_token = true);
    for path in ["/api/v1/seen/add", "/api/v1/seen/check", "/seen", "/nothing"] {
        let mut stream = server.connect();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"
        );
        let start = Instant::now();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = [0; 20];
        stream.read_exact(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 401"), "{path}");
        assert!(start.elapsed() < Duration::from_secs(5), "{path}: {:?}", start.elapsed());
    }
}

#[test]
fn a_form_to_sign_in_is_small() {
    let server = Server::new(|config| config.require_token = true);
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let sign_in = |bytes: usize| {
        let body = format!("token={TOKEN}&more={}", "a".repeat(bytes));
        server.request("POST", "/sign-in", &form, &body).status
    };
    assert_eq!(sign_in(4000), 303);
    assert_eq!(sign_in(5000), 413);
    let request = format!(
        "POST /sign-in HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
        format!("400\r\n{}\r\n", "a".repeat(0x400)).repeat(6)
    );
    assert_eq!(server.raw(request).status, 413);
}

/// Strangers fill the room for bodies that is theirs, and no more.
#[test]
fn bodies_of_strangers_do_not_block_those_who_know_the_token() {
    let server = Server::new(|config| {
        config.limits.body_bytes = 64 << 10;
        config.limits.all_body_bytes = 512 << 10;
    });
    let head = |bytes: usize| {
        format!(
            "POST /api/v1/seen/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {bytes}\r\n\r\n"
        )
    };
    let mut held = Vec::new();
    for _ in 0..20 {
        let mut stream = server.connect();
        stream.write_all(head(64_000).as_bytes()).unwrap();
        stream.write_all(&vec![b' '; 63_000]).unwrap();
        held.push(stream);
    }
    let body = format!("{{\"documents\":[]}}{}", " ".repeat(60_000));
    let json = ("Content-Type", "application/json");
    let waited = Instant::now();
    while server.request("POST", "/api/v1/seen/check", &[json], &body).status != 503 {
        assert!(waited.elapsed() < Duration::from_secs(5), "strangers always have room");
    }
    let bearer = format!("Bearer {TOKEN}");
    for _ in 0..5 {
        let answer = server.request("POST", "/api/v1/seen/check", &[json, ("Authorization", &bearer)], &body);
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

/// Bodies that never end hold no places: as headers that dribble, they make room.
#[test]
fn connections_with_slow_bodies_make_room() {
    let server = Server::new(|config| {
        config.limits.connections = 20;
        config.require_token = true;
    });
    let head = "POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\ntoken=";
    let crowd: Vec<_> = (0..60)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    let start = Instant::now();
    assert_eq!(server.get("/health").status, 200);
    // A body may take twenty seconds.
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    drop(crowd);
}

/// Work stops when nobody waits for it: after 504, and when the other side has hung up.
#[test]
fn work_that_nobody_waits_for_is_given_up() {
    let server = Server::new(|config| {
        config.threads = 1;
        config.limits.request_time = Duration::from_millis(300);
    });
    let start = Instant::now();
    assert_eq!(server.get("/until-stopped").status, 504);
    // The only thread is free again long before the work would have ended.
    assert_eq!(server.get("/slow").status, 504);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    let server = Server::new(|config| config.threads = 1);
    let mut stream = server.connect();
    stream.write_all(b"GET /until-stopped HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(200));
    drop(stream);
    let start = Instant::now();
    assert_eq!(server.get("/slow").text(), "done");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}
