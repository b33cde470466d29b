//! Servers of stores for campaigns and benchmarks. They are killed and started again, and their contents are read with their own tools.

mod bulk_loaded;
mod faults;
mod nats;
mod opensearch;
mod postgres;
mod redis;
mod running_store;
mod swift;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::workspace;
pub use bulk_loaded::BulkLoaded;
pub use faults::FaultyStore;
pub use nats::NatsStore;
pub use opensearch::OpenSearchStore;
pub use postgres::PostgresStore;
pub use redis::RedisStore;
pub use running_store::{Offer, Purpose, RunningStore, SERVERS};
pub use swift::SwiftStore;

/// A store that campaigns deliver into. It ends, and its files are removed, when it is dropped.
pub trait StoreServer {
    /// The settings of a sink that stores each event in it, with its payload unchanged.
    fn sink(&self) -> String;

    /// Starts it over its data, and waits until it answers.
    fn run(&mut self) -> Result<()> {
        Ok(())
    }

    /// SIGKILLs all of its processes.
    fn kill(&mut self) -> Result<()> {
        bail!("this store has no process")
    }

    /// A number that grows by one or more with each event that is stored.
    fn stored(&mut self) -> u64 {
        0
    }

    /// Writes the stored payloads, one a line.
    fn write_payloads(&mut self, out: &mut BufWriter<File>) -> Result<()>;

    /// The number of different ids of the stored events; none if the store shows no ids.
    fn ids(&mut self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// The stored payloads, one a line. They are in a file of `folder`.
    fn payloads(&mut self, folder: &Path) -> Result<BufReader<File>> {
        let path = folder.join("payloads");
        let mut out = BufWriter::new(File::create(&path).with_context(|| format!("writing {}", path.display()))?);
        self.write_payloads(&mut out).context("reading the stored payloads")?;
        out.flush()?;
        Ok(BufReader::new(File::open(path)?))
    }
}

/// A store by its type.
pub trait CampaignStore: StoreServer + Sized {
    /// Its usual name.
    const NAME: &'static str;

    /// A running server with nothing in it; `None` if the program is missing.
    fn start() -> Result<Option<Self>>;

    /// The same. A missing program is an error.
    fn require() -> Result<Self> {
        Self::start()?.with_context(|| format!("{} is missing: `cargo xtask services` installs it", Self::NAME))
    }

    /// The same for a part of a test, which reports that it is skipped.
    fn start_or_skip() -> Result<Option<Self>> {
        let started = Self::start().with_context(|| format!("starting {}", Self::NAME))?;
        if started.is_none() {
            workspace::skipped(&format!("{} is missing, which `cargo xtask services` installs", Self::NAME))?;
        }
        Ok(started)
    }
}

/// A store whose sinks share connections and keep cursors.
pub trait Shared: CampaignStore {
    /// Connections to it now, without those of this program.
    fn connections(&self) -> Result<usize>;

    /// The position of each lane; a lane as `ORIGIN/SHARD/SINK`.
    fn cursors(&self) -> Result<BTreeMap<String, u64>>;
}
