//! Loads the ledger that the last process saved.

use std::io;
use std::path::PathBuf;

use eventlog::{DataDirectory, LogOptions, StateFile};

use crate::document::Document;

const FILE: &str = "ledger";

/// The ledger and the cursors as they were saved. To be loaded before the event log is opened.
pub struct Saved {
    pub(crate) file: StateFile,
    /// `None` where nothing was saved, or all of it is damaged.
    pub(crate) document: Option<Document>,
    findings: Vec<String>,
}

/// Why the saved ledger can't be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file system failed.
    #[error("can't read {path}: {source}")]
    Io {
        /// The file, without the number of its generation.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// Its content is sound and makes no sense: another version wrote it.
    #[error("line {line} of {path} is not of a ledger that this version reads; use the version that wrote it")]
    Format {
        /// The file, without the number of its generation.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
}

impl Saved {
    /// Reads the ledger's file, if there is one.
    ///
    /// # Errors
    /// [`LoadError`]. Damage is no error: see [`Saved::findings`].
    pub fn load(directory: &DataDirectory) -> Result<Self, LoadError> {
        let path = directory.path().join(FILE);
        let opened = StateFile::open(directory.disk().clone(), directory.path(), FILE);
        let (file, state) = opened.map_err(|source| LoadError::Io { path: path.clone(), source })?;
        let mut findings: Vec<String> =
            state.damaged.iter().map(|path| format!("{} is damaged and was passed over", path.display())).collect();
        if state.content.is_none() && !findings.is_empty() {
            findings.push(
                "no copy of the ledger is sound: events are counted anew, from the oldest that the journal has".into(),
            );
        }
        let document = match state.content.map(String::from_utf8) {
            None => None,
            Some(text) => {
                let decoded = text.map_err(|_| 1).and_then(|text| Document::decode(&text));
                Some(decoded.map_err(|line| LoadError::Format { path, line })?)
            }
        };
        Ok(Self { file, document, findings })
    }

    /// Damage that was found, in words for a person.
    #[must_use]
    pub fn findings(&self) -> &[String] {
        &self.findings
    }

    /// What the event log is to be opened with.
    #[must_use]
    pub fn log_options(&self, shards: u16) -> LogOptions {
        let Some(document) = &self.document else { return LogOptions { shards, ..LogOptions::default() } };
        let mut cursors = vec![0; usize::from(shards)];
        for lanes in document.book.sinks.values().map(|sink| &sink.lanes) {
            for (greatest, lane) in cursors.iter_mut().zip(lanes) {
                *greatest = lane.cursor.max(*greatest);
            }
        }
        LogOptions {
            shards,
            accepted: document.accepted.clone(),
            counted_up_to: document.counted_up_to.clone(),
            cursors,
            ..LogOptions::default()
        }
    }
}
