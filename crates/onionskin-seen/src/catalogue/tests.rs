#![allow(clippy::unwrap_used, reason = "tests")]
use super::*;
use crate::testing::params;

fn some() -> Catalogue {
    let run =
        |number, first, docs| RunMeta { number, first, docs, centres: 1, postings: 9, names: 0, minima: 0 };
    Catalogue {
        params: params("w4-rabin64-6x14r2+sketch", true),
        generation: 3,
        next: 12,
        wal: 11,
        removed: Some((5, 2)),
        runs: vec![run(4, 0, 10), run(9, 10, 3)],
    }
}

#[test]
fn a_catalogue_reads_back() {
    let text = some().to_text();
    assert_eq!(parse_bytes(text.as_bytes()).unwrap(), some());
    assert!(text.starts_with("onionskin-seen 1\nrecipe w4-rabin64-6x14r2\n"), "{text}");
}

#[test]
fn only_sketches_make_another_version() {
    let mut catalogue = some();
    catalogue.params.sketches = true;
    catalogue.runs.iter_mut().for_each(|run| run.minima = 84);
    let text = catalogue.to_text();
    assert!(text.starts_with("onionskin-seen 2\n") && text.contains("\nminima 84\n"), "{text}");
    assert_eq!(parse_bytes(text.as_bytes()).unwrap(), catalogue);
    let (body, _) = text.split_once("crc32c").unwrap();
    let body = body.replace("minima 84", "minima 85");
    let text = format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()));
    assert!(parse_bytes(text.as_bytes()).is_err());
}

#[test]
fn every_flipped_bit_and_every_cut_is_noticed() {
    let text = some().to_text().into_bytes();
    for at in 0..text.len() {
        assert!(parse_bytes(&text[..at]).is_err(), "cut at {at}");
        for bit in 0..8 {
            let mut bytes = text.clone();
            bytes[at] ^= 1 << bit;
            assert!(parse_bytes(&bytes).is_err(), "bit {bit} at {at}");
        }
    }
}

#[test]
fn another_version_is_told() {
    let text = some().to_text().replace("onionskin-seen 1", "onionskin-seen 7");
    let (body, _) = text.split_once("crc32c").unwrap();
    let text = format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()));
    let error = parse_bytes(text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("format v7 is not known; this program reads v1 to v2"), "{error}");
}

#[test]
fn what_is_kept_beside_features_makes_no_other_index() {
    let params = params("w4-rabin64-6x14r2", false);
    params.ensure_same_features(&Recipe::default(), 1).unwrap();
    let error =
        params.ensure_same_features(&"w5-rabin64-6x14r2".parse().unwrap(), 1).unwrap_err().to_string();
    assert!(error.contains("w4-rabin64-6x14r2 with seed 1, not of w5-rabin64-6x14r2 with seed 1"), "{error}");
    assert!(params.ensure_same_features(&Recipe::default(), 2).is_err());
    assert!(Params::new(&"w4-rabin64-t84".parse().unwrap(), 1, false).is_err());
}
