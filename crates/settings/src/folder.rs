//! Files within the configuration's folder, and no others.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::files;

/// A folder that files are read from.
#[derive(Debug)]
pub struct Folder<'f> {
    path: &'f Path,
    /// The real paths of the folder and of those within it. Thousands of files are mostly in a few folders.
    real: RefCell<HashMap<PathBuf, PathBuf>>,
}

impl<'f> Folder<'f> {
    /// The folder at `path`.
    #[must_use]
    pub fn new(path: &'f Path) -> Self {
        Self { path, real: RefCell::default() }
    }

    /// Its path.
    #[must_use]
    pub const fn path(&self) -> &'f Path {
        self.path
    }

    /// Reads a text of at most this many bytes from a file of the folder.
    ///
    /// # Errors
    /// The reason, as text.
    pub fn read_text(&self, path: &Path, bytes_max: usize) -> Result<String, String> {
        let is_within = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !is_within {
            return Err("it is outside of the configuration's folder".to_owned());
        }
        let folder = if self.path.as_os_str().is_empty() { Path::new(".") } else { self.path };
        let file = self.real_file(&folder.join(path))?;
        if !file.starts_with(self.real_folder(folder)?) {
            return Err("a link in it points outside of the configuration's folder".to_owned());
        }
        let metadata = fs::metadata(&file).map_err(|error| said(&error))?;
        if !metadata.is_file() {
            return Err("it is not a file".to_owned());
        }
        if metadata.len() > bytes_max as u64 {
            return Err(format!("it has more than {bytes_max} bytes"));
        }
        files::read_text(&file).map_err(|error| said(&error))
    }

    /// The file itself, after all links.
    fn real_file(&self, path: &Path) -> Result<PathBuf, String> {
        // If something follows its name it must be a folder.
        let ends_with = |name: &OsStr| path.as_os_str().as_encoded_bytes().ends_with(name.as_encoded_bytes());
        if let (Some(parent), Some(name)) = (path.parent(), path.file_name().filter(|name| ends_with(name))) {
            let file = self.real_folder(parent)?.join(name);
            let is_link = fs::symlink_metadata(&file).map_err(|error| said(&error))?.is_symlink();
            if !is_link {
                return Ok(file);
            }
        }
        real(path)
    }

    fn real_folder(&self, path: &Path) -> Result<PathBuf, String> {
        if let Some(known) = self.real.borrow().get(path) {
            return Ok(known.clone());
        }
        let found = real(path)?;
        self.real.borrow_mut().insert(path.to_owned(), found.clone());
        Ok(found)
    }
}

fn real(path: &Path) -> Result<PathBuf, String> {
    fs::canonicalize(path).map_err(|error| said(&error))
}

fn said(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::InvalidData => "it is not UTF-8".to_owned(),
        _ => error.to_string(),
    }
}
