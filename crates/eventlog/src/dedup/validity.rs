//! The validity of the id files after recovery.
//!
//! If recovery finds that events are lost, their ids must leave the index, so clients can send the events again. After
//! the first damaged range of a shard's log, the files are invalid, and the ids are read from the log.

use journal::{Finding, LOG_ENDS_EARLY, SEGMENT_HEADER_DAMAGED, SEGMENT_TRUNCATED};

use super::id_file::{Frame, StoredId};

/// Findings that lose events at unknown positions: then nothing in the shard's files is valid.
const LOST_ANYWHERE: [char; 3] = [SEGMENT_HEADER_DAMAGED, SEGMENT_TRUNCATED, LOG_ENDS_EARLY];

/// For each shard, the sequence up to which the files are valid.
#[derive(Debug)]
pub(crate) struct Validity(Vec<u64>);

impl Validity {
    /// `shards` has for each shard, by number, the last durable sequence and recovery's findings.
    pub(crate) fn new<'a>(shards: impl Iterator<Item = (u64, &'a [Finding])>) -> Self {
        Self(shards.map(|(durable, findings)| findings.iter().map(valid_up_to).fold(durable, u64::min)).collect())
    }

    pub(super) const fn shards(&self) -> usize {
        self.0.len()
    }

    /// The sequence up to which the files are valid for a shard.
    fn up_to(&self, shard: u16) -> u64 {
        self.0.get(usize::from(shard)).copied().unwrap_or_default()
    }

    /// The valid part of a frame, if there is one.
    pub(super) fn valid_part(&self, mut frame: Frame) -> Option<Frame> {
        let up_to = self.up_to(frame.shard);
        if frame.up_to <= up_to {
            return Some(frame);
        }
        frame.ids.retain(|StoredId { sequence, .. }| *sequence <= up_to);
        // The log is read from there on, also after the next start.
        frame.up_to = up_to;
        (frame.after < up_to).then_some(frame)
    }
}

fn valid_up_to(finding: &Finding) -> u64 {
    if LOST_ANYWHERE.contains(&finding.case) {
        return 0;
    }
    finding.first.map_or(u64::MAX, |first| first.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use event::EventId;

    use super::*;

    fn finding(case: char, first: Option<u64>) -> Finding {
        Finding { case, generation: 1, offset: 4096, first, lost: Vec::new(), saved: None }
    }

    fn frame(shard: u16, after: u64, up_to: u64) -> Frame {
        let id = |sequence: u64| StoredId { id: EventId([1; 16]), content: sequence, sequence };
        Frame { shard, after, up_to, written_at: 0, ids: (after + 1..=up_to).map(id).collect() }
    }

    #[test]
    fn frame_is_valid_until_the_first_damage() {
        let found = [finding('I', None), finding('E', Some(8)), finding('B', Some(5))];
        let validity = Validity::new([(20, &found[..]), (6, &[])].into_iter());
        let expected = [
            ((0, 0, 4), Some((0, 4))),
            ((0, 0, 9), Some((0, 4))),
            ((0, 4, 9), None),
            ((0, 6, 9), None),
            ((1, 2, 6), Some((2, 6))),
            ((1, 2, 7), Some((2, 6))),
            ((2, 0, 1), None),
        ];
        for ((shard, after, up_to), holds) in expected {
            let holds = holds.map(|(after, up_to)| frame(shard, after, up_to));
            assert_eq!(validity.valid_part(frame(shard, after, up_to)), holds, "{shard}: {after} to {up_to}");
        }
    }

    #[test]
    fn unknown_losses_invalidate_all_frames() {
        for case in LOST_ANYWHERE {
            let found = [finding(case, None)];
            let validity = Validity::new([(9, &found[..])].into_iter());
            assert_eq!((validity.up_to(0), validity.valid_part(frame(0, 0, 2))), (0, None), "{case}");
        }
    }
}
