//! What this process has used: peak resident memory and CPU time.

use std::fs;

/// The highest resident size this process has had, in bytes; `None` where the system does not tell.
pub fn peak_rss() -> Option<u64> {
    kib_field(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// The resident size now, in bytes; `None` where the system does not tell.
pub fn current_rss() -> Option<u64> {
    kib_field(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// Processor seconds that all threads of this process have used so far.
pub fn cpu_seconds() -> f64 {
    spent(rustix::time::ClockId::ProcessCPUTime)
}

/// Processor seconds that this thread has used so far.
pub(crate) fn thread_cpu_seconds() -> f64 {
    spent(rustix::time::ClockId::ThreadCPUTime)
}

fn spent(clock: rustix::time::ClockId) -> f64 {
    let spent = rustix::time::clock_gettime(clock);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

/// The memory of the machine, or the limit of this process's control group where that is lower.
pub(crate) fn machine_memory() -> Option<u64> {
    let machine = kib_field(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")?;
    let group = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .find_map(|path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
    Some(group.map_or(machine, |limit| limit.min(machine)))
}

/// The value of a `Name:   123 kB` line of a `/proc` file, in bytes.
fn kib_field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_lines_are_read() {
        assert_eq!(kib_field("VmPeak:\t 12 kB\nVmHWM:\t   3456 kB\n", "VmHWM:"), Some(3456 * 1024));
        assert_eq!(kib_field("VmPeak:\t 12 kB\n", "VmHWM:"), None);
        assert_eq!(kib_field("VmHWM: many kB", "VmHWM:"), None);
    }

    #[test]
    fn this_process_has_used_something() {
        assert!(cpu_seconds() > 0.0);
        if let (Some(peak), Some(now)) = (peak_rss(), current_rss()) {
            assert!(peak >= now / 2 && peak > 0);
        }
    }
}
