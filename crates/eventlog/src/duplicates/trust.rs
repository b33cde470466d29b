//! What of the files of ids holds after recovery has looked at the logs.
//!
//! An event that recovery has found lost isn't stored, whatever a file says: it may come again. From the first damaged place of a
//! shard's log on its files aren't believed, and the log says which events are there.

use journal::{Finding, LOG_ENDS_EARLY, SEGMENT_HEADER_DAMAGED, SEGMENT_TRUNCATED};

use super::file::{Frame, Remembered};

/// Findings that lose events of which nobody knows where they stood: then nothing of the shard's files holds.
const LOST_ANYWHERE: [char; 3] = [SEGMENT_HEADER_DAMAGED, SEGMENT_TRUNCATED, LOG_ENDS_EARLY];

/// For each shard, up to where what the files say of it holds.
#[derive(Debug)]
pub(crate) struct Trust(Vec<u64>);

impl Trust {
    /// Of each shard, by number, the last durable sequence and what was found.
    pub(crate) fn new<'a>(shards: impl Iterator<Item = (u64, &'a [Finding])>) -> Self {
        Self(shards.map(|(durable, findings)| findings.iter().map(holds_up_to).fold(durable, u64::min)).collect())
    }

    pub(super) const fn shards(&self) -> usize {
        self.0.len()
    }

    /// Up to where what the files say of a shard holds.
    fn up_to(&self, shard: u16) -> u64 {
        self.0.get(usize::from(shard)).copied().unwrap_or_default()
    }

    /// What of a frame holds, if anything does.
    pub(super) fn what_holds(&self, mut frame: Frame) -> Option<Frame> {
        let up_to = self.up_to(frame.shard);
        if frame.up_to <= up_to {
            return Some(frame);
        }
        frame.ids.retain(|Remembered { sequence, .. }| *sequence <= up_to);
        // Behind it the log is read, also after the next start.
        frame.up_to = up_to;
        (frame.after < up_to).then_some(frame)
    }
}

fn holds_up_to(finding: &Finding) -> u64 {
    if LOST_ANYWHERE.contains(&finding.letter) {
        return 0;
    }
    finding.first.map_or(u64::MAX, |first| first.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use event::EventId;

    use super::*;

    fn finding(letter: char, first: Option<u64>) -> Finding {
        Finding { letter, generation: 1, offset: 4096, first, lost: Vec::new(), saved: None }
    }

    fn frame(shard: u16, after: u64, up_to: u64) -> Frame {
        let id = |sequence: u64| Remembered { id: EventId([1; 16]), content: sequence, sequence };
        Frame { shard, after, up_to, written_at: 0, ids: (after + 1..=up_to).map(id).collect() }
    }

    #[test]
    fn a_frame_holds_up_to_the_first_damaged_place() {
        let found = [finding('I', None), finding('E', Some(8)), finding('B', Some(5))];
        let trust = Trust::new([(20, &found[..]), (6, &[])].into_iter());
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
            assert_eq!(trust.what_holds(frame(shard, after, up_to)), holds, "{shard}: {after} to {up_to}");
        }
    }

    #[test]
    fn nothing_holds_where_nobody_knows_what_is_lost() {
        for letter in LOST_ANYWHERE {
            let found = [finding(letter, None)];
            let trust = Trust::new([(9, &found[..])].into_iter());
            assert_eq!((trust.up_to(0), trust.what_holds(frame(0, 0, 2))), (0, None), "{letter}");
        }
    }
}
