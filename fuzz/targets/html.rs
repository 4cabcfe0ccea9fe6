//! HTML to text, title and links.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    onionskin_extract::fuzz_html(data);
});
