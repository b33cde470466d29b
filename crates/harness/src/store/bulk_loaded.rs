//! Stores with a tool that fills them, for benchmarks.

use std::path::Path;

use anyhow::Result;

use super::CampaignStore;

/// A store with a tool for bulk loads.
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

    /// The settings of a sink as most users write them.
    fn usual_sink(&self) -> String {
        self.sink()
    }

    /// The same, where events don't wait for long until there are enough to be stored together.
    fn prompt_sink(&self) -> String {
        self.usual_sink()
    }

    /// Takes away all that it holds.
    fn empty(&mut self) -> Result<()>;

    /// Lets it end its background work.
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

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

    /// Has the tool store what is at `path`.
    fn load(&mut self, path: &Path) -> Result<()>;

    /// How much the tool has stored.
    fn loaded(&mut self) -> Result<f64>;
}
