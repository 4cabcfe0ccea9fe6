//! Work files and sorted runs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = onionskin_store::untrusted::raw::<(u64, u32)>(data);
    let _ = onionskin_store::untrusted::raw::<u32>(data);
});
