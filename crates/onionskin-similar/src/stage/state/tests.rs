use serde_json::{Value, json};

use super::*;

/// The state of a search, as the journal has it.
fn of_before() -> Value {
    json!({
        "exact": { "texts": 60, "copies": 7, "spilled_bytes": 0 },
        "candidates": {
            "documents": 53, "buckets": 20, "crowded_buckets": 1, "largest_bucket": 9, "crowd_limit": 32,
            "met": 70, "spilled_bytes": 3
        },
        "verified": { "candidates": 40, "verified": 30, "passes": 1, "spilled_bytes": 0 },
        "join": {
            "records": 0, "groups": 0, "pairs_enumerated": 0, "candidates": 0, "pairs": 0, "passes": 0,
            "spilled_bytes": 0, "peak_bytes": 0
        },
        "near_pairs": 30,
        "recall": {
            "sampled": 53, "with_neighbours": 20, "true_pairs": 30, "listed_pairs": 30,
            "listed": [1.0, 0.9, 1.0], "clustered": null, "leaked": null, "checked_pairs": 30, "precision": [1.0, 0.88, 1.0]
        },
        "paragraphs": null,
        "iterations": null,
        "clusters": {
            "clusters": 4, "documents": 20, "exact_members": 7, "near_members": 9, "largest": 8,
            "same_site": 3, "cross_site": 13, "one_site_clusters": 1, "lowest_resemblance": 0.91
        }
    })
}

#[test]
fn a_state_is_read_back_as_it_was_written() {
    let state: State = serde_json::from_value(of_before()).unwrap();
    assert_eq!((state.exact.copies, state.candidates.largest_bucket, state.join.pairs), (7, 9, 0));
    let recall = state.recall.unwrap();
    assert_eq!(recall.listed.map(|interval| (interval.value, interval.low)), Some((1.0, 0.9)));
    assert_eq!((recall.clustered, recall.leaked), (None, None));
    assert_eq!(serde_json::to_value(&state).unwrap(), of_before());
    let found = serde_json::to_value(state.found()).unwrap();
    assert_eq!((&found["recall"], &found["exact_copies"]), (&of_before()["recall"], &json!(7)));
}

#[test]
fn a_state_with_unknown_fields_is_an_error() {
    let mut other = of_before();
    other["exact"]["more"] = json!(1);
    let error = serde_json::from_value::<State>(other).unwrap_err().to_string();
    assert!(error.contains("more"), "{error}");
}
