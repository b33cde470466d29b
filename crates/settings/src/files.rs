//! Files of settings, secrets and certificates. Only regular files are opened: a pipe would block the start or a reload.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Opens a file for reading, and never waits for a pipe.
///
/// # Errors
/// The operating system's, and `InvalidInput` if the path is one of a directory, a pipe, a socket or a device.
pub fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// Reads a file as a whole.
///
/// # Errors
/// As [`open`], and errors of reading.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Reads a text file that users write.
///
/// # Errors
/// Those of [`read`], and `InvalidData` if the file is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let text = std::str::from_utf8(content(&read(path)?)).map(str::to_owned);
    text.map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The bytes of a text file without the byte order mark that some editors write.
#[must_use]
pub fn content(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK.as_bytes()).unwrap_or(bytes)
}

/// Advice about a file or directory that this user may not use; `None` for other errors.
pub fn denied(error: &io::Error, path: &Path) -> Option<String> {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return None;
    }
    // The owner of a process's own entry is its effective user.
    let process = std::fs::metadata("/proc/self").ok()?;
    let (uid, gid) = (process.uid(), process.gid());
    // A process that may not enter a directory can't see its entries.
    let (there, owner) = path.ancestors().find_map(|path| Some((path, std::fs::metadata(path).ok()?.uid())))?;
    let there = there.display();
    Some(format!(
        "this process has uid {uid}, and {there} belongs to uid {owner}: run it as that user, or `chown -R {uid}:{gid} {there}` (if it is \
         mounted into a container: the directory of the host)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_regular_file_is_rejected_immediately() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [&*pipe, folder.path(), Path::new("/dev/zero")] {
            assert_eq!(read(path).unwrap_err().to_string(), "it is not a regular file", "{}", path.display());
        }
        let file = folder.path().join("file");
        std::fs::write(&file, "text").unwrap();
        assert_eq!(read(&file).unwrap(), b"text");
        assert_eq!(read(&folder.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn advice_names_user_owner_and_command() {
        let folder = tempfile::tempdir().unwrap();
        let denied = |kind: io::ErrorKind| denied(&kind.into(), &folder.path().join("not/there"));
        assert_eq!(denied(io::ErrorKind::NotFound), None);
        let (advice, uid) =
            (denied(io::ErrorKind::PermissionDenied).unwrap(), std::fs::metadata(folder.path()).unwrap().uid());
        let there = folder.path().display();
        assert!(advice.contains(&format!("has uid {uid}, and {there} belongs to uid {uid}")), "{advice}");
        assert!(advice.contains(&format!("`chown -R {uid}:")) && advice.contains(&format!(" {there}`")), "{advice}");
    }
}
