//! WARC and ARC files, plain and compressed.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    onionskin_warc::fuzz_reader(data);
});
