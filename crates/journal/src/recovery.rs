//! Opens a shard's journal: looks at what the last process left, keeps what was acknowledged, and begins a new
//! segment. An old segment is never written to again.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use event::Origin;
use event::limits::{PAGE_BYTES, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN};

use crate::allowance::Allowance;
use crate::appender::Appender;
use crate::block::OpenBlock;
use crate::committer::{CommitError, Committer, Place, Seeds, segment_length_for};
use crate::directory::make_directory;
use crate::disk::SharedDisk;
use crate::finding::{Finding, SEGMENT_HEADER_COPY_DAMAGED, SEGMENT_HEADER_DAMAGED};
use crate::segment::{self, HeaderPage, SegmentHeader};
use crate::segments::Segments;
use crate::spares::{SparePool, Spares, is_spare};
use crate::tail::{self, Tail};

/// What a shard's journal is opened with.
pub struct ShardOptions {
    /// The disk.
    pub disk: SharedDisk,
    /// The shard's directory; made if missing.
    pub directory: PathBuf,
    /// The data directory's origin.
    pub origin: Origin,
    /// The shard's number.
    pub shard: u16,
    /// Counts the blocks of all shards of the process.
    pub block_numbers: Arc<AtomicU64>,
    /// New events get sequences from here on, at least: no cursor may stand at or beyond it.
    pub next_at_least: u64,
    /// Bytes of the first segment; tests take small ones.
    pub first_segment_bytes: u64,
    /// Bytes that segments grow to, by doubling; one that must hold a larger block is longer. Files of this
    /// length are used again.
    pub segment_bytes_max: u64,
    /// Whether a thread makes segments ahead of need. Without, they are made when they are needed.
    pub segments_ahead: bool,
    /// Where segments' seeds come from.
    pub seeds: Seeds,
    /// What the segments may take of the disk; without it all that there is.
    pub allowance: Option<Arc<Allowance>>,
}

impl ShardOptions {
    /// Options as a server uses them.
    #[must_use]
    pub fn new(disk: SharedDisk, directory: PathBuf, origin: Origin, shard: u16) -> Self {
        let block_numbers = Arc::default();
        let first_segment_bytes = SEGMENT_BYTES_MIN;
        Self {
            disk,
            directory,
            origin,
            shard,
            block_numbers,
            next_at_least: 1,
            first_segment_bytes,
            segment_bytes_max: SEGMENT_BYTES_MAX,
            segments_ahead: true,
            seeds: Seeds::Random,
            allowance: None,
        }
    }
}

/// An open journal of one shard.
pub struct OpenShard {
    /// Takes records.
    pub appender: Appender,
    /// Makes them durable.
    pub committer: Committer,
    /// Reads them back and frees them.
    pub segments: Segments,
    /// The last sequence that is durable now, 0 if there is none.
    pub durable: u64,
    /// What recovery found that isn't as it was written.
    pub findings: Vec<Finding>,
}

/// Why a journal can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file system failed.
    #[error("can't open the journal in {directory}: {source}")]
    Io {
        /// The shard's directory.
        directory: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// A segment was written by another version.
    #[error("{path} has format {found}, this version reads format {}; use the version that wrote it", segment::FORMAT)]
    Format {
        /// The segment.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// A segment of another data directory or shard lies among ours.
    #[error("{path} belongs to origin {found}, shard {shard}, not to this directory; move it away")]
    Foreign {
        /// The segment.
        path: PathBuf,
        /// Whose it is.
        found: Origin,
        /// The shard it names.
        shard: u16,
    },
    /// The new segment couldn't be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Opens the journal of one shard.
///
/// # Errors
/// [`OpenError`] says what stands in the way. Damage is no error: it is in [`OpenShard::findings`].
pub fn open_shard(options: &ShardOptions) -> Result<OpenShard, OpenError> {
    find_shard(options)?.open()
}

/// What the last process has left of a shard's journal, looked at and not yet decided for good: until it is opened, the
/// next start finds the same.
pub struct FoundShard<'a> {
    options: &'a ShardOptions,
    survey: Survey,
    tail: Tail,
}

/// Looks at what the last process has left. What was found is to be told, and what else leans on events that are lost is
/// to be mended, before [`FoundShard::open`]: later nobody finds it again.
///
/// # Errors
/// [`OpenError`] says what stands in the way.
pub fn find_shard(options: &ShardOptions) -> Result<FoundShard<'_>, OpenError> {
    let io_error = |source| OpenError::Io { directory: options.directory.clone(), source };
    let names = prepare_directory(options).map_err(io_error)?;
    let mut survey = survey(options, &names)?;
    let tail = tail::read(options, &mut survey).map_err(io_error)?;
    Ok(FoundShard { options, survey, tail })
}

impl<'a> FoundShard<'a> {
    /// What isn't as it was written.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.survey.findings
    }

    /// The first sequence of the oldest segment that can be read.
    #[must_use]
    pub fn oldest(&self) -> Option<u64> {
        self.survey.headers.front().map(|header| header.first)
    }

    /// What it was looked at with.
    #[must_use]
    pub const fn options(&self) -> &'a ShardOptions {
        self.options
    }

    /// The last sequence that is durable once it is opened, 0 if there is none.
    #[must_use]
    pub const fn durable(&self) -> u64 {
        self.tail.next - 1
    }

    /// Begins a new segment, with what is carried over: what was found is decided then.
    ///
    /// # Errors
    /// [`OpenError`]: the new segment couldn't be made.
    pub fn open(self) -> Result<OpenShard, OpenError> {
        let Self { options, survey, tail } = self;
        let io_error = |source| OpenError::Io { directory: options.directory.clone(), source };
        let spares = SparePool::new(options.disk.clone(), &options.directory).within(options.allowance.clone());
        let segments = Segments::new(options.disk.clone(), &options.directory, survey.headers, spares.clone());
        let mut place = Place {
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
        let spares =
            if options.segments_ahead { Spares::ahead(spares).map_err(io_error)? } else { Spares::inline(spares) };
        let next = tail.next;
        let header = first_header(options, &tail, survey.next_generation, &mut place).map_err(io_error)?;
        let committer = Committer::start(place, spares, header, tail.carried)?;
        // Not before: a start that breaks off must not make the next one forget that these gave out sequences.
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

/// The directory's names, once they and the directory are durable: nothing may be decided on what a crash could
/// still take back.
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

/// What the segments' headers say.
pub(crate) struct Survey {
    /// The readable segments, oldest first.
    pub(crate) headers: VecDeque<SegmentHeader>,
    /// Segments newer than all readable ones whose header is damaged.
    pub(crate) unreadable_newest: usize,
    /// All of these, and where they are to be set aside.
    unreadable: Vec<(PathBuf, PathBuf)>,
    next_generation: u64,
    pub(crate) findings: Vec<Finding>,
}

fn survey(options: &ShardOptions, names: &[String]) -> Result<Survey, OpenError> {
    let mut generations: Vec<u64> = names.iter().filter_map(|name| segment::generation_of(name)).collect();
    generations.sort_unstable();
    let mut survey = Survey {
        headers: VecDeque::new(),
        unreadable_newest: 0,
        unreadable: Vec::new(),
        next_generation: 1,
        findings: Vec::new(),
    };
    for generation in generations {
        survey_segment(options, generation, &mut survey)?;
    }
    let newest = survey.headers.back().map_or(0, |header| header.generation);
    survey.next_generation = free_generation(newest + 1, names);
    Ok(survey)
}

/// The next generation after the readable ones of which there is no file, be it one that was set aside. A file's
/// name alone says nothing about the generations that were in use: strangers can have any.
fn free_generation(mut generation: u64, names: &[String]) -> u64 {
    let stem = |generation: u64| format!("{generation:016x}.");
    while names.iter().any(|name| name.starts_with(&stem(generation))) {
        generation += 1;
    }
    generation
}

fn survey_segment(options: &ShardOptions, generation: u64, survey: &mut Survey) -> Result<(), OpenError> {
    let path = segment::path(&options.directory, generation);
    let io_error = |source| OpenError::Io { directory: options.directory.clone(), source };
    match read_header(&options.disk, &path).map_err(io_error)? {
        HeaderPage::Sound { header, one_copy_damaged } if header.generation == generation => {
            if (header.origin, header.shard) != (options.origin, options.shard) {
                return Err(OpenError::Foreign { path, found: header.origin, shard: header.shard });
            }
            if one_copy_damaged {
                survey.findings.push(Finding::of_segment(SEGMENT_HEADER_COPY_DAMAGED, generation, None));
            }
            survey.unreadable_newest = 0;
            survey.headers.push_back(header);
        }
        HeaderPage::OtherFormat(found) => return Err(OpenError::Format { path, found }),
        HeaderPage::Sound { .. } | HeaderPage::Damaged => {
            let aside = path.with_extension("quarantined");
            survey.unreadable_newest += 1;
            survey.findings.push(Finding::of_segment(SEGMENT_HEADER_DAMAGED, generation, Some(aside.clone())));
            survey.unreadable.push((path, aside));
        }
    }
    Ok(())
}

pub(crate) fn read_header(disk: &SharedDisk, path: &Path) -> io::Result<HeaderPage> {
    let mut page = vec![0; PAGE_BYTES];
    let filled = disk.open(path)?.read_full_at(&mut page, 0)?;
    Ok(SegmentHeader::decode_page(&page[..filled]))
}

fn first_header(options: &ShardOptions, tail: &Tail, generation: u64, place: &mut Place) -> io::Result<SegmentHeader> {
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
