use super::*;

fn point(cardinality: u64, size: u64, name: &str, kind: &str) -> CollectionPoint {
    CollectionPoint { cardinality, size, name: name.to_owned(), kind: kind.to_owned() }
}

#[test]
fn large_collections_have_their_names_written() {
    let mut points = vec![point(143, 1359, "Linux <Documentation> Project $5", "mirror")];
    points.extend((0..40).map(|n| point(2 + n % 5, 3 + n % 4, &format!("small {n}"), "template noise")));
    let figure = Figure::Collections(points);
    let svg = figure.svg(Ink::File, "c");
    assert!(svg.contains("Linux &lt;Documentation&gt; Projec"));
    assert!(svg.contains("template noise") && svg.contains("noise below"));
    assert!(!svg.contains(">small 1<"), "only large ones have names beside them");
    assert_eq!(svg, figure.svg(Ink::File, "c"), "the same numbers, the same picture");
}

#[test]
fn nothing_is_drawn_too() {
    let empty =
        [Figure::Collections(Vec::new()), Figure::Sizes(Sizes::default()), Figure::Lines(Lines::default())];
    for figure in empty.iter().chain([&Figure::Bars(Bars::default())]) {
        assert!(figure.svg(Ink::File, "x").starts_with("<svg "), "{figure:?}");
        assert_eq!(&figure.png().unwrap()[..8], b"\x89PNG\r\n\x1a\n");
    }
    assert!(empty[0].svg(Ink::File, "x").contains("No replicated collections"));
}

#[test]
fn on_a_page_lines_have_its_colours_and_figures_do_not_clip_each_other() {
    let lines = Figure::Lines(Lines {
        title: "growth".to_owned(),
        x_label: "iteration".to_owned(),
        y_label: "documents".to_owned(),
        series: vec![LineSeries {
            name: "found".to_owned(),
            points: vec![(1.0, 5.0), (2.0, 20_000.0)],
            band: Some(vec![(4.0, 6.0), (19_000.0, 21_000.0)]),
            dashed: false,
        }],
        marks: vec![(15_000.0, "final".to_owned())],
    });
    let (one, two) = (lines.svg(Ink::Page, "one"), lines.svg(Ink::Page, "two"));
    assert!(one.contains("currentColor") && one.contains("viewBox=\"0 0 "));
    assert!(!one.contains("black") && !one.contains("#000000") && !one.contains("white"));
    assert!(one.contains("id=\"one-clip-1\"") && two.contains("id=\"two-clip-1\""));
    assert!(one.contains(">20k<"), "ticks are short");
    assert!(lines.svg(Ink::File, "f").contains("fill=\"white\""));
}

#[test]
fn bars_say_what_they_are() {
    let bars = Figure::Bars(Bars {
        title: "replicas".to_owned(),
        x_label: "replicas of a page".to_owned(),
        y_label: "pages, %".to_owned(),
        groups: vec!["1".to_owned(), "2".to_owned()],
        series: vec![("exact".to_owned(), vec![64.0, 18.0]), ("two lines".to_owned(), vec![52.0, 20.0])],
        stacked: false,
        lying: false,
    });
    let svg = bars.svg(Ink::Page, "b");
    for words in ["replicas of a page", "pages, %", "exact", "two lines", "<title>2, two lines: 20</title>"] {
        assert!(svg.contains(words), "{words}");
    }
}

#[test]
fn every_group_that_begins_ends() {
    let bars = |n: usize, stacked, lying| {
        let series = (0..n).map(|nth| (format!("s{nth}"), vec![1.0, 2.0, 0.0])).collect();
        let groups = ["a", "b", "c"].map(str::to_owned).to_vec();
        Figure::Bars(Bars { groups, series, stacked, lying, ..Bars::default() })
    };
    let sizes = Figure::Sizes(Sizes {
        series: vec![SizeSeries {
            name: "all".to_owned(),
            points: vec![(2, 10), (3, 5), (9, 1)],
            line: Some([(2.0, 10.0), (9.0, 1.0)]),
        }],
        ..Sizes::default()
    });
    let points = Figure::Collections(vec![point(3, 40, "a", "mirror"), point(2, 5, "b", "noise")]);
    for figure in [
        bars(1, false, false),
        bars(3, false, false),
        bars(2, true, false),
        bars(2, false, true),
        sizes,
        points,
    ] {
        let svg = figure.svg(Ink::File, "x");
        let begun = svg.matches("<g ").count() + svg.matches("<g>").count();
        assert_eq!(begun, svg.matches("</g>").count(), "{figure:?}");
        assert!(svg.contains("<title>") && svg.ends_with("</svg>"));
    }
    // Also one after the other: what is named below a figure is not part of what is clipped.
    let svg = bars(3, false, false).svg(Ink::File, "x");
    let mut depth = 0;
    for (at, _) in svg.match_indices(['<']) {
        depth += i32::from(svg[at..].starts_with("<g ")) - i32::from(svg[at..].starts_with("</g>"));
        assert!(
            !svg[at..].starts_with("<text")
                || svg[at..].find(">s1<").is_none_or(|next| next > 120)
                || depth == 0
        );
    }
}

#[test]
fn too_many_points_are_gathered() {
    let points: Vec<(u64, u64)> = (2..40_000).map(|size| (size, 1 + 1_000_000 / (size * size))).collect();
    let thin = thinned(&points);
    assert!(thin.len() <= MOST_POINTS + 1 && thin.len() > 500, "{}", thin.len());
    assert_eq!(thin[0], (2, 250_001.0), "small sizes stay as they are");
    assert!(thin.windows(2).all(|two| two[0].0 < two[1].0));
    assert_eq!(thinned(&points[..10]).len(), 10);
}

#[test]
fn ticks_are_short() {
    let texts = [0.0, 0.5, 10.0, 9_999.0, 12_000.0, 1_500_000.0, 2e9].map(short);
    assert_eq!(texts, ["0", "0.5", "10", "9999", "12k", "1.5M", "2G"]);
}
