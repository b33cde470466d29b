//! A server's memory while it is overloaded.

use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};

use harness::report::median;
use harness::server::Server;

const EACH: Duration = Duration::from_millis(100);

/// Bytes that are resident.
#[derive(Clone, Copy)]
pub(super) struct Memory {
    /// The median of the first quarter's moments. What is most in a quarter would say when a store happened to be slow, and not
    /// whether something grows.
    pub(super) first_quarter: f64,
    pub(super) last_quarter: f64,
    /// The most in any moment of the whole.
    pub(super) most: f64,
}

/// Watches a server's memory while `load` runs.
pub(super) fn watched<T: Send>(server: &Server, load: impl FnOnce() -> Result<T> + Send) -> Result<(T, Memory)> {
    thread::scope(|scope| {
        let load = scope.spawn(load);
        server.process.forget_peak()?;
        let mut moments = Vec::new();
        while !load.is_finished() {
            moments.push(server.process.memory()?.now as f64);
            thread::sleep(EACH);
        }
        let loaded = load.join().map_err(|_| anyhow!("the load panicked"))??;
        let most = server.process.memory()?.most as f64;
        let quarter = moments.len().div_ceil(4);
        let first_quarter = median(moments[..quarter].to_vec());
        let last_quarter = median(moments[moments.len() - quarter..].to_vec());
        Ok((loaded, Memory { first_quarter, last_quarter, most }))
    })
}
