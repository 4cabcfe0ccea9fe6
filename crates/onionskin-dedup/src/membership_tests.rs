use onionskin_core::{ClusterId, DocId};
use onionskin_similar::membership::{Membership, MembershipError, from_clusters_table};
use onionskin_store::StageName;
use onionskin_store::table::{ClusterRow, CopyKind};
use onionskin_store::{Atlas, MemoryBudget};

use crate::testing::{Bench, Cluster, exact, near};

fn bench(clusters: &[Cluster], how: &str) -> Bench {
    let bench = Bench::new();
    bench.write("in/a.jsonl", "{\"text\":\"a rose is a rose\"}\n".repeat(40));
    bench.scan(|_| {});
    bench.clusters(clusters, &[], how);
    bench
}

fn read(bench: &Bench, memory: MemoryBudget) -> Result<Vec<Membership>, MembershipError> {
    let atlas = Atlas::open(bench.path("atlas")).unwrap();
    from_clusters_table(&atlas, memory, &bench.path("sort"))?.collect()
}

#[test]
fn documents_ascend_whatever_the_clusters() {
    let clusters = [near(30, &[(2, 0.9), (17, 0.8)]), exact(0, &[39]), near(5, &[(4, 0.7), (6, 0.6)])];
    let bench = bench(&clusters, "centred");
    let member = |doc, cluster, size, centre, resemblance, kind| Membership {
        doc: DocId(doc),
        cluster: ClusterId(cluster),
        size,
        centre: DocId(centre),
        resemblance,
        kind,
    };
    use CopyKind::{Exact, Near};
    let expected = [
        member(0, 0, 2, 0, 1.0, Exact),
        member(2, 1, 3, 30, 0.9, Near),
        member(4, 2, 3, 5, 0.7, Near),
        member(5, 2, 3, 5, 1.0, Exact),
        member(6, 2, 3, 5, 0.6, Near),
        member(17, 1, 3, 30, 0.8, Near),
        member(30, 1, 3, 30, 1.0, Exact),
        member(39, 0, 2, 0, 1.0, Exact),
    ];
    assert_eq!(read(&bench, MemoryBudget::from_mib(1)).unwrap(), expected);
    // So little memory that the sort spills after two rows.
    assert_eq!(read(&bench, MemoryBudget::from_bytes(64)).unwrap(), expected);
}

#[test]
fn chains_are_refused() {
    let error = read(&bench(&[exact(0, &[1])], "transitive"), MemoryBudget::from_mib(1)).unwrap_err();
    assert!(matches!(error, MembershipError::Transitive));
    assert!(error.to_string().contains("again with centred clusters"), "{error}");
}

#[test]
fn an_atlas_without_clusters_says_what_to_do() {
    let bench = Bench::new();
    bench.write("in/a.jsonl", "{\"text\":\"a rose\"}\n");
    bench.scan(|_| {});
    let error = read(&bench, MemoryBudget::from_mib(1)).unwrap_err().to_string();
    assert!(error.contains("no table clusters") && error.contains("onionskin similar"), "{error}");
}

#[test]
fn tables_that_disagree_are_an_error() {
    use onionskin_store::Table;
    use onionskin_store::staging::{StageKind, StageParams, Staging};
    let bench = bench(&[exact(0, &[1]), exact(2, &[3])], "centred");
    // The same statistics with other members.
    for (rows, wanted) in [
        (vec![(0, 0, true), (0, 1, false), (1, 2, true)], "the number of members"),
        (vec![(0, 0, true), (0, 1, false), (1, 2, false), (1, 3, true)], "the centre"),
        (vec![(0, 0, true), (0, 1, false)], "ends after 1 clusters, but there are 2"),
        (
            vec![(0, 0, true), (0, 1, false), (2, 2, true), (2, 3, false)],
            "row 2: column \"cluster\": 2, but there are 2 clusters",
        ),
    ] {
        let params =
            StageParams::new(StageName::Similar, serde_json::json!({}), "test", vec![Table::Clusters]);
        let params = StageParams { kind: StageKind::Extend, overwrite: true, ..params };
        let (mut staging, _) = Staging::open(bench.path("atlas"), params).unwrap();
        for (cluster, doc, is_centre) in rows {
            let row = ClusterRow {
                cluster: ClusterId(cluster),
                doc: DocId(doc),
                is_centre,
                resemblance_to_centre: 1.0,
                kind: CopyKind::Exact,
            };
            staging.clusters().unwrap().push(&row).unwrap();
        }
        staging.commit(serde_json::json!({})).unwrap();
        staging.publish(|_| {}).unwrap();
        let error = read(&bench, MemoryBudget::from_mib(1)).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}
