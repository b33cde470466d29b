//! The kind of the file system of a path, and its space. Format: `proc(5)`, "mountinfo".

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;

use crate::control_group::unescaped;
use crate::read;

/// A file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Its kind as the kernel names it: `ext4`, `tmpfs`, `overlay`. `None` if the kernel doesn't show mounts.
    pub kind: Option<String>,
    /// Bytes of all of it.
    pub bytes: u64,
    /// Bytes that this user may still use.
    pub free_bytes: u64,
    /// Inodes; 0 if it has no fixed number.
    pub inodes: u64,
    /// Inodes that this user may still use.
    pub free_inodes: u64,
}

/// The file system of an existing path.
///
/// # Errors
/// The path doesn't exist, or can't be read.
pub fn file_system(path: &Path) -> io::Result<FileSystem> {
    let path = path.canonicalize()?;
    let space = statvfs(&path)?;
    let mounts = read(Path::new("/proc/self/mountinfo")).unwrap_or_default();
    Ok(FileSystem {
        kind: kind(&path, &mounts),
        bytes: space.f_blocks.saturating_mul(space.f_frsize),
        free_bytes: space.f_bavail.saturating_mul(space.f_frsize),
        inodes: space.f_files,
        free_inodes: space.f_favail,
    })
}

/// The kind of the mount with the longest path above `path`. Of several at one path the last one is seen.
fn kind(path: &Path, mountinfo: &str) -> Option<String> {
    let mounts = mountinfo.lines().filter_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        Some((unescaped(front.split(' ').nth(4)?), back.split(' ').next()?))
    });
    let above = mounts.filter(|(point, _): &(PathBuf, _)| path.starts_with(point));
    let (_, kind) = above.max_by_key(|(point, _)| OsStr::as_bytes(point.as_os_str()).len())?;
    Some(kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_mount_point_decides_the_kind() {
        let mounts = "22 1 254:0 / / rw - ext4 /dev/vda rw\n\
                      23 22 0:5 / /data rw - overlay overlay rw\n\
                      24 22 0:6 / /data rw - nfs4 host:/x rw\n\
                      25 22 0:7 / /data\\040two rw shared:1 - tmpfs tmpfs rw\n";
        for (path, expected) in [("/database", "ext4"), ("/data/a", "nfs4"), ("/data two/b", "tmpfs"), ("/", "ext4")] {
            assert_eq!(kind(Path::new(path), mounts).as_deref(), Some(expected), "{path}");
        }
        assert_eq!(kind(Path::new("/"), ""), None);
    }

    #[test]
    fn space_of_this_machine_is_plausible() {
        let here = file_system(Path::new(".")).unwrap();
        assert!(here.bytes > 0 && here.free_bytes <= here.bytes && here.free_inodes <= here.inodes, "{here:?}");
        assert!(here.kind.is_some(), "{here:?}");
        assert!(file_system(Path::new("/no/such/path")).is_err());
    }
}
