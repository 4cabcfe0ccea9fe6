//! The files of an index of seen documents.
#![no_main]

use std::sync::LazyLock;

/// In memory where there is such a folder.
static DIR: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder can be made")
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = onionskin_seen::untrusted::catalogue(data);
    let _ = onionskin_seen::untrusted::wal(data);
    let _ = onionskin_seen::untrusted::removed(DIR.path(), data);
    let _ = onionskin_seen::untrusted::run(DIR.path(), data);
});
