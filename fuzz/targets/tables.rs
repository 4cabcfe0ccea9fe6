//! Every table, as Parquet.
#![no_main]

// Decoders panic on damaged files, and our readers catch that. libFuzzer's hook would end the
// process before they can; without it a panic that nobody catches still does.
libfuzzer_sys::fuzz_target!(init: std::panic::set_hook(Box::new(|_| {})), |data: &[u8]| {
    use onionskin_store::Table;
    let Some((kind, data)) = data.split_first() else { return };
    let table = match kind % 13 {
        0 => Table::Documents,
        1 => Table::Sites,
        2 => Table::Links,
        3 => Table::chunks("w4").expect("a table"),
        4 => Table::Sketches { len: 84 },
        5 => Table::Features { len: 6 },
        6 => Table::Pairs,
        7 => Table::Clusters,
        8 => Table::ClusterStats,
        9 => Table::Collections,
        10 => Table::CollectionPages,
        11 => Table::CollectionGroups,
        _ => Table::UrlRules,
    };
    let _ = onionskin_store::untrusted::table(&table, data);
});
