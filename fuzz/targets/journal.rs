//! The journal of unfinished work.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = onionskin_store::staging::parse_journal_bytes(data);
});
