//! State shared by the calls of one lane. A writer serves the lanes of many gateways: it drops the state of an idle lane, which is then
//! read from the store again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as BlockingMutex, MutexGuard, PoisonError};
use std::time::Duration;

use event::Lane;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// The state of a lane that has not called for this long is dropped. A lane of this process reads its cursor more often
/// during the failover window.
const IDLE_MAX: Duration = Duration::from_mins(1);

/// The states of active lanes. Calls of one lane are serialised; calls of different lanes are concurrent.
#[derive(Debug, Default)]
pub struct LaneStates<S>(BlockingMutex<LaneMap<S>>);

#[derive(Debug, Default)]
struct LaneMap<S> {
    entries: HashMap<Lane, Entry<S>>,
    /// When idle lanes were last looked for.
    swept: Option<Instant>,
}

#[derive(Debug)]
struct Entry<S> {
    state: Arc<Mutex<S>>,
    used: Instant,
}

impl<S: Default> LaneStates<S> {
    /// The lane's state: a new one if the lane was not active.
    pub fn of(&self, lane: &Lane) -> Arc<Mutex<S>> {
        let (now, mut lanes) = (Instant::now(), self.lanes());
        lanes.sweep(now);
        if let Some(entry) = lanes.entries.get_mut(lane) {
            entry.used = now;
            return entry.state.clone();
        }
        let state = Arc::<Mutex<S>>::default();
        lanes.entries.insert(lane.clone(), Entry { state: state.clone(), used: now });
        state
    }

    /// The states of all active lanes.
    pub fn all(&self) -> Vec<Arc<Mutex<S>>> {
        self.lanes().entries.values().map(|entry| entry.state.clone()).collect()
    }

    fn lanes(&self) -> MutexGuard<'_, LaneMap<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> LaneMap<S> {
    /// Forgets idle lanes, with their states. One call a minute of any lane does so, so the lanes of two minutes bound
    /// the map.
    fn sweep(&mut self, now: Instant) {
        if now.duration_since(*self.swept.get_or_insert(now)) < IDLE_MAX {
            return;
        }
        self.swept = Some(now);
        self.entries
            .retain(|_, entry| Arc::strong_count(&entry.state) > 1 || now.duration_since(entry.used) < IDLE_MAX);
        self.entries.shrink_to(2 * self.entries.len());
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
    async fn idle_lane_is_forgotten_unless_a_call_runs() {
        let states = LaneStates::<u32>::default();
        *states.of(&lane(0)).lock().await = 7;
        let in_flight = states.of(&lane(1));
        tokio::time::advance(IDLE_MAX / 2).await;
        assert_eq!(*states.of(&lane(0)).lock().await, 7);
        tokio::time::advance(IDLE_MAX).await;
        drop(states.of(&lane(2)));
        assert_eq!(states.all().len(), 2);
        assert_eq!(*states.of(&lane(0)).lock().await, 0);
        drop(in_flight);
    }

    #[tokio::test(start_paused = true)]
    async fn known_lane_forgets_idle_ones_too() {
        let states = LaneStates::<u32>::default();
        (0..100).for_each(|shard| drop(states.of(&lane(shard))));
        for _ in 0..2 {
            tokio::time::advance(IDLE_MAX / 2).await;
            drop(states.of(&lane(0)));
        }
        assert_eq!(states.all().len(), 1);
        assert!(states.lanes().entries.capacity() < 10, "the map keeps the size that it had");
    }
}
