//! Text to tokens, chunks, sketches and features.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let recipe = "w4-nfkc-rabin64-6x14r2+sketch+w4+c5+l2+ls2+sent+para+sp+doc".parse().expect("a recipe");
    let mut analyzer = onionskin_core::Analyzer::new(&recipe, 1);
    let features = analyzer.analyze(&text).features().to_vec();
    // Whatever case or form the text has, the same text gives the same.
    assert_eq!(analyzer.analyze(&text).features(), features);
});
