use super::*;

fn all() -> Vec<Table> {
    let mut tables =
        vec![Table::Sketches { len: 84 }, Table::Features { len: 6 }, Table::chunks("w4").unwrap()];
    tables.push(TableName::from("copies.exact").table().unwrap());
    tables.extend(
        [
            "documents",
            "sites",
            "links",
            "pairs",
            "clusters",
            "cluster_stats",
            "collections",
            "collection_pages",
            "collection_groups",
            "url_rules",
        ]
        .map(|name| TableName::from(name).table().unwrap()),
    );
    tables
}

#[test]
fn names_and_columns_are_frozen() {
    let text: Vec<String> = all()
        .iter()
        .map(|table| {
            let columns: Vec<String> = table
                .schema()
                .fields()
                .iter()
                .map(|f| format!("{}{} {}", f.name(), if f.is_nullable() { "?" } else { "" }, f.data_type()))
                .collect();
            format!("{table} [{}]: {}", table.folder(), columns.join("; "))
        })
        .collect();
    assert_eq!(
        text,
        [
            "sketches [sketches]: doc Int64; sketch FixedSizeList(84 x non-null Int32, field: 'element')",
            "features [features]: doc Int64; features FixedSizeList(6 x non-null Int64, field: 'element')",
            "chunks.w4 [chunks/w4]: fp Int64; doc Int64",
            "copies.exact [copies/exact]: doc Int64; original Int64",
            "documents [documents]: doc Int64; id? Utf8; url? Utf8; site? Int64; source Utf8; offset Int64; \
             media_type Utf8; bytes Int64; tokens Int64; title? Utf8; canonical_url? Utf8; \
             fetched_at? Timestamp(µs, \"UTC\"); payload_sha1? FixedSizeBinary(20); text_fp? Int64",
            "sites [sites]: site Int64; host Utf8; registered_domain? Utf8",
            "links [links]: src Int64; dest Int64",
            "pairs [pairs]: a Int64; b Int64; shared Int64; resemblance Float64; containment_a Float64; \
             containment_b Float64; method Utf8",
            "clusters [clusters]: cluster Int64; doc Int64; is_centre Boolean; resemblance_to_centre Float64; kind Utf8",
            "cluster_stats [cluster_stats]: cluster Int64; centre Int64; documents Int64; exact_copies Int64; sites Int64; \
             same_site Int64; cross_site Int64; lowest_resemblance Float64",
            "collections [collections]: group Int64; replica Int64; site Int64; root_doc Int64; root_url? Utf8; \
             pages Int64; is_principal Boolean; folder Utf8; kind Utf8; coverage Float64; copies Int64; changed Int64; \
             added Int64; missing Int64; virtual_pages Int64; bytes Int64; newer Utf8",
            "collection_pages [collection_pages]: group Int64; replica Int64; slot Int64; doc Int64; \
             is_virtual Boolean; role Utf8",
            "collection_groups [collection_groups]: group Int64; kind Utf8; name Utf8; replicas Int64; slots Int64; \
             sites Int64; pages Int64; bytes Int64; duplicate_pages Int64; duplicate_bytes Int64; is_noise Boolean; \
             evidence Utf8; principal_reason? Utf8; principal_evidence? Utf8",
            "url_rules [url_rules]: rule Int64; host? Utf8; kind Utf8; pattern Utf8; support Int64; checked Int64; \
             confidence Float64; example_from Utf8; example_to Utf8",
        ]
    );
}

#[test]
fn chunkings_have_names_that_can_be_folders() {
    for good in ["w4", "lines-2", "shingle_paragraphs"] {
        assert!(Table::chunks(good).is_some(), "{good}");
    }
    for bad in ["", "W4", "../w4", "a/b", "a.b", "ä", &"x".repeat(65)] {
        assert!(Table::chunks(bad).is_none(), "{bad}");
    }
}

#[test]
fn every_table_is_found_by_its_name() {
    for table in all() {
        let found = table.name().table().unwrap();
        assert_eq!(found.name(), table.name());
        assert!(table.sorted_by().iter().all(|column| table.schema().field_with_name(column).is_ok()));
    }
    assert_eq!(TableName::from("chunks.A").table(), None);
    assert_eq!(TableName::from("words").table(), None);
}

#[test]
fn a_new_atlas_clears_every_folder() {
    // Those with chunkings and levels below them are looked for on the disk.
    for table in all().iter().filter(|table| !matches!(table, Table::Chunks(_) | Table::Copies(_))) {
        let folder = table.folder();
        assert!(TableName::directories().any(|directory| directory == folder), "{folder}");
    }
}

#[test]
fn types_that_lose_nothing_are_taken() {
    use DataType as T;
    assert_eq!(fit(&T::Int64, &T::Int64), Fit::Same);
    assert_eq!(fit(&T::Int32, &T::Int64), Fit::Cast);
    assert_eq!(fit(&T::UInt64, &T::Int64), Fit::Not);
    assert_eq!(fit(&T::Int64, &T::Int32), Fit::Not);
    assert_eq!(fit(&T::LargeUtf8, &T::Utf8), Fit::Cast);
    assert_eq!(fit(&T::Float64, &T::Int64), Fit::Not);
    let list = T::List(Arc::new(Field::new("element", T::Int32, true)));
    assert_eq!(fit(&list, &list_type(T::Int64, 6)), Fit::Cast);
    assert_eq!(fit(&T::Utf8, &list_type(T::Int64, 6)), Fit::Not);
}

#[test]
fn a_wrong_column_is_named_with_both_types() {
    let found = Schema::new(vec![
        Field::new("src", DataType::Utf8, false),
        Field::new("dest", DataType::Int64, false),
    ]);
    let error = check(&found, &Table::Links, "links/a.parquet").unwrap_err();
    assert_eq!(error.to_string(), "table links, links/a.parquet: column \"src\" is Utf8, wanted Int64");
    let found = Schema::new(vec![
        Field::new("src", DataType::Int32, false),
        Field::new("dst", DataType::Int64, false),
    ]);
    let error = check(&found, &Table::Links, "links/a.parquet").unwrap_err();
    assert_eq!(error.to_string(), "table links, links/a.parquet: no column \"dest\"; it has src, dst");
}
