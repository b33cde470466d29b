//! Answers from a ring: when a position was passed, and where the cursor was at a time.

use std::io;

use journal::disk::DiskFile;

use crate::page::{PageHeader, ProgressSample};
use crate::ring::{headers, read_page};

/// How far the wall clock may have got between two samples, in microseconds: if it was set back in between, the time
/// of a position is known to this exactness only.
const BETWEEN_SAMPLES: i64 = 1_000_000;

/// Bounds of the time when a cursor passed a position: microseconds since 1970, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Not before this time.
    pub from: i64,
    /// Not after this time.
    pub to: i64,
    /// The wall clock was set back in between: the bounds are as wide as the step.
    pub is_vague: bool,
}

impl Passed {
    const fn between(before: ProgressSample, after: ProgressSample) -> Self {
        if before.time <= after.time {
            return Self { from: before.time, to: after.time, is_vague: false };
        }
        let (from, to) = (after.time.saturating_sub(BETWEEN_SAMPLES), before.time.saturating_add(BETWEEN_SAMPLES));
        Self { from, to, is_vague: true }
    }
}

/// When the cursor passed `position`, by the newest generation that began before it. `None` if it hasn't passed it
/// there, or if the ring doesn't reach back so far.
pub(crate) fn passed(file: &dyn DiskFile, position: u64) -> io::Result<Option<Passed>> {
    let pages = headers(file)?;
    let newest_first = pages.chunk_by(|a, b| a.generation == b.generation).rev();
    let Some(pages) = newest_first.into_iter().find(|pages| pages[0].first.cursor < position) else { return Ok(None) };
    let after = pages.partition_point(|page| page.first.cursor < position);
    let page = &pages[after - 1];
    let (mut before, bytes) = (page.first, read_page(file, page)?);
    for (_, sample) in page.pairs(&bytes) {
        if sample.cursor >= position {
            return Ok(Some(Passed::between(before, sample)));
        }
        before = sample;
    }
    Ok(pages.get(after).map(|next| Passed::between(before, next.first)))
}

/// The least and the greatest position at which the cursor may have been at `time`, by the newest generation that has it.
/// `None` if the ring doesn't have this time between two samples.
pub(crate) fn range_at(file: &dyn DiskFile, time: i64) -> io::Result<Option<(u64, u64)>> {
    let pages = headers(file)?;
    for pages in pages.chunk_by(|a, b| a.generation == b.generation).rev() {
        let (mut found, mut before) = (None, None);
        for page in pages {
            let bytes = read_page(file, page)?;
            for sample in std::iter::once(page.first).chain(page.pairs(&bytes).map(|(_, sample)| sample)) {
                found = widen(found, before.replace(sample), sample, time);
            }
        }
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The range with that of two successive samples, if `time` is between them.
fn widen(
    range: Option<(u64, u64)>,
    before: Option<ProgressSample>,
    after: ProgressSample,
    time: i64,
) -> Option<(u64, u64)> {
    let between = before.filter(|before| {
        let passed = Passed::between(*before, after);
        (passed.from..=passed.to).contains(&time)
    });
    let Some(before) = between else { return range };
    let (least, greatest) = range.unwrap_or((before.cursor, after.cursor));
    Some((least.min(before.cursor), greatest.max(after.cursor)))
}

/// The newest pair of a ring.
pub(crate) fn newest(file: &dyn DiskFile) -> io::Result<Option<ProgressSample>> {
    let Some(page) = headers(file)?.last().copied() else { return Ok(None) };
    let bytes = read_page(file, &page)?;
    Ok(Some(page.pairs(&bytes).last().map_or(page.first, |(_, sample)| sample)))
}

/// The time of the oldest pair of a ring.
pub(crate) fn oldest_time(file: &dyn DiskFile) -> io::Result<Option<i64>> {
    Ok(headers(file)?.first().map(|page: &PageHeader| page.first.time))
}
