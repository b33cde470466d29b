//! A bounded pool of connections that the lanes of a sink share. Each is lent to one call at a time.

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// A pool of connections of type `C`. It has no background task: when a call returns a connection, connections that were idle for too long
/// are closed.
#[derive(Debug)]
pub struct ConnectionPool<C> {
    permits: Semaphore,
    /// Idle connections with the time of their last use, the most recent one last.
    idle: Mutex<Vec<(C, Instant)>>,
    idle_max: Duration,
}

/// A connection that is lent to one call. If the call doesn't return it, it is closed: a call that fails or is dropped leaves no
/// connection in an unknown state.
pub struct Lent<'a, C> {
    /// The connection.
    pub connection: C,
    _permit: SemaphorePermit<'a>,
}

/// The permit for one connection in use.
pub struct Permit<'a>(SemaphorePermit<'a>);

impl<'a> Permit<'a> {
    /// Exchanges the permit for a loan of this connection.
    pub fn lend<C>(self, connection: C) -> Lent<'a, C> {
        Lent { connection, _permit: self.0 }
    }
}

impl<C> ConnectionPool<C> {
    /// A pool of at most `max` connections, or without a limit. A connection that was idle for `idle_max` is closed.
    pub fn new(max: Option<NonZeroUsize>, idle_max: Duration) -> Self {
        let permits = max.map_or(Semaphore::MAX_PERMITS, |max| max.get().min(Semaphore::MAX_PERMITS));
        Self { permits: Semaphore::new(permits), idle: Mutex::default(), idle_max }
    }

    /// Waits for a permit. The caller then lends an idle connection ([`Self::pop`]) or a new one.
    pub async fn permit(&self) -> Permit<'_> {
        // Nothing ever closes the semaphore, so waiting doesn't fail.
        let Ok(permit) = self.permits.acquire().await else { std::future::pending().await };
        Permit(permit)
    }

    /// Returns a connection to the pool. The call must have left it in a usable state.
    pub fn give_back(&self, lent: Lent<'_, C>) {
        let mut idle = self.idle();
        idle.retain(|(_, used)| used.elapsed() < self.idle_max);
        idle.push((lent.connection, Instant::now()));
    }

    /// The idle connection that was used most recently, if there is one, so surplus connections expire.
    pub fn pop(&self) -> Option<C> {
        self.idle().pop().map(|(connection, _)| connection)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(C, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn take(pool: &ConnectionPool<u32>, number: u32) -> Lent<'_, u32> {
        let permit = pool.permit().await;
        permit.lend(pool.pop().unwrap_or(number))
    }

    #[tokio::test(start_paused = true)]
    async fn newest_connection_is_reused_and_oldest_is_closed() {
        let pool = ConnectionPool::new(None, Duration::from_secs(60));
        let (one, two) = (take(&pool, 1).await, take(&pool, 2).await);
        pool.give_back(one);
        tokio::time::advance(Duration::from_secs(40)).await;
        pool.give_back(two);
        let two = take(&pool, 3).await;
        assert_eq!(two.connection, 2);
        tokio::time::advance(Duration::from_secs(20)).await;
        pool.give_back(two);
        assert_eq!((pool.pop(), pool.pop()), (Some(2), None), "the first one was idle for a minute");
    }

    #[tokio::test]
    async fn pool_has_a_connection_limit() {
        let pool = ConnectionPool::new(NonZeroUsize::new(1), Duration::from_secs(60));
        let one = take(&pool, 1).await;
        let (second, ()) = tokio::join!(take(&pool, 2), async {
            assert_eq!(pool.permits.available_permits(), 0);
            drop(one);
        });
        assert_eq!(second.connection, 2, "one that wasn't given back is closed");
    }
}
