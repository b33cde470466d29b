//! Keeps a second load from using the same state: a lock on a file next to it, which ends with its process.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::input::FileId;

/// Held for as long as a load works with the state.
#[derive(Debug)]
pub(super) struct StateLock {
    path: PathBuf,
    _file: File,
}

impl StateLock {
    /// None if another load has it.
    pub(super) fn take(state: &Path) -> io::Result<Option<Self>> {
        let mut path = state.as_os_str().to_owned();
        path.push(".lock");
        let path = PathBuf::from(path);
        loop {
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // Its previous owner may have removed it in between: then others lock another file.
            if is_still_there(&path, &file)? {
                return Ok(Some(Self { path, _file: file }));
            }
        }
    }
}

impl Drop for StateLock {
    /// Removes the file while it is still locked. A file that stays blocks no other load.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn is_still_there(path: &Path, file: &File) -> io::Result<bool> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(FileId::of(&metadata) == FileId::of(&file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_the_state() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        // A killed load leaves this file.
        fs::write(folder.path().join("state.lock"), "").unwrap();
        let first = StateLock::take(&state).unwrap();
        assert!(first.is_some() && StateLock::take(&state).unwrap().is_none());
        drop(first);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(StateLock::take(&state).unwrap().is_some());
    }

    #[test]
    fn removed_lock_file_blocks_no_load() {
        let folder = tempfile::tempdir().unwrap();
        let (path, file) = (folder.path().join("a"), File::create(folder.path().join("a")).unwrap());
        assert!(is_still_there(&path, &file).unwrap());
        fs::remove_file(&path).unwrap();
        assert!(!is_still_there(&path, &file).unwrap());
        fs::write(&path, "").unwrap();
        assert!(!is_still_there(&path, &file).unwrap());
    }
}
