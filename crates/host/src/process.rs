//! The process: CPU, memory, threads, descriptors, network and disk. Formats: `proc(5)`.

use std::path::Path;
use std::time::Duration;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

use crate::{float, read};

/// Figures of the process. What can't be read is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessStats {
    /// CPU time of all threads, in user mode and in the kernel, in seconds.
    pub cpu_seconds: Option<f64>,
    /// Threads.
    pub threads: Option<u64>,
    /// When it started, in seconds since 1970.
    pub start_time_seconds: Option<f64>,
    /// Bytes of its address space.
    pub virtual_bytes: Option<u64>,
    /// Bytes of it that are in memory.
    pub resident_bytes: Option<u64>,
    /// Open descriptors.
    pub open_fds: Option<u64>,
    /// The limit of descriptors.
    pub max_fds: Option<u64>,
    /// Bytes that its network namespace has received over IP, also from itself.
    pub received_bytes: Option<u64>,
    /// Bytes that it has sent.
    pub sent_bytes: Option<u64>,
    /// Bytes that were read from disks for it.
    pub disk_read_bytes: Option<u64>,
    /// Bytes that the kernel wrote to disks for it.
    pub disk_written_bytes: Option<u64>,
}

/// Reads the figures of this process.
#[must_use]
pub fn process_stats() -> ProcessStats {
    let text = |path: &str| read(Path::new(path)).unwrap_or_default();
    let booted = boot_time(&text("/proc/stat"));
    let mut stats = ProcessStats {
        max_fds: getrlimit(Resource::Nofile).current,
        open_fds: open_fds(),
        ..of_stat(&text("/proc/self/stat"), booted)
    };
    (stats.received_bytes, stats.sent_bytes) = network(&text("/proc/self/net/netstat"));
    let io = text("/proc/self/io");
    (stats.disk_read_bytes, stats.disk_written_bytes) = (named(&io, "read_bytes:"), named(&io, "write_bytes:"));
    stats
}

/// The figures of `/proc/self/stat`, whose second field, the program's name, is in parentheses and may contain anything.
fn of_stat(stat: &str, booted: Option<Duration>) -> ProcessStats {
    let Some((_, fields)) = stat.rsplit_once(") ") else { return ProcessStats::default() };
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    // `proc(5)` counts from 1; the name is the second.
    let field = |number: usize| fields.get(number.checked_sub(3)?)?.parse::<u64>().ok();
    let seconds = |ticks: u64| float(ticks) / float(clock_ticks_per_second());
    ProcessStats {
        cpu_seconds: field(14).zip(field(15)).map(|(user, system)| seconds(user + system)),
        threads: field(20),
        start_time_seconds: field(22).zip(booted).map(|(ticks, booted)| booted.as_secs_f64() + seconds(ticks)),
        virtual_bytes: field(23),
        resident_bytes: field(24).map(|pages| pages.saturating_mul(page_size() as u64)),
        ..ProcessStats::default()
    }
}

/// When the machine was booted, since 1970.
fn boot_time(stat: &str) -> Option<Duration> {
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    line.trim().parse().ok().map(Duration::from_secs)
}

/// Seconds that the hypervisor took from all CPUs since the boot, and how many CPUs there are. Without `/proc/stat` both are 0.
#[must_use]
pub fn cpu_steal() -> (f64, f64) {
    steal_in(&read(Path::new("/proc/stat")).unwrap_or_default())
}

/// The first line sums up all CPUs; its eighth number is the stolen time.
fn steal_in(stat: &str) -> (f64, f64) {
    let cpus = stat.lines().skip(1).take_while(|line| line.starts_with("cpu")).count() as u64;
    let ticks = stat.lines().next().and_then(|line| line.split_ascii_whitespace().nth(8)?.parse().ok());
    (float(ticks.unwrap_or(0)) / float(clock_ticks_per_second()), float(cpus))
}

/// The open descriptors, without the one that lists them.
fn open_fds() -> Option<u64> {
    let entries = std::fs::read_dir("/proc/self/fd").ok()?;
    Some(entries.count().saturating_sub(1) as u64)
}

/// The bytes that IP has received and sent. The file has pairs of lines: names, and values in the same order.
fn network(netstat: &str) -> (Option<u64>, Option<u64>) {
    let mut lines = netstat.lines().filter(|line| line.starts_with("IpExt: "));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let value = |wanted: &str| {
        let mut pairs = names.split_ascii_whitespace().zip(values.split_ascii_whitespace());
        pairs.find(|(name, _)| *name == wanted)?.1.parse().ok()
    };
    (value("InOctets"), value("OutOctets"))
}

/// The number after a name at the beginning of a line.
pub(crate) fn named(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn figures_of_this_process_are_plausible() {
        let busy = std::time::Instant::now();
        while busy.elapsed() < Duration::from_millis(30) {
            std::hint::black_box(0);
        }
        let stats = process_stats();
        assert!(stats.cpu_seconds.unwrap() > 0.0, "{stats:?}");
        assert!(stats.threads.unwrap() >= 2, "{stats:?}");
        assert!(stats.resident_bytes.unwrap() > 100_000, "{stats:?}");
        assert!(stats.virtual_bytes >= stats.resident_bytes, "{stats:?}");
        assert!(stats.open_fds.unwrap() >= 3 && stats.open_fds <= stats.max_fds, "{stats:?}");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        assert!((now - stats.start_time_seconds.unwrap()).abs() < 3_600.0, "{stats:?}");
    }

    #[test]
    fn name_of_the_program_may_contain_anything() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 10 0 0 0 250 50 0 0 20 0 4 0 100 4096 2 18446744073709551615";
        let stats = of_stat(stat, Some(Duration::from_secs(1_000)));
        let ticks = float(clock_ticks_per_second());
        assert_eq!(stats.cpu_seconds, Some(300.0 / ticks));
        assert_eq!((stats.threads, stats.virtual_bytes), (Some(4), Some(4096)));
        assert_eq!(stats.start_time_seconds, Some(1_000.0 + 100.0 / ticks));
        assert_eq!(of_stat("", None), ProcessStats::default());
    }

    /// As recorded on a virtual machine whose host is overcommitted.
    #[test]
    fn stolen_time_is_read_from_the_sum_of_all_cpus() {
        let stat =
            "cpu  10 0 5 900 3 0 1 250 0 0\ncpu0 5 0 2 450 1 0 1 100 0 0\ncpu1 5 0 3 450 2 0 0 150 0 0\nintr 7\n";
        assert_eq!(steal_in(stat), (250.0 / float(clock_ticks_per_second()), 2.0));
        assert_eq!(steal_in(""), (0.0, 0.0));
    }

    #[test]
    fn network_bytes_are_found_by_name() {
        let text = "TcpExt: A B\nTcpExt: 1 2\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 0 77 88\n";
        assert_eq!(network(text), (Some(77), Some(88)));
        assert_eq!(network("IpExt: InOctets\n"), (None, None));
    }
}
