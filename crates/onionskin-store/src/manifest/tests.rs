use super::*;
use proptest::prelude::*;

fn sample() -> Manifest {
    let file = FileEntry { path: "links/part-00000.parquet".to_owned(), rows: 3, bytes: 100, xxh3: 0xfeed };
    Manifest {
        tool: "onionskin 0.1.0".to_owned(),
        recipe: "w4-rabin64-6x14r2".to_owned(),
        seed: u64::MAX,
        inputs: vec![InputEntry {
            name: "a.jsonl".to_owned(),
            bytes: 10,
            format: "jsonl".to_owned(),
            documents: 2,
            bad_records: 1,
            files: Vec::new(),
        }],
        extractors: BTreeMap::from([("text/html".to_owned(), "html/1".to_owned())]),
        counts: BTreeMap::from([("empty".to_owned(), 0), ("documents".to_owned(), 2)]),
        tables: BTreeMap::from([(TableName::Links, TableEntry { rows: 3, files: vec![file] })]),
        ..Manifest::default()
    }
}

#[test]
fn the_bytes_of_a_manifest_are_frozen() {
    let expected = r#"{
  "format_version": 1,
  "tool": "onionskin 0.1.0",
  "recipe": "w4-rabin64-6x14r2",
  "seed": 18446744073709551615,
  "inputs": [
    {
      "name": "a.jsonl",
      "bytes": 10,
      "format": "jsonl",
      "documents": 2,
      "bad_records": 1
    }
  ],
  "extractors": {
    "text/html": "html/1"
  },
  "counts": {
    "documents": 2,
    "empty": 0
  },
  "tables": {
    "links": {
      "rows": 3,
      "files": [
        {
          "path": "links/part-00000.parquet",
          "rows": 3,
          "bytes": 100,
          "xxh3": "000000000000feed"
        }
      ]
    }
  }
}
"#;
    let bytes = sample().to_bytes().unwrap();
    assert_eq!(String::from_utf8(bytes.clone()).unwrap(), expected);
    assert_eq!(Manifest::parse(&bytes).unwrap(), sample());
}

#[test]
fn keys_that_are_not_known_are_kept() {
    let mut value: Value = serde_json::to_value(sample()).unwrap();
    value["weather"] = serde_json::json!({"rain": [1, 2]});
    let manifest = Manifest::parse(value.to_string().as_bytes()).unwrap();
    let again = String::from_utf8(manifest.to_bytes().unwrap()).unwrap();
    assert!(again.contains("\"rain\""), "{again}");
}

#[test]
fn a_cut_off_manifest_is_a_clear_error() {
    let bytes = sample().to_bytes().unwrap();
    for cut in 0..bytes.len() - 2 {
        let error = Manifest::parse(&bytes[..cut]).unwrap_err().to_string();
        assert!(error.starts_with("not a readable manifest: ") && error.contains("\nhint: "), "{error}");
    }
}

/// A digit of a manifest that had changed gave another threshold, or another number of rows.
#[test]
fn every_change_of_a_written_manifest_is_found() {
    let bytes = sample().to_sealed_bytes().unwrap();
    assert_eq!(Manifest::parse(&bytes).unwrap(), sample());
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert!(
        text.starts_with(
            std::str::from_utf8(&sample().to_bytes().unwrap()).unwrap().trim_end_matches("\n}\n")
        )
    );
    assert!(serde_json::from_str::<Value>(&text).unwrap()[CHECKSUM].is_string());
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            // What was flipped in the key of the checksum is not in what it is a checksum of.
            if let Ok(mut found) = Manifest::parse(&changed) {
                assert!(at > text.find(CHECKSUM).unwrap() - 2, "bit {bit} of byte {at}");
                found.more.clear();
                assert_eq!(found, sample());
            }
        }
    }
    let edited = text.replace("  \"seed\": 18446744073709551615", "  \"seed\": 1");
    let error = Manifest::parse(edited.as_bytes()).unwrap_err();
    assert!(matches!(error, ManifestError::Checksum), "{error}");
    // In another layout, a checksum cannot be compared.
    let mut value: Value = serde_json::from_str(&text).unwrap();
    assert!(matches!(Manifest::parse(value.to_string().as_bytes()), Err(ManifestError::Checksum)));
    value.as_object_mut().unwrap().remove(CHECKSUM);
    assert_eq!(Manifest::parse(value.to_string().as_bytes()).unwrap(), sample());
}

#[test]
fn more_rows_than_fit_a_file_are_refused() {
    let mut manifest = sample();
    let entry = manifest.tables.get_mut(&TableName::Links).unwrap();
    (entry.rows, entry.files[0].rows) = (1 << 40, 1 << 40);
    assert!(matches!(manifest.validate(), Err(ManifestError::TooManyRows { .. })));
}

#[test]
fn a_newer_format_is_a_clear_error() {
    let text = r#"{"format_version": 7, "something": "else"}"#;
    let error = Manifest::parse(text.as_bytes()).unwrap_err().to_string();
    assert!(
        error.starts_with("the atlas has format version 7, this program reads 1 to 1\nhint: "),
        "{error}"
    );
}

#[test]
fn files_outside_the_atlas_are_refused() {
    for path in ["/etc/passwd", "../x", "a/../../x", "", ".", "./a", "a\0b", "a\\b", "/"] {
        let mut manifest = sample();
        manifest.tables.get_mut(&TableName::Links).unwrap().files[0].path = path.to_owned();
        assert!(matches!(manifest.validate(), Err(ManifestError::Path { .. })), "{path:?}");
    }
    let mut twice = sample();
    twice.tables.insert(TableName::Sites, twice.tables[&TableName::Links].clone());
    assert!(matches!(twice.validate(), Err(ManifestError::Path { .. })));
    let mut wrong = sample();
    wrong.tables.get_mut(&TableName::Links).unwrap().rows = 4;
    assert_eq!(wrong.validate().unwrap_err().to_string(), "table links: 4 rows, but its files have 3");
}

proptest! {
    #[test]
    fn any_bytes_are_an_error_or_a_manifest(bytes: Vec<u8>, at: prop::sample::Index, flip in 1u8..) {
        let _ = Manifest::parse(&bytes);
        let mut changed = sample().to_bytes().unwrap();
        let at = at.index(changed.len());
        changed[at] ^= flip;
        let _ = Manifest::parse(&changed);
    }
}
