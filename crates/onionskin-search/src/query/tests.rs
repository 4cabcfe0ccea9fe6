use super::*;

fn word(word: &str) -> Clause {
    Clause::Word(word.to_owned())
}

fn phrase(words: &[&str]) -> Clause {
    Clause::Phrase(words.iter().map(|word| (*word).to_owned()).collect())
}

fn parse(text: &str) -> Query {
    text.parse().unwrap_or_else(|problem| panic!("{text}: {problem}"))
}

#[test]
fn what_people_type_is_understood() {
    assert_eq!(parse("XML databases").wanted, [word("xml"), word("databases")]);
    assert_eq!(parse("\"XML databases\" xml xml").wanted, [phrase(&["xml", "databases"]), word("xml")]);
    assert_eq!(parse("onion-skin").wanted, [phrase(&["onion", "skin"])]);
    assert_eq!(parse("東京").wanted, [phrase(&["東", "京"])]);
    let query = parse("java -script -\"visual basic\" - site:https://Docs.Example.org/a site:*.net.");
    assert_eq!(query.wanted, [word("java")]);
    assert_eq!(query.unwanted, [word("script"), phrase(&["visual", "basic"])]);
    assert_eq!(query.sites, ["docs.example.org", "net"]);
    assert_eq!(parse("\"never closed -x").wanted, [phrase(&["never", "closed", "x"])]);
    assert_eq!(parse("site:a.org").wanted, []);
}

#[test]
fn what_cannot_be_looked_for_is_told() {
    for text in ["", "   ", "-x", "... \"\" - site: ---", "😀"] {
        assert_eq!(text.parse::<Query>(), Err(QueryProblem::NoWords), "{text}");
    }
    let many = "a1 ".to_owned() + &(0..32).map(|n| format!("w{n} ")).collect::<String>();
    assert_eq!(many.parse::<Query>(), Err(QueryProblem::TooLong));
    assert_eq!("é".repeat(501).parse::<Query>(), Err(QueryProblem::TooLong));
}

proptest::proptest! {
    #[test]
    fn any_text_is_a_query_or_a_problem(text in "[ab\"\\-: é東site]{0,30}") {
        let _ = text.parse::<Query>();
    }
}
