//! The memory that the system grants the process: the least limit of its control group and of those above it, of version 1 or 2.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// A limit, and the file that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryLimit {
    pub(crate) bytes: u64,
    pub(crate) file: PathBuf,
}

/// Larger numbers are no limit: version 1 writes one near 2^63.
const NO_LIMIT: u64 = 1 << 60;

/// The limit of this process, if there is one. What can't be read is none.
pub(crate) fn of_process() -> Option<MemoryLimit> {
    let text = |path: &str| fs::read_to_string(path).ok();
    least(&text("/proc/self/cgroup")?, &text("/proc/self/mountinfo")?, |path| fs::read_to_string(path).ok())
}

/// The least limit of the group that `cgroup` names and of those above it, if `mountinfo` shows them.
fn least(cgroup: &str, mountinfo: &str, read: impl Fn(&Path) -> Option<String>) -> Option<MemoryLimit> {
    let mounts = mountinfo.lines().filter_map(Mount::parse);
    let limits = mounts.filter_map(|mount| {
        let group = cgroup.lines().find_map(|line| group_in(line, mount.version))?;
        Some(mount.folders(group).filter_map(|folder| limit_in(&folder, mount.version, &read)).collect::<Vec<_>>())
    });
    limits.flatten().min_by_key(|limit| limit.bytes)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A hierarchy of groups that limits memory.
struct Mount {
    version: Version,
    /// The group at the mount point.
    root: PathBuf,
    point: PathBuf,
}

impl Mount {
    /// A line is `id parent device root point options [fields] - type source options`.
    fn parse(line: &str) -> Option<Self> {
        let (front, back) = line.split_once(" - ")?;
        let mut back = back.split(' ');
        let version = match (back.next()?, back.nth(1)) {
            ("cgroup2", _) => Version::Two,
            ("cgroup", Some(options)) if options.split(',').any(|option| option == "memory") => Version::One,
            _ => return None,
        };
        let mut front = front.split(' ').skip(3);
        Some(Self { version, root: unescaped(front.next()?), point: unescaped(front.next()?) })
    }

    /// The folder of a group and those above it, up to the mount point. A group that the mount doesn't show is one above it.
    fn folders(&self, group: &str) -> impl Iterator<Item = PathBuf> + use<> {
        let below = Path::new(group).strip_prefix(&self.root).unwrap_or(Path::new(""));
        let is_inside = below.components().all(|part| matches!(part, Component::Normal(_)));
        let below = if is_inside { below } else { Path::new("") };
        let point = self.point.clone();
        below.ancestors().map(|above| point.join(above)).collect::<Vec<_>>().into_iter()
    }
}

/// White space in a path is written as three octal digits.
fn unescaped(path: &str) -> PathBuf {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .into_iter()
        .fold(path.to_owned(), |path, (escape, letter)| path.replace(escape, letter))
        .into()
}

/// The group of a line `number:controllers:path`.
fn group_in(line: &str, version: Version) -> Option<&str> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
    let is_wanted = match version {
        Version::One => controllers.split(',').any(|controller| controller == "memory"),
        Version::Two => controllers.is_empty(),
    };
    is_wanted.then_some(group)
}

fn limit_in(folder: &Path, version: Version, read: impl Fn(&Path) -> Option<String>) -> Option<MemoryLimit> {
    let file = folder.join(if version == Version::Two { "memory.max" } else { "memory.limit_in_bytes" });
    // A group without a limit says `max`.
    let bytes = read(&file)?.trim().parse().ok().filter(|bytes| *bytes < NO_LIMIT)?;
    Some(MemoryLimit { bytes, file })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn limit(cgroup: &str, mountinfo: &str, files: &[(&str, &str)]) -> Option<(u64, String)> {
        let files: BTreeMap<_, _> =
            files.iter().map(|(path, text)| (PathBuf::from(path), format!("{text}\n"))).collect();
        let found = least(cgroup, mountinfo, |path| files.get(path).cloned())?;
        Some((found.bytes, found.file.display().to_string()))
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
}
