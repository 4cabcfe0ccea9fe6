//! The manifest of an atlas.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = onionskin_store::untrusted::manifest(data);
});
