//! How the C library's allocator treats buffers of some megabytes.

/// Such buffers come and go with every batch. Left to itself, glibc maps and unmaps some of them
/// each time, and every page of them costs a fault when it is touched again: a third of all faults
/// of a scan, and one part in twenty of its time.
pub(crate) fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "it is a function of the C library")]
    // SAFETY: both calls set a number in the allocator, under its own lock.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 32 << 20);
    }
}
