//! Lines that the server rejected: the first ones are shown. All of them, and lines without a result, can be kept in a file,
//! to be corrected and loaded again.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::anyhow;
use serde::Serialize;

use super::Notify;
use super::batch_result::{BatchResult, RefusedLine};
use super::body::Piece;

/// Lines may be private.
const OWNER_ONLY: u32 = 0o600;
/// How many lines of a kind are shown: these are enough to find the cause.
const SHOWN: u64 = 10;
/// The message about the others.
const MORE: &str = "further lines like these are only counted; --refused FILE keeps all of them";

/// The rejections of a batch.
pub(super) struct Refusals<'a> {
    pub(super) input: &'a str,
    /// How many lines are before the block.
    pub(super) lines_before: u64,
    pub(super) piece: &'a Piece<'a>,
    pub(super) result: &'a BatchResult,
}

impl Refusals<'_> {
    /// Gives each line that the server has named, by its number in the input, from 1.
    fn each(&self, limit: usize, mut give: impl FnMut(&Row<'_>)) {
        let lines = &self.result.refused[..limit.min(self.result.refused.len())];
        let mut refused = lines.iter();
        self.piece.find_lines(lines.iter().map(|refused| refused.line), |line, number, text| {
            if let Some(RefusedLine { code, detail, .. }) = refused.find(|refused| refused.line == line) {
                let (line, text) = (self.lines_before + number + 1, &String::from_utf8_lossy(text));
                give(&Row { file: self.input, line, code, detail, text });
            }
        });
    }

    /// Shows the first of them, if so many were rejected before.
    pub(super) fn show(&self, mut before: u64, notify: Notify<'_>) {
        self.each(usize::try_from((SHOWN + 1).saturating_sub(before)).unwrap_or(usize::MAX), |row| {
            row.show(before, notify);
            before += 1;
        });
    }
}

/// Shows a line of a kind of which so many were seen earlier: the first ones, and once that there are more.
pub(super) fn show(before: u64, notify: Notify<'_>, message: impl FnOnce() -> String) {
    match before {
        before if before < SHOWN => notify(&message()),
        SHOWN => notify(MORE),
        _ => {}
    }
}

/// Collects rejected lines from all workers.
pub(super) struct RefusedFile {
    path: PathBuf,
    file: Mutex<File>,
}

/// A line in the file.
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

    /// Shows it, if so many lines were rejected before.
    pub(super) fn show(&self, before: u64, notify: Notify<'_>) {
        let Self { file, line, code, detail, .. } = self;
        show(before, notify, || format!("{file} line {line} was rejected ({code}): {detail}"));
    }
}

impl RefusedFile {
    /// Opens the file to append: it may have the lines of a crashed run.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let mut options = OpenOptions::new();
        let options = options.create(true).append(true).mode(OWNER_ONLY);
        let file = options.open(path).map_err(|error| failed(path, error))?;
        Ok(Self { path: path.to_owned(), file: Mutex::new(file) })
    }

    /// Writes the rejections of a batch, durably: the state moves past the batch afterwards.
    pub(super) fn write(&self, refusals: &Refusals<'_>) -> anyhow::Result<()> {
        let mut rows = Vec::new();
        refusals.each(usize::MAX, |row| row.append(&mut rows));
        self.append_durably(&rows)
    }

    /// Appends rows; they are durable when a later call of [`Self::append_durably`] is done.
    pub(super) fn append(&self, rows: &[u8]) -> anyhow::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(rows).map_err(|error| failed(&self.path, error))
    }

    pub(super) fn append_durably(&self, rows: &[u8]) -> anyhow::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(rows).and_then(|()| file.sync_data()).map_err(|error| failed(&self.path, error))
    }
}

fn failed(path: &Path, error: io::Error) -> anyhow::Error {
    anyhow!("{}: {error}", path.display())
}
