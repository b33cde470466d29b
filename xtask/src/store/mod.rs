//! Servers of stores, each our own: killed and started again as a campaign wants, and asked what they hold by their own means.

mod postgres;
mod redis;

use std::io::BufRead;
use std::path::Path;

use anyhow::Result;

pub(crate) use postgres::Postgres;
pub(crate) use redis::Redis;

/// A store that campaigns deliver into. It ends, and its files go, when it is dropped.
pub(crate) trait Store: Sized {
    /// What people call it.
    const NAME: &'static str;

    /// A running server with nothing in it; `None` where the program is missing.
    fn start() -> Result<Option<Self>>;

    /// The settings of a sink that stores each event in it, with its payload as it came.
    fn sink(&self) -> String;

    /// Starts it over its data, and waits until it answers.
    fn run(&mut self) -> Result<()>;

    /// SIGKILLs all of its processes at once.
    fn kill(&mut self) -> Result<()>;

    /// A number that grows with each event that is stored, by one or more.
    fn stored(&mut self) -> u64;

    /// Hands out what is stored: payloads, a line each. `folder` has room for them.
    fn read_payloads(&mut self, folder: &Path, read: impl FnOnce(&mut dyn BufRead) -> Result<()>) -> Result<()>;
}
