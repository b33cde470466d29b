//! Stores with a tool that fills them, for benchmarks.

use std::path::Path;

use anyhow::Result;

use super::CampaignStore;

/// A store with a tool for bulk loads.
pub trait BulkLoaded: CampaignStore {
    /// The tool's name.
    const TOOL: &'static str;
    /// The share of the tool's rate that a server reaches.
    const BAR: f64;
    /// The unit of amounts, a second.
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

    /// The same, with events stored soon even if there are few.
    fn prompt_sink(&self) -> String {
        self.usual_sink()
    }

    /// Removes all its contents.
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

    /// Writes the contents that the sink has stored to `path`, as the tool reads it.
    fn save(&mut self, path: &Path) -> Result<()>;

    /// Creates the place for the tool's output.
    fn before_load(&mut self) -> Result<()>;

    /// Has the tool store the contents of `path`.
    fn load(&mut self, path: &Path) -> Result<()>;

    /// How much the tool has stored.
    fn loaded(&mut self) -> Result<f64>;
}
