//! The servers of all stores side by side, whichever kind they are of. A new store is one more row of [`SERVERS`].

use std::io::BufRead;
use std::path::Path;

use anyhow::{Context, Result};

use super::{BulkLoaded, CampaignStore, OpenSearchStore, PostgresStore, RedisStore, SwiftStore};
use crate::workspace;

/// Each store that has a server.
pub const SERVERS: &[Offer] = &[
    Offer::of::<PostgresStore>(),
    Offer::of::<RedisStore>(),
    Offer::of::<OpenSearchStore>(),
    Offer::of::<SwiftStore>(),
];

/// What a store is started for.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// What is stored is looked at: each payload stays as it came.
    Content,
    /// What is stored is counted and timed: the server is set up to be filled, and events don't wait for long.
    Rate,
}

/// A store that can be started.
pub struct Offer {
    name: &'static str,
    start: fn(Purpose) -> Result<Option<RunningStore>>,
}

impl Offer {
    const fn of<S: BulkLoaded + 'static>() -> Self {
        Self { name: S::NAME, start: start::<S> }
    }

    /// What people call the store.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// A running server with nothing in it; none, and a message, where the program is missing and it isn't to be measured.
    pub fn start(&self, purpose: Purpose) -> Result<Option<RunningStore>> {
        let place = (self.start)(purpose).with_context(|| format!("starting {}", self.name))?;
        if place.is_none() {
            workspace::skipped(&format!("{} is missing, which `cargo xtask services` installs", self.name))?;
        }
        Ok(place)
    }
}

fn start<S: BulkLoaded + 'static>(purpose: Purpose) -> Result<Option<RunningStore>> {
    let started = match purpose {
        Purpose::Content => S::start()?.map(|store| (store.sink(), store)),
        Purpose::Rate => Some(S::start_large()?).map(|store| (store.prompt_sink(), store)),
    };
    Ok(started.map(|(sink, store)| RunningStore { name: S::NAME, sink, store: Box::new(store) }))
}

/// A running store, and a type of event and a sink that are named after it.
pub struct RunningStore {
    /// What people call it.
    pub name: &'static str,
    /// The settings of its sink.
    pub sink: String,
    store: Box<dyn AnyStore>,
}

impl RunningStore {
    /// The name of its type and of its sink.
    pub fn label(&self) -> String {
        self.name.to_lowercase()
    }

    /// Starts it over its data, and waits until it answers.
    pub fn run(&mut self) -> Result<()> {
        self.store.run().with_context(|| format!("starting {}", self.name))
    }

    /// SIGKILLs all of its processes.
    pub fn kill(&mut self) -> Result<()> {
        self.store.kill().with_context(|| format!("killing {}", self.name))
    }

    /// Hands out what is stored, as [`CampaignStore::read_payloads`] does.
    pub fn read(&mut self, folder: &Path, read: &mut dyn FnMut(&mut dyn BufRead) -> Result<()>) -> Result<()> {
        self.store.read(folder, read).with_context(|| format!("reading what {} holds", self.name))
    }

    /// How many different ids it shows, as [`CampaignStore::ids`] says.
    pub fn ids(&mut self) -> Result<Option<u64>> {
        self.store.ids().with_context(|| format!("counting the ids in {}", self.name))
    }
}

/// What can be done with any store.
trait AnyStore {
    fn run(&mut self) -> Result<()>;
    fn kill(&mut self) -> Result<()>;
    fn read(&mut self, folder: &Path, read: &mut dyn FnMut(&mut dyn BufRead) -> Result<()>) -> Result<()>;
    fn ids(&mut self) -> Result<Option<u64>>;
}

impl<S: CampaignStore> AnyStore for S {
    fn run(&mut self) -> Result<()> {
        CampaignStore::run(self)
    }

    fn kill(&mut self) -> Result<()> {
        CampaignStore::kill(self)
    }

    fn read(&mut self, folder: &Path, read: &mut dyn FnMut(&mut dyn BufRead) -> Result<()>) -> Result<()> {
        self.read_payloads(folder, |payloads| read(payloads))
    }

    fn ids(&mut self) -> Result<Option<u64>> {
        CampaignStore::ids(self)
    }
}
