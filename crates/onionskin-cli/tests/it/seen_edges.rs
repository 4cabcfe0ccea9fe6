//! The program and the server answer the same to the same requests about seen documents.
//!
//! The requests and their answers are a table, which `crates/onionskin-py/tests/test_seen_edges.py`
//! puts to the Python package as well. `$0-200` in a text stands for two hundred words, `#70000`
//! for a string of that length.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::serve::Server;
use crate::util::{Dir, Outcome};

const REQUESTS: &str = include_str!("../../../../tests/seen_requests.jsonl");

/// What sets up each index of the table.
const INDEXES: [(&str, &[&str]); 3] = [
    ("names", &["--no-sketches"]),
    ("numbers", &["--numeric-ids", "--no-sketches"]),
    ("sketches", &["--threshold", "0.9"]),
];

/// Answers as the table has them, or what an error said.
type Answered = Result<Value, String>;

/// Spells out texts and names.
fn expand(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(length) = text.strip_prefix('#').and_then(|length| length.parse().ok()) {
                *text = "x".repeat(length);
            } else if let Some((before, rest)) = text.split_once('$') {
                let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
                let (from, to) = rest[..end].split_once('-').unwrap();
                let (from, to): (u32, u32) = (from.parse().unwrap(), to.parse().unwrap());
                let words: Vec<String> = (from..to).map(|n| format!("word{n}")).collect();
                *text = format!("{before}{}{}", words.join(" "), &rest[end..]);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(expand),
        Value::Object(fields) => fields.values_mut().for_each(expand),
        _ => {}
    }
}

fn json_lines(values: &Value) -> String {
    values.as_array().unwrap().iter().map(|value| format!("{value}\n")).collect()
}

fn parsed(lines: &str) -> Value {
    lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect()
}

/// Takes away what only this edge says.
fn without(mut value: Value, fields: &[&str]) -> Value {
    for object in value.as_array_mut().unwrap() {
        fields.iter().for_each(|field| {
            object.as_object_mut().unwrap().remove(*field).unwrap();
        });
    }
    value
}

fn ask_program(dir: &Dir, request: &Value) -> Answered {
    let (mode, index) = (request["mode"].as_str().unwrap(), request["index"].as_str().unwrap());
    let index = format!("{index}-of-program");
    let answered = |outcome: Outcome, fields: &[&str]| match outcome.code {
        0 => Ok(without(parsed(&outcome.stdout), fields)),
        2 => Err(outcome.stderr),
        code => panic!("exit code {code}"),
    };
    if mode == "stats" {
        let stats = answered(dir.run(&["seen", "stats", &index, "--json"]), &["type", "index"]);
        return stats.map(|stats| stats[0].clone());
    }
    let mut arguments = vec!["seen", mode, &index];
    let threshold = request.get("threshold").map(Value::to_string);
    arguments.extend(threshold.iter().flat_map(|threshold| ["--threshold", threshold]));
    let option = request.get("option").map(|option| format!("--{}", option.as_str().unwrap()));
    arguments.extend(option.as_deref());
    arguments.extend(request["verify"].as_str().into_iter().flat_map(|how| ["--verify", how]));
    let input = request.get("names").unwrap_or(&request["documents"]);
    arguments.push("-");
    answered(dir.run_with_input(&arguments, json_lines(input).as_bytes()), &["type"])
}

fn ask_server(server: &Server, request: &Value) -> Answered {
    let ask = |content_type: &str, method: &str, path: &str, body: &str| {
        let path = format!("/api/v1/seen/{path}");
        match server.request_as(content_type, method, &path, body).unwrap() {
            (200, body) => Ok(body),
            (400..500, body) => Err(serde_json::from_str::<Value>(&body).unwrap()["error"].to_string()),
            (status, body) => panic!("status {status}: {body}"),
        }
    };
    let mut path = request["mode"].as_str().unwrap().to_owned();
    match path.as_str() {
        "stats" => {
            let stats = ask("application/json", "GET", "stats", "")?;
            return Ok(without(json!([parsed(&stats)[0]]), &["read_only"])[0].clone());
        }
        "remove" => {
            let body = json!({"names": request["names"]}).to_string();
            let removed = ask("application/json", "POST", "remove", &body)?;
            return Ok(parsed(&removed)[0]["removed"].clone());
        }
        "add-if-new" => path = "add?if_new=true".to_owned(),
        _ => {}
    }
    let threshold = request.get("threshold").map(|threshold| format!("threshold={threshold}"));
    let option = request.get("option").map(|option| format!("{}=1", option.as_str().unwrap()));
    let verify = request["verify"].as_str().map(|how| format!("verify={how}"));
    for parameter in threshold.into_iter().chain(option).chain(verify) {
        path = format!("{path}{}{parameter}", if path.contains('?') { '&' } else { '?' });
    }
    ask("application/x-ndjson", "POST", &path, &json_lines(&request["documents"])).map(|lines| parsed(&lines))
}

/// Whether an answer is that of the table. Of numbers, those that do not depend on when files are
/// written; the fields must be the same.
fn check(edge: &str, request: &Value, answered: &Answered) {
    let about = format!("{edge}: {}", request["about"]);
    match (request["error"].as_str(), answered) {
        (Some(expected), Err(message)) => {
            let message = message.replace("\\\"", "\"");
            assert!(message.contains(expected), "{about}: {message}")
        }
        (None, Ok(stats)) if request["mode"] == "stats" => {
            for (field, expected) in request["stats"].as_object().unwrap() {
                assert_eq!(stats[field], *expected, "{about}: {field}");
            }
        }
        (None, Ok(answers)) => {
            let kind = if request["mode"] == "remove" { "removed" } else { "answers" };
            assert_eq!(*answers, request[kind], "{about}");
        }
        (_, answered) => panic!("{about}: {answered:?}"),
    }
}

#[test]
fn the_program_and_the_server_answer_the_same() {
    let dir = Dir::new();
    let mut servers = BTreeMap::new();
    for (index, flags) in INDEXES {
        for edge in ["program", "server"] {
            let name = format!("{index}-of-{edge}");
            let arguments = [&["seen", "add", name.as_str()], flags].concat();
            assert_eq!(dir.run_with_input(&arguments, b"").code, 0);
        }
        servers.insert(index, Server::start(&dir, &["--seen", &format!("{index}-of-server")]));
    }
    let mut n = 0;
    for line in REQUESTS.lines() {
        let mut request: Value = serde_json::from_str(line).unwrap();
        expand(&mut request);
        let by_program = ask_program(&dir, &request);
        let by_server = ask_server(&servers[request["index"].as_str().unwrap()], &request);
        check("the program", &request, &by_program);
        check("the server", &request, &by_server);
        if request["mode"] == "stats" {
            let fields =
                |stats: Answered| stats.unwrap().as_object().unwrap().keys().cloned().collect::<Vec<_>>();
            assert_eq!(fields(by_program), fields(by_server));
        }
        n += 1;
    }
    assert!(n >= 30, "only {n} requests");
}

/// A page over HTTP, as it was fetched.
#[test]
fn a_page_is_a_document() {
    let dir = Dir::new();
    let words: String = (0..50).map(|n| format!("word{n} ")).collect();
    let line = format!("{{\"id\": \"a\", \"text\": {words:?}}}\n");
    assert_eq!(dir.run_with_input(&["seen", "add", "index"], line.as_bytes()).code, 0);
    let server = Server::start(&dir, &["--seen", "index"]);
    let ask = |path: &str, body: &str| {
        let (status, body) = server.request_as("text/html", "POST", path, body).unwrap();
        assert_eq!(status, 200, "{body}");
        parsed(&body)[0]["answers"][0].clone()
    };
    let page = format!("<meta charset=utf-8><title>Title</title><p>{words}");
    let answer = ask("/api/v1/seen/check?name=page", &page);
    assert_eq!((&answer["name"], &answer["status"]), (&json!("page"), &json!("exact")));
    let answer = ask("/api/v1/seen/add?if_new=true", "<p>another page with other words");
    assert_eq!((&answer["name"], &answer["added"]), (&json!("-:1"), &json!(true)));
}
