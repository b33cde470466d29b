//! Lines that the server refused: the first ones are shown. All of them, and lines without a result, can be kept in a file,
//! to be mended and loaded again.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::batch_result::{BatchResult, RefusedLine};
use super::body::Piece;
use super::lines::LINE_BYTES_MAX;
use super::{LoadError, Notify};

/// Lines may be private.
const OWNER_ONLY: u32 = 0o600;
/// How many lines of a kind are shown: whoever sees these knows what is wrong.
pub(super) const SHOWN: u64 = 10;
/// What is said of the others.
pub(super) const MORE: &str = "further lines like these are only counted; --refused FILE keeps all of them";

/// What the server refused of a batch.
pub(super) struct Refusals<'a> {
    pub(super) input: &'a str,
    /// How many lines stand before the block.
    pub(super) lines_before: u64,
    pub(super) piece: &'a Piece<'a>,
    pub(super) result: &'a BatchResult,
}

impl Refusals<'_> {
    /// Gives each line that the server has named with its number in the input, from 1.
    fn each(&self, limit: usize, mut give: impl FnMut(&RefusedLine, u64, &[u8])) {
        let lines = &self.result.refused[..limit.min(self.result.refused.len())];
        let mut refused = lines.iter();
        self.piece.find_lines(lines.iter().map(|refused| refused.line), |line, number, text| {
            if let Some(refused) = refused.find(|refused| refused.line == line) {
                give(refused, self.lines_before + number + 1, text);
            }
        });
    }

    /// Shows the first of them, where so many were refused before.
    pub(super) fn show(&self, before: u64, notify: Notify<'_>) {
        let left = usize::try_from(SHOWN.saturating_sub(before)).unwrap_or(usize::MAX);
        self.each(left, |refused, number, _| {
            notify(&format!("{} line {number} was refused ({}): {}", self.input, refused.code, refused.detail));
        });
        if left > 0 && before + self.result.refused_count() > SHOWN {
            notify(MORE);
        }
    }
}

/// A line that is longer than any server takes. It was passed over, so its text isn't known.
pub(super) struct TooLong<'a> {
    pub(super) input: &'a str,
    pub(super) line: u64,
    pub(super) length: u64,
}

impl TooLong<'_> {
    const CODE: &'static str = "too_large";

    fn detail(&self) -> String {
        format!("the line has {} bytes, {LINE_BYTES_MAX} are the most that is read of one; it wasn't sent", self.length)
    }

    /// Shows it, where so many lines were refused before.
    pub(super) fn show(&self, before: u64, notify: Notify<'_>) {
        match before {
            before if before < SHOWN => {
                notify(&format!("{} line {} was refused ({}): {}", self.input, self.line, Self::CODE, self.detail()));
            }
            SHOWN => notify(MORE),
            _ => {}
        }
    }

    /// Keeps it, durably: the state passes it afterwards.
    pub(super) fn keep(&self, file: &RefusedFile) -> Result<(), LoadError> {
        let row = Row { file: self.input, line: self.line, code: Self::CODE, detail: &self.detail(), text: "" };
        let mut rows = Vec::new();
        row.append(&mut rows);
        file.append_durably(&rows)
    }
}

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
        let mut options = OpenOptions::new();
        let options = options.create(true).append(true).mode(OWNER_ONLY);
        let file = options.open(path).map_err(|error| failed(path, error))?;
        Ok(Self { path: path.to_owned(), file: Mutex::new(file) })
    }

    /// Writes what was refused of a batch, durably: the state passes the batch afterwards.
    pub(super) fn write(&self, refusals: &Refusals<'_>) -> Result<(), LoadError> {
        let mut rows = Vec::new();
        refusals.each(usize::MAX, |refused, line, text| {
            let text = String::from_utf8_lossy(text);
            let row = Row { file: refusals.input, line, code: &refused.code, detail: &refused.detail, text: &text };
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
