//! Checks of limits: descriptors, threads, memory and CPU of the process or its container, and settings of the kernel.

use host::{ContainerStats, KernelSettings, TaskLimits};

use super::check::{Check, State};
use super::subject::Subject;

const DESCRIPTORS: &str = "descriptors";
const THREADS: &str = "threads";
const MEMORY: &str = "memory";
const CPU: &str = "cpu";
const KERNEL: &str = "kernel";
/// Fewer descriptors are too few for files, stores and some hundred connections.
const DESCRIPTORS_MIN: u64 = 1_024;
/// Descriptors for all but connections.
const OTHER_DESCRIPTORS: u64 = 256;
/// With this share of the descriptors in use, the next connections fail.
const DESCRIPTORS_USED_MAX: f64 = 0.9;
/// Threads in addition to those of the shards: stores, readers, the log.
const THREADS_MIN: u64 = 64;
/// Below this memory limit the budgets are so small that a few large requests are rejected.
const MEMORY_MIN: u64 = 256 << 20;
/// Below this address space, memory that is reserved and unused may not be had.
const ADDRESS_BYTES_MIN: u64 = 4 << 30;
/// Below this limit a single thread is held.
const CPUS_MIN: f64 = 1.0;
/// The limit held the container in this share of its periods, of which there were enough.
const THROTTLED_MIN: f64 = 0.05;
const PERIODS_MIN: u64 = 100;
/// Connections that should be able to wait for a shard.
const SOMAXCONN_MIN: u64 = 1_024;
/// From this share on, the machine soon runs out of it.
const MACHINE_USED_MAX: f64 = 0.9;

/// The limits of a process, as it says itself, or of this command.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    pub(super) open_fds: Option<u64>,
    pub(super) max_fds: Option<u64>,
    pub(super) container: ContainerStats,
    /// Of this command only.
    pub(super) tasks: Option<TaskLimits>,
}

impl Limits {
    /// Those of this command, which a process that the same user starts has too. It raises the soft limit of descriptors to the hard one.
    pub(super) fn of_this_command() -> Self {
        Self {
            open_fds: None,
            max_fds: Some(rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum.unwrap_or(u64::MAX)),
            container: host::container_stats(),
            tasks: Some(host::task_limits()),
        }
    }

    /// Those of a process by the text of its metrics.
    pub(super) fn of_metrics(text: &str) -> Self {
        let number = |name: &str| -> Option<f64> {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts, far below 2⁵³")]
        let count = |name| number(name).map(|value| value as u64);
        Self {
            open_fds: count("process_open_fds"),
            max_fds: count("process_max_fds"),
            container: ContainerStats {
                cpu_limit: number("forebay_container_cpu_limit_cores"),
                periods: count("forebay_container_cpu_periods_total"),
                throttled_periods: count("forebay_container_cpu_throttled_periods_total"),
                memory_limit_bytes: count("forebay_container_memory_limit_bytes"),
                ..ContainerStats::default()
            },
            tasks: None,
        }
    }
}

/// Checks the limits.
pub(super) fn checks(limits: &Limits, subject: &Subject) -> Vec<Check> {
    let mut checks = vec![descriptors(limits, subject.connections), memory(limits, subject), cpu(&limits.container)];
    checks.extend(limits.tasks.as_ref().map(|tasks| threads(tasks, subject.shards)));
    checks
}

fn descriptors(limits: &Limits, connections: Option<usize>) -> Check {
    let Some(max) = limits.max_fds else { return Check::skipped(DESCRIPTORS, "the process doesn't say its limit") };
    let advice = "Raise the limit of open files (`ulimit -n`, `LimitNOFILE`, `--ulimit nofile`)";
    if let Some(open) = limits.open_fds.filter(|open| share(*open, max) >= DESCRIPTORS_USED_MAX) {
        return Check::problem(DESCRIPTORS, format!("{open} of {max} are open: the next connections fail"), advice);
    }
    let wanted = connections.map(|connections| connections as u64 + OTHER_DESCRIPTORS);
    if let Some(wanted) = wanted.filter(|wanted| *wanted > max) {
        let seen = format!("the limit is {max}, and `max_connections` needs {wanted}");
        return Check::warning(DESCRIPTORS, seen, advice);
    }
    if max < DESCRIPTORS_MIN {
        let seen = format!("the limit is {max}, and half of it is for connections");
        return Check::warning(DESCRIPTORS, seen, format!("{advice} to {DESCRIPTORS_MIN} or more"));
    }
    Check::ok(DESCRIPTORS, if max == u64::MAX { "no limit".to_owned() } else { format!("the limit is {max}") })
}

fn threads(tasks: &TaskLimits, shards: usize) -> Check {
    let needed = shards as u64 + THREADS_MIN;
    if let Some((now, max)) = tasks.group_threads.filter(|(now, max)| max.saturating_sub(*now) < needed) {
        let seen = format!("the container has {now} of {max} threads, and Forebay may start {needed}");
        return Check::warning(THREADS, seen, "Raise the limit of the container (`--pids-limit`, `TasksMax`)");
    }
    if let Some(max) = tasks.user_threads.filter(|max| *max < needed) {
        let seen = format!("this user may have {max} threads, and Forebay may start {needed}");
        return Check::warning(THREADS, seen, "Raise the limit of processes (`ulimit -u`, `LimitNPROC`)");
    }
    Check::ok(THREADS, "the limits suffice")
}

fn memory(limits: &Limits, subject: &Subject) -> Check {
    let otherwise = "Raise the memory limit";
    if let Some(warning) = &subject.memory_warning {
        return Check::of_sentences(MEMORY, State::Problem, warning, otherwise);
    }
    if let Some(bytes) =
        limits.tasks.as_ref().and_then(|tasks| tasks.address_bytes).filter(|bytes| *bytes < ADDRESS_BYTES_MIN)
    {
        let seen = format!("the address space is limited to {} MiB", bytes >> 20);
        return Check::warning(
            MEMORY,
            seen,
            "Remove the limit (`ulimit -v unlimited`), and limit the container instead",
        );
    }
    let Some(limit) = limits.container.memory_limit_bytes else { return Check::ok(MEMORY, "no limit") };
    let summary = subject.memory_summary.clone().unwrap_or_else(|| format!("the limit is {} MiB", limit >> 20));
    if limit < MEMORY_MIN {
        let seen = format!("the limit is {} MiB, so budgets are small: {summary}", limit >> 20);
        let advice =
            format!("Raise the memory limit to {} MiB or more if requests get 503 `overload`", MEMORY_MIN >> 20);
        return Check::warning(MEMORY, seen, advice);
    }
    Check::ok(MEMORY, summary)
}

fn cpu(container: &ContainerStats) -> Check {
    let limit = container.cpu_limit;
    let shown = limit.map_or_else(|| "no limit".to_owned(), |limit| format!("the limit is {limit} CPUs"));
    let periods = container.periods.filter(|periods| *periods >= PERIODS_MIN).zip(container.throttled_periods);
    let throttled = periods.map(|(all, throttled)| share(throttled, all)).filter(|share| *share >= THROTTLED_MIN);
    let advice = "Raise the container's CPU limit, or remove it";
    if let Some(throttled) = throttled {
        let seen = format!("{shown}, which held the container in {:.0} % of its periods so far", throttled * 100.0);
        return Check::warning(CPU, seen, advice);
    }
    if limit.is_some_and(|limit| limit < CPUS_MIN) {
        return Check::warning(CPU, format!("{shown}, less than one thread can use"), advice);
    }
    Check::ok(CPU, shown)
}

/// Checks settings of the kernel. What can't be read has no line.
pub(super) fn of_kernel(settings: &KernelSettings) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(max) = settings.somaxconn.filter(|max| *max < SOMAXCONN_MIN) {
        let seen = format!("net.core.somaxconn is {max}: connections of a burst of clients may time out");
        checks.push(Check::warning(KERNEL, seen, "Set it to 4096 (`sysctl`, `--sysctl`)"));
    }
    let nearly_used = |used: Option<(u64, u64)>| used.filter(|(used, max)| share(*used, *max) >= MACHINE_USED_MAX);
    if let Some((open, max)) = nearly_used(settings.files) {
        let seen = format!("{open} of the machine's {max} files are open");
        checks.push(Check::warning(KERNEL, seen, "Raise fs.file-max"));
    }
    if let Some((promised, max)) = nearly_used(settings.promised_bytes) {
        let seen = format!(
            "vm.overcommit_memory is 2, and {} of {} MiB are promised: the next allocation may end the process",
            promised >> 20,
            max >> 20
        );
        checks.push(Check::warning(KERNEL, seen, "Set vm.overcommit_memory to 0, or raise vm.overcommit_ratio"));
    }
    if checks.is_empty() {
        checks.push(Check::ok(KERNEL, "somaxconn, file-max and overcommit_memory suffice"));
    }
    checks
}

#[expect(clippy::cast_precision_loss, reason = "counts, far below 2⁵³")]
fn share(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn healthy() -> Limits {
        let container = ContainerStats {
            cpu_limit: Some(2.0),
            periods: Some(10_000),
            throttled_periods: Some(10),
            memory_limit_bytes: Some(1 << 30),
            ..ContainerStats::default()
        };
        Limits { open_fds: Some(30), max_fds: Some(1_024), container, tasks: Some(TaskLimits::default()) }
    }

    fn subject() -> Subject {
        Subject {
            role: config::Role::Serve,
            data: "data".into(),
            sinks: Vec::new(),
            tokens: config::token_file::TokenFile::at(Path::new("none")),
            certificates: Vec::new(),
            keep_free: Some(None),
            shards: 4,
            connections: None,
            memory_warning: None,
            memory_summary: None,
        }
    }

    /// What is wrong with changed limits.
    fn wrong(change: impl FnOnce(&mut Limits, &mut Subject)) -> Vec<(&'static str, State)> {
        let (mut limits, mut subject) = (healthy(), subject());
        change(&mut limits, &mut subject);
        let all = checks(&limits, &subject);
        assert!(all.iter().all(|check| (check.state == State::Ok) == check.remedy.is_none()), "{all:?}");
        all.into_iter().filter(|check| check.state != State::Ok).map(|check| (check.check, check.state)).collect()
    }

    #[test]
    fn each_limit_is_found_alone() {
        let warning = |check| vec![(check, State::Warning)];
        assert_eq!(wrong(|_, _| {}), []);
        assert_eq!(wrong(|limits, _| limits.max_fds = Some(64)), warning(DESCRIPTORS));
        assert_eq!(wrong(|_, subject| subject.connections = Some(1_000)), warning(DESCRIPTORS));
        assert_eq!(wrong(|limits, _| limits.open_fds = Some(1_000)), [(DESCRIPTORS, State::Problem)]);
        assert_eq!(wrong(|limits, _| limits.container.cpu_limit = Some(0.2)), warning(CPU));
        assert_eq!(wrong(|limits, _| limits.container.throttled_periods = Some(600)), warning(CPU));
        assert_eq!(wrong(|limits, _| limits.container.memory_limit_bytes = Some(64 << 20)), warning(MEMORY));
        assert_eq!(
            wrong(|_, subject| subject.memory_warning = Some("too little. Raise it".into())),
            [(MEMORY, State::Problem)]
        );
        let tasks = |tasks: TaskLimits| move |limits: &mut Limits, _: &mut Subject| limits.tasks = Some(tasks);
        assert_eq!(wrong(tasks(TaskLimits { user_threads: Some(60), ..TaskLimits::default() })), warning(THREADS));
        assert_eq!(
            wrong(tasks(TaskLimits { group_threads: Some((90, 100)), ..TaskLimits::default() })),
            warning(THREADS)
        );
        assert_eq!(wrong(tasks(TaskLimits { address_bytes: Some(1 << 30), ..TaskLimits::default() })), warning(MEMORY));
    }

    /// As in a container of Docker with `--cpus 0.2 --memory 64m`, recorded with version 2.
    #[test]
    fn recorded_container_has_small_limits() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("proc/self/cgroup", "0::/\n"),
            ("proc/self/mountinfo", "29 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw,nsdelegate\n"),
            ("sys/fs/cgroup/cpu.max", "20000 100000\n"),
            ("sys/fs/cgroup/cpu.stat", "usage_usec 1\nnr_periods 200\nnr_throttled 4\nthrottled_usec 9\n"),
            ("sys/fs/cgroup/memory.max", "67108864\n"),
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let container = host::container_stats_in(folder.path());
        let all = checks(&Limits { container, ..healthy() }, &subject());
        let wrong: Vec<_> = all.iter().filter(|check| check.state != State::Ok).map(Check::line).collect();
        assert_eq!(
            wrong,
            [
                "warning  memory: the limit is 64 MiB, so budgets are small: the limit is 64 MiB. Raise the memory limit to 256 MiB or \
                 more if requests get 503 `overload`\n",
                "warning  cpu: the limit is 0.2 CPUs, less than one thread can use. Raise the container's CPU limit, or remove it\n"
            ]
        );
    }

    #[test]
    fn limits_of_a_process_are_in_its_metrics() {
        let text = "# TYPE process_max_fds gauge\nprocess_max_fds 64\nprocess_open_fds 60\n\
                    forebay_container_cpu_limit_cores 0.5\nforebay_container_memory_limit_bytes 67108864\n";
        let limits = Limits::of_metrics(text);
        assert_eq!((limits.max_fds, limits.open_fds), (Some(64), Some(60)));
        assert_eq!((limits.container.cpu_limit, limits.container.memory_limit_bytes), (Some(0.5), Some(64 << 20)));
    }

    #[test]
    fn kernel_settings_are_found_by_evidence() {
        let wrong =
            |settings: KernelSettings| of_kernel(&settings).into_iter().map(|check| check.state).collect::<Vec<_>>();
        assert_eq!(wrong(KernelSettings::default()), [State::Ok]);
        let full = KernelSettings { somaxconn: Some(128), files: Some((95, 100)), promised_bytes: Some((95, 100)) };
        assert_eq!(wrong(full), [State::Warning; 3]);
        let fine = KernelSettings { somaxconn: Some(4_096), files: Some((5, 100)), promised_bytes: Some((5, 100)) };
        assert_eq!(wrong(fine), [State::Ok]);
    }
}
