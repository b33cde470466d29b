//! Lines that arrive in chunks.

use event::limits::{BATCH_RECORDS_MAX, EVENT_BYTES_MAX};

use super::{BatchError, Item, too_large};
use crate::{RecordRejection, check, first_byte};

/// Bytes of a line that are kept while its end isn't there: those of an event and a `\r`.
const CARRY_BYTES_MAX: usize = EVENT_BYTES_MAX + 1;

/// Finds the lines of a body and checks each.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The line's beginning, from chunks before.
    carry: Vec<u8>,
    /// The line is too long already: its bytes are passed over up to its end.
    skipping: bool,
    /// Lines that have ended.
    ended: u32,
    /// Records that were given.
    given: usize,
}

impl Lines {
    pub(super) fn push(&mut self, mut chunk: &[u8], sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            self.end_line(&chunk[..end], sink)?;
            chunk = &chunk[end + 1..];
        }
        self.keep(chunk);
        Ok(())
    }

    /// The last line needs no `\n`.
    pub(super) fn finish(mut self, sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        self.end_line(&[], sink)
    }

    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        self.carry.capacity()
    }

    fn keep(&mut self, part: &[u8]) {
        if self.skipping {
            return;
        }
        if self.carry.len() + part.len() > CARRY_BYTES_MAX {
            self.skipping = true;
            self.carry = Vec::new();
        } else {
            self.carry.extend_from_slice(part);
        }
    }

    fn end_line(&mut self, rest: &[u8], sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        self.ended += 1;
        if self.carry.is_empty() && !self.skipping {
            return self.take(rest, sink);
        }
        self.keep(rest);
        if std::mem::take(&mut self.skipping) {
            return self.give(Err(too_large(self.ended)), &[], sink);
        }
        let mut line = std::mem::take(&mut self.carry);
        self.take(&line, sink)?;
        line.clear();
        self.carry = line;
        Ok(())
    }

    fn take(&mut self, line: &[u8], sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > EVENT_BYTES_MAX {
            return self.give(Err(too_large(self.ended)), &[], sink);
        }
        if first_byte(line).is_none() {
            return Ok(());
        }
        let number = self.ended;
        self.give(check(line).map_err(|error| RecordRejection::of_json(number, error)), line, sink)
    }

    fn give(
        &mut self,
        record: Result<&str, RecordRejection>,
        raw: &[u8],
        sink: &mut impl FnMut(Item<'_>),
    ) -> Result<(), BatchError> {
        if self.given == BATCH_RECORDS_MAX {
            return Err(BatchError::TooManyRecords);
        }
        self.given += 1;
        let ordinal = u32::try_from(self.given).expect("the limit of records has 17 bits");
        sink(Item { line: self.ended, ordinal, record, raw });
        Ok(())
    }
}
