use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;

use super::*;
use crate::testing::{gzip, read};
use crate::{Options, discover};

/// A web server of a few files that knows HEAD, GET and ranges, and counts what it was asked.
struct Server {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

impl Server {
    fn start(files: &[(&str, Vec<u8>)]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let files = files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.clone())).collect();
        let server = Server { address, requests: Arc::default(), files: Arc::new(Mutex::new(files)) };
        let (requests, files) = (Arc::clone(&server.requests), Arc::clone(&server.files));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (requests, files) = (Arc::clone(&requests), Arc::clone(&files));
                std::thread::spawn(move || answer(stream, &requests, &files));
            }
        });
        server
    }

    fn input(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }
}

fn answer(
    stream: TcpStream,
    requests: &Mutex<Vec<String>>,
    files: &Mutex<BTreeMap<String, Vec<u8>>>,
) -> Option<()> {
    let mut output = stream.try_clone().ok()?;
    let mut input = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if input.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_owned()),
            }
        }
        let mut request = head[0].split(' ');
        let (method, path) = (request.next()?, request.next()?.trim_start_matches('/'));
        let range = head.iter().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            let (start, end) = value.strip_prefix("bytes=")?.split_once('-')?;
            name.eq_ignore_ascii_case("range")
                .then(|| (start.parse::<usize>().unwrap(), end.parse::<usize>().unwrap()))
        });
        requests.lock().unwrap().push(format!("{method} {path} {range:?}"));
        let file = files.lock().unwrap().get(path).cloned();
        let (status, body, extra) = match (file, range) {
            (None, _) => ("404 Not Found", Vec::new(), String::new()),
            (Some(file), None) => ("200 OK", file, String::new()),
            (Some(file), Some((start, end))) => {
                let end = end.min(file.len().saturating_sub(1));
                let extra = format!("Content-Range: bytes {start}-{end}/{}\r\n", file.len());
                ("206 Partial Content", file[start..=end].to_vec(), extra)
            }
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{extra}Accept-Ranges: bytes\r\n\r\n",
            body.len()
        );
        output.write_all(head.as_bytes()).ok()?;
        if method != "HEAD" {
            output.write_all(&body).ok()?;
        }
    }
}

fn json_lines(n: usize) -> String {
    (0..n).map(|i| format!("{{\"text\":\"text {i}\"}}\n")).collect()
}

#[test]
fn files_from_a_web_server_are_read_by_ranges() {
    let text = json_lines(20_000);
    let server = Server::start(&[
        ("a/x.jsonl", text.clone().into_bytes()),
        ("y.jsonl.gz", gzip(text.as_bytes())),
        ("page.html", b"<title>T</title><p>hello <a href=b>x</a>".to_vec()),
    ]);
    let options = Options { task_bytes: 50_000, ..Options::default() };
    let inputs = ["a/x.jsonl", "y.jsonl.gz", "page.html"].map(|name| server.input(name));
    let sources = discover(&inputs, &options).unwrap();
    assert_eq!(sources.iter().map(|source| &*source.name).collect::<Vec<_>>(), inputs);
    assert_eq!(sources[0].bytes, text.len() as u64);
    let seen = read(sources, &options);
    assert_eq!(seen.bad, []);
    assert_eq!(seen.documents.len(), 40_001);
    assert_eq!(seen.documents[19_999].text, "text 19999");
    assert_eq!(seen.documents[39_999].text, "text 19999");
    let page = &seen.documents[40_000];
    assert_eq!((page.url.as_deref(), &*page.links), (Some(&*inputs[2]), &[server.input("b")][..]));
    let requests = server.requests.lock().unwrap();
    assert!(
        requests.iter().filter(|request| request.starts_with("GET")).all(|request| request.contains("Some"))
    );
}

#[test]
fn what_is_not_there_is_told() {
    let server = Server::start(&[("x.jsonl", json_lines(3).into_bytes())]);
    let error = discover(&[server.input("none.jsonl")], &Options::default()).unwrap_err().to_string();
    assert!(error.starts_with(&server.input("none.jsonl")), "{error}");
    let error = discover(&[server.input("*.jsonl")], &Options::default()).unwrap_err().to_string();
    assert!(error.contains("does not list"), "{error}");
    assert!(discover(&[server.input("x.jsonl?a=b")], &Options::default()).is_err());
    assert!(discover(&["s3://".to_owned()], &Options::default()).is_err());
}

#[test]
fn a_file_that_vanished_or_changed_is_told() {
    let server =
        Server::start(&[("x.jsonl", json_lines(3).into_bytes()), ("y.jsonl", json_lines(3).into_bytes())]);
    let options = Options::default();
    let sources = discover(&[server.input("x.jsonl"), server.input("y.jsonl")], &options).unwrap();
    {
        let mut files = server.files.lock().unwrap();
        files.remove("x.jsonl");
        files.insert("y.jsonl".to_owned(), json_lines(4).into_bytes());
    }
    let seen = read(sources, &options);
    let failed: Vec<_> = seen.failed.iter().map(|failure| (failure.source, failure.byte)).collect();
    assert_eq!((seen.texts(), failed), (vec![], vec![(0, 0), (1, 0)]));
}

#[test]
fn stores_that_list() {
    // The store in memory lists like the others.
    let store: Arc<dyn ObjectStore> = Arc::new(object_store::memory::InMemory::new());
    let listing = Arc::clone(&store);
    let found = wait(async move {
        for name in ["a/2", "a/b/1", "c/3"] {
            listing.put_opts(&Path::from(name), vec![0; 5].into(), Default::default()).await.unwrap();
        }
        list(listing, Path::from("a")).await.unwrap()
    });
    let mut names: Vec<String> =
        found.unwrap().into_iter().map(|(path, len)| format!("{path} {len}")).collect();
    names.sort();
    assert_eq!(names, ["a/2 5", "a/b/1 5"]);
    assert_eq!(split_pattern("s3://b/a/*/x.gz"), ("s3://b/a/", "*/x.gz"));
    assert_eq!(split_pattern("s3://b/a"), ("s3://b/a", ""));
}

#[test]
fn seeks_and_reads_are_those_of_a_file() {
    let bytes: Vec<u8> = (0..300_000_u32).map(|i| (i % 251) as u8).collect();
    let server = Server::start(&[("x.txt", bytes.clone())]);
    let mut file = find(&server.input("x.txt")).unwrap()[0].open();
    let mut expected = io::Cursor::new(&bytes);
    for (seek, len) in [
        (SeekFrom::Start(0), 10),
        (SeekFrom::Start(200_000), 70_000),
        (SeekFrom::Current(-5), 100),
        (SeekFrom::End(-3), 10),
    ] {
        assert_eq!(file.seek(seek).unwrap(), expected.seek(seek).unwrap());
        let (mut a, mut b) = (Vec::new(), Vec::new());
        file.by_ref().take(len).read_to_end(&mut a).unwrap();
        expected.by_ref().take(len).read_to_end(&mut b).unwrap();
        assert_eq!(a, b);
    }
    assert!(file.seek(SeekFrom::Current(-1_000_000)).is_err());
}

#[test]
fn messages_do_not_depend_on_the_clock() {
    let message = "Error performing GET http://a in 225.956µs, after 3 retries in 1.5s - Server returned 404";
    assert_eq!(
        without_durations("GET http://a in 225.956µs - 404 in 3 tries"),
        "GET http://a - 404 in 3 tries"
    );
    assert_eq!(
        without_durations(message),
        "Error performing GET http://a after 3 retries - Server returned 404"
    );
}
