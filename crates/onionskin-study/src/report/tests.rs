use super::*;
use crate::figure::{Bars, Figure};

fn document() -> Document {
    let mut section = Section::new("one", "One & only");
    section.say("A <sentence>.");
    let bars = Bars {
        title: "b".into(),
        groups: vec!["g".into()],
        series: vec![("s".into(), vec![1.0])],
        ..Bars::default()
    };
    section.show("bars", Figure::Bars(bars), "What \"it\" shows.");
    let mut table = Table::new("numbers", "Numbers", &["Name", "Pages, % of all", "Estimate"]);
    table.row(["a,\"b\"".into(), Cell::Share(0.125), Cell::CountBetween(10.0, 8.0, 12.5)]);
    table.row([Cell::Address("http://me:secret@example.org/<x>".into()), Cell::None, Cell::None]);
    table.row(["=HYPERLINK(\"http://evil\",1)".into(), Cell::Number(-0.5, 1), Cell::None]);
    table.row(["https://me:secret@example.org/".into(), Cell::None, Cell::None]);
    section.table(table);
    Document {
        title: "T</script><script>alert(1)</script>".into(),
        subtitle: "S".into(),
        headlines: vec![Headline { value: Cell::Count(1_234_567), label: "pages".into() }],
        sections: vec![section],
        footer: "F".into(),
    }
}

#[test]
fn the_page_is_whole_and_nothing_in_it_is_taken_for_markup() {
    let page = html(&document());
    for words in [
        "<!doctype html>",
        "1,234,567",
        "One &amp; only",
        "A &lt;sentence&gt;.",
        "<figcaption>What &quot;it&quot; shows.</figcaption>",
        "href=\"http://example.org/&lt;x&gt;\"",
        "12.5\u{a0}%",
        "10 (8 to 13)",
        "prefers-color-scheme",
        "@media print",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(page.matches("<script").count(), 1, "data, not script");
    assert!(!page.contains("alert(1)</script>"));
    assert!(!page.contains("http://www.w3.org") || page.matches("src=").count() == 0, "nothing is loaded");
    let data = page.split_once("id=\"report-data\">").unwrap().1.split_once("</script>").unwrap().0;
    let parsed: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(parsed["title"], "T</script><script>alert(1)</script>");
    assert!(!page.contains("secret") && !json(&document()).contains("secret"));
}

#[test]
fn programs_get_the_same_numbers() {
    let document = document();
    let parsed: serde_json::Value = serde_json::from_str(&json(&document)).unwrap();
    assert_eq!(parsed["headlines"][0]["value"], 1_234_567);
    let row = &parsed["sections"][0]["tables"][0]["rows"][0];
    assert_eq!(row["pages_percent_of_all"], 0.125);
    assert_eq!(
        (row["estimate"].as_f64(), row["estimate_low"].as_f64(), row["estimate_high"].as_f64()),
        (Some(10.0), Some(8.0), Some(12.5))
    );
    assert_eq!(
        parsed["sections"][0]["tables"][0]["rows"][1]["pages_percent_of_all"],
        serde_json::Value::Null
    );
    let files = csv(&document);
    assert_eq!(files[0].0, "numbers.csv");
    assert_eq!(
        files[0].1,
        "name,pages_percent_of_all,estimate,estimate_low,estimate_high\n\"a,\"\"b\"\"\",0.125,10,8,12.5\nhttp://example.org/<x>,,,,\n\
         \"'=HYPERLINK(\"\"http://evil\"\",1)\",-0.5,,,\nhttps://example.org/,,,,\n"
    );
}

#[test]
fn numbers_are_spelled_for_people() {
    let words = |cells: &[Cell]| cells.iter().map(Cell::words).collect::<Vec<_>>();
    assert_eq!(
        words(&[Cell::Count(1_234_567), Cell::Bytes(999_999_999), Cell::Seconds(0.0042)]),
        ["1,234,567", "1.0 GB", "4.2 ms"]
    );
    assert_eq!(
        words(&[Cell::Share(0.25), Cell::ShareBetween(0.5, 0.0004, 1.0), Cell::CountBetween(2e3, 0.0, 3e3)]),
        ["25.0 %", "50.0 % (0.040 % to 100 %)", "2,000 (0 to 3,000)"]
    );
}
