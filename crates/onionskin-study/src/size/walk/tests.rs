use super::*;

fn params(rule: Rule, steps: u64, wanted: usize, seed: u64) -> WalkParams {
    WalkParams { rule, steps, wanted, seeds: 20, seed, confidence: 0.95 }
}

fn on(nodes: u32, links: &[(u32, u32)], params: &WalkParams) -> Result<Walked, WalkError> {
    let dir = tempfile::tempdir().unwrap();
    let links = links.iter().map(|(src, dest)| Ok((DocId(*src), DocId(*dest))));
    walk(nodes, links, params, MemoryBudget::from_mib(16), dir.path())
}

/// Every page links to three others, mostly to ones with small numbers.
fn web(n: u32, seed: u64) -> Vec<(u32, u32)> {
    let mut dice = Dice::new(seed);
    let mut links = BTreeSet::new();
    for src in 0..n {
        for _ in 0..3 {
            let dest = (f64::from(n) * dice.unit().powi(2)) as u32;
            links.insert((src, dest.min(n - 1)));
        }
        // A ring, so that all can be reached.
        links.insert((src, (src + 1) % n));
    }
    links.into_iter().collect()
}

#[test]
fn both_rules_come_near_a_uniform_sample_and_the_size() {
    let n = 3_000;
    let links = web(n, 4);
    let walk = |rule, seed| on(n, &links, &params(rule, 400_000, 1_000, seed)).unwrap();
    let (mut covered, mut near) = (0, 0);
    for seed in 0..10 {
        let jumping = walk(Rule::Jumping, seed);
        assert!(jumping.distance < 2.0 * jumping.distance_limit, "{jumping:?}, seed {seed}");
        let metropolis = walk(Rule::Metropolis, seed);
        near += u32::from(metropolis.distance < metropolis.distance_limit);
        covered += u32::from(metropolis.size.unwrap().interval.covers(f64::from(n)));
    }
    assert!(near >= 8 && covered >= 8, "near {near}, covered {covered} of 10, seeds from 0");
}

#[test]
fn visits_without_correction_would_be_far_off() {
    // A short walk meets popular pages, and the comparison says so.
    let n = 20_000;
    let links = web(n, 4);
    let short = on(n, &links, &params(Rule::Jumping, 2_000, 1_000, 1)).unwrap();
    assert!(short.mean_in_links[0] > 1.2 * short.mean_in_links[1], "{:?}", short.mean_in_links);
    assert!(short.distance > short.distance_limit, "{} {}", short.distance, short.distance_limit);
}

#[test]
fn odd_webs() {
    let jump = params(Rule::Jumping, 1_000, 10, 1);
    assert!(matches!(on(5, &[], &jump), Err(WalkError::NoLinks)));
    assert!(matches!(on(0, &[], &jump), Err(WalkError::NoLinks)));
    // A page that links to itself is no way for a walk in both directions.
    let both = params(Rule::Metropolis, 1_000, 10, 1);
    assert!(matches!(on(5, &[(1, 1)], &both), Err(WalkError::NoLinks)));
    let trap = on(5, &[(0, 1), (1, 1)], &jump).unwrap();
    assert!(trap.visited >= 2 && trap.sample.len() <= 5, "{trap:?}");
    assert_eq!(trap.unlinked, 4);
    // The same seed, the same walk.
    let links = web(100, 1);
    assert_eq!(on(100, &links, &both).unwrap(), on(100, &links, &both).unwrap());
}

#[test]
fn capture_and_recapture() {
    // Chapman: (201 · 151) / 41 - 1.
    let found = recapture([200, 150], 40, 310, 0.95).unwrap();
    assert!((found.value - (201.0 * 151.0 / 41.0 - 1.0)).abs() < 1e-9);
    assert!(
        found.interval.low > 310.0 && found.interval.covers(740.0) && found.interval.high < 1_100.0,
        "{found:?}"
    );
    assert_eq!(recapture([10, 10], 0, 20, 0.95), None);
    assert_eq!(recapture([10, 10], 10, 10, 0.95).unwrap().value, 10.0);
    let (mut covered, runs) = (0, 200);
    for seed in 0..runs {
        let mut dice = Dice::new(seed);
        let mut catch = || -> BTreeSet<u64> { (0..300).map(|_| dice.below(2_000)).collect() };
        let (a, b) = (catch(), catch());
        let (both, seen) = (a.intersection(&b).count() as u64, a.union(&b).count() as u64);
        let found = recapture([a.len() as u64, b.len() as u64], both, seen, 0.95).unwrap();
        covered += u32::from(found.interval.covers(2_000.0));
    }
    assert!(covered >= 180, "{covered} of {runs}, seeds from 0");
}
