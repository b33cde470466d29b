//! Makes blocks durable: one write and one fdatasync for each. The same code runs inline or on a thread.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use event::Origin;
use limits::{PAGE_BYTES, SEGMENT_BYTES_MAX};

use crate::block::{Block, BlockKind, OpenBlock, Placement};
use crate::checksum;
use crate::disk::{DiskFile, SharedDisk};
use crate::endian::round_up;
use crate::segment::{self, FIRST_BLOCK_AT, SegmentHeader};
use crate::segment_pool::{AllocRequest, FillMode, SegmentSource, Spare};
use crate::segments::Segments;

/// Why a block is not durable.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// No further segment can be created, usually because there is no space. Nothing was written; later commits may
    /// succeed.
    #[error("cannot create a segment in {directory}: {source}. If the disk is full, free space on it")]
    NoSpace {
        /// The shard's directory.
        directory: PathBuf,
        /// The file system's error.
        source: io::Error,
    },
    /// A write or fdatasync failed. The content of the disk is unknown now, so nothing is written from now on: the
    /// process must end, and recovery reads the disk again.
    #[error("{operation} of {path} failed: {source}. The journal accepts no events until you restart Forebay")]
    Poisoned {
        /// The operation.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The file system's error.
        source: io::Error,
    },
    /// An earlier commit was poisoned.
    #[error("the journal accepts no events because an earlier write failed: restart Forebay")]
    AlreadyPoisoned,
}

/// Everything that a committer has in addition to its first segment.
pub(crate) struct SegmentContext {
    pub(crate) disk: SharedDisk,
    pub(crate) directory: Arc<Path>,
    pub(crate) origin: Origin,
    pub(crate) shard: u16,
    pub(crate) block_numbers: Arc<AtomicU64>,
    pub(crate) segments: Segments,
    pub(crate) seeds: Seeds,
    pub(crate) first_segment_bytes: u64,
    pub(crate) segment_bytes_max: u64,
}

/// Owns the newest segment's file.
pub struct Committer {
    place: SegmentContext,
    spares: SegmentSource,
    file: Box<dyn DiskFile>,
    header: SegmentHeader,
    offset: u64,
    last_sum: u64,
    poisoned: bool,
    sync_time: Duration,
}

impl Committer {
    /// Makes the first segment of a start, with `blocks` in it, durable as a whole before it gets its name. The blocks
    /// that recovery carried over from the segment before are then in one or the other.
    pub(crate) fn start(
        place: SegmentContext,
        mut spares: SegmentSource,
        header: SegmentHeader,
        blocks: Vec<OpenBlock>,
    ) -> Result<Self, CommitError> {
        let no_space = |source| CommitError::NoSpace { directory: place.directory.to_path_buf(), source };
        let spare = first_spare(&mut spares, header.length, &blocks).map_err(no_space)?;
        let header = SegmentHeader { length: spare.length, ..header };
        let mut committer = Self {
            file: spare.file,
            header,
            offset: FIRST_BLOCK_AT,
            last_sum: header.previous,
            poisoned: false,
            sync_time: Duration::ZERO,
            place,
            spares,
        };
        committer.write("write", &header.encode(), 0)?;
        for block in blocks {
            let block = committer.place_block(block, BlockKind::Data, 0);
            committer.write("write", block.bytes(), committer.offset)?;
            committer.passed(&block);
        }
        committer.sync()?;
        committer.name_segment(&spare.path)?;
        Ok(committer)
    }

    /// Makes a block durable. `written_at` is the wall clock in microseconds since 1970.
    ///
    /// # Errors
    /// [`CommitError::NoSpace`]: nothing was written, the caller fails the block's requests and rewinds the
    /// appender. Any other error is final.
    pub fn commit(&mut self, block: OpenBlock, written_at: i64) -> Result<Block, CommitError> {
        if self.poisoned {
            return Err(CommitError::AlreadyPoisoned);
        }
        // One page stays free for the seal.
        let needed = (block.padded_bytes() + PAGE_BYTES) as u64;
        if self.offset + needed > self.header.length {
            self.roll(&block, needed)?;
        }
        self.append(block, BlockKind::Data, written_at)
    }

    /// Ends the journal in an orderly way: a damaged block before a seal is known to have been complete once.
    ///
    /// # Errors
    /// As [`Committer::commit`].
    pub fn seal(mut self, next: u64, written_at: i64) -> Result<(), CommitError> {
        if self.poisoned {
            return Err(CommitError::AlreadyPoisoned);
        }
        self.append(OpenBlock::new(next), BlockKind::Seal, written_at).map(drop)
    }

    /// Replaces an old segment by one with the same place in the log and these blocks. The new file is durable
    /// before it takes the old one's name.
    pub(crate) fn rewrite(&self, old: &SegmentHeader, blocks: Vec<OpenBlock>) -> Result<(), CommitError> {
        let needed: u64 = blocks.iter().map(|block| block.padded_bytes() as u64).sum();
        let header = SegmentHeader { length: old.length.max(segment_length_for(needed)), ..*old };
        let path = segment::path(&self.place.directory, old.generation);
        let poisoned = |source| CommitError::Poisoned { operation: "rewrite", path: path.clone(), source };
        let want = AllocRequest { at_least: header.length, length: header.length, needed: true };
        let spare = self.spares.pool().make(want, &mut |_| FillMode::Zeros).map_err(poisoned)?;
        let header = SegmentHeader { length: spare.length, ..header };
        let mut offset = FIRST_BLOCK_AT;
        let mut previous = header.previous;
        spare.file.write_all_at(&header.encode(), 0).map_err(poisoned)?;
        for block in blocks {
            let SegmentHeader { generation, seed, .. } = header;
            let block =
                block.seal(BlockKind::Data, &Placement { generation, seed, number: 0, previous, written_at: 0 });
            spare.file.write_all_at(block.bytes(), offset).map_err(poisoned)?;
            previous = block.header().header_sum;
            offset += block.bytes().len() as u64;
        }
        spare.file.sync().map_err(poisoned)?;
        self.place.disk.rename(&spare.path, &path).map_err(poisoned)?;
        self.place.disk.sync_directory(&self.place.directory).map_err(poisoned)
    }

    /// Whether an earlier commit failed permanently.
    #[must_use]
    pub const fn is_poisoned(&self) -> bool {
        self.poisoned
    }

    /// How long the last fdatasync took.
    #[must_use]
    pub const fn sync_time(&self) -> Duration {
        self.sync_time
    }

    fn append(&mut self, block: OpenBlock, kind: BlockKind, written_at: i64) -> Result<Block, CommitError> {
        let block = self.place_block(block, kind, written_at);
        self.write("write", block.bytes(), self.offset)?;
        self.sync()?;
        self.passed(&block);
        Ok(block)
    }

    fn place_block(&self, block: OpenBlock, kind: BlockKind, written_at: i64) -> Block {
        let number = self.place.block_numbers.fetch_add(1, Ordering::Relaxed);
        let SegmentHeader { generation, seed, .. } = self.header;
        block.seal(kind, &Placement { generation, seed, number, previous: self.last_sum, written_at })
    }

    fn passed(&mut self, block: &Block) {
        self.offset += block.bytes().len() as u64;
        self.last_sum = block.header().header_sum;
        self.place.segments.set_newest_used(self.offset);
        debug_assert!(self.offset <= self.header.length, "a block lies within its segment");
        if self.offset > self.header.length / 2 {
            // Only now: until then a segment may be freed whose file can be reused.
            self.spares.order(AllocRequest { at_least: 0, length: self.next_length(), needed: false });
        }
    }

    /// Continues in a new segment, whose header is durable before its first block is written.
    fn roll(&mut self, block: &OpenBlock, bytes: u64) -> Result<(), CommitError> {
        let needed = block.is_needed();
        let want = AllocRequest { at_least: segment_length_for(bytes), length: self.next_length(), needed };
        let directory = self.place.directory.clone();
        let no_space = |source| CommitError::NoSpace { directory: directory.to_path_buf(), source };
        let seed = self.place.seeds.next().map_err(no_space)?;
        let begun = self.spares.take(want).and_then(|spare| self.spares.pool().begin(spare, needed));
        let spare = begun.map_err(|source| {
            self.spares.pool().refused(want.at_least);
            no_space(source)
        })?;
        let (generation, first) = (self.header.generation + 1, block.first());
        self.header =
            SegmentHeader { seed, generation, first, previous: self.last_sum, length: spare.length, ..self.header };
        self.file = spare.file;
        self.offset = FIRST_BLOCK_AT;
        let page = self.header.encode();
        self.write("write", &page, 0)?;
        self.sync()?;
        self.name_segment(&spare.path)
    }

    fn name_segment(&mut self, spare: &Path) -> Result<(), CommitError> {
        let path = self.path();
        let named = self.place.disk.rename(spare, &path);
        let durable = named.and_then(|()| self.place.disk.sync_directory(&self.place.directory));
        durable.map_err(|source| self.poison("rename", source))?;
        self.place.segments.add(self.header);
        Ok(())
    }

    fn next_length(&self) -> u64 {
        // The first segment of a start is shorter if the disk was full.
        (self.header.length * 2).max(self.place.first_segment_bytes).min(self.place.segment_bytes_max)
    }

    fn path(&self) -> PathBuf {
        segment::path(&self.place.directory, self.header.generation)
    }

    fn write(&mut self, operation: &'static str, bytes: &[u8], offset: u64) -> Result<(), CommitError> {
        self.file.write_all_at(bytes, offset).map_err(|source| self.poison(operation, source))
    }

    fn sync(&mut self) -> Result<(), CommitError> {
        let start = Instant::now();
        let synced = self.file.sync();
        self.sync_time = start.elapsed();
        synced.map_err(|source| self.poison("fdatasync", source))
    }

    fn poison(&mut self, operation: &'static str, source: io::Error) -> CommitError {
        self.poisoned = true;
        CommitError::Poisoned { operation, path: self.path(), source }
    }
}

/// The first segment of a start. If the disk has too little space left, one that holds the carried-over blocks and a
/// seal is enough. Then the events in the journal can be delivered, which frees space; until then no event is accepted.
fn first_spare(spares: &mut SegmentSource, length: u64, blocks: &[OpenBlock]) -> io::Result<Spare> {
    let usual = spares.take(AllocRequest { at_least: length, length, needed: false });
    let spare = match usual {
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {
            let carried: u64 = blocks.iter().map(|block| block.padded_bytes() as u64).sum();
            let least = segment_length_for(carried + PAGE_BYTES as u64);
            spares.take(AllocRequest { at_least: least, length: least, needed: true })?
        }
        taken => taken?,
    };
    spares.pool().begin(spare, true)
}

/// The length of a segment that holds its header and `needed` bytes.
pub(crate) fn segment_length_for(needed: u64) -> u64 {
    let pages = usize::try_from(FIRST_BLOCK_AT + needed).map(|bytes| round_up(bytes, PAGE_BYTES));
    pages.map_or(SEGMENT_BYTES_MAX, |bytes| bytes as u64)
}

/// The source of segments' seeds.
#[derive(Clone, Debug)]
pub enum Seeds {
    /// The operating system's randomness: unpredictable.
    Random,
    /// Counted up from a number: for simulations, which must run the same way twice.
    Counted(u64),
}

impl Seeds {
    pub(crate) fn next(&mut self) -> io::Result<u64> {
        match self {
            Self::Random => Ok(getrandom::u64()?),
            Self::Counted(last) => {
                *last = last.wrapping_add(1);
                Ok(checksum::seeded(*last, b"seed"))
            }
        }
    }
}
