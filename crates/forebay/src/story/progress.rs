//! When lanes passed positions, and when they could not deliver: kept for some hours, also after the journal has freed its segments.

use admin_api::story::{BoundsJson, FailureJson};
use progress::{Failure, Passed, ProgressBoard};
use text::rfc3339;

/// Bounds of a time: microseconds since 1970, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) from: i64,
    pub(crate) to: i64,
}

impl Bounds {
    pub(super) const fn exactly(time: i64) -> Self {
        Self { from: time, to: time }
    }

    pub(super) fn json(self) -> BoundsJson {
        BoundsJson { from: rfc3339::format(self.from), to: rfc3339::format(self.to) }
    }
}

/// The progress of lanes and shards. Its functions read files.
pub(crate) trait ProgressSource: Send + Sync {
    /// When a lane passed a position that it has passed. `None` if that is too long ago.
    fn passed(&self, shard: u16, sink: &str, position: u64) -> Option<Bounds>;

    /// When a position of a shard was durable.
    fn durable(&self, shard: u16, position: u64) -> Option<Bounds>;

    /// The last sequence of a shard that was durable at a time: the least and the greatest that it may be.
    fn durable_range_at(&self, shard: u16, time: i64) -> Option<(u64, u64)>;

    /// The failures of a lane between these times; to now without the second.
    fn failures(&self, shard: u16, sink: &str, from: i64, to: Option<i64>) -> Vec<FailureJson>;

    /// The object that holds an event of a lane.
    fn object_of(&self, shard: u16, sink: &str, position: u64, type_name: &str) -> Option<String>;

    /// The writer through which a lane stored a position.
    fn writer_of(&self, shard: u16, sink: &str, position: u64) -> Option<String>;

    /// The time before which nothing is known of a lane.
    fn reaches_back_to(&self, shard: u16, sink: &str) -> Option<i64>;
}

impl ProgressSource for ProgressBoard {
    fn passed(&self, shard: u16, sink: &str, position: u64) -> Option<Bounds> {
        // Read first: the ring has the positions up to this sample already, unless they are too old.
        let last = self.last_sample(shard, sink);
        let kept = Self::passed(self, shard, sink, position).map(|Passed { from, to, .. }| Bounds { from, to });
        kept.or_else(|| {
            let last = last?;
            if last.cursor < position {
                return Some(Bounds { from: last.time, to: clock::unix_microseconds() });
            }
            // It was passed before the oldest sample.
            let oldest = Self::reaches_back_to(self, shard, sink).unwrap_or(last.time);
            Some(Bounds { from: i64::MIN, to: oldest })
        })
    }

    fn durable(&self, shard: u16, position: u64) -> Option<Bounds> {
        Self::durable(self, shard, position).map(|Passed { from, to, .. }| Bounds { from, to })
    }

    fn durable_range_at(&self, shard: u16, time: i64) -> Option<(u64, u64)> {
        self.cursor_range_at(shard, time)
    }

    fn failures(&self, shard: u16, sink: &str, from: i64, to: Option<i64>) -> Vec<FailureJson> {
        let json = |failure: Failure| FailureJson {
            from: rfc3339::format(failure.from),
            to: failure.to.map(rfc3339::format),
            tries: failure.tries,
            reason: failure.reason,
            server: failure.server,
        };
        Self::failures(self, shard, sink, from, to).into_iter().map(json).collect()
    }

    fn object_of(&self, shard: u16, sink: &str, position: u64, type_name: &str) -> Option<String> {
        Self::object_of(self, shard, sink, position, type_name)
    }

    fn writer_of(&self, shard: u16, sink: &str, position: u64) -> Option<String> {
        Self::writer_of(self, shard, sink, position)
    }

    fn reaches_back_to(&self, shard: u16, sink: &str) -> Option<i64> {
        Self::reaches_back_to(self, shard, sink)
    }
}
