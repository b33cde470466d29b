//! Lines that a condition can't be evaluated on: counted, the first ones shown, all of them kept with the rejected
//! lines.

use std::ops::Range;

use memchr::memchr_iter;

use super::refused::{self, RefusedFile, Row};
use super::select::Undecided;
use super::{LoadCounters, Notify, counters};

/// Rows that are gathered before they are written.
const ROWS_BYTES: usize = 256 * 1024;

/// Takes those of one block, in their order.
pub(super) struct UndecidedLines<'a> {
    input: &'a str,
    block: &'a [u8],
    counters: &'a LoadCounters,
    notify: Notify<'a>,
    kept: Option<&'a RefusedFile>,
    /// The line that begins at `at`, from 1.
    number: u64,
    at: usize,
    rows: Vec<u8>,
    has_rows: bool,
}

impl<'a> UndecidedLines<'a> {
    /// `lines_before` is how many lines are before the block.
    pub(super) const fn new(
        input: &'a str,
        block: &'a [u8],
        lines_before: u64,
        (counters, notify): (&'a LoadCounters, Notify<'a>),
        kept: Option<&'a RefusedFile>,
    ) -> Self {
        Self {
            input,
            block,
            counters,
            notify,
            kept,
            number: lines_before + 1,
            at: 0,
            rows: Vec::new(),
            has_rows: false,
        }
    }

    pub(super) fn take(&mut self, line: Range<usize>, why: &Undecided) -> anyhow::Result<()> {
        self.number += memchr_iter(b'\n', &self.block[self.at..line.start]).count() as u64;
        self.at = line.start;
        self.show(why);
        let Some(kept) = self.kept else { return Ok(()) };
        let text = String::from_utf8_lossy(&self.block[line]);
        let text = text.trim_end_matches('\n');
        Row { file: self.input, line: self.number, code: why.code, detail: &why.detail, text }.append(&mut self.rows);
        self.has_rows = true;
        if self.rows.len() >= ROWS_BYTES {
            kept.append(&self.rows)?;
            self.rows.clear();
        }
        Ok(())
    }

    fn show(&self, why: &Undecided) {
        let before = self.counters.change(|counts| counters::add(&mut counts.undecided, 1));
        refused::show(before, self.notify, || format!("{} line {}: {}", self.input, self.number, why.detail));
    }

    /// The kept lines are durable before the state moves past the block.
    pub(super) fn end(self) -> anyhow::Result<()> {
        match self.kept {
            Some(kept) if self.has_rows => kept.append_durably(&self.rows),
            _ => Ok(()),
        }
    }
}
