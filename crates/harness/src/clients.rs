//! Clients on threads, and the seeds of their random numbers.

use std::hash::{BuildHasher, RandomState};
use std::thread::{self, Builder};

use anyhow::{Context, Result, anyhow};

/// Calls a function when it is dropped, even by a panic.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Runs clients, each on a thread with its number, while `act` runs. Then `stop` ends them. Returns what each client and `act` returned.
pub fn with_clients<K: Send, T>(
    count: u32,
    client: impl Fn(u32) -> Result<K> + Sync,
    act: impl FnOnce() -> Result<T>,
    stop: impl Fn(),
) -> Result<(Vec<K>, T)> {
    const STACK_BYTES: usize = 256 * 1024;
    let client = &client;
    thread::scope(|scope| {
        let spawn = |number| Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, move || client(number));
        let clients: std::io::Result<Vec<_>> = (0..count).map(spawn).collect();
        // If `act` panics, the scope waits for the clients.
        let stop = OnDrop(stop);
        let done = clients.context("starting a client's thread").map(|clients| (act(), clients));
        drop(stop);
        let (done, clients) = done?;
        let ended = clients.into_iter().map(|client| client.join().map_err(|_| anyhow!("a client panicked"))?);
        let known: Result<Vec<K>> = ended.collect();
        // An error of `act` comes first: it may be the cause of the clients' errors.
        let done = done?;
        Ok((known?, done))
    })
}

/// A random seed. A run prints it, to be repeatable.
pub fn any_seed() -> u64 {
    RandomState::new().hash_one(0)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicBool, Ordering};

    use anyhow::bail;

    use super::*;

    #[test]
    fn clients_end_when_act_has_ended() {
        let over = AtomicBool::new(false);
        let client = |number| {
            while !over.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            Ok(number)
        };
        let stop = || over.store(true, Ordering::SeqCst);
        assert_eq!(with_clients(3, client, || Ok("done"), stop).unwrap(), (vec![0, 1, 2], "done"));
        let failed = with_clients(3, client, || -> Result<()> { bail!("act failed") }, stop);
        assert_eq!(failed.unwrap_err().to_string(), "act failed");
        over.store(false, Ordering::SeqCst);
        let panics = || with_clients(3, client, || -> Result<()> { panic!("act panics") }, stop);
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        let failed = with_clients(2, |_| -> Result<()> { bail!("client failed") }, || Ok(()), || {});
        assert_eq!(failed.unwrap_err().to_string(), "client failed");
    }
}
