//! Settings of the kernel, and limits of the process and its control group that a server may reach. Formats: `proc(5)`.

use std::path::Path;

use rustix::process::{Resource, getrlimit};

use crate::{control_group, read};

/// Settings of the machine. What can't be read is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelSettings {
    /// Connections that may wait to be accepted on a port.
    pub somaxconn: Option<u64>,
    /// Open files of the machine, and their maximum.
    pub files: Option<(u64, u64)>,
    /// Bytes of memory that processes were promised, and their maximum, if the kernel enforces it (`vm.overcommit_memory = 2`).
    pub promised_bytes: Option<(u64, u64)>,
}

/// Limits on threads and memory. `None` is without limit, or can't be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskLimits {
    /// Threads that the user of this process may have (`RLIMIT_NPROC`).
    pub user_threads: Option<u64>,
    /// Threads of the control group, and their maximum.
    pub group_threads: Option<(u64, u64)>,
    /// Bytes of address space (`RLIMIT_AS`).
    pub address_bytes: Option<u64>,
}

/// Reads the settings.
#[must_use]
pub fn kernel_settings() -> KernelSettings {
    settings(&|path| read(Path::new(path)))
}

/// Reads the limits of this process.
#[must_use]
pub fn task_limits() -> TaskLimits {
    TaskLimits {
        user_threads: getrlimit(Resource::Nproc).current,
        group_threads: control_group::group_threads(),
        address_bytes: getrlimit(Resource::As).current,
    }
}

fn settings(read: &dyn Fn(&str) -> Option<String>) -> KernelSettings {
    let number = |path| read(path)?.trim().parse::<u64>().ok();
    let memory = || {
        let text = read("/proc/meminfo")?;
        let bytes = |name| {
            let line = text.lines().find_map(|line: &str| line.strip_prefix(name))?;
            line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
        };
        Some((bytes("Committed_AS:")?, bytes("CommitLimit:")?))
    };
    KernelSettings {
        somaxconn: number("/proc/sys/net/core/somaxconn"),
        files: read("/proc/sys/fs/file-nr").and_then(|text| {
            let mut numbers = text.split_ascii_whitespace().map(str::parse);
            Some((numbers.next()?.ok()?, numbers.nth(1)?.ok()?))
        }),
        promised_bytes: (number("/proc/sys/vm/overcommit_memory") == Some(2)).then(memory).flatten(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_from_their_files() {
        let read = |path: &str| {
            let text = match path {
                "/proc/sys/net/core/somaxconn" => "128\n",
                "/proc/sys/fs/file-nr" => "1908\t0\t2466190\n",
                "/proc/sys/vm/overcommit_memory" => "2\n",
                "/proc/meminfo" => "MemTotal: 9 kB\nCommitLimit:    2048 kB\nCommitted_AS:      1024 kB\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        let expected = KernelSettings {
            somaxconn: Some(128),
            files: Some((1_908, 2_466_190)),
            promised_bytes: Some((1 << 20, 2 << 20)),
        };
        assert_eq!(settings(&read), expected);
        assert_eq!(settings(&|_| None), KernelSettings::default());
        let without =
            |path: &str| read(path).map(|text| if path.contains("overcommit") { "0\n".to_owned() } else { text });
        assert_eq!(settings(&without).promised_bytes, None);
    }
}
