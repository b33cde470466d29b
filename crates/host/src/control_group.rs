//! The control groups of this process, of version 1 or 2, and those above them: limits and use of CPU, memory and disks. Formats: the
//! kernel's documentation, "Control Group v2" and "Control Groups version 1".

use std::path::{Component, Path, PathBuf};

use crate::process::named;
use crate::{SECOND, float, read};

/// A limit of memory, and the file that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// The limit in bytes.
    pub bytes: u64,
    /// The file.
    pub file: PathBuf,
}

/// Figures of the process's control group, which in a container is the container's. What can't be read, or has no limit, is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContainerStats {
    /// CPUs that the group may use at the same time: 0.5 is half of one.
    pub cpu_limit: Option<f64>,
    /// CPU time of the group in seconds.
    pub cpu_seconds: Option<f64>,
    /// Periods of the CPU limit, in which the group ran.
    pub periods: Option<u64>,
    /// Periods in which the group used up its CPU time and had to wait.
    pub throttled_periods: Option<u64>,
    /// How long it had to wait, in seconds, summed over the CPUs.
    pub throttled_seconds: Option<f64>,
    /// The least limit of memory, in bytes.
    pub memory_limit_bytes: Option<u64>,
    /// Memory of the group, with the page cache of its files.
    pub memory_bytes: Option<u64>,
    /// Bytes of its page cache, which the kernel can reclaim.
    pub memory_cache_bytes: Option<u64>,
    /// How often the group reached a limit of its memory, and the kernel had to reclaim some.
    pub memory_limit_hits: Option<u64>,
    /// Bytes that the group has read from disks and written to them.
    pub disk_bytes: Option<ReadsWrites>,
    /// Its operations on disks.
    pub disk_operations: Option<ReadsWrites>,
}

/// Reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadsWrites {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
}

/// Larger numbers are no limit: version 1 writes one near 2^63.
const NO_LIMIT: u64 = 1 << 60;

/// The limit of memory of this process, if there is one.
#[must_use]
pub fn memory_limit() -> Option<MemoryLimit> {
    Groups::of_process().memory_limit(&read)
}

/// Reads the figures of this process's group.
#[must_use]
pub fn container_stats() -> ContainerStats {
    Groups::of_process().stats(&read)
}

/// Reads the figures of recorded files: `root` has the files of `/proc` and of the groups below it, by their paths.
#[must_use]
pub fn container_stats_in(root: &Path) -> ContainerStats {
    let read = |path: &Path| read(&root.join(path.strip_prefix("/").unwrap_or(path)));
    Groups::read_by(&read).stats(&read)
}

/// The threads of this process's group, and their maximum, if there is one.
pub(crate) fn group_threads() -> Option<(u64, u64)> {
    Groups::of_process().figure("pids", |_, file| threads_in(file), &read)
}

/// Both versions have the same files.
fn threads_in(file: &dyn Fn(&str) -> Option<String>) -> Option<(u64, u64)> {
    let number = |name: &str| file(name)?.trim().parse().ok();
    Some((number("pids.current")?, number("pids.max")?))
}

/// The folder of this process's group of version 2, if there is that hierarchy.
pub(crate) fn unified_folder() -> Option<PathBuf> {
    let groups = Groups::of_process();
    let found = groups.of("").next();
    found.filter(|group| group.version == Version::Two)?.folders.into_iter().next()
}

/// Reads a file of a group.
type Read<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// The lists of the process's groups and of the mounted hierarchies.
struct Groups {
    cgroup: String,
    mountinfo: String,
}

/// A group of the process: its folder first, then those above it.
struct Group {
    version: Version,
    folders: Vec<PathBuf>,
}

impl Groups {
    fn of_process() -> Self {
        Self::read_by(&read)
    }

    fn read_by(read: Read<'_>) -> Self {
        let text = |path: &str| read(Path::new(path)).unwrap_or_default();
        Self { cgroup: text("/proc/self/cgroup"), mountinfo: text("/proc/self/mountinfo") }
    }

    /// The process's groups for a controller. In a hybrid of both versions there may be two, of which one has the controller's files.
    fn of<'a>(&'a self, controller: &'a str) -> impl Iterator<Item = Group> + 'a {
        let mounts = self.mountinfo.lines().filter_map(move |line| Mount::parse(line, controller));
        mounts.filter_map(move |mount| {
            let group = self.cgroup.lines().find_map(|line| group_in(line, mount.version, controller))?;
            Some(Group { version: mount.version, folders: mount.folders(group) })
        })
    }

    /// The least limit of the group and of those above it.
    fn memory_limit(&self, read: Read<'_>) -> Option<MemoryLimit> {
        let limit = |version, folder: &PathBuf| {
            let file = folder.join(if version == Version::Two { "memory.max" } else { "memory.limit_in_bytes" });
            // A group without a limit says `max`.
            let bytes = read(&file)?.trim().parse().ok().filter(|bytes| *bytes < NO_LIMIT)?;
            Some(MemoryLimit { bytes, file })
        };
        let limits = self.of("memory").flat_map(|Group { version, folders }| {
            folders.iter().filter_map(|folder| limit(version, folder)).collect::<Vec<_>>()
        });
        limits.min_by_key(|limit| limit.bytes)
    }

    /// The first figure of the group itself that one of the files has, by version.
    fn figure<T>(
        &self,
        controller: &str,
        figure: impl Fn(Version, &dyn Fn(&str) -> Option<String>) -> Option<T>,
        read: Read<'_>,
    ) -> Option<T> {
        self.of(controller).find_map(|Group { version, folders }| {
            let folder = folders.first()?;
            figure(version, &|file| read(&folder.join(file)))
        })
    }

    fn stats(&self, read: Read<'_>) -> ContainerStats {
        let stat = |name: &'static str| self.figure("cpu", move |_, file| named(&file("cpu.stat")?, name), read);
        let throttled = self.figure(
            "cpu",
            |version, file| {
                let stat = file("cpu.stat")?;
                match version {
                    Version::One => named(&stat, "throttled_time ").map(|nanoseconds| float(nanoseconds) / SECOND),
                    Version::Two => named(&stat, "throttled_usec ").map(|microseconds| float(microseconds) / 1e6),
                }
            },
            read,
        );
        let used = |version, file: &dyn Fn(&str) -> Option<String>| match version {
            Version::One => file("cpuacct.usage")?.trim().parse().ok().map(|nanoseconds| float(nanoseconds) / SECOND),
            Version::Two => named(&file("cpu.stat")?, "usage_usec ").map(|microseconds| float(microseconds) / 1e6),
        };
        let memory = |version, file: &dyn Fn(&str) -> Option<String>| {
            file(if version == Version::Two { "memory.current" } else { "memory.usage_in_bytes" })?.trim().parse().ok()
        };
        let cache = |version, file: &dyn Fn(&str) -> Option<String>| {
            named(&file("memory.stat")?, if version == Version::Two { "file " } else { "total_cache " })
        };
        let hits = |version, file: &dyn Fn(&str) -> Option<String>| match version {
            Version::One => file("memory.failcnt")?.trim().parse().ok(),
            Version::Two => {
                let events = file("memory.events")?;
                Some(named(&events, "high ")?.saturating_add(named(&events, "max ")?))
            }
        };
        ContainerStats {
            cpu_limit: self.cpu_limit(read),
            cpu_seconds: self.figure("cpuacct", used, read),
            periods: stat("nr_periods "),
            throttled_periods: stat("nr_throttled "),
            throttled_seconds: throttled,
            memory_limit_bytes: self.memory_limit(read).map(|limit| limit.bytes),
            memory_bytes: self.figure("memory", memory, read),
            memory_cache_bytes: self.figure("memory", cache, read),
            memory_limit_hits: self.figure("memory", hits, read),
            disk_bytes: self.figure("blkio", |version, file| disks(version, file, "bytes"), read),
            disk_operations: self.figure("blkio", |version, file| disks(version, file, "ios"), read),
        }
    }

    /// The least CPU limit of the group and of those above it.
    fn cpu_limit(&self, read: Read<'_>) -> Option<f64> {
        let limits = self.of("cpu").flat_map(|Group { version, folders }| {
            folders.iter().filter_map(|folder| cpu_limit_in(folder, version, read)).collect::<Vec<_>>()
        });
        limits.min_by(f64::total_cmp)
    }
}

/// The quota of a period in microseconds, as CPUs. Without a limit the quota is `max`, or -1 in version 1.
fn cpu_limit_in(folder: &Path, version: Version, read: Read<'_>) -> Option<f64> {
    let (quota, period) = match version {
        Version::One => (read(&folder.join("cpu.cfs_quota_us"))?, read(&folder.join("cpu.cfs_period_us"))?),
        Version::Two => {
            let text = read(&folder.join("cpu.max"))?;
            let (quota, period) = text.split_once(' ')?;
            (quota.to_owned(), period.to_owned())
        }
    };
    let (quota, period) = (quota.trim().parse::<u64>().ok()?, period.trim().parse::<u64>().ok()?);
    (period > 0).then(|| float(quota) / float(period))
}

/// The sum over all disks. Version 2 has a line for each, as `8:0 rbytes=1 wbytes=2 rios=3 wios=4`; version 1 has a line for each disk and
/// operation, as `8:0 Read 1`.
fn disks(version: Version, file: &dyn Fn(&str) -> Option<String>, unit: &str) -> Option<ReadsWrites> {
    let mut sum = ReadsWrites::default();
    match version {
        Version::Two => {
            let text = file("io.stat")?;
            for word in text.split_ascii_whitespace() {
                let Some((name, value)) = word.split_once('=') else { continue };
                let value: u64 = value.parse().ok()?;
                match name.strip_suffix(unit) {
                    Some("r") => sum.reads += value,
                    Some("w") => sum.writes += value,
                    _ => {}
                }
            }
        }
        Version::One => {
            let name = if unit == "bytes" { "blkio.throttle.io_service_bytes" } else { "blkio.throttle.io_serviced" };
            for line in file(name)?.lines() {
                let mut words = line.split_ascii_whitespace().skip(1);
                let (Some(operation), Some(value)) = (words.next(), words.next()) else { continue };
                let value: u64 = value.parse().ok()?;
                match operation {
                    "Read" => sum.reads += value,
                    "Write" => sum.writes += value,
                    _ => {}
                }
            }
        }
    }
    Some(sum)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A hierarchy of groups.
struct Mount {
    version: Version,
    /// The group at the mount point.
    root: PathBuf,
    point: PathBuf,
}

impl Mount {
    /// A line is `id parent device root point options [fields] - type source options`. The hierarchy of version 2 may have every
    /// controller, those of version 1 name theirs.
    fn parse(line: &str, controller: &str) -> Option<Self> {
        let (front, back) = line.split_once(" - ")?;
        let mut back = back.split(' ');
        let version = match (back.next()?, back.nth(1)) {
            ("cgroup2", _) => Version::Two,
            ("cgroup", Some(options)) if options.split(',').any(|option| option == controller) => Version::One,
            _ => return None,
        };
        let mut front = front.split(' ').skip(3);
        Some(Self { version, root: unescaped(front.next()?), point: unescaped(front.next()?) })
    }

    /// The folder of a group and those above it, up to the mount point. A group that the mount doesn't show is one above it.
    fn folders(&self, group: &str) -> Vec<PathBuf> {
        let below = Path::new(group).strip_prefix(&self.root).unwrap_or(Path::new(""));
        let is_inside = below.components().all(|part| matches!(part, Component::Normal(_)));
        let below = if is_inside { below } else { Path::new("") };
        below.ancestors().map(|above| self.point.join(above)).collect()
    }
}

/// White space in a path is written as three octal digits.
pub(crate) fn unescaped(path: &str) -> PathBuf {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .into_iter()
        .fold(path.to_owned(), |path, (escape, letter)| path.replace(escape, letter))
        .into()
}

/// The group of a line `number:controllers:path`.
fn group_in<'l>(line: &'l str, version: Version, controller: &str) -> Option<&'l str> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
    let is_wanted = match version {
        Version::One => controllers.split(',').any(|own| own == controller),
        Version::Two => controllers.is_empty(),
    };
    is_wanted.then_some(group)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn limit(cgroup: &str, mountinfo: &str, files: &[(&str, &str)]) -> Option<(u64, String)> {
        let files: BTreeMap<_, _> =
            files.iter().map(|(path, text)| (PathBuf::from(path), format!("{text}\n"))).collect();
        let groups = Groups { cgroup: cgroup.to_owned(), mountinfo: mountinfo.to_owned() };
        let found = groups.memory_limit(&|path| files.get(path).cloned())?;
        Some((found.bytes, found.file.display().to_string()))
    }

    #[test]
    fn group_without_a_limit_of_threads_has_none() {
        let group = |max: &'static str| {
            threads_in(&move |file| Some(if file == "pids.max" { max.to_owned() } else { "12\n".to_owned() }))
        };
        assert_eq!((group("100\n"), group("max\n")), (Some((12, 100)), None));
        assert_eq!(threads_in(&|_| None), None);
    }

    const TWO: &str = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
    const ONE: &str = "34 31 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                       35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory";

    #[test]
    fn least_limit_of_group_and_ancestors_counts() {
        let group = "0::/system.slice/forebay.service";
        let [above, own] =
            ["/sys/fs/cgroup/system.slice/memory.max", "/sys/fs/cgroup/system.slice/forebay.service/memory.max"];
        let found = |bytes, file: &str| Some((bytes, file.to_owned()));
        assert_eq!(limit(group, TWO, &[(above, "max"), (own, "67108864")]), found(67_108_864, own));
        assert_eq!(limit(group, TWO, &[(above, "1000"), (own, "67108864")]), found(1000, above));
        assert_eq!(limit(group, TWO, &[(above, "max"), (own, "max")]), None);
        assert_eq!(limit(group, TWO, &[]), None);
    }

    #[test]
    fn cgroup_v1_limit_is_read_from_its_files() {
        let group = "9:name=systemd:/\n4:memory:/docker/abc\n0::/";
        let [top, own] =
            ["/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes"];
        let none = "9223372036854771712";
        assert_eq!(limit(group, ONE, &[(top, none), (own, "41943040")]), Some((41_943_040, own.to_owned())));
        assert_eq!(limit(group, ONE, &[(top, none), (own, none)]), None);
        let both = format!("{ONE}\n42 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw");
        assert_eq!(limit(group, &both, &[(own, "7")]), Some((7, own.to_owned())), "a hybrid of both");
    }

    #[test]
    fn limit_of_a_containers_group_is_found() {
        let bound = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory";
        let own = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "33554432");
        assert_eq!(limit("4:memory:/docker/abc", bound, &[own]).map(|found| found.0), Some(33_554_432));
        let own = ("/sys/fs/cgroup/memory.max", "33554432");
        for group in ["0::/", "0::/../../other", "no line of it\n0::/"] {
            assert_eq!(limit(group, TWO, &[own]).map(|found| found.0), Some(33_554_432), "{group}");
        }
        let spaced = r"29 23 0:26 / /a\040b rw - cgroup2 cgroup2 rw";
        assert_eq!(limit("0::/", spaced, &[("/a b/memory.max", "5")]).map(|found| found.0), Some(5));
        assert_eq!(limit("", "", &[]), None);
    }

    /// As recorded in a container of a machine with version 2 (systemd, Docker 24).
    #[test]
    fn figures_of_version_two() {
        let files = BTreeMap::from([
            ("cpu.max", "20000 100000\n"),
            (
                "cpu.stat",
                "usage_usec 2500000\nuser_usec 1\nsystem_usec 2\nnr_periods 70\nnr_throttled 31\nthrottled_usec 1500000\n\
                 nr_bursts 0\nburst_usec 0\n",
            ),
            ("memory.current", "5000\n"),
            ("memory.max", "67108864\n"),
            ("memory.events", "low 0\nhigh 2\nmax 3\noom 1\noom_kill 0\n"),
            ("memory.stat", "anon 4000\nfile 900\nkernel 100\n"),
            (
                "io.stat",
                "8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n254:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n",
            ),
        ]);
        let groups = Groups { cgroup: "0::/".into(), mountinfo: TWO.into() };
        let stats = groups.stats(&|path| {
            let name = path.strip_prefix("/sys/fs/cgroup").ok()?.to_str()?;
            files.get(name).map(|text| (*text).to_owned())
        });
        let expected = ContainerStats {
            cpu_limit: Some(0.2),
            cpu_seconds: Some(2.5),
            periods: Some(70),
            throttled_periods: Some(31),
            throttled_seconds: Some(1.5),
            memory_limit_bytes: Some(67_108_864),
            memory_bytes: Some(5_000),
            memory_cache_bytes: Some(900),
            memory_limit_hits: Some(5),
            disk_bytes: Some(ReadsWrites { reads: 4_097, writes: 8_194 }),
            disk_operations: Some(ReadsWrites { reads: 4, writes: 6 }),
        };
        assert_eq!(stats, expected);
        assert_eq!(groups.stats(&|_| None), ContainerStats::default());
    }

    /// As recorded in a container of Docker 20.10 on a machine with version 1.
    #[test]
    fn figures_of_version_one() {
        let mountinfo = "34 31 0:31 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n\
                         35 31 0:32 /docker/abc /sys/fs/cgroup/cpuacct ro - cgroup cgroup rw,cpuacct\n\
                         36 31 0:33 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n\
                         37 31 0:34 /docker/abc /sys/fs/cgroup/blkio ro - cgroup cgroup rw,blkio";
        let cgroup =
            "7:blkio:/docker/abc\n4:memory:/docker/abc\n2:cpuacct:/docker/abc\n1:cpu:/docker/abc\n0::/docker/abc";
        let files = BTreeMap::from([
            ("cpu/cpu.cfs_quota_us", "50000\n"),
            ("cpu/cpu.cfs_period_us", "100000\n"),
            ("cpu/cpu.stat", "nr_periods 10\nnr_throttled 4\nthrottled_time 2000000000\n"),
            ("cpuacct/cpuacct.usage", "3000000000\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/memory.usage_in_bytes", "7000\n"),
            ("memory/memory.failcnt", "7\n"),
            ("memory/memory.stat", "cache 1\nrss 2\ntotal_cache 600\ntotal_rss 2\n"),
            ("blkio/blkio.throttle.io_service_bytes", "254:0 Read 4096\n254:0 Write 8192\n254:0 Sync 1\nTotal 12288\n"),
            ("blkio/blkio.throttle.io_serviced", "254:0 Read 1\n254:0 Write 2\nTotal 3\n"),
        ]);
        let groups = Groups { cgroup: cgroup.into(), mountinfo: mountinfo.into() };
        let stats = groups.stats(&|path| {
            let name = path.strip_prefix("/sys/fs/cgroup").ok()?.to_str()?;
            files.get(name).map(|text| (*text).to_owned())
        });
        let expected = ContainerStats {
            cpu_limit: Some(0.5),
            cpu_seconds: Some(3.0),
            periods: Some(10),
            throttled_periods: Some(4),
            throttled_seconds: Some(2.0),
            memory_limit_bytes: None,
            memory_bytes: Some(7_000),
            memory_cache_bytes: Some(600),
            memory_limit_hits: Some(7),
            disk_bytes: Some(ReadsWrites { reads: 4_096, writes: 8_192 }),
            disk_operations: Some(ReadsWrites { reads: 1, writes: 2 }),
        };
        assert_eq!(stats, expected);
    }

    #[test]
    fn unlimited_cpu_is_no_limit() {
        for (file, text) in [("cpu.max", "max 100000"), ("cpu.max", "1 0"), ("cpu.max", "")] {
            let read = |path: &Path| path.ends_with(file).then(|| text.to_owned());
            assert_eq!(cpu_limit_in(Path::new("/g"), Version::Two, &read), None, "{text}");
        }
        let read = |path: &Path| Some(if path.ends_with("cpu.cfs_quota_us") { "-1\n" } else { "100000\n" }.to_owned());
        assert_eq!(cpu_limit_in(Path::new("/g"), Version::One, &read), None);
    }
}
