//! Opens a shard's journal: reads what the last process left, keeps the acknowledged events, and begins a new segment.
//! An old segment is never written to again.

use std::io;

use limits::PAGE_BYTES;

use crate::appender::Appender;
use crate::block::OpenBlock;
use crate::committer::{Committer, SegmentContext, segment_length_for};
use crate::directory::make_directory;
use crate::open_error::OpenError;
use crate::recovery_report::Finding;
use crate::segment::SegmentHeader;
use crate::segment_pool::{SegmentPool, SegmentSource, is_spare};
use crate::segments::Segments;
use crate::shard_options::ShardOptions;
use crate::survey::Survey;
use crate::torn_tail::{self, Tail};

/// An open journal of one shard.
pub struct OpenShard {
    /// Accepts records.
    pub appender: Appender,
    /// Makes them durable.
    pub committer: Committer,
    /// Reads them back and frees them.
    pub segments: Segments,
    /// The last sequence that is durable now, 0 if there is none.
    pub durable: u64,
    /// The defects that recovery found.
    pub findings: Vec<Finding>,
}

/// Opens the journal of one shard.
///
/// # Errors
/// [`OpenError`]: the journal can't be opened. Damage is no error: it is in [`OpenShard::findings`].
pub fn open_shard(options: &ShardOptions) -> Result<OpenShard, OpenError> {
    find_shard(options)?.open()
}

/// A shard's journal as the last process left it. It is read but unchanged: until it is opened, the next start finds
/// the same.
pub struct FoundShard<'a> {
    options: &'a ShardOptions,
    survey: Survey,
    tail: Tail,
}

/// Reads what the last process has left. Before [`FoundShard::open`], the caller must report the findings and update
/// everything that depends on lost events: later they aren't found again.
///
/// # Errors
/// [`OpenError`]: the journal can't be opened.
pub fn find_shard(options: &ShardOptions) -> Result<FoundShard<'_>, OpenError> {
    let io_error = |source| OpenError::Io { directory: options.directory.clone(), source };
    let names = prepare_directory(options).map_err(io_error)?;
    let mut survey = Survey::read(options, &names)?;
    let tail = torn_tail::read(options, &mut survey).map_err(io_error)?;
    Ok(FoundShard { options, survey, tail })
}

impl<'a> FoundShard<'a> {
    /// The defects that were found.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.survey.findings
    }

    /// The first sequence of the oldest segment that can be read.
    #[must_use]
    pub fn oldest(&self) -> Option<u64> {
        self.survey.headers.front().map(|header| header.first)
    }

    /// The options that it was read with.
    #[must_use]
    pub const fn options(&self) -> &'a ShardOptions {
        self.options
    }

    /// The last sequence that is durable once it is opened, 0 if there is none.
    #[must_use]
    pub const fn durable(&self) -> u64 {
        self.tail.next - 1
    }

    /// Begins a new segment with the carried-over blocks: this makes the findings final.
    ///
    /// # Errors
    /// [`OpenError`]: the new segment couldn't be created.
    pub fn open(self) -> Result<OpenShard, OpenError> {
        let Self { options, survey, tail } = self;
        let io_error = |source| OpenError::Io { directory: options.directory.clone(), source };
        let spares = SegmentPool::new(options.disk.clone(), &options.directory).within(options.quota.clone());
        let segments = Segments::new(options.disk.clone(), &options.directory, survey.headers, spares.clone());
        let mut place = SegmentContext {
            disk: options.disk.clone(),
            directory: options.directory.as_path().into(),
            origin: options.origin,
            shard: options.shard,
            block_numbers: options.block_numbers.clone(),
            segments: segments.clone(),
            seeds: options.seeds.clone(),
            first_segment_bytes: options.first_segment_bytes,
            segment_bytes_max: options.segment_bytes_max,
        };
        let spares = if options.segments_ahead {
            SegmentSource::ahead(spares).map_err(io_error)?
        } else {
            SegmentSource::inline(spares)
        };
        let next = tail.next;
        let header = first_header(options, &tail, survey.next_generation, &mut place).map_err(io_error)?;
        let committer = Committer::start(place, spares, header, tail.carried)?;
        // Only now: if a start fails, the next one must still know that these segments used sequences.
        for (path, aside) in &survey.unreadable {
            options.disk.rename(path, aside).map_err(io_error)?;
        }
        Ok(OpenShard {
            appender: Appender::new(next),
            committer,
            segments,
            durable: next - 1,
            findings: survey.findings,
        })
    }
}

/// The directory's names, once they and the directory are durable: no decision may depend on a name that a crash could
/// undo.
fn prepare_directory(options: &ShardOptions) -> io::Result<Vec<String>> {
    let (disk, directory) = (&options.disk, options.directory.as_path());
    make_directory(&**disk, directory)?;
    disk.sync_directory(directory)?;
    let names = disk.list(directory)?;
    for spare in names.iter().filter(|name| is_spare(name)) {
        disk.remove(&directory.join(spare))?;
    }
    Ok(names)
}

fn first_header(
    options: &ShardOptions,
    tail: &Tail,
    generation: u64,
    place: &mut SegmentContext,
) -> io::Result<SegmentHeader> {
    let carried: u64 = tail.carried.iter().map(|block| block.padded_bytes() as u64).sum();
    Ok(SegmentHeader {
        shard: place.shard,
        origin: place.origin,
        seed: place.seeds.next()?,
        generation,
        first: tail.carried.first().map_or(tail.next, OpenBlock::first),
        previous: tail.previous,
        length: options.first_segment_bytes.max(segment_length_for(carried + 2 * PAGE_BYTES as u64)),
    })
}
