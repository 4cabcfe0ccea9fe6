use super::super::tests::{entry, list};
use super::*;
use std::convert::Infallible;

fn page(url: &str, cluster: Option<u32>, is_exact_copy: bool) -> Result<SimulatedPage<&str>, Infallible> {
    Ok(SimulatedPage { url, cluster: cluster.map(ClusterId), is_exact_copy, bytes: 10 })
}

#[test]
fn the_last_one_of_a_cluster_is_similar_to_nothing() {
    let list = list(vec![entry("m.example", &["*"], 3), entry("n.example", &["/n/*"], 1)]);
    let pages = [
        page("http://a.example/1", Some(0), true),
        page("http://m.example/1", Some(0), true),
        page("http://a.example/2", Some(2), true),
        page("http://m.example/2", Some(2), false),
        page("http://a.example/3", Some(2), false),
        page("http://m.example/3", None, false),
        page("http://b.example/", None, false),
        page("http://m.example/4", Some(1), true),
        page("http://n.example/n/4", Some(1), true),
        page("http://n.example/", None, false),
    ];
    let simulation = simulate(&list, pages).unwrap();
    let expected = Simulation {
        before: CrawlCounts { pages: 10, bytes: 100, similar: 7, exact: 4 },
        after: CrawlCounts { pages: 5, bytes: 50, similar: 2, exact: 0 },
        skipped: 5,
        skipped_bytes: 50,
        lost: 1,
        lost_bytes: 10,
        lost_with_cluster: 2,
        by_entry: vec![
            EntryCounts { pages: 4, bytes: 40, lost: 1 },
            EntryCounts { pages: 1, bytes: 10, lost: 0 },
        ],
    };
    assert_eq!(simulation, expected);
    assert_eq!((simulation.before.similar_share(), simulation.after.similar_share()), (0.7, 0.4));
    assert_eq!((simulation.before.exact_share(), simulation.after.exact_share()), (0.4, 0.0));
}

#[test]
fn no_pages_have_no_shares() {
    let simulation =
        simulate(&list(vec![]), Vec::<Result<SimulatedPage<String>, Infallible>>::new()).unwrap();
    assert_eq!(simulation, Simulation::default());
    assert_eq!(simulation.before.similar_share(), 0.0);
}

#[test]
fn an_error_of_the_crawl_is_passed_on() {
    let pages =
        [Ok(SimulatedPage { url: "http://a/", cluster: None, is_exact_copy: false, bytes: 1 }), Err("gone")];
    assert_eq!(simulate(&list(vec![]), pages), Err("gone"));
}
