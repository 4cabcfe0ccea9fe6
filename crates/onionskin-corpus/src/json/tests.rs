use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Picks the fields out of a whole value.
fn naive_fields(line: &str, paths: [&str; 3]) -> Result<[Value; 3], ()> {
    let value: Value = serde_json::from_str(line).map_err(drop)?;
    value.as_object().ok_or(())?;
    Ok(paths.map(|path| match value.get(path) {
        Some(value) => value.clone(),
        None => {
            path.split('.').try_fold(&value, |value, part| value.get(part)).cloned().unwrap_or(Value::Null)
        }
    }))
}

fn check(line: &str, paths: [&str; 3]) -> Result<(), TestCaseError> {
    let mut buffers = JsonBuffers::default();
    let names = paths.map(FieldNames::one);
    let found = find_fields(line, &Path::all(&names.each_ref()), &mut buffers);
    let Ok(expected) = naive_fields(line, paths) else {
        prop_assert!(found.is_err(), "{line} gave {found:?}");
        return Ok(());
    };
    prop_assert!(found.is_ok(), "{line} gave {found:?}");
    for ((slot, expected), buffer) in found.unwrap().into_iter().zip(expected).zip(&buffers.unpacked) {
        let found = match slot {
            Slot::Absent | Slot::Null => Value::Null,
            Slot::Borrowed(text) => Value::from(text),
            Slot::Unpacked => Value::from(&**buffer),
            Slot::Number(number) => serde_json::from_str(number).unwrap(),
            Slot::Other => {
                prop_assert!(expected.is_boolean() || expected.is_array() || expected.is_object());
                continue;
            }
        };
        prop_assert_eq!(found, expected);
    }
    Ok(())
}

fn arb_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a\"\\\\\n\u{e9}\u{1f600}\u{1}/]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let key = prop::sample::select(vec!["text", "m", "id", "x\n", "url", "m.id", ""]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

/// Objects, most of them, so that the fields are there to be found.
fn arb_line() -> impl Strategy<Value = String> {
    let object =
        prop::collection::btree_map(prop::sample::select(vec!["text", "m", "id", "url"]), arb_json(), 0..4);
    (prop_oneof![4 => object.prop_map(|map| json!(map)), 1 => arb_json()], 0..3).prop_map(|(value, style)| {
        match style {
            0 => value.to_string(),
            1 => serde_json::to_string_pretty(&value).unwrap(),
            _ => value
                .to_string()
                .chars()
                .map(|c| {
                    if c.is_ascii() {
                        c.to_string()
                    } else {
                        c.encode_utf16(&mut [0; 2]).iter().map(|u| format!("\\u{u:04X}")).collect()
                    }
                })
                .collect(),
        }
    })
}

const PATHS: [&str; 3] = ["text", "m.id", "m.m.url"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn fields_are_those_of_the_whole_value(line in arb_line()) {
        check(&line, PATHS)?;
    }

    /// One way only: control characters in strings, and halves of pairs in strings that are passed
    /// over, are let through.
    #[test]
    fn what_others_read_is_read(line in arb_line(), at in 0_usize..300, with in "[\\[\\]{}\",:0-9a-fu\\\\. -]{0,2}", len in 0_usize..3) {
        let chars: Vec<char> = line.chars().collect();
        let at = at % (chars.len() + 1);
        let rest = (at + len).min(chars.len());
        let line: String = chars[..at].iter().copied().chain(with.chars()).chain(chars[rest..].iter().copied()).collect();
        if naive_fields(&line, PATHS).is_ok() {
            check(&line, PATHS)?;
        }
    }

    #[test]
    fn nothing_makes_it_panic(line in "[\\[\\]{}\",:0-9a-fu\\\\. \u{e9}-]{0,60}") {
        let names = PATHS.map(FieldNames::one);
        let _ = find_fields(&line, &Path::all(&names.each_ref()), &mut JsonBuffers::default());
    }
}

#[test]
fn grammar() {
    let names = PATHS.map(FieldNames::one);
    let accepted =
        |line: &str| find_fields(line, &Path::all(&names.each_ref()), &mut JsonBuffers::default()).is_ok();
    for line in [
        "{}",
        " { } ",
        "{\"a\":-0.5e+7}",
        "{\"a\":[]}",
        "{\"a\":[[],{},[{}]]}",
        "{\"a\":\"\\u00e9\\/\"}",
        "{\"a\":\"\t\"}",
    ] {
        assert!(accepted(line), "{line}");
    }
    for line in [
        "",
        "{",
        "}",
        "{]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{\"a\":01}",
        "{\"a\":1.}",
        "{\"a\":.5}",
        "{\"a\":+1}",
        "{\"a\":[1,]}",
        "{\"a\":[1}",
        "{\"a\":[1]]}",
        "{} {}",
        "{\"a\":tru}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12g4\"}",
        "{\"a",
        "{a:1}",
        "{\"text\":\"\\ud800\"}",
        "{\"text\":\"\\ud800\\u0041\"}",
        "{\"text\":\"\\udc00\"}",
        "{\"a\":\"\\",
    ] {
        assert!(!accepted(line), "{line}");
    }
    assert_eq!(find_fields("[1]", &[], &mut JsonBuffers::default()), Err(JsonError::NotAnObject));
}

#[test]
fn the_last_of_two_keys_counts() {
    let mut buffers = JsonBuffers::default();
    let names = PATHS.map(FieldNames::one);
    let found = find_fields(
        r#"{"text":"\u0041","text":"b","m":{"id":1},"m.id":2}"#,
        &Path::all(&names.each_ref()),
        &mut buffers,
    );
    assert_eq!(found, Ok([Slot::Borrowed("b"), Slot::Number("2"), Slot::Absent, Slot::Absent]));
}

#[test]
fn the_first_name_with_a_value_wins() {
    let names: FieldNames = "text,content,m.body".into();
    let paths = Path::all(&[&names]);
    for (line, expected) in [
        (r#"{"content":"c","text":"t"}"#, Slot::Borrowed("t")),
        (r#"{"text":"t","content":"c"}"#, Slot::Borrowed("t")),
        (r#"{"m":{"body":"b"},"content":"c"}"#, Slot::Borrowed("c")),
        (r#"{"content":"c","m":{"body":"b"}}"#, Slot::Borrowed("c")),
        (r#"{"m":{"body":"b"}}"#, Slot::Borrowed("b")),
        (r#"{"text":null,"m":{"body":"b"}}"#, Slot::Borrowed("b")),
        (r#"{"m":{"body":"b"},"text":null}"#, Slot::Borrowed("b")),
        (r#"{"text":"a","text":"b"}"#, Slot::Borrowed("b")),
        (r#"{"text":"a","text":null}"#, Slot::Null),
        (r#"{"text":null}"#, Slot::Null),
        (r#"{"body":"b"}"#, Slot::Absent),
    ] {
        let slots = find_fields(line, &paths, &mut JsonBuffers::default()).unwrap();
        assert_eq!(slots[0], expected, "{line}");
    }
}
