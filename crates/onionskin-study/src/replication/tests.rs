use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const SEED: u64 = 7;

/// A document, its original if it is in a cluster, and what else is known of it.
type Known = (Option<DocId>, Member);

fn tallied(documents: &[Known], sites: usize) -> (LevelCounts, Vec<SiteCounts>) {
    let texts = documents.iter().filter(|(_, member)| member.has_text);
    let connected = texts.clone().filter(|(_, member)| member.connected).count() as u64;
    let mut tally =
        Tally::new(texts.count() as u64, connected, 4, SEED).with_sites(vec![SiteCounts::default(); sites]);
    let mut sorted: Vec<(DocId, Option<SiteId>, Member)> = documents
        .iter()
        .filter_map(|(original, member)| Some(((*original)?, member.site, *member)))
        .collect();
    sorted.sort_by_key(|(original, site, member)| (*original, *site, member.doc));
    for (original, _, member) in sorted {
        tally.member(original, member);
    }
    tally.finish()
}

/// The same from the definitions, with every cluster in memory.
fn naive_part(documents: &[Known], within: impl Fn(&Member) -> bool) -> PartCounts {
    let mut clusters: BTreeMap<DocId, u64> = BTreeMap::new();
    let mut counts = PartCounts::default();
    for (original, member) in documents.iter().filter(|(_, member)| within(member)) {
        counts.documents += u64::from(member.has_text || original.is_some());
        if let Some(original) = original {
            *clusters.entry(*original).or_insert(0) += 1;
        }
    }
    for size in clusters.into_values().filter(|size| *size > 1) {
        counts.clusters += 1;
        counts.clustered += size;
        *counts.sizes.entry(size).or_insert(0) += 1;
    }
    counts
}

/// Documents with clusters of two and more; the original is the smallest.
fn web() -> impl Strategy<Value = Vec<Known>> {
    let document = (0u32..6, 0u32..4, any::<bool>(), 0usize..6, 0u8..10, 0u64..100);
    prop::collection::vec(document, 0..40).prop_map(|rows| {
        let mut firsts: BTreeMap<u32, DocId> = BTreeMap::new();
        let mut sizes: BTreeMap<u32, u32> = BTreeMap::new();
        for (doc, row) in DocId::MIN.onward().zip(&rows) {
            firsts.entry(row.0).or_insert(doc);
            *sizes.entry(row.0).or_insert(0) += 1;
        }
        let known = |(doc, row): (DocId, &(u32, u32, bool, usize, u8, u64))| {
            let (cluster, site, connected, part, text, bytes) = *row;
            let original = (cluster > 0 && sizes[&cluster] > 1).then(|| firsts[&cluster]);
            let (part, has_text) = (Part::ALL[part], text > 0);
            (original, Member { doc, site: Some(SiteId(site)), connected, part, has_text, bytes })
        };
        DocId::MIN.onward().zip(&rows).map(known).collect()
    })
}

proptest! {
    #[test]
    fn counts_are_those_of_the_definitions(documents in web()) {
        let (counts, sites) = tallied(&documents, 4);
        prop_assert_eq!(&counts.whole, &naive_part(&documents, |_| true));
        prop_assert_eq!(&counts.connected, &naive_part(&documents, |member| member.connected));
        prop_assert_eq!(&counts.disconnected, &naive_part(&documents, |member| !member.connected));
        let mut clusters: BTreeMap<DocId, Vec<Member>> = BTreeMap::new();
        for (original, member) in &documents {
            if let Some(original) = original {
                clusters.entry(*original).or_default().push(*member);
            }
        }
        let reached = clusters.values().filter(|members| members.iter().any(|member| member.connected)).count() as u64;
        prop_assert_eq!(counts.clusters_reached, reached);
        let unique = documents.iter().filter(|(original, member)| original.is_none() && member.connected && member.has_text).count() as u64;
        prop_assert_eq!(counts.unique_reached(), unique);
        prop_assert_eq!(counts.useful_reached(), unique + reached);
        let bytes: u64 = clusters.iter().flat_map(|(original, members)| members.iter().filter(|member| member.doc != *original)).map(|member| member.bytes).sum();
        prop_assert_eq!(counts.duplicate_bytes, bytes);
        let total = |of: fn(&ClassCounts) -> u64| counts.classes.iter().map(of).sum::<u64>();
        let on_site = |same: bool| clusters.iter().map(|(original, members)| {
            let site = members.iter().find(|member| member.doc == *original).unwrap().site;
            members.iter().filter(|member| member.doc != *original && (member.site == site) == same).count() as u64
        }).sum::<u64>();
        prop_assert_eq!(total(|class| class.same_site_duplicates), on_site(true));
        prop_assert_eq!(total(|class| class.cross_site_duplicates), on_site(false));
        let one_site = clusters.values().filter(|members| members.iter().map(|member| member.site).collect::<BTreeSet<_>>().len() == 1).count() as u64;
        prop_assert_eq!(total(|class| class.one_site), one_site);
        for (site, counts) in SiteId::MIN.onward().map(Some).zip(&sites) {
            let here = || clusters.iter().flat_map(|(original, members)| {
                let wide = members.iter().any(|member| member.site != site);
                members.iter().filter(move |member| member.site == site).map(move |member| (*original, member, wide))
            });
            prop_assert_eq!(u64::from(counts.clustered), here().count() as u64);
            prop_assert_eq!(u64::from(counts.elsewhere), here().filter(|(_, _, wide)| *wide).count() as u64);
            prop_assert_eq!(u64::from(counts.duplicates), here().filter(|(original, member, _)| member.doc != *original).count() as u64);
        }
        prop_assert_eq!(counts.whole.by_replicas().iter().sum::<u64>(), counts.whole.documents);
        let grown = counts.growth.curve().last().map(|point| (point.clusters, point.duplicates));
        prop_assert_eq!(grown, Some((counts.whole.clusters, counts.whole.duplicates())));
        prop_assert!(counts.largest.windows(2).all(|two| two[0].documents >= two[1].documents));
        prop_assert_eq!(counts.by_part.iter().sum::<u64>(), counts.whole.clustered);
    }
}

#[test]
fn replicas_fall_into_the_classes_of_the_figure() {
    let mut counts = PartCounts { documents: 300, ..PartCounts::default() };
    for size in [2, 2, 5, 6, 10, 100, 101] {
        counts.add(size);
    }
    assert_eq!(counts.by_replicas(), [74, 4, 5, 16, 100, 101, 0, 0]);
    assert_eq!((counts.duplicates(), counts.unique(), counts.useful()), (219, 74, 81));
    let names: Vec<String> = (0..8).map(|at| class_name(&REPLICA_CLASSES, at)).collect();
    assert_eq!(names[..4], ["1", "2", "3 to 5", "6 to 10"]);
    assert_eq!(names[7], "10,001 and more");
}

#[test]
fn the_numbers_of_the_papers_follow_from_the_definitions() {
    // Pereira et al. 2006, tables 2, 5 and 6 for 2003 and 2004: unique documents and the share of
    // useful ones that a crawl covers.
    for (documents, clusters, duplicates, reached, unique, unique_reached, covered) in [
        (2_067_278, 251_588, 804_338, 180_563, 1_011_352, 609_501, 0.626),
        (2_033_113, 266_408, 876_047, 202_562, 890_658, 613_362, 0.705),
        (2_174_520, 255_601, 778_290, 208_648, 1_140_629, 819_578, 0.736),
    ] {
        let whole =
            PartCounts { documents, clusters, clustered: clusters + duplicates, ..PartCounts::default() };
        assert_eq!(whole.unique(), unique);
        let useful = (unique_reached + reached) as f64 / whole.useful() as f64;
        assert!((useful - covered).abs() < 0.0005 + 1e-9, "{useful} {covered}");
    }
    // Table 2: percentages of duplicates.
    for (documents, duplicates, printed) in
        [(2_067_278, 804_338, 38.9), (2_033_113, 876_047, 43.1), (2_174_520, 778_290, 35.8)]
    {
        assert!((100.0 * share(duplicates, documents) - printed).abs() < 0.05);
    }
}
