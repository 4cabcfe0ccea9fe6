#![allow(clippy::unwrap_used, reason = "tests")]
use super::*;
use crate::testing::params;

fn some() -> Catalogue {
    let run = |number, first, docs| RunMeta {
        number,
        first,
        docs,
        centres: 1,
        postings: 9,
        names: 0,
        sketch: SketchShape::default(),
    };
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
    let sketch = SketchShape { minima: 84, low_bytes: false };
    catalogue.runs.iter_mut().for_each(|run| run.sketch = sketch);
    let text = catalogue.to_text();
    assert!(text.starts_with("onionskin-seen 2\n") && text.contains("\nminima 84\n"), "{text}");
    assert_eq!(parse_bytes(text.as_bytes()).unwrap(), catalogue);
    let (body, _) = text.split_once("crc32c").unwrap();
    let body = body.replace("minima 84", "minima 85");
    let text = format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()));
    assert!(parse_bytes(text.as_bytes()).is_err());
}

/// The three that were written before thresholds had filters, and the one since.
#[test]
fn a_filter_of_its_own_makes_another_version() {
    let threshold: Threshold = "0.9".parse().unwrap();
    let made_for = Params::made_for(threshold, &Recipe::default(), 1, true).unwrap();
    let mut catalogue = Catalogue { params: made_for, ..some() };
    let sketch = SketchShape { minima: 84, low_bytes: true };
    catalogue.runs.iter_mut().for_each(|run| run.sketch = sketch);
    let text = catalogue.to_text();
    assert!(text.starts_with("onionskin-seen 3\n"), "{text}");
    assert!(text.contains("\nminima 84\nfilter 10x8r1\nthreshold 0.9\n"), "{text}");
    assert_eq!(parse_bytes(text.as_bytes()).unwrap(), catalogue);
    for (from, to) in [("10x8r1", "10x9r1"), ("10x8r1", "x"), ("threshold 0.9", "threshold 2")] {
        let (body, _) = text.split_once("crc32c").unwrap();
        let body = body.replace(from, to);
        let text = format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()));
        assert!(parse_bytes(text.as_bytes()).is_err(), "{from} {to}");
    }
    // Features that decide, of an atlas without sketches.
    let decide = Params { threshold: Some(threshold), ..params("w4-rabin64-6x14r2", true) };
    let catalogue = Catalogue { params: decide, ..some() };
    assert_eq!(parse_bytes(catalogue.to_text().as_bytes()).unwrap(), catalogue);
}

#[test]
fn an_index_made_for_a_threshold_finds_nearly_all_at_it() {
    let expected = [(0.8, "16x5r1", 57), (0.9, "10x8r1", 68), (0.95, "7x12r1", 74), (1.0, "1x84r1", 84)];
    for (threshold, filter, least) in expected {
        let params = Params::made_for(threshold.try_into().unwrap(), &Recipe::default(), 1, true).unwrap();
        assert_eq!(params.filter.to_string(), filter);
        assert!(params.finds(threshold) >= 0.99, "{threshold}: {}", params.finds(threshold));
        assert_eq!(params.least_agreement(threshold), least);
    }
    // Minima alone are enough.
    let minima = "w4-rabin64-t128".parse().unwrap();
    assert!(Params::made_for(0.9.try_into().unwrap(), &minima, 1, true).unwrap().finds(0.9) >= 0.99);
    assert!(Params::made_for(0.9.try_into().unwrap(), &"w4-rabin64-b128".parse().unwrap(), 1, true).is_err());
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
    assert!(error.contains("format v7 is not known; this program reads v1 to v3"), "{error}");
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
