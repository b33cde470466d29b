//! What happens to a file that others write: it grows, it is cut, another one takes its name.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::LoadError;
use super::input::FileId;

/// How often a file without news is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A file that is followed by its name.
pub(super) struct Follow {
    path: PathBuf,
    file: FileId,
    /// The file has lost its name: what is still in it is read, and then the one that has the name now.
    is_draining: bool,
}

/// What a look at a file's name shows after everything was read.
pub(super) enum Change {
    /// Nothing new.
    None,
    /// The file has lost its name, perhaps after a last line was written: it is to be read once more.
    Draining,
    /// This one has the name now, or the same one was cut.
    Replaced(File),
}

impl Follow {
    pub(super) const fn new(path: PathBuf, file: FileId, is_draining: bool) -> Self {
        Self { path, file, is_draining }
    }

    /// Whether nothing more is written to the file, so that its last line needs no line break.
    pub(super) const fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Looks at the name; `read_up_to` is how much of the file was read.
    pub(super) fn look(&mut self, read_up_to: u64) -> Result<Change, LoadError> {
        let Some(metadata) = unless_missing(fs::metadata(&self.path)).map_err(LoadError::Read)? else {
            // Between a rotation's two steps. The old file may still be written to.
            return Ok(Change::None);
        };
        let is_other = FileId::of(&metadata) != self.file;
        if is_other && !self.is_draining {
            self.is_draining = true;
            return Ok(Change::Draining);
        }
        if !is_other && metadata.len() >= read_up_to {
            return Ok(Change::None);
        }
        let Some(file) = unless_missing(File::open(&self.path)).map_err(LoadError::Read)? else {
            return Ok(Change::None);
        };
        self.file = FileId::of(&file.metadata().map_err(LoadError::Read)?);
        self.is_draining = false;
        Ok(Change::Replaced(file))
    }

    /// Waits until another look may be worth it.
    pub(super) fn wait(&self) {
        thread::sleep(LOOK_EVERY);
    }
}

/// The file with this id among those beside `path`: where rotation has put it while nobody followed.
pub(super) fn rotated(path: &Path, file: FileId) -> Result<Option<File>, LoadError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_it = |metadata: &Metadata| metadata.is_file() && FileId::of(metadata) == file;
    for entry in fs::read_dir(folder).map_err(LoadError::Read)? {
        let entry = entry.map_err(LoadError::Read)?;
        if entry.metadata().is_ok_and(|metadata| is_it(&metadata)) {
            return unless_missing(File::open(entry.path())).map_err(LoadError::Read);
        }
    }
    Ok(None)
}

fn unless_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(path: &Path) -> FileId {
        FileId::of(&fs::metadata(path).unwrap())
    }

    #[test]
    fn a_rotated_file_is_read_to_its_end_first() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("a"), folder.path().join("a.1"));
        fs::write(&path, "one").unwrap();
        let mut follow = Follow::new(path.clone(), id(&path), false);
        assert!(matches!(follow.look(3).unwrap(), Change::None));
        fs::rename(&path, &old).unwrap();
        assert!(matches!(follow.look(3).unwrap(), Change::None));
        fs::write(&path, "two").unwrap();
        assert!(matches!(follow.look(3).unwrap(), Change::Draining));
        assert!(follow.is_draining());
        assert!(matches!(follow.look(3).unwrap(), Change::Replaced(_)));
        assert!(!follow.is_draining() && matches!(follow.look(3).unwrap(), Change::None));
        let rotated = rotated(&path, id(&old)).unwrap().unwrap();
        assert_eq!(io::read_to_string(rotated).unwrap(), "one");
    }

    #[test]
    fn a_cut_file_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "one").unwrap();
        let mut follow = Follow::new(path.clone(), id(&path), false);
        fs::write(&path, "x").unwrap();
        assert!(matches!(follow.look(3).unwrap(), Change::Replaced(_)));
        assert!(matches!(follow.look(1).unwrap(), Change::None));
    }
}
