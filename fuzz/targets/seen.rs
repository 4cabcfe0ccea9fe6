//! The catalogue and the log of an index of seen documents.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = onionskin_seen::untrusted::catalogue(data);
    let _ = onionskin_seen::untrusted::wal(data);
});
