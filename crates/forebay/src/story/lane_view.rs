//! How far the lanes are, at one moment, and whether they have passed an event.

use std::sync::Arc;

use delivery::LaneBoard;
use event::Position;
use eventlog::{EventLog, unix_microseconds};

use super::outcome::LaneSays;
use super::progress::{Bounds, ProgressSource};

/// An event is durable this long after its receipt, unless its batch arrives slowly: microseconds.
const DURABLE_WITHIN: i64 = 5_000_000;

/// One lane.
#[derive(Clone, Debug)]
pub(super) struct LaneView {
    sink: Arc<str>,
    shard: u16,
    cursor: u64,
    settled: u64,
    durable: u64,
}

/// All lanes.
#[derive(Clone, Debug)]
pub(super) struct LaneViews {
    lanes: Vec<LaneView>,
    shards: u16,
    now: i64,
}

impl LaneViews {
    pub(super) fn now(log: &EventLog, board: &LaneBoard) -> Self {
        let view = |status: &Arc<delivery::LaneStatus>| {
            let lane = status.lane();
            let durable = log.shards().get(usize::from(lane.shard)).map_or(0, |shard| shard.durable());
            let (cursor, settled) = (status.cursor(), status.settled());
            LaneView { sink: lane.sink.clone(), shard: lane.shard, cursor, settled, durable }
        };
        let lanes = board.lanes().iter().map(view).collect();
        Self { lanes, shards: u16::try_from(log.shards().len()).unwrap_or(u16::MAX), now: unix_microseconds() }
    }

    fn of<'a>(&'a self, sink: &'a str) -> impl Iterator<Item = &'a LaneView> {
        self.lanes.iter().filter(move |lane| *lane.sink == *sink)
    }

    /// Whether the sink's lane has passed a position; `saved` is the cursor of the lane of a removed sink.
    pub(super) fn at(&self, sink: &str, position: Position, saved: Option<u64>) -> LaneSays {
        let lane = self.of(sink).find(|lane| lane.shard == position.shard);
        let (cursor, settled) =
            lane.map_or_else(|| (saved.unwrap_or(0), saved.unwrap_or(0)), |lane| (lane.cursor, lane.settled));
        if settled >= position.sequence {
            return LaneSays::Passed;
        }
        LaneSays::Pending(Some(position.sequence.saturating_sub(cursor.saturating_add(1))))
    }

    /// Whether the sink's lanes have passed an event that was received at a time, in any shard, and bounds of the time when they did.
    pub(super) fn by_time(
        &self,
        sink: &str,
        received_at: i64,
        progress: &dyn ProgressSource,
    ) -> (LaneSays, Option<Bounds>) {
        let mut all: Option<Bounds> = None;
        let (mut lanes, mut is_bounded) = (0, true);
        for lane in self.of(sink) {
            lanes += 1;
            let (first, last) = places(lane, received_at, self.now, progress);
            if lane.settled < last {
                let is_pending = self.shards == 1 && lane.settled < first;
                return (if is_pending { LaneSays::Pending(None) } else { LaneSays::Unknown }, None);
            }
            if first > last {
                continue;
            }
            let passed = |position| progress.passed(lane.shard, sink, position);
            match passed(last) {
                // It isn't stored before its receipt, regardless of earlier events.
                Some(Bounds { to, .. }) => {
                    let from = passed(first).map_or(received_at, |first| first.from.max(received_at)).min(to);
                    all = Some(joined(all, Bounds { from, to }));
                }
                None => is_bounded = false,
            }
        }
        if lanes == 0 { (LaneSays::Unknown, None) } else { (LaneSays::Passed, all.filter(|_| is_bounded)) }
    }
}

/// The first and the last sequence that an event of a shard may have that was received at a time.
fn places(lane: &LaneView, received_at: i64, now: i64, progress: &dyn ProgressSource) -> (u64, u64) {
    let before = progress.durable_range_at(lane.shard, received_at);
    let until = received_at.saturating_add(DURABLE_WITHIN);
    let after = if until < now { progress.durable_range_at(lane.shard, until) } else { None };
    let first = before.map_or(0, |(least, _)| least.saturating_add(1));
    (first, after.map_or(lane.durable, |(_, greatest)| greatest.min(lane.durable)))
}

fn joined(all: Option<Bounds>, more: Bounds) -> Bounds {
    all.map_or(more, |all| Bounds { from: all.from.min(more.from), to: all.to.max(more.to) })
}

#[cfg(test)]
mod tests {
    use admin_api::story::FailureJson;

    use super::*;

    /// Each shard has 10 durable events a second, and the lanes of `slow` pass them 3 s later than others.
    struct Steady;

    impl ProgressSource for Steady {
        fn passed(&self, _shard: u16, sink: &str, position: u64) -> Option<Bounds> {
            let time = i64::try_from(position).unwrap() * 100_000 + if sink == "slow" { 3_000_000 } else { 0 };
            Some(Bounds { from: time, to: time + 500_000 })
        }

        fn durable(&self, _shard: u16, _position: u64) -> Option<Bounds> {
            None
        }

        fn durable_range_at(&self, _shard: u16, time: i64) -> Option<(u64, u64)> {
            let position = u64::try_from(time / 100_000).unwrap();
            Some((position, position + 5))
        }

        fn failures(&self, _shard: u16, _sink: &str, _from: i64, _to: Option<i64>) -> Vec<FailureJson> {
            Vec::new()
        }

        fn object_of(&self, _shard: u16, _sink: &str, _position: u64, _type_name: &str) -> Option<String> {
            None
        }

        fn writer_of(&self, _shard: u16, _sink: &str, _position: u64) -> Option<String> {
            None
        }

        fn reaches_back_to(&self, _shard: u16, _sink: &str) -> Option<i64> {
            None
        }
    }

    fn views(shards: u16, settled: u64) -> LaneViews {
        let lane = |(sink, shard): (&str, u16)| LaneView {
            sink: sink.into(),
            shard,
            cursor: settled,
            settled,
            durable: 1_000,
        };
        let lanes = (0..shards).flat_map(|shard| [("slow", shard), ("fast", shard)]).map(lane).collect();
        LaneViews { lanes, shards, now: 100_000_000 }
    }

    #[test]
    fn position_is_compared_with_its_lane() {
        let at = |sequence| views(2, 90).at("fast", Position { shard: 1, sequence }, None);
        assert_eq!(
            [at(90), at(91), at(95)],
            [LaneSays::Passed, LaneSays::Pending(Some(0)), LaneSays::Pending(Some(4))]
        );
        let removed = |saved| views(1, 90).at("gone", Position { shard: 0, sequence: 7 }, saved);
        assert_eq!([removed(Some(7)), removed(Some(3))], [LaneSays::Passed, LaneSays::Pending(Some(3))]);
    }

    #[test]
    fn time_bounds_hold_over_all_shards() {
        let (says, bounds) = views(2, 1_000).by_time("slow", 50_000_000, &Steady);
        let bounds = bounds.unwrap();
        assert_eq!(says, LaneSays::Passed);
        // The event is at 500 or a little later.
        assert!(bounds.from <= 53_000_000 + 100_000 && bounds.to >= 53_500_000, "{bounds:?}");
        assert_eq!(views(1, 400).by_time("fast", 50_000_000, &Steady), (LaneSays::Pending(None), None));
        assert_eq!(views(2, 400).by_time("fast", 50_000_000, &Steady), (LaneSays::Unknown, None));
        assert_eq!(views(1, 1_000).by_time("none", 50_000_000, &Steady), (LaneSays::Unknown, None));
    }
}
