//! Loads the ledger that the last process saved.

use std::io;
use std::path::PathBuf;

use event::TypeName;
use eventlog::{DataDirectory, InvalidFact, LogOptions, StateFile};

use crate::codec::Document;
use crate::discarded::{Discarded, nothing_to_discard};
use crate::routes::SinkName;
use crate::rows::{LedgerRow, sink_row};
use crate::state::LedgerState;

const FILE: &str = "ledger";

/// The saved ledger with the cursors. Load it before the event log is opened.
pub struct SavedLedger {
    file: StateFile,
    /// `None` if nothing was saved, or all of it is damaged.
    document: Option<Document>,
    findings: Vec<String>,
}

/// Why the saved ledger can't be used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerLoadError {
    /// The file system failed.
    #[error("can't read {path}: {source}. Check the disk and permissions of the data directory")]
    Io {
        /// The file, without the number of its generation.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The checksum is right and the content is unknown: another version wrote it.
    #[error("this version of Forebay can't read the ledger {path}: {source}. Use the version that wrote it")]
    Format {
        /// The file, without the number of its generation.
        path: PathBuf,
        /// The line, and why.
        source: InvalidFact,
    },
}

/// Why nothing was discarded.
#[derive(Debug, thiserror::Error)]
pub enum DiscardError {
    /// There is nothing to discard.
    #[error("{0}")]
    NothingToDiscard(String),
    /// The ledger can't be saved.
    #[error("can't save the ledger: {0}. Free space on the disk of the data directory")]
    Save(#[from] io::Error),
}

impl SavedLedger {
    /// Reads the ledger's file, if there is one.
    ///
    /// # Errors
    /// [`LedgerLoadError`]. Damage is no error: see [`SavedLedger::findings`].
    pub fn load(directory: &DataDirectory) -> Result<Self, LedgerLoadError> {
        let path = directory.path().join(FILE);
        let opened = StateFile::open(directory.disk().clone(), directory.path(), FILE);
        let (file, state) = opened.map_err(|source| LedgerLoadError::Io { path: path.clone(), source })?;
        let mut findings: Vec<String> =
            state.damaged.iter().map(|path| format!("{} is damaged and was skipped", path.display())).collect();
        if state.content.is_none() && !findings.is_empty() {
            findings.push(
                "all copies of the ledger are damaged: events are recounted from the oldest that the journal has"
                    .into(),
            );
        }
        let document = state.content.map(|text| Document::decode(&text)).transpose();
        let document = document.map_err(|source| LedgerLoadError::Format { path, source })?;
        Ok(Self { file, document, findings })
    }

    /// The saved sinks and their routes, if there are any.
    #[must_use]
    pub fn state(&self) -> Option<&LedgerState> {
        self.document.as_ref().map(|document| &document.state)
    }

    /// The file and its content, for the part that saves the ledger from now on.
    #[must_use]
    pub fn into_parts(self) -> (StateFile, Option<Document>) {
        (self.file, self.document)
    }

    /// Messages about damage that was found.
    #[must_use]
    pub fn findings(&self) -> &[String] {
        &self.findings
    }

    /// The saved counts, by type. Events accepted since the last save are not in them; a start counts them.
    #[must_use]
    pub fn rows(&self) -> Vec<LedgerRow> {
        let Some(document) = &self.document else { return Vec::new() };
        let row = |(name, accepted): &(TypeName, u64)| {
            let rows = document.state.sinks.iter().filter_map(|(sink, state)| sink_row(sink, state, name, *accepted));
            let derived = document.state.derived.contains(name);
            LedgerRow {
                type_name: name.clone(),
                accepted: *accepted,
                derived,
                sinks: rows.map(|(row, _)| row).collect(),
            }
        };
        let mut rows: Vec<LedgerRow> = document.accepted.iter().map(row).collect();
        rows.sort_by(|one, other| one.type_name.cmp(&other.type_name));
        rows
    }

    /// The last position that was counted as accepted, by shard.
    #[must_use]
    pub fn counted_up_to(&self) -> &[u64] {
        self.document.as_ref().map_or(&[], |document| &document.counted_up_to)
    }

    /// The first position of a shard that some configured sink has not passed, if there are sinks.
    #[must_use]
    pub fn needed_from(&self, shard: u16) -> Option<u64> {
        let sinks = self.document.iter().flat_map(|document| document.state.sinks.values());
        let lanes = sinks.filter(|sink| sink.waits()).filter_map(|sink| sink.lanes.get(usize::from(shard)));
        lanes.map(|lane| lane.cursor + 1).min()
    }

    /// The position up to which the journal of a sink's dead letters was counted.
    pub fn dead_up_to(&self, sink: &str) -> u64 {
        let sinks = self.document.iter().flat_map(|document| &document.state.sinks);
        sinks.filter(|(name, _)| ***name == *sink).map(|(_, sink)| sink.dead_up_to).sum()
    }

    /// The sinks whose dead letters were counted.
    pub fn sinks_with_dead_letters(&self) -> impl Iterator<Item = &SinkName> {
        let sinks = self.document.iter().flat_map(|document| &document.state.sinks);
        sinks.filter(|(_, sink)| sink.dead_up_to > 0).map(|(name, _)| name)
    }

    /// Whether events were routed to such a sink.
    #[must_use]
    pub fn has_sink(&self, sink: &str) -> bool {
        self.document.as_ref().is_some_and(|document| document.state.sinks.keys().any(|name| **name == *sink))
    }

    /// Discards the backlog of this sink's routes, from one type or from all, that were not in the configuration of the
    /// last run.
    ///
    /// # Errors
    /// [`DiscardError`]: nothing was discarded.
    pub fn discard(&mut self, sink: &SinkName, only: Option<&TypeName>) -> Result<Discarded, DiscardError> {
        let state = self.document.as_mut().map(|document| &mut document.state);
        let routes =
            state.and_then(|state| state.sinks.get_mut(sink)).map(|sink| sink.discard(only)).unwrap_or_default();
        let Some(document) = self.document.as_ref().filter(|_| !routes.is_empty()) else {
            return Err(DiscardError::NothingToDiscard(nothing_to_discard(sink, only)));
        };
        self.file.write(&document.encode()?)?;
        Ok(Discarded { routes, lanes: 0 })
    }

    /// The options to open the event log with.
    #[must_use]
    pub fn log_options(&self, shards: u16) -> LogOptions {
        let Some(document) = &self.document else { return LogOptions { shards, ..LogOptions::default() } };
        let mut cursors = vec![0; usize::from(shards)];
        for lanes in document.state.sinks.values().map(|sink| &sink.lanes) {
            for (greatest, lane) in cursors.iter_mut().zip(lanes) {
                *greatest = lane.cursor.max(*greatest);
            }
        }
        LogOptions {
            shards,
            accepted: document.accepted.clone(),
            filtered: document.filtered.clone(),
            counted_up_to: document.counted_up_to.clone(),
            cursors,
            ..LogOptions::default()
        }
    }
}
