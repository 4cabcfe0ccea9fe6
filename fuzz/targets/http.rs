//! HTTP responses with every transfer and content coding.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    onionskin_warc::fuzz_http(data);
});
