//! The file with the dead letters of a drained directory.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use config::owner_file;
use dead_letters::{DeadFilter, each_dead_letter};
use journal::DataDirectory;

use super::local_files::lies_in;
use admin_api::dead::DeadLetterJson;
use cli::errors::at;
use cli::letter_as_json;
use cli::output::print;

/// The file that dead letters are written to.
pub(super) enum Letters {
    StandardOutput,
    File(LettersFile),
}

/// A file that gets its name when it is complete. Until then it has another one, under which it is removed when this is dropped.
pub(super) struct LettersFile {
    path: PathBuf,
    part: PathBuf,
    file: File,
}

impl Letters {
    /// Creates the file. Its path must not exist: an existing file may be the only copy of another directory's dead letters.
    ///
    /// # Errors
    /// The path exists, or is in the data directory, or the file can't be created.
    pub(super) fn new(path: &Path, data: &Path) -> anyhow::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::StandardOutput);
        }
        LettersFile::new(path, data).map(Self::File).map_err(at(path))
    }

    /// Writes all dead letters of the directory.
    ///
    /// # Errors
    /// A dead letter can't be read, or they can't be written.
    pub(super) fn write(self, directory: &DataDirectory) -> anyhow::Result<()> {
        match self {
            Self::StandardOutput => print(|output| write(directory, output)),
            Self::File(file) => file.write(directory).map_err(at(&file.path)),
        }
    }
}

impl LettersFile {
    fn new(path: &Path, data: &Path) -> io::Result<Self> {
        let refuse = |reason| Err(io::Error::other(reason));
        if path.symlink_metadata().is_ok() {
            return refuse("this file exists: move it, or name another one with --dead-letters");
        }
        if lies_in(owner_file::above(path), data) {
            return refuse(
                "is in the data directory, and would be deleted with it: name another file with --dead-letters",
            );
        }
        let part = owner_file::next_to(path, "part");
        let file = owner_file::create(&part);
        let file = file.map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("can't create this file: {error}. Name another one with --dead-letters."),
            )
        })?;
        Ok(Self { path: path.into(), part, file })
    }

    /// The file gets its name when it is complete and durable.
    fn write(&self, directory: &DataDirectory) -> io::Result<()> {
        write(directory, &mut BufWriter::new(&self.file))?;
        self.file.sync_all()?;
        fs::rename(&self.part, &self.path)?;
        File::open(owner_file::above(&self.path))?.sync_all()
    }
}

impl Drop for LettersFile {
    fn drop(&mut self) {
        // It no longer exists if it has been renamed.
        let _ = fs::remove_file(&self.part);
    }
}

fn write(directory: &DataDirectory, output: &mut impl Write) -> io::Result<()> {
    let mut written = Ok(());
    each_dead_letter(directory, &DeadFilter::default(), true, &mut |letter| {
        if written.is_ok() {
            written = letter_as_json(output, &DeadLetterJson::of(&letter));
        }
    })?;
    written.and_then(|()| output.flush())
}
