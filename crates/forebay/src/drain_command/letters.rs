//! The file with the dead letters of a drained directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use delivery::{DeadFilter, each_dead_letter};
use journal::DataDirectory;

use super::DrainError;
use crate::dead_command::letter_as_json;
use crate::dead_json::LetterJson;
use crate::output::Output;

/// Payloads may be private.
const OWNER_ONLY: u32 = 0o600;

/// The path of the file. `None`: the standard output.
pub(super) struct LettersFile(Option<PathBuf>);

impl LettersFile {
    /// A file that doesn't exist yet: an existing one may be the only copy of another directory's dead letters.
    ///
    /// # Errors
    /// The file exists.
    pub(super) fn new(path: &Path) -> Result<Self, DrainError> {
        if path == Path::new("-") {
            return Ok(Self(None));
        }
        if path.symlink_metadata().is_ok() {
            let source = io::Error::other("this file exists: move it away, or name another one with --dead-letters");
            return Err(DrainError::Io { path: path.into(), source });
        }
        Ok(Self(Some(path.into())))
    }

    /// Writes all dead letters of the directory. The file gets its name when it is complete and durable.
    ///
    /// # Errors
    /// A dead letter can't be read, or the file can't be written.
    pub(super) fn write(&self, directory: &DataDirectory) -> Result<(), DrainError> {
        let Some(path) = &self.0 else {
            let failed = |source| DrainError::Io { path: "standard output".into(), source };
            return write(directory, &mut BufWriter::new(Output::lock())).map_err(failed);
        };
        let failed = |source| DrainError::Io { path: path.clone(), source };
        let mut part = path.clone().into_os_string();
        part.push(".part");
        let write_all = || {
            let file = OpenOptions::new().write(true).create(true).truncate(true).mode(OWNER_ONLY).open(&part)?;
            let mut output = BufWriter::new(file);
            write(directory, &mut output)?;
            output.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
            fs::rename(&part, path)?;
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            File::open(folder)?.sync_all()
        };
        write_all().map_err(failed)
    }
}

fn write(directory: &DataDirectory, output: &mut impl Write) -> io::Result<()> {
    let mut written = Ok(());
    each_dead_letter(directory, &DeadFilter::default(), true, &mut |letter| {
        if written.is_ok() {
            written = letter_as_json(output, &LetterJson::of(&letter));
        }
    })?;
    written.and_then(|()| output.flush())
}
