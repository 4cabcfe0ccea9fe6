use proptest::prelude::*;

use super::*;
use crate::{Composer, Preset, rng::scramble};

fn small(preset: Preset, pages: u64, seed: u64) -> Web {
    Web::new(&WebSpec::of(preset, pages, seed).with_mean_words(40.0)).unwrap()
}

/// One number for all that a web says.
fn digest(web: &Web) -> u64 {
    web.pages().fold(0, |digest, page| {
        let bytes = page.url.bytes().chain(page.text.bytes()).chain(page.html);
        bytes.fold(digest, |digest, byte| scramble(digest ^ u64::from(byte)))
    })
}

#[test]
fn the_same_seed_gives_the_same_web_and_another_another() {
    for preset in Preset::ALL {
        let first = digest(&small(preset, 200, 1));
        assert_eq!(first, digest(&small(preset, 200, 1)), "{preset:?}");
        assert_ne!(first, digest(&small(preset, 200, 2)), "{preset:?}");
    }
}

#[test]
fn webs_are_frozen() {
    // Truth files and measurements name a web by preset, pages and seed: these may not change
    // unnoticed.
    assert_eq!(digest(&Web::new(&WebSpec::of(Preset::Demo, 1_500, 1)).unwrap()), FROZEN_DEMO);
    assert_eq!(digest(&Web::new(&WebSpec::of(Preset::Text, 300, 1)).unwrap()), FROZEN_TEXT);
}
const FROZEN_DEMO: u64 = 2_179_725_256_140_619_561;
const FROZEN_TEXT: u64 = 8_462_587_662_000_810_972;

#[test]
fn a_page_does_not_depend_on_the_pages_before_it() {
    for preset in [Preset::Demo, Preset::Chains, Preset::Template] {
        let web = small(preset, 300, 5);
        let in_order: Vec<_> = web.pages().collect();
        let mut composer = Composer::new(&web);
        for index in (0..300).rev().step_by(7) {
            assert_eq!(composer.page(index), in_order[index as usize]);
            assert_eq!(web.page_number(index), in_order[index as usize]);
        }
    }
}

#[test]
fn every_page_is_found_where_it_is() {
    for preset in Preset::ALL {
        let web = small(preset, 500, 9);
        let (mut draft, mut positions) = (Draft::new(), Vec::new());
        for page in 0..500 {
            let location = web.locate(page);
            assert_eq!(web.page(location), page);
            let content = web.content(location);
            web.compose(&content, &mut draft, &mut positions);
            assert_eq!(draft.n_words(), web.n_words(&content), "{preset:?} {page} {content:?}");
        }
    }
}

#[test]
fn a_number_past_the_end_is_the_last_page() {
    let web = small(Preset::Demo, 300, 2);
    assert_eq!(web.url(u64::MAX), web.url(299));
    assert_eq!(Composer::new(&web).text(u64::MAX), web.page_number(299).text);
}

#[test]
fn bad_specifications_are_refused() {
    let refused = |change: &dyn Fn(&mut WebSpec)| {
        let mut spec = WebSpec::new(100, 1);
        change(&mut spec);
        Web::new(&spec).unwrap_err().to_string()
    };
    assert_eq!(refused(&|s| s.pages = 0), "pages is 0, outside 1 to 1073741824");
    assert_eq!(
        refused(&|s| s.calendars = vec![101]),
        "100 pages are too few: the planted parts alone have 101"
    );
    assert_eq!(refused(&|s| s.pool.empty = f64::NAN), "share of documents is NaN, outside 0 to 1");
    assert_eq!(refused(&|s| s.shingle = 0), "shingle is 0, outside 1 to 1000");
    assert_eq!(refused(&|s| s.scripts.clear()), "sum of script weights is 0, outside 1 to 4000000000");
    assert!(refused(&|s| s.pages = 1 << 40).contains("too many"));
}

#[test]
fn the_mirrors_of_the_paper() {
    let spec = WebSpec::of(Preset::Mirrors, 50_000, 1);
    assert_eq!(spec.targets.len(), 25);
    assert_eq!(spec.targets.iter().map(|target| target.pages).min(), Some(50));
    assert_eq!(spec.targets.iter().map(|target| target.pages).max(), Some(1_000));
    assert!(spec.targets.iter().all(|target| (5..=10).contains(&target.replicas.len())));
    let web = Web::new(&spec).unwrap();
    let unrelated: u64 = web.pools.iter().map(|pool| pool.n_documents).sum();
    assert!((13_000..20_000).contains(&unrelated), "{unrelated}");
}

#[test]
fn mirrors_are_copies_byte_for_byte() {
    let web = small(Preset::Mirrors, 2_000, 4);
    let mut same = 0;
    for (&collection, places) in &web.places_of {
        for slot in 1..web.collections[collection as usize].slots {
            for &place in &places[1..] {
                let replica = web.replica(&web.places[place as usize]).unwrap();
                // A full mirror is complete, so that no link leads elsewhere than in the target.
                if replica.spec.kind != MirrorKind::Full {
                    continue;
                }
                let pages =
                    [places[0], place].map(|place| web.page_number(web.page_at(place, slot).unwrap()).html);
                assert!(pages[0] == pages[1], "{}", web.url(web.page_at(place, slot).unwrap()));
                same += 1;
            }
        }
    }
    assert!(same > 100, "{same}");
}

proptest! {
    #[test]
    fn replicas_find_their_slots(
        slots in 2u32..200, branching in 2u32..9, missing in 0.0f64..0.9, partial in any::<bool>(), seed in any::<u64>(),
    ) {
        let kind = if partial { MirrorKind::Partial } else { MirrorKind::Skewed };
        let spec = ReplicaSpec { kind, missing, ..ReplicaSpec::full() };
        let mask = missing_slots(slots, branching, &spec, &[], seed);
        prop_assert!(!mask[0]);
        let replica =
            Replica { spec, seed, missing: ranges(&mask), replaced: Vec::new(), cut: Vec::new() };
        prop_assert_eq!(replica.n_missing() as usize, mask.iter().filter(|&&missing| missing).count());
        let present: Vec<u32> = (0..slots).filter(|&slot| !mask[slot as usize]).collect();
        for (local, &slot) in present.iter().enumerate() {
            prop_assert_eq!(replica.slot(local as u32), slot);
            prop_assert_eq!(replica.local(slot), Some(local as u32));
        }
        for slot in (0..slots).filter(|&slot| mask[slot as usize]) {
            prop_assert_eq!(replica.local(slot), None);
            // Whatever is missing takes its children with it.
            let children = slot * branching + 1..(slot * branching + 1 + branching).min(slots);
            prop_assert!(children.into_iter().all(|child| mask[child as usize]));
        }
        if partial {
            prop_assert!(f64::from(replica.n_missing()) <= (missing * f64::from(slots)).round());
        }
    }

    #[test]
    fn relative_references_lead_back(from in "(/[ab]{1,2}){1,4}", to in "(/[ab]{1,2}){1,4}") {
        let mut reference = Vec::new();
        push_relative(from.as_bytes(), to.as_bytes(), &mut reference);
        let reference = String::from_utf8(reference).unwrap();
        prop_assert!(!reference.is_empty() && !reference.starts_with('/'));
        let mut segments: Vec<&str> = from[1..].split('/').collect();
        segments.pop();
        for segment in reference.split('/') {
            if segment == ".." {
                prop_assert!(segments.pop().is_some());
            } else {
                segments.push(segment);
            }
        }
        prop_assert_eq!(format!("/{}", segments.join("/")), to);
    }
}
