//! Checks of disks: the kind of file system, its space and inodes, the rights to the directory, and the time of a sync.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, metadata, remove_file};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host::{FileSystem, file_system};
use rustix::fs::{Access, access};

use super::check::Check;
use super::subject::Subject;

const DISK: &str = "disk";
const SPACE: &str = "space";
const INODES: &str = "inodes";
const RIGHTS: &str = "rights";
const FSYNC: &str = "fsync";
/// A disk with less free space than one part in so many is nearly full.
const NEARLY_FULL_PART: u64 = 20;
/// A file system with less free inodes than one part in so many is nearly full.
const FEW_INODES_PART: u64 = 50;
/// Syncs that are measured at most, and for how long.
const SYNCS: usize = 32;
const SYNCS_MAX: Duration = Duration::from_secs(5);
/// The bytes of each of them: a small block of the journal.
const SYNC_BYTES: usize = 4096;
/// A median from here on is slow: a request waits for at least one.
const SLOW: Duration = Duration::from_millis(20);

/// Checks the disks of the data directory and of the sinks that store on this machine.
pub(super) fn checks(subject: &Subject, may_write: bool) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut seen = BTreeSet::new();
    let data = std::path::absolute(&subject.data).unwrap_or_else(|_| subject.data.clone());
    let sinks = subject.sinks.iter().filter_map(|(_, sink)| sink.local_path());
    let mut is_first = true;
    for path in [data.as_path()].into_iter().chain(sinks) {
        let existing = existing(path);
        let keep_free = if is_first { subject.keep_free } else { None };
        is_first = false;
        if metadata(existing).is_ok_and(|of| !seen.insert(of.dev())) {
            continue;
        }
        match file_system(existing) {
            Ok(found) => checks.extend(of_file_system(&found, keep_free).map(|check| check.about(path.display()))),
            Err(error) => checks.push(Check::skipped(DISK, format!("it can't be read: {error}")).about(path.display())),
        }
    }
    checks.push(rights(&data).about(data.display()));
    if may_write {
        checks.push(fsync(&data).about(data.display()));
    }
    checks
}

/// The path, or the nearest directory above it that exists.
fn existing(path: &Path) -> &Path {
    path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."))
}

fn of_file_system(found: &FileSystem, keep_free: Option<Option<u64>>) -> impl Iterator<Item = Check> {
    [Some(kind(found)), Some(space(found, keep_free)), inodes(found)].into_iter().flatten()
}

fn kind(found: &FileSystem) -> Check {
    let Some(kind) = &found.kind else {
        return Check::skipped(DISK, "the kind of file system: /proc/self/mountinfo can't be read");
    };
    match kind.as_str() {
        "tmpfs" | "ramfs" => Check::warning(
            DISK,
            format!("{kind} is in memory: a restart of the machine or container loses all of it"),
            "Mount a disk or volume there, or name a directory on one with --data",
        ),
        "overlay" | "aufs" => Check::warning(
            DISK,
            format!("{kind} is a layer of the container: its events are lost when the container is removed"),
            "Mount a volume there, or name a directory on one with --data",
        ),
        "nfs" | "nfs4" | "cifs" | "smb3" | "9p" | "ceph" | "glusterfs" | "fuse" | "fuse.sshfs" => Check::warning(
            DISK,
            format!("{kind} is a network file system: each sync waits for the network, and locks may fail"),
            "Use a local disk, or a block device of the network",
        ),
        _ => Check::ok(DISK, kind.clone()),
    }
}

fn space(found: &FileSystem, keep_free: Option<Option<u64>>) -> Check {
    let FileSystem { bytes, free_bytes: free, .. } = *found;
    let shown = format!("{} of {} are free", size(free), size(bytes));
    let kept = keep_free.map_or(0, |keep| journal::kept_free(keep, bytes));
    let advice = "Free space, use a larger disk, or lower `keep_free` in [journal]";
    if bytes == 0 {
        return Check::skipped(SPACE, "the file system doesn't say how large it is");
    }
    if free <= kept {
        return Check::problem(SPACE, format!("{shown}, and Forebay rejects events below {}", size(kept)), advice);
    }
    if free < kept.saturating_mul(2) || free < bytes / NEARLY_FULL_PART {
        let limit = if kept > 0 { format!(", and Forebay rejects events below {}", size(kept)) } else { String::new() };
        return Check::warning(SPACE, format!("nearly full: {shown}{limit}"), advice);
    }
    Check::ok(SPACE, shown)
}

fn inodes(found: &FileSystem) -> Option<Check> {
    let FileSystem { inodes, free_inodes: free, .. } = *found;
    (inodes > 0 && free < inodes / FEW_INODES_PART).then(|| {
        Check::warning(
            INODES,
            format!("{free} of {inodes} inodes are free, and each file needs one"),
            "Remove small files, or create a file system with more inodes",
        )
    })
}

fn rights(data: &Path) -> Check {
    let is_there = data.exists();
    let existing = existing(data);
    match access(existing, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) if is_there => Check::ok(RIGHTS, "this user may write the data directory"),
        Ok(()) => Check::ok(RIGHTS, "the data directory doesn't exist yet; this user may create it"),
        Err(error) => Check::problem(
            RIGHTS,
            format!("this user may not write {}: {}", existing.display(), io::Error::from(error)),
            "Give the user that runs Forebay the directory, or name another one with --data",
        ),
    }
}

/// A file that is removed when this is dropped.
struct Trial {
    path: PathBuf,
    file: File,
}

impl Trial {
    fn new(data: &Path) -> io::Result<Self> {
        let path = data.join(format!(".forebay-doctor-{}", std::process::id()));
        let file = OpenOptions::new().create_new(true).write(true).open(&path)?;
        Ok(Self { path, file })
    }

    /// How long each append with its sync took, in ascending order.
    fn measure(&mut self) -> io::Result<Vec<Duration>> {
        let (begun, mut times) = (Instant::now(), Vec::new());
        while times.len() < SYNCS && (times.is_empty() || begun.elapsed() < SYNCS_MAX) {
            let at = Instant::now();
            self.file.write_all(&[0; SYNC_BYTES])?;
            self.file.sync_data()?;
            times.push(at.elapsed());
        }
        times.sort_unstable();
        Ok(times)
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        let _ = remove_file(&self.path);
    }
}

fn fsync(data: &Path) -> Check {
    if !data.is_dir() {
        return Check::skipped(FSYNC, "the data directory doesn't exist yet");
    }
    match Trial::new(data).and_then(|mut trial| trial.measure()) {
        Ok(times) => of_times(&times),
        Err(error) => Check::problem(
            FSYNC,
            format!("a file in it can't be written and synced: {error}"),
            "Check the disk and the system's log",
        ),
    }
}

fn of_times(times: &[Duration]) -> Check {
    let milliseconds = |at: usize| times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e3);
    let (median, slowest) = (milliseconds(times.len() / 2), milliseconds(times.len().saturating_sub(1)));
    let shown = format!("median {median:.1} ms, slowest {slowest:.1} ms of {} syncs", times.len());
    if median < SLOW.as_secs_f64() * 1e3 {
        return Check::ok(FSYNC, shown);
    }
    Check::warning(
        FSYNC,
        format!("slow: {shown}, and each request waits for one"),
        "Check the disk's other users, use a faster disk, or post larger batches",
    )
}

fn size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(shift, _)| bytes >> shift >= 10);
    unit.map_or_else(|| format!("{bytes} bytes"), |(shift, name)| format!("{} {name}", bytes >> shift))
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    const GIB: u64 = 1 << 30;

    fn usual() -> FileSystem {
        FileSystem {
            kind: Some("ext4".into()),
            bytes: 100 * GIB,
            free_bytes: 50 * GIB,
            inodes: 1_000,
            free_inodes: 900,
        }
    }

    fn states(change: impl FnOnce(&mut FileSystem), keep: Option<u64>) -> Vec<(&'static str, State)> {
        let mut found = usual();
        change(&mut found);
        let checks = of_file_system(&found, Some(keep));
        checks.filter(|check| check.state != State::Ok).map(|check| (check.check, check.state)).collect()
    }

    #[test]
    fn each_fault_of_a_file_system_is_found_alone() {
        assert_eq!(states(|_| {}, None), []);
        for kind in ["tmpfs", "overlay", "nfs4"] {
            assert_eq!(states(|found| found.kind = Some(kind.into()), None), [(DISK, State::Warning)], "{kind}");
        }
        assert_eq!(states(|found| found.kind = None, None), [(DISK, State::Skipped)]);
        assert_eq!(states(|found| found.free_bytes = 4 * GIB, None), [(SPACE, State::Warning)]);
        assert_eq!(
            states(|_| {}, Some(26 * GIB)),
            [(SPACE, State::Warning)],
            "less than twice as much as is kept free"
        );
        assert_eq!(states(|_| {}, Some(50 * GIB)), [(SPACE, State::Problem)]);
        assert_eq!(states(|found| found.free_inodes = 19, None), [(INODES, State::Warning)]);
        assert_eq!(states(|found| (found.inodes, found.free_inodes) = (0, 0), None), [], "btrfs has no number");
    }

    #[test]
    fn median_of_syncs_decides() {
        let check = |slow: usize| {
            let times = [vec![Duration::from_millis(1); 32 - slow], vec![Duration::from_millis(300); slow]].concat();
            of_times(&times).state
        };
        assert_eq!((check(0), check(15), check(17)), (State::Ok, State::Ok, State::Warning));
    }

    #[test]
    fn measurement_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let check = fsync(folder.path());
        assert!(check.seen.contains("syncs"), "{check:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(fsync(&folder.path().join("none")).state, State::Skipped);
    }

    #[test]
    fn sizes_have_two_digits_at_least() {
        assert_eq!([0, 9 << 10, 41 * GIB, 9 * GIB].map(size), ["0 bytes", "9216 bytes", "41 GiB", "9216 MiB"]);
    }
}
