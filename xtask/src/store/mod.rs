//! Servers of stores, each our own: killed and started again as a campaign wants, and asked what they hold by their own means.

mod faults;
mod nats;
mod opensearch;
mod postgres;
mod redis;
mod running_store;
mod swift;

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use anyhow::Result;

pub use faults::FaultyStore;
pub use nats::NatsStore;
pub use opensearch::OpenSearchStore;
pub use postgres::PostgresStore;
pub use redis::RedisStore;
pub use running_store::{Purpose, RunningStore, SERVERS};
pub use swift::SwiftStore;

/// A store that campaigns deliver into. It ends, and its files go, when it is dropped.
pub trait CampaignStore: Sized {
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

    /// How many different ids stand beside the payloads; none where the store shows no ids.
    fn ids(&mut self) -> Result<Option<u64>> {
        Ok(None)
    }
}

/// A store whose sinks share connections and keep cursors.
pub trait Shared: CampaignStore {
    /// Connections to it now, without those of this program.
    fn connections(&self) -> Result<usize>;

    /// The position of each lane; a lane as `ORIGIN/SHARD/SINK`.
    fn cursors(&self) -> Result<BTreeMap<String, u64>>;
}

/// A store that has a tool of its own to be filled with.
pub trait BulkLoaded: CampaignStore {
    /// What the tool is called.
    const TOOL: &'static str;
    /// The share of the tool's rate that a server reaches.
    const BAR: f64;
    /// What amounts are measured in, a second.
    const RATE: &'static str = "rows/s";
    /// Events of a backlog that takes some seconds to store.
    const EVENTS: u64 = 1_000_000;

    /// A running server that is set up to be filled.
    fn start_large() -> Result<Self>;

    /// A folder that it may write to.
    fn folder(&self) -> &Path;

    /// The settings of a sink as most people write them.
    fn usual_sink(&self) -> String;

    /// The same, where events don't wait for long until there are enough to be stored together.
    fn prompt_sink(&self) -> String {
        self.usual_sink()
    }

    /// Takes away all that it holds.
    fn empty(&mut self) -> Result<()>;

    /// Lets it end what it does by itself.
    fn settle(&mut self) -> Result<()>;

    /// Events that the sink has stored.
    fn events(&mut self) -> Result<f64>;

    /// How much they are.
    fn amount(&mut self) -> Result<f64> {
        self.events()
    }

    /// Writes what the sink has stored to `path`, as the tool reads it.
    fn save(&mut self, path: &Path) -> Result<()>;

    /// Makes the place for what the tool stores.
    fn before_load(&mut self) -> Result<()>;

    /// Has the tool store what stands at `path`.
    fn load(&mut self, path: &Path) -> Result<()>;

    /// How much the tool has stored.
    fn loaded(&mut self) -> Result<f64>;
}
