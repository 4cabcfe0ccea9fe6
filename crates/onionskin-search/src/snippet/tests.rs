use proptest::prelude::*;

use super::*;

fn spelled(text: &str, wanted: &[&str]) -> String {
    let part = |f: Fragment| if f.is_match { format!("[{}]", f.text) } else { f.text };
    snippet(text, wanted).into_iter().map(part).collect()
}

#[test]
fn matches_are_marked_and_space_is_folded() {
    assert_eq!(spelled("An  XML\n\ndatabase, xml!", &["database", "xml"]), "An [XML] [database], [xml]!");
    assert_eq!(spelled("nothing here", &["x"]), "nothing here");
    assert_eq!(spelled("", &["x"]), "");
    assert_eq!(spelled("Das Café.", &["cafe"]), "Das [Café].");
}

#[test]
fn the_stretch_with_most_words_is_shown() {
    let text = format!("alpha {} alpha beta {} alpha", "filler ".repeat(100), "other ".repeat(100));
    let shown = spelled(&text, &["alpha", "beta"]);
    assert!(shown.contains("[alpha] [beta]"), "{shown}");
    assert!(shown.starts_with("… filler") && shown.ends_with("other …"), "{shown}");
    assert!(shown.len() < 300, "{shown}");
    let long = "東".repeat(1000) + "京" + &"東".repeat(1000);
    let shown = spelled(&long, &["京"]);
    assert!(shown.contains("[京]") && shown.len() < 320, "{shown}");
}

proptest! {
    /// Never panics, never far too long, and shows a match where there is one.
    #[test]
    fn any_text_has_a_snippet(text in "([ab東é \n\u{301}]{0,9}|[a-c]{200,300}){0,12}") {
        let fragments = snippet(&text, &["a", "b"]);
        let words = crate::words_of(&text);
        let has = words.iter().any(|word| word == "a" || word == "b");
        prop_assert_eq!(fragments.iter().any(|fragment| fragment.is_match), has);
        let length: usize = fragments.iter().map(|fragment| fragment.text.len()).sum();
        prop_assert!(length <= LENGTH + 20, "{}", length);
    }
}
