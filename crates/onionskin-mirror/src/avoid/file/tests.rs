use super::super::tests::{entry, list};
use super::*;
use proptest::prelude::*;

#[test]
fn a_list_reads_as_it_says() {
    let mut one = list(vec![entry("www.example.org", &["*", "/m/*", "/a?b"], 3)]);
    one.entries[0].rules.remove(0);
    one.crawl_from = Some("2026-11-01".to_owned());
    let text = one.to_json().unwrap();
    let expected = r#"{
  "format": "onionskin-avoid",
  "version": 1,
  "tool": "onionskin test",
  "recipe": null,
  "threshold": null,
  "crawl_from": "2026-11-01",
  "crawl_to": null,
  "entries": [
    {
      "group": 1,
      "replica": 2,
      "kind": "mirror",
      "name": "A manual",
      "principal": "http://kept.example/",
      "root": "http://www.example.org/",
      "host": "www.example.org",
      "other_ports": false,
      "rules": [
        {
          "prefix": "/m/"
        },
        {
          "exact": "/a?b"
        }
      ],
      "pages": 3,
      "bytes": 3000,
      "coverage": 1.0,
      "similar": 3,
      "unique": 0,
      "checked": null,
      "principal_reason": "links",
      "principal_evidence": "3 domains link to it"
    }
  ]
}
"#;
    assert_eq!(text, expected);
    assert_eq!(AvoidList::from_json(&text).unwrap(), one);
}

#[track_caller]
fn check_error(text: &str, expected: &str) {
    assert_eq!(AvoidList::from_json(text).unwrap_err().to_string(), expected);
}

#[test]
fn what_is_no_list_is_told_with_its_place() {
    check_error("", "line 1, column 0: EOF while parsing a value");
    check_error("{\n  \"format\": oops}", "line 2, column 13: expected value");
    check_error("{\"entries\": []}", "this is no avoid list: its format is \"\", not \"onionskin-avoid\"");
    check_error("{\"format\": \"x\"}", "this is no avoid list: its format is \"x\", not \"onionskin-avoid\"");
    check_error(
        "{\"format\": \"onionskin-avoid\", \"version\": 2, \"more\": 1}",
        "avoid list of version 2; this program reads version 1",
    );
    let good = list(vec![entry("www.example.org", &["/m/*"], 3)]).to_json().unwrap();
    check_error(
        &good.replace("\"/m/\"", "\"/m/\\n\""),
        "line 21, column 27: \"/m/\\n\" is not a normalised path: byte 3",
    );
    check_error(
        &good.replace("\"host\": \"www", "\"host\": \"WWW"),
        "line 17, column 31: \"WWW.example.org\" is no host in its normalised spelling",
    );
    check_error(
        &good.replace("\"coverage\": 1.0", "\"coverage\": 1.5"),
        "line 26, column 21: 1.5 is not between 0 and 1",
    );
    let error = AvoidList::from_json(&good.replace("\"prefix\"", "\"suffix\"")).unwrap_err().to_string();
    assert!(error.contains("line 21") && error.contains("unknown variant `suffix`"), "{error}");
}

#[test]
fn numbers_that_json_has_not_are_not_written() {
    let mut one = list(vec![entry("h", &["*"], 1)]);
    one.entries[0].coverage = f64::NAN;
    assert!(matches!(one.to_json(), Err(AvoidFileError::Coverage { entry: 0, .. })));
}

/// Reads RFC 4180.
fn read_csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut quoted, mut chars) = (false, text.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\r' if !quoted => {
                assert_eq!(chars.next(), Some('\n'));
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            c => field.push(c),
        }
    }
    assert!(!quoted && field.is_empty() && row.is_empty());
    rows
}

#[test]
fn the_table_has_a_line_a_rule() {
    let text = list(vec![entry("h:81", &["/m/*", "/a,b?c"], 3)]).to_csv();
    let rows = read_csv(&text);
    assert_eq!(rows[1][5..9], ["http://h:81/", "h:81", "prefix", "/m/"]);
    assert_eq!(rows[2][6..12], ["h:81", "exact", "/a,b?c", "3", "3000", "1"]);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
}

#[test]
fn a_list_without_the_reasons_is_read() {
    let mut old = list(vec![entry("h", &["*"], 1)]);
    let text = old.to_json().unwrap();
    let without: String = text
        .lines()
        .filter(|line| !line.contains("principal_"))
        .fold(String::new(), |text, line| text + line);
    let without = without.replace("null,    }", "null    }").replace("null,      }", "null      }");
    old.entries[0].principal_reason = None;
    old.entries[0].principal_evidence = None;
    assert_eq!(AvoidList::from_json(&without).unwrap(), old, "{without}");
}

fn any_entry() -> impl Strategy<Value = AvoidEntry> {
    let texts = (".{0,8}", ".{0,8}", "\\PC{0,8}", any::<String>());
    let numbers = (any::<u32>(), any::<u32>(), any::<u64>(), any::<u64>(), 0.0..=1.0f64, any::<bool>());
    let rules = prop::collection::vec((0..3u8, "(/[a-z$*|.]{1,3}){1,3}"), 0..4);
    (texts, numbers, rules, prop::option::of(".{0,10}"), "[a-z$*()\"'.]{1,9}").prop_map(
        |(texts, numbers, rules, checked, host)| AvoidEntry {
            group: CollectionId(numbers.0),
            replica: ReplicaId(numbers.1),
            kind: texts.0,
            name: texts.1,
            principal: texts.2,
            root: texts.3,
            host: RuleHost::new(&host).unwrap(),
            other_ports: numbers.5,
            rules: rules
                .iter()
                .filter_map(|(kind, path)| match kind {
                    0 => Some(SkipRule::Host),
                    1 => SkipRule::prefix(&format!("{path}/")).ok(),
                    _ => SkipRule::exact(path).ok(),
                })
                .collect(),
            pages: numbers.2,
            bytes: numbers.3,
            coverage: numbers.4,
            similar: numbers.3,
            unique: numbers.2,
            checked,
            principal_reason: numbers.5.then(|| "links".to_owned()),
            principal_evidence: (!numbers.5).then(|| "=1".to_owned()),
        },
    )
}

proptest! {
    #[test]
    fn what_was_written_is_read(
        entries in prop::collection::vec(any_entry(), 0..4),
        tool in prop::option::of(any::<String>()),
        recipe in prop::option::of(any::<String>()),
    ) {
        let list = AvoidList { tool, recipe, entries, ..AvoidList::default() };
        let read = AvoidList::from_json(&list.to_json().unwrap()).unwrap();
        prop_assert_eq!(&read, &list);
    }

    #[test]
    fn the_table_has_every_text_as_it_was(entries in prop::collection::vec(any_entry(), 0..4)) {
        let list = AvoidList { entries, ..AvoidList::default() };
        let rows = read_csv(&list.to_csv());
        let rules: Vec<_> = list.entries.iter().flat_map(|e| e.rules.iter().map(move |rule| (e, rule))).collect();
        prop_assert_eq!(rows.len(), rules.len() + 1);
        for (row, (entry, rule)) in rows[1..].iter().zip(rules) {
            // Nothing is lost but what would be a formula, which has a sign in front.
            let told = |cell: &str| match cell.strip_prefix('\'') {
                Some(text) if text.starts_with(['=', '+', '-', '@', '\t', '\r']) => text.to_owned(),
                _ => cell.to_owned(),
            };
            prop_assert!(row.iter().all(|cell| !cell.starts_with(['=', '+', '-', '@', '\t', '\r'])), "{:?}", row);
            // What had the sign before cannot be distinguished from what got it.
            if !entry.name.starts_with('\'') && !entry.root.starts_with('\'') {
                prop_assert_eq!(&told(&row[3]), &entry.name);
                prop_assert_eq!(&told(&row[5]), &entry.root);
            }
            prop_assert_eq!(&row[8], rule_path(rule));
            prop_assert_eq!(row[11].parse::<f64>().unwrap(), entry.coverage);
        }
    }

    #[test]
    fn broken_files_are_errors(text in any::<String>(), at in any::<prop::sample::Index>()) {
        let _ = AvoidList::from_json(&text);
        let mut good = list(vec![entry("www.example.org", &["/m/*"], 3)]).to_json().unwrap().into_bytes();
        // Without the line break at its end it is whole.
        let at = at.index(good.len() - 1);
        good.truncate(at);
        let cut = AvoidList::from_json(std::str::from_utf8(&good).unwrap());
        prop_assert!(cut.is_err());
    }
}
