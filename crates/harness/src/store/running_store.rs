//! The servers of all stores together, regardless of their kind. A new store is one more row of [`SERVERS`].

use std::ops::{Deref, DerefMut};

use anyhow::{Context, Result};

use super::{BulkLoaded, OpenSearchStore, PostgresStore, RedisStore, StoreServer, SwiftStore};
use crate::workspace;

/// Each store that has a server.
pub const SERVERS: &[Offer] = &[
    Offer::of::<PostgresStore>(),
    Offer::of::<RedisStore>(),
    Offer::of::<OpenSearchStore>(),
    Offer::of::<SwiftStore>(),
];

/// Why a store is started.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// Its contents are read: each payload stays unchanged.
    Content,
    /// Its events are counted and timed: the server is set up to be filled, and events don't wait for long.
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

    /// The usual name of the store.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// A running server with nothing in it; none, and a message, if the program is missing and it isn't measured.
    pub fn start(&self, purpose: Purpose) -> Result<Option<RunningStore>> {
        let place = (self.start)(purpose).with_context(|| format!("starting {}", self.name))?;
        if place.is_none() {
            workspace::skipped(&format!("{} is missing, which `cargo xtask services` installs", self.name))?;
        }
        Ok(place)
    }

    /// All stores that are there, for their contents.
    pub fn start_all() -> Result<Vec<RunningStore>> {
        let started = SERVERS.iter().map(|offer| offer.start(Purpose::Content)).collect::<Result<Vec<_>>>()?;
        Ok(started.into_iter().flatten().collect())
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
    /// The usual name of the store.
    pub name: &'static str,
    /// The settings of its sink.
    pub sink: String,
    store: Box<dyn StoreServer>,
}

impl RunningStore {
    /// The name of its type and of its sink.
    pub fn label(&self) -> String {
        self.name.to_lowercase()
    }

    /// A section of a configuration: its type with a route to its sink.
    pub fn section(&self) -> String {
        format!("[types.{0}]\nroutes = [\"{0}\"]\n[sinks.{0}]\n{1}\n", self.label(), self.sink)
    }
}

impl Deref for RunningStore {
    type Target = dyn StoreServer;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

impl DerefMut for RunningStore {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.store
    }
}
