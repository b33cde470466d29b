//! The findings that recovery and readers report, each with its place.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use crate::damaged::Damaged;

/// The code of a segment without a valid copy of the header. Its file is renamed.
pub const SEGMENT_HEADER_DAMAGED: char = 'H';
/// The code of a segment with one damaged copy of the header. It is still read.
pub const SEGMENT_HEADER_COPY_DAMAGED: char = 'I';
/// The code of a newest segment that is shorter than its header's length.
pub const SEGMENT_TRUNCATED: char = 'T';

/// The code of a log that ends before sequences that are known to have been used.
pub const LOG_ENDS_EARLY: char = 'N';

/// The code of a log that begins after records that are still needed.
pub const LOG_BEGINS_LATE: char = 'O';

/// A defect that recovery or a reader has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The row of the recovery table, or one of the codes of whole segments.
    pub case: char,
    /// The segment.
    pub generation: u64,
    /// The offset in the segment's file, in bytes.
    pub offset: u64,
    /// The first sequence of the damaged place; `None` for a whole segment or the whole log.
    pub first: Option<u64>,
    /// The sequences of the records that can't be read. Empty if nothing is lost or if they are unknown: a torn tail
    /// without a valid header.
    pub lost: Vec<Range<u64>>,
    /// The file with a copy of the damaged bytes, if they were saved.
    pub saved: Option<PathBuf>,
}

impl Finding {
    pub(crate) fn of(generation: u64, damaged: &Damaged, saved: Option<PathBuf>) -> Self {
        let first = Some(damaged.sequences.start);
        Self { case: damaged.case, generation, offset: damaged.offset, first, lost: damaged.lost(), saved }
    }

    pub(crate) const fn of_segment(case: char, generation: u64, saved: Option<PathBuf>) -> Self {
        Self { case, generation, offset: 0, first: None, lost: Vec::new(), saved }
    }

    /// A log that begins with `oldest`, but should have begun with `first` or earlier.
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
        match self.case {
            'B' => "damaged records; undamaged records of the block are kept",
            'C' => "torn last block: a commit was interrupted, or the block is damaged",
            'D' => "damaged block header; undamaged records of the block are kept",
            'E' => "torn last block without a valid header: a commit was interrupted, or the block is damaged",
            'F' => "a block is missing",
            SEGMENT_HEADER_DAMAGED => "segment without a valid header",
            SEGMENT_HEADER_COPY_DAMAGED => "one of the two copies of a segment's header is damaged, the other is used",
            SEGMENT_TRUNCATED => "segment shorter than the length in its header",
            LOG_ENDS_EARLY => "the log ends before accepted events: restore the missing or truncated files from a copy",
            LOG_BEGINS_LATE => {
                "the log begins after records that are still needed: restore its first files from a copy"
            }
            _ => "unknown damage",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "case {}: {} (segment {:016x}, byte {})", self.case, self.what(), self.generation, self.offset)?;
        if !self.lost.is_empty() {
            let ranges: Vec<String> = self.lost.iter().map(|lost| format!("{}-{}", lost.start, lost.end - 1)).collect();
            write!(f, "; lost {} at {}", text::counted(self.lost_count(), "record"), ranges.join(", "))?;
        }
        if let Some(saved) = &self.saved {
            write!(f, "; the original bytes are in {}", saved.display())?;
        }
        Ok(())
    }
}
