//! One batch, sent until each of its lines has its outcome: first as a whole, and then line by line the lines that the server only accepts
//! alone.
//!
//! A line that was sent alone has an id of another key than its batch. It must never be accepted under both. So the state names these lines before
//! the first of them is sent, and from then on the batch isn't resent to deliver them.

use std::collections::BTreeSet;

use super::batch_result::{AloneLines, BatchResult};
use anyhow::bail;

use super::body::Piece;
use super::refused::Refusals;
use super::sender::Sender;
use super::source::Block;
use super::state::Split;
use super::{Load, Work, counters};

/// The content of one request.
pub(super) struct Batch<'a, 'w> {
    pub(super) load: &'a Load<'a>,
    pub(super) work: &'a Work<'w>,
    pub(super) block: &'a Block,
    pub(super) piece: &'a Piece<'a>,
}

impl Batch<'_, '_> {
    /// How many lines were rejected; none if it is time to stop.
    pub(super) fn deliver(&self, sender: &Sender<'_>) -> anyhow::Result<Option<u64>> {
        let split = match self.work.watermark.split(self.offset()) {
            Some(split) => {
                // The run that sent the batch has counted them.
                self.load.counters.change(|counts| counts.refused_before += split.refused);
                split
            }
            None => {
                let Some(mut result) = self.send(sender)? else { return Ok(None) };
                let AloneLines { lines, has_more } = result.take_alone();
                let refused = self.note(&result)?;
                if lines.is_empty() && !has_more {
                    return Ok(Some(refused));
                }
                let split = Split { offset: self.offset(), alone: lines.into_iter().collect(), has_more, refused };
                self.work.watermark.set_split(split.clone())?;
                split
            }
        };
        self.send_split(split, sender)
    }

    fn send_split(&self, mut split: Split, sender: &Sender<'_>) -> anyhow::Result<Option<u64>> {
        let mut refused = split.refused;
        let mut next = split.alone.clone();
        loop {
            for line in next {
                let Some(now) = self.send_alone(line, sender)? else { return Ok(None) };
                refused += now;
            }
            if !split.has_more {
                return Ok(Some(refused));
            }
            let Some(more) = self.find_more(&mut split, sender)? else { return Ok(None) };
            next = more;
        }
    }

    fn send_alone(&self, line: usize, sender: &Sender<'_>) -> anyhow::Result<Option<u64>> {
        let Some(body) = self.piece.line(line) else { return Ok(Some(0)) };
        let key = format!("{}-line-{line}", self.key());
        let Some(result) = sender.send(&key, body, &self.work.halt)? else { return Ok(None) };
        self.note(&result.of_line(line)).map(Some)
    }

    /// Sends the batch again to learn which lines weren't listed: lines that were sent alone no longer block others.
    fn find_more(&self, split: &mut Split, sender: &Sender<'_>) -> anyhow::Result<Option<BTreeSet<usize>>> {
        let Some(mut result) = self.send(sender)? else { return Ok(None) };
        let AloneLines { lines, has_more } = result.take_alone();
        let new: BTreeSet<_> = lines.into_iter().filter(|line| !split.alone.contains(line)).collect();
        if new.is_empty() && has_more {
            bail!(
                "the batch at byte {} can't be completed, because lines that were sent alone are rejected again. \
                 Increase `window` and `values` of the `dedupe` steps of their type, then start again",
                self.offset()
            );
        }
        split.alone.extend(&new);
        split.has_more = has_more;
        self.work.watermark.set_split(split.clone())?;
        Ok(Some(new))
    }

    fn send(&self, sender: &Sender<'_>) -> anyhow::Result<Option<BatchResult>> {
        let mut result = sender.send(&self.key(), self.piece.body, &self.work.halt)?;
        if let Some(result) = &mut result {
            let is_one_value = |line| self.piece.line(line).is_none_or(|line| json::check(line).is_ok());
            result.refuse_in_lines_of_several(is_one_value);
        }
        Ok(result)
    }

    fn offset(&self) -> u64 {
        self.block.offset + self.piece.offset as u64
    }

    fn key(&self) -> String {
        format!("{}-{}-{}", self.work.key, self.block.generation, self.offset())
    }

    /// Counts a result, shows and keeps the rejected lines, and returns how many these are.
    fn note(&self, result: &BatchResult) -> anyhow::Result<u64> {
        let (Load { counters, notify, .. }, work) = (self.load, self.work);
        let lines_before = self.block.lines_before;
        let refusals = Refusals { input: work.input, lines_before, piece: self.piece, result };
        if let Some(kept) = work.refused.as_ref().filter(|_| !result.refused.is_empty()) {
            kept.write(&refusals)?;
        }
        let before = counters.change(|counts| {
            counts.accepted += result.accepted;
            counts.duplicates += result.duplicates;
            counters::add(&mut counts.refused, result.refused_count())
        });
        refusals.show(before, *notify);
        Ok(result.refused_count())
    }
}
