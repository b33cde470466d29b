//! Finds the files of a rotation next to the one that is followed: by their identity, or by their names and ages.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::input::FileId;

/// The suffixes that programs add to rotated files when they compress them.
const PACKED: [&str; 6] = [".gz", ".zst", ".bz2", ".xz", ".lz4", ".Z"];

/// As many names has a file at most: its own, and those of the links that Linux follows.
const LINKS_MAX: usize = 41;

/// The files that follow another one.
#[derive(Debug, Default)]
pub(super) struct Successors {
    /// The first that can be read, and which file that is.
    pub(super) next: Option<(PathBuf, FileId)>,
    /// Those before it that can't be.
    pub(super) unread: Vec<PathBuf>,
}

struct RotatedFile {
    path: PathBuf,
    modified: SystemTime,
    /// None if it is compressed, or if its creation time isn't known.
    readable: Option<FileId>,
}

/// The names under which a path's file is found: its own, and the target of each symbolic link from there on. Rotation renames the target, in
/// the target's folder.
fn names(path: &Path) -> Vec<PathBuf> {
    let mut names = vec![path.to_owned()];
    while names.len() < LINKS_MAX
        && let Some(name) = names.last()
        && let Ok(target) = fs::read_link(name)
    {
        names.push(folder(name).join(target));
    }
    names
}

/// The file with this id next to `path` or to a target of it: rotation has moved it there while the load was stopped.
pub(super) fn find(path: &Path, file: FileId) -> io::Result<Option<File>> {
    for name in names(path) {
        for entry in fs::read_dir(folder(&name))? {
            let entry = entry?;
            if entry.metadata().is_ok_and(|metadata| metadata.is_file() && FileId::of(&metadata) == file) {
                return unless_missing(File::open(entry.path()));
            }
        }
    }
    Ok(None)
}

/// Files that had the name `path` after the file `old` and before the one that has it now, `named`: with later modification and creation times,
/// and with names as rotation gives them.
pub(super) fn successors(path: &Path, old: &Metadata, named: FileId) -> io::Result<Successors> {
    let mut files = Vec::new();
    let mut seen = vec![named, FileId::of(old)];
    for name in names(path) {
        for entry in fs::read_dir(folder(&name))? {
            let entry = entry?;
            let Some(is_packed) = name.file_name().and_then(|name| rotated_name(name, &entry.file_name())) else {
                continue;
            };
            let Some(metadata) = unless_missing(entry.metadata())? else { continue };
            let id = FileId::of(&metadata);
            if !metadata.is_file() || metadata.len() == 0 || seen.contains(&id) {
                continue;
            }
            seen.push(id);
            files.extend(rotated_file(entry.path(), &metadata, old, is_packed)?);
        }
    }
    files.sort_by(|one, other| (one.modified, &one.path).cmp(&(other.modified, &other.path)));
    let mut successors = Successors::default();
    for RotatedFile { path, readable, .. } in files {
        if let Some(id) = readable {
            successors.next = Some((path, id));
            break;
        }
        successors.unread.push(path);
    }
    Ok(successors)
}

/// A file next to it, unless it is older than `old`.
fn rotated_file(
    path: PathBuf,
    metadata: &Metadata,
    old: &Metadata,
    is_packed: bool,
) -> io::Result<Option<RotatedFile>> {
    let (modified, old_modified) = (metadata.modified()?, old.modified()?);
    if is_packed {
        // It was created by the compression, and has the modification time of its content, which may be `old`. During the compression its source
        // still exists.
        let is_being_made = path.with_extension("").exists();
        let is_behind = modified > old_modified && !is_being_made;
        return Ok(is_behind.then_some(RotatedFile { path, modified, readable: None }));
    }
    // Both times count. An old file that was written to once more was created earlier. One that was decompressed to be read has a new creation time
    // and its old modification time.
    let readable = match (metadata.created(), old.created()) {
        (Ok(created), Ok(old_created)) if created <= old_created => return Ok(None),
        (Ok(_), Ok(_)) => Some(FileId::of(metadata)),
        _ => None,
    };
    Ok((modified >= old_modified).then_some(RotatedFile { path, modified, readable }))
}

/// Whether `name` is `followed` with a number or date after it, and then whether it is compressed.
fn rotated_name(followed: &OsStr, name: &OsStr) -> Option<bool> {
    let suffix = std::str::from_utf8(name.as_bytes().strip_prefix(followed.as_bytes())?).ok()?;
    let packed = PACKED.iter().find_map(|packed| suffix.strip_suffix(packed));
    let suffix_of_rotation = packed.unwrap_or(suffix);
    let is_one = suffix_of_rotation.starts_with(['.', '-', '_'])
        && suffix_of_rotation.contains(|letter: char| letter.is_ascii_digit())
        && suffix_of_rotation.bytes().all(|byte| byte.is_ascii_digit() || b".-_:+TZ".contains(&byte));
    is_one.then_some(packed.is_some())
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The result, or `None` for a missing file.
pub(super) fn unless_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotated_files_are_known_by_their_names() {
        for (name, expected) in [
            ("a.log.1", Some(false)),
            ("a.log-20261123", Some(false)),
            ("a.log.2026-11-23_05-00-00", Some(false)),
            ("a.log.2026-11-23T05:00:00Z", Some(false)),
            ("a.log.2.gz", Some(true)),
            ("a.log-20261123.zst", Some(true)),
            ("a.log", None),
            ("a.log1", None),
            ("a.log.bak", None),
            ("a.log.gz", None),
            ("a.log.1.bak", None),
            ("a.log.refused", None),
            ("a.log.forebay-load", None),
            ("b.log.1", None),
        ] {
            assert_eq!(rotated_name(OsStr::new("a.log"), OsStr::new(name)), expected, "{name}");
        }
    }
}
