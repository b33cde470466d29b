//! An aggregate's state on disk: a state file with two generations, each with a checksum.

use std::io;
use std::path::Path;
use std::sync::Arc;

use aggregate::{AggregateRules, Fold};
use event::Position;
use eventlog::SharedDisk;
use eventlog::{Reserve, StateFile};

/// The format of the header before the fold's own state. Another one is not read.
const VERSION: u8 = 1;
const HEADER_BYTES: usize = 9;

/// A state from which the fold continues.
pub(crate) struct Checkpoint {
    pub(crate) fold: Fold,
    /// The last sequence of the first shard at the time of the save: later results were emitted from this state.
    pub(crate) mark: u64,
}

/// The saved state of an aggregate.
pub(crate) enum Found {
    Sound(Box<Checkpoint>),
    /// There is no usable state; with the reason, unless there never was one.
    None(Option<String>),
}

/// The file of one aggregate's state.
pub(crate) struct CheckpointFile {
    file: StateFile,
    reserve: Arc<Reserve>,
    /// The positions up to which the two generations have read the shards.
    newer: Vec<u64>,
    older: Vec<u64>,
}

impl CheckpointFile {
    /// Opens the file `name` in `folder`, and reads its content.
    ///
    /// # Errors
    /// The error of the file system.
    pub(crate) fn open(
        disk: SharedDisk,
        folder: &Path,
        name: &str,
        reserve: Arc<Reserve>,
        rules: &AggregateRules,
    ) -> io::Result<(Self, Found)> {
        let (file, state) = StateFile::open(disk, folder, name)?;
        let damaged = (!state.damaged.is_empty()).then(|| "its state files are damaged".to_owned());
        let found = match state.content {
            None => Found::None(damaged),
            Some(content) => decode(rules, &content)
                .map_or_else(|reason| Found::None(Some(reason)), |found| Found::Sound(Box::new(found))),
        };
        let newer = match &found {
            Found::Sound(checkpoint) => by_shard(checkpoint.fold.positions()),
            Found::None(_) => Vec::new(),
        };
        Ok((Self { file, reserve, newer, older: Vec::new() }, found))
    }

    /// Makes the fold's state durable. On a full disk the reserve makes room: without saved states nothing could be freed.
    pub(crate) fn write(&mut self, fold: &Fold, mark: u64) -> io::Result<()> {
        let mut content = vec![VERSION];
        content.extend_from_slice(&mark.to_le_bytes());
        content.extend_from_slice(&fold.save());
        self.reserve.help(|| self.file.write(&content))?;
        self.older = std::mem::replace(&mut self.newer, by_shard(fold.positions()));
        Ok(())
    }

    /// The positions up to which neither generation needs the shards.
    pub(crate) fn passed(&self) -> Vec<u64> {
        self.newer.iter().zip(&self.older).map(|(newer, older)| *newer.min(older)).collect()
    }

    /// Whether both generations have the state of the fold.
    pub(crate) fn covers(&self, fold: &Fold) -> bool {
        let now = by_shard(fold.positions());
        self.newer == now && self.older == now
    }
}

fn by_shard(positions: impl Iterator<Item = Position>) -> Vec<u64> {
    let mut by_shard = Vec::new();
    for Position { shard, sequence } in positions {
        let shard = usize::from(shard);
        by_shard.resize(by_shard.len().max(shard + 1), 0);
        by_shard[shard] = sequence;
    }
    by_shard
}

fn decode(rules: &AggregateRules, content: &[u8]) -> Result<Checkpoint, String> {
    let (header, state) = content.split_first_chunk::<HEADER_BYTES>().ok_or("its state file is too short")?;
    let [version, mark @ ..] = *header;
    if version != VERSION {
        return Err(format!("its state file has format version {version}, and this Forebay reads version {VERSION}"));
    }
    let fold = Fold::restore(rules.clone(), state).map_err(|error| error.to_string())?;
    Ok(Checkpoint { fold, mark: u64::from_le_bytes(mark) })
}
