//! The file that refused lines are kept in, to be mended and loaded again.

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

#[derive(Serialize)]
struct Row<'a> {
    file: &'a str,
    line: u64,
    code: &'a str,
    detail: &'a str,
    text: &'a str,
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
            rows.extend(serde_json::to_vec(&row).expect("numbers and texts can be written as JSON"));
            rows.push(b'\n');
        });
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&rows).and_then(|()| file.sync_data()).map_err(|error| failed(&self.path, error))
    }
}

fn failed(path: &Path, source: io::Error) -> LoadError {
    LoadError::Refused { path: path.to_owned(), source }
}
