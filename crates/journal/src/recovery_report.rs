//! What recovery and readers report: never silently, always with the place.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use crate::damaged::Damaged;

/// The letter for a segment of which no copy of the header is sound. Its file is set aside.
pub const SEGMENT_HEADER_DAMAGED: char = 'H';
/// The letter for a segment of which one copy of the header is damaged. It is read all the same.
pub const SEGMENT_HEADER_COPY_DAMAGED: char = 'I';
/// The letter for a newest segment that is shorter than its header says.
pub const SEGMENT_TRUNCATED: char = 'T';

/// The letter for a log that ends before sequences that are known to have been given out.
pub const LOG_ENDS_EARLY: char = 'N';

/// The letter for a log that begins behind records that are still needed.
pub const LOG_BEGINS_LATE: char = 'O';

/// Something that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The row of the recovery table, or one of the letters for whole segments.
    pub letter: char,
    /// The segment.
    pub generation: u64,
    /// Where in the segment's file, in bytes.
    pub offset: u64,
    /// The first sequence of the damaged place; `None` for what concerns a whole segment or the whole log.
    pub first: Option<u64>,
    /// The sequences of the records that can't be read. Empty where nothing is lost or where it isn't known:
    /// a torn tail without a sound header.
    pub lost: Vec<Range<u64>>,
    /// The file that holds the bytes as they were found, if they were saved.
    pub saved: Option<PathBuf>,
}

impl Finding {
    pub(crate) fn of(generation: u64, damaged: &Damaged, saved: Option<PathBuf>) -> Self {
        let first = Some(damaged.sequences.start);
        Self { letter: damaged.letter, generation, offset: damaged.offset, first, lost: damaged.lost(), saved }
    }

    pub(crate) const fn of_segment(letter: char, generation: u64, saved: Option<PathBuf>) -> Self {
        Self { letter, generation, offset: 0, first: None, lost: Vec::new(), saved }
    }

    /// A log that begins with `oldest`, and should have begun with `first` or before.
    #[must_use]
    pub fn begins_late(first: u64, oldest: u64) -> Self {
        let mut finding = Self::of_segment(LOG_BEGINS_LATE, 0, None);
        finding.lost.push(first..oldest);
        finding
    }

    /// A log that ends before `next` though records up to `counted` were known; `None` if it doesn't.
    #[must_use]
    pub fn ends_early(next: u64, counted: u64) -> Option<Self> {
        let mut finding = Self::of_segment(LOG_ENDS_EARLY, 0, None);
        finding.lost.push(next..counted.saturating_add(1));
        (next <= counted).then_some(finding)
    }

    /// How many records can't be read.
    #[must_use]
    pub fn lost_count(&self) -> u64 {
        self.lost.iter().map(|range| range.end - range.start).sum()
    }

    fn what(&self) -> &'static str {
        match self.letter {
            'B' => "damaged records, their undamaged neighbours are kept",
            'C' => "torn last block: a commit was interrupted, or the block is damaged",
            'D' => "damaged block, its undamaged records are kept",
            'E' => "torn last block without a sound header: a commit was interrupted, or the block is damaged",
            'F' => "a block is missing",
            SEGMENT_HEADER_DAMAGED => "segment without a sound header",
            SEGMENT_HEADER_COPY_DAMAGED => "one of the two copies of a segment's header is damaged, the other serves",
            SEGMENT_TRUNCATED => "segment shorter than its header says",
            LOG_ENDS_EARLY => "the log ends before events that were accepted: files are missing, or their end is",
            LOG_BEGINS_LATE => "the log begins behind records that were still needed: its first files are missing",
            _ => "unknown damage",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "case {}: {} (segment {:016x}, byte {})", self.letter, self.what(), self.generation, self.offset)?;
        if !self.lost.is_empty() {
            let ranges: Vec<String> = self.lost.iter().map(|lost| format!("{}-{}", lost.start, lost.end - 1)).collect();
            write!(f, "; lost {} at {}", text::counted(self.lost_count(), "record"), ranges.join(", "))?;
        }
        if let Some(saved) = &self.saved {
            write!(f, "; the bytes as found are in {}", saved.display())?;
        }
        Ok(())
    }
}
