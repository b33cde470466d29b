//! A process that has a data directory open: the journal of one shard and a state file with its cursor.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journal::disk::SharedDisk;
use journal::simulated_disk::SimulatedDisk;
use journal::{DataDirectory, Finding, LogChunk, OpenShard, Reader, Seeds, ShardOptions, StateFile, open_shard};

use super::fault_injector::FaultInjector;
use super::run::RunSettings;
use crate::events::Event;

const DATA: &str = "/data";

/// The parts of an open data directory.
pub(crate) struct Process {
    pub(crate) way: FaultInjector,
    pub(crate) shard: OpenShard,
    pub(crate) cursor: StateFile,
    /// The content of the cursor's file at the start.
    started_with: (u64, Vec<PathBuf>),
    _directory: DataDirectory,
}

/// The events that a start shows.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) cursor: u64,
    pub(crate) durable: u64,
    pub(crate) events: Vec<(u64, Event)>,
    /// The reports of recovery.
    pub(crate) findings: Vec<Finding>,
    /// The reports of readers.
    pub(crate) damage: Vec<Finding>,
    pub(crate) damaged_state: Vec<PathBuf>,
}

impl Process {
    /// Opens everything, as a server does at its start. `starts` makes the segments' seeds differ.
    pub(crate) fn start(way: FaultInjector, setting: &RunSettings, starts: u64) -> Result<Self, String> {
        let disk: SharedDisk = Arc::new(way.clone());
        make_origin(&disk).map_err(|error| error.to_string())?;
        let directory = DataDirectory::open(disk.clone(), Path::new(DATA)).map_err(|error| error.to_string())?;
        let (cursor, state) =
            StateFile::open(disk.clone(), Path::new(DATA), "ledger").map_err(|error| error.to_string())?;
        let content = state.content.and_then(|content| content.try_into().ok());
        let options = ShardOptions {
            first_segment_bytes: setting.first_segment_bytes,
            segment_bytes_max: setting.segment_bytes_max,
            segments_ahead: false,
            seeds: Seeds::Counted(starts << 16),
            ..ShardOptions::new(disk, directory.shard(0), directory.origin(), 0)
        };
        let shard = open_shard(&options).map_err(|error| error.to_string())?;
        let started_with = (content.map_or(0, u64::from_le_bytes), state.damaged);
        Ok(Self { way, shard, cursor, started_with, _directory: directory })
    }

    /// Reads everything that is retained.
    pub(crate) fn look(&self) -> io::Result<Seen> {
        let shard = &self.shard;
        let mut reader = Reader::new(shard.segments.clone(), 1);
        let (mut events, mut damage) = (Vec::new(), Vec::new());
        while let Some(chunk) = reader.read(shard.durable)? {
            match chunk {
                LogChunk::Block(block) => events.extend(block.records().map(|(s, record)| (s, Event::of(&record)))),
                LogChunk::Damaged(damaged) => damage.push(damaged.finding().clone()),
            }
        }
        let (cursor, damaged_state) = self.started_with.clone();
        Ok(Seen { cursor, durable: shard.durable, events, findings: shard.findings.clone(), damage, damaged_state })
    }

    /// Whether a reader that begins after the cursor finds the same as one that begins with the oldest.
    pub(crate) fn agrees_from_cursor(&self, seen: &Seen) -> io::Result<bool> {
        let mut reader = Reader::new(self.shard.segments.clone(), seen.cursor + 1);
        let mut expected = seen.events.iter().filter(|(sequence, _)| *sequence > seen.cursor);
        while let Some(chunk) = reader.read(self.shard.durable)? {
            let LogChunk::Block(block) = chunk else { return Ok(false) };
            for (sequence, record) in block.records().filter(|(sequence, _)| *sequence > seen.cursor) {
                if !expected.next().is_some_and(|(at, event)| *at == sequence && *event == Event::of(&record)) {
                    return Ok(false);
                }
            }
        }
        Ok(expected.next().is_none())
    }
}

/// Gives the directory an id that isn't random, so a seed decides every byte.
fn make_origin(disk: &SharedDisk) -> io::Result<()> {
    disk.create_directory(Path::new(DATA))?;
    let (mut file, state) = StateFile::open(disk.clone(), Path::new(DATA), "origin")?;
    if state.content.is_none() {
        file.write(&[7; 16])?;
        file.write(&[7; 16])?;
    }
    Ok(())
}

/// How many recycled files wait in the shard's directory.
pub(crate) fn recycled_files(disk: &SimulatedDisk) -> usize {
    let spare = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("spare-"));
    disk.paths().iter().filter(|path| spare(path)).count()
}
