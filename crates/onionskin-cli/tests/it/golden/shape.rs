//! The shape of JSON: names of fields and types of values, not the values.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::Value;

/// What several values have in common, and where they differ.
#[derive(Default)]
pub struct Shape {
    /// Types of the values.
    types: BTreeSet<&'static str>,
    /// Objects among the values.
    objects: usize,
    /// Fields of those objects, with the number of objects that have one.
    fields: BTreeMap<String, (usize, Shape)>,
    /// Items of arrays among the values.
    items: Option<Box<Shape>>,
}

impl Shape {
    pub fn add(&mut self, value: &Value) {
        self.types.insert(match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            // A float is written with a point, also where it is a whole number.
            Value::Number(number) if number.is_f64() => "float",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        });
        match value {
            Value::Array(items) => {
                let shape = self.items.get_or_insert_default();
                items.iter().for_each(|item| shape.add(item));
            }
            Value::Object(fields) => {
                self.objects += 1;
                for (name, value) in fields {
                    let (count, shape) = self.fields.entry(name.clone()).or_default();
                    *count += 1;
                    shape.add(value);
                }
            }
            _ => {}
        }
    }

    /// One line per field, `?` after the name of one that some objects lack.
    pub fn describe(&self, path: &str, text: &mut String) {
        if !path.is_empty() {
            let types: Vec<&str> = self.types.iter().copied().collect();
            writeln!(text, "  {path}: {}", types.join(" or ")).unwrap();
        }
        if let Some(items) = self.items.as_ref().filter(|items| !items.types.is_empty()) {
            items.describe(&format!("{path}[]"), text);
        }
        for (name, (count, shape)) in &self.fields {
            let dot = if path.is_empty() { "" } else { "." };
            let lacking = if *count < self.objects { "?" } else { "" };
            shape.describe(&format!("{path}{dot}{name}{lacking}"), text);
        }
    }
}

#[test]
fn types_are_united_and_missing_fields_are_marked() {
    let mut shape = Shape::default();
    shape.add(&serde_json::json!({"a": 1, "b": [{"c": 1.0}, {"c": null, "d": []}]}));
    shape.add(&serde_json::json!({"a": "x"}));
    let mut text = String::new();
    shape.describe("", &mut text);
    assert_eq!(
        text,
        "  a: integer or string\n  b?: array\n  b?[]: object\n  b?[].c: float or null\n  b?[].d?: array\n"
    );
}
