//! Which writer a lane uses: each sticks to one, and uses the next one of its own order while that one rests after a failure.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use event::Lane;
use tokio::time::Instant;

/// How long a writer rests after its first failure; twice as long after each further one.
const REST_MIN: Duration = Duration::from_secs(1);
/// The longest rest.
const REST_MAX: Duration = Duration::from_secs(30);

/// The writers of an upstream and how they do.
#[derive(Debug)]
pub(crate) struct Servers {
    /// By which each lane orders them: rendezvous hashing, so that a writer that goes moves its own lanes only.
    names: Vec<String>,
    rests: Mutex<Vec<Rest>>,
}

/// How a writer rests.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    failures: u32,
    until: Option<Instant>,
}

impl Servers {
    pub(crate) fn new(names: Vec<String>) -> Self {
        let rests = Mutex::new(vec![Rest::default(); names.len()]);
        Self { names, rests }
    }

    fn held(&self) -> MutexGuard<'_, Vec<Rest>> {
        self.rests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The numbers of all writers in the order in which `lane` tries them: those that rest come last, so that there is always one.
    pub(super) fn order(&self, lane: &Lane) -> Vec<usize> {
        let now = Instant::now();
        let rests = self.held().clone();
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        let until = |index: &usize| rests.get(*index).and_then(|rest| rest.until).filter(|until| *until > now);
        order.sort_by_key(|index| (until(index), std::cmp::Reverse(self.weight(lane, *index))));
        order
    }

    fn weight(&self, lane: &Lane, index: usize) -> u64 {
        let mut hasher = DefaultHasher::new();
        (lane, self.names.get(index)).hash(&mut hasher);
        hasher.finish()
    }

    /// The writer has answered.
    pub(super) fn is_well(&self, index: usize) {
        if let Some(rest) = self.held().get_mut(index) {
            *rest = Rest::default();
        }
    }

    /// The writer doesn't answer, or ends.
    pub(super) fn has_failed(&self, index: usize) {
        if let Some(rest) = self.held().get_mut(index) {
            let length = REST_MIN.saturating_mul(1 << rest.failures.min(5)).min(REST_MAX);
            *rest = Rest { failures: rest.failures + 1, until: Some(Instant::now() + length) };
        }
    }
}

#[cfg(test)]
mod tests {
    use event::Origin;

    use super::*;

    fn lane(shard: u16) -> Lane {
        Lane { origin: Origin([1; 16]), shard, sink: "s".into() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lane_sticks_to_a_writer_and_comes_back_to_it() {
        let servers = Servers::new(vec!["a".into(), "b".into(), "c".into()]);
        let order = servers.order(&lane(0));
        assert_eq!(servers.order(&lane(0)), order);
        servers.has_failed(order[0]);
        assert_eq!(servers.order(&lane(0)), [order[1], order[2], order[0]]);
        tokio::time::advance(REST_MIN).await;
        assert_eq!(servers.order(&lane(0)), order);
        servers.has_failed(order[0]);
        tokio::time::advance(REST_MIN).await;
        assert_eq!(servers.order(&lane(0))[0], order[1], "the second rest is longer");
        servers.is_well(order[0]);
        assert_eq!(servers.order(&lane(0)), order);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_writer_is_tried_however_often_it_failed() {
        let servers = Servers::new(vec!["a".into()]);
        for _ in 0..40 {
            servers.has_failed(0);
        }
        assert_eq!(servers.order(&lane(0)), [0]);
        tokio::time::advance(REST_MAX).await;
        assert_eq!(servers.order(&lane(0)), [0]);
    }

    #[test]
    fn lanes_are_spread() {
        let servers = Servers::new((0..4).map(|number| number.to_string()).collect());
        let mut counts = [0; 4];
        (0..400).for_each(|shard| counts[servers.order(&lane(shard))[0]] += 1);
        assert!(counts.iter().all(|count| (50..=150).contains(count)), "{counts:?}");
    }
}
