//! Files that a configuration names: those of its folder, and no others.

use std::fs;
use std::io;
use std::path::{Component, Path};

/// Reads a text of at most so many bytes from a file of `folder`.
///
/// # Errors
/// Why that can't be, in words.
pub(crate) fn read_text(folder: &Path, path: &Path, bytes_max: usize) -> Result<String, String> {
    let is_within = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !is_within {
        return Err("it leads out of the configuration's folder".to_owned());
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let real = |path: &Path| fs::canonicalize(path).map_err(|error| said(&error));
    let file = real(&folder.join(path))?;
    if !file.starts_with(real(folder)?) {
        return Err("a link in it leads out of the configuration's folder".to_owned());
    }
    let metadata = fs::metadata(&file).map_err(|error| said(&error))?;
    if !metadata.is_file() {
        return Err("it is no file".to_owned());
    }
    if metadata.len() > bytes_max as u64 {
        return Err(format!("it has more than {bytes_max} bytes"));
    }
    fs::read_to_string(&file).map_err(|error| said(&error))
}

fn said(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::InvalidData => "it is not UTF-8".to_owned(),
        _ => error.to_string(),
    }
}
