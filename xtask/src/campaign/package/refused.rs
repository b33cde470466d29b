//! Measures how long a port is closed.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::http::is_ready;

const PAUSE: Duration = Duration::from_millis(1);

/// Opens one connection after the other while `act` runs. Returns the longest time without an answer, up to an answered connection after
/// `act`.
pub(super) fn longest_while<T>(server: SocketAddr, act: impl FnOnce() -> Result<T>) -> Result<Duration> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let prober = scope.spawn(|| {
            let (mut longest, mut answered) = (Duration::ZERO, Instant::now());
            loop {
                let (was_over, knocked) = (is_over.load(Ordering::SeqCst), Instant::now());
                if is_ready(server) {
                    longest = longest.max(knocked - answered);
                    answered = Instant::now();
                }
                if was_over {
                    return longest.max(answered.elapsed());
                }
                thread::sleep(PAUSE);
            }
        });
        let done = act();
        is_over.store(true, Ordering::SeqCst);
        let longest = prober.join().map_err(|_| anyhow!("the prober panicked"))?;
        done.map(|_| longest)
    })
}
