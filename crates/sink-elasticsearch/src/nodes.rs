//! Chooses the next node: in rotation, and failed nodes only after a pause.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a failed node isn't used, if there are others.
const REST: Duration = Duration::from_secs(15);

/// The rotation.
#[derive(Debug)]
pub(super) struct Nodes(Mutex<State>);

#[derive(Debug)]
struct State {
    next: usize,
    /// The end of each node's pause.
    resting: Vec<Option<Instant>>,
}

impl Nodes {
    pub(super) fn new(count: usize) -> Self {
        Self(Mutex::new(State { next: 0, resting: vec![None; count] }))
    }

    fn held(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the next node. If all have failed, it is the one that has paused longest.
    pub(super) fn next(&self) -> usize {
        let now = Instant::now();
        let mut state = self.held();
        let count = state.resting.len().max(1);
        let order = (0..count).map(|step| (state.next + step) % count);
        let rested = |node: &usize| state.resting.get(*node).copied().flatten().is_none_or(|until| until <= now);
        let found = order.clone().find(rested).or_else(|| order.min_by_key(|node| state.resting.get(*node).copied()));
        let node = found.unwrap_or(0);
        state.next = (node + 1) % count;
        node
    }

    pub(super) fn count(&self) -> usize {
        self.held().resting.len()
    }

    /// The node has responded.
    pub(super) fn mark_healthy(&self, node: usize) {
        self.set(node, None);
    }

    /// The node doesn't respond: it isn't used for a while.
    pub(super) fn mark_down(&self, node: usize) {
        self.set(node, Some(Instant::now() + REST));
    }

    fn set(&self, node: usize, until: Option<Instant>) {
        if let Some(resting) = self.held().resting.get_mut(node) {
            *resting = until;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn failed_node_is_not_used_for_a_while() {
        let nodes = Nodes::new(3);
        let asked = |count: usize| (0..count).map(|_| nodes.next()).collect::<Vec<_>>();
        assert_eq!(asked(4), [0, 1, 2, 0]);
        nodes.mark_down(1);
        assert_eq!(asked(4), [2, 0, 2, 0]);
        tokio::time::advance(REST / 2).await;
        nodes.mark_down(2);
        nodes.mark_down(0);
        assert_eq!(nodes.next(), 1, "all have failed: the one that has paused longest");
        nodes.mark_healthy(0);
        assert_eq!(asked(2), [0, 0]);
        tokio::time::advance(REST).await;
        assert_eq!(asked(3), [1, 2, 0]);
    }
}
