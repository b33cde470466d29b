//! The file that refused lines, and lines without a verdict, are kept in, to be mended and loaded again.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::LoadError;
use super::body::Piece;
use super::verdict::Verdict;

/// Takes refused lines from all workers.
pub(super) struct RefusedFile {
    path: PathBuf,
    file: Mutex<File>,
}

/// What is kept of a line.
#[derive(Serialize)]
pub(super) struct Row<'a> {
    pub(super) file: &'a str,
    pub(super) line: u64,
    pub(super) code: &'a str,
    pub(super) detail: &'a str,
    pub(super) text: &'a str,
}

impl Row<'_> {
    pub(super) fn append(&self, rows: &mut Vec<u8>) {
        rows.extend(serde_json::to_vec(self).expect("numbers and texts can be written as JSON"));
        rows.push(b'\n');
    }
}

impl RefusedFile {
    /// Opens the file to append: what a crashed run found still stands there.
    pub(super) fn open(path: &Path) -> Result<Self, LoadError> {
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(|error| failed(path, error))?;
        Ok(Self { path: path.to_owned(), file: Mutex::new(file) })
    }

    /// Writes what was refused of a batch, durably: the state passes the batch afterwards. `lines_before` is how many
    /// lines stand before the block.
    pub(super) fn write(
        &self,
        input: &str,
        lines_before: u64,
        piece: &Piece<'_>,
        verdict: &Verdict,
    ) -> Result<(), LoadError> {
        let mut rows = Vec::new();
        let mut refused = verdict.refused.iter();
        piece.find_lines(verdict.refused.iter().map(|refused| refused.line), |line, number, text| {
            let Some(refused) = refused.find(|refused| refused.line == line) else { return };
            let text = String::from_utf8_lossy(text);
            let line = lines_before + number + 1;
            let row = Row { file: input, line, code: &refused.code, detail: &refused.detail, text: &text };
            row.append(&mut rows);
        });
        self.append_durably(&rows)
    }

    /// Appends rows; they are durable when a later call of [`Self::append_durably`] is done.
    pub(super) fn append(&self, rows: &[u8]) -> Result<(), LoadError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(rows).map_err(|error| failed(&self.path, error))
    }

    pub(super) fn append_durably(&self, rows: &[u8]) -> Result<(), LoadError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(rows).and_then(|()| file.sync_data()).map_err(|error| failed(&self.path, error))
    }
}

fn failed(path: &Path, source: io::Error) -> LoadError {
    LoadError::Refused { path: path.to_owned(), source }
}
