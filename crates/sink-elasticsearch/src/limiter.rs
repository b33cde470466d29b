//! Limits the requests in flight: one more while the store keeps up, half as many when it reports overload.

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

/// For all lanes of a sink together.
#[derive(Debug)]
pub(super) struct Limiter {
    state: Mutex<State>,
    freed: Notify,
    max: usize,
}

#[derive(Debug)]
struct State {
    allowed: usize,
    in_flight: usize,
    /// Requests that the store accepted since `allowed` changed.
    passed: usize,
    /// When the number was last reduced: requests from before don't count.
    cut_at: Option<Instant>,
}

/// A request in flight, until it is dropped.
#[derive(Debug)]
pub(super) struct Permit<'a> {
    limiter: &'a Limiter,
    begun: Instant,
}

impl Limiter {
    pub(super) fn new(max: NonZeroUsize) -> Self {
        let max = max.get();
        // Starts at the maximum: an idle store shouldn't get a slow start each time.
        let state = State { allowed: max, in_flight: 0, passed: 0, cut_at: None };
        Self { state: Mutex::new(state), freed: Notify::new(), max }
    }

    fn held(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until another request may be sent.
    pub(super) async fn acquire(&self) -> Permit<'_> {
        while !self.try_begin() {
            self.freed.notified().await;
        }
        Permit { limiter: self, begun: Instant::now() }
    }

    fn try_begin(&self) -> bool {
        let mut state = self.held();
        let may = state.in_flight < state.allowed;
        state.in_flight += usize::from(may);
        // Each waiter wakes the next one, so none sleeps while a slot is free.
        if may && state.in_flight < state.allowed {
            self.freed.notify_one();
        }
        may
    }
}

impl Permit<'_> {
    /// The store accepted the request.
    pub(super) fn passed(&self) {
        let Limiter { freed, max, .. } = self.limiter;
        let mut state = self.limiter.held();
        state.passed += 1;
        if state.passed >= state.allowed && state.allowed < *max {
            state.allowed += 1;
            state.passed = 0;
            freed.notify_one();
        }
    }

    /// The store is overloaded.
    pub(super) fn overloaded(&self) {
        let mut state = self.limiter.held();
        // Concurrent requests that fail together count once.
        if state.cut_at.is_none_or(|cut_at| self.begun > cut_at) {
            state.allowed = (state.allowed / 2).max(1);
            state.passed = 0;
            state.cut_at = Some(Instant::now());
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.limiter.held().in_flight -= 1;
        self.limiter.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(max: usize) -> Limiter {
        Limiter::new(NonZeroUsize::new(max).unwrap())
    }

    fn allowed(limiter: &Limiter) -> usize {
        limiter.held().allowed
    }

    #[tokio::test(start_paused = true)]
    async fn failures_halve_the_limit_once_and_successes_raise_it() {
        let limiter = limiter(8);
        let together = [limiter.acquire().await, limiter.acquire().await, limiter.acquire().await];
        together.iter().for_each(Permit::overloaded);
        drop(together);
        assert_eq!(allowed(&limiter), 4);
        for expected in [2, 1, 1] {
            tokio::time::advance(std::time::Duration::from_millis(1)).await;
            limiter.acquire().await.overloaded();
            assert_eq!(allowed(&limiter), expected);
        }
        limiter.acquire().await.passed();
        assert_eq!(allowed(&limiter), 2);
        for _ in 0..100 {
            limiter.acquire().await.passed();
        }
        assert_eq!(allowed(&limiter), 8, "and never above the maximum");
    }

    #[tokio::test]
    async fn no_waiter_sleeps_while_a_slot_is_free() {
        let limiter = limiter(2);
        let (one, two) = (limiter.acquire().await, limiter.acquire().await);
        let mut waiting = waiters(&limiter);
        assert!(poll(&mut waiting[0]).is_none() && poll(&mut waiting[1]).is_none());
        drop((one, two));
        let first = poll(&mut waiting[0]);
        let second = poll(&mut waiting[1]);
        assert!(first.is_some() && second.is_some());
        assert!(poll(&mut waiting[2]).is_none());
        drop(first);
        assert!(poll(&mut waiting[2]).is_some());
    }

    type Waiting<'a> = std::pin::Pin<Box<dyn Future<Output = Permit<'a>> + 'a>>;

    fn waiters(limiter: &Limiter) -> [Waiting<'_>; 3] {
        std::array::from_fn(|_| Box::pin(limiter.acquire()) as Waiting<'_>)
    }

    fn poll<'a>(waiting: &mut Waiting<'a>) -> Option<Permit<'a>> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match waiting.as_mut().poll(&mut context) {
            std::task::Poll::Ready(permit) => Some(permit),
            std::task::Poll::Pending => None,
        }
    }
}
