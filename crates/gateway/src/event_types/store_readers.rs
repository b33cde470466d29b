//! The stores that the events of a type are read back from.

use std::collections::BTreeMap;
use std::sync::Arc;

use event::read::StoreReader;

/// A store, and the stores of some values if it has shards.
#[derive(Clone)]
pub struct StoreReaders {
    common: Arc<dyn StoreReader>,
    shards: BTreeMap<String, Arc<dyn StoreReader>>,
}

impl StoreReaders {
    /// The store `common` for all events but those with a value in `shards`.
    #[must_use]
    pub const fn new(common: Arc<dyn StoreReader>, shards: BTreeMap<String, Arc<dyn StoreReader>>) -> Self {
        Self { common, shards }
    }

    /// The store that pages come from: that of a shard if its value is known, or else the common one.
    pub(crate) fn of_shard(&self, value: Option<&str>) -> &Arc<dyn StoreReader> {
        value.and_then(|value| self.shards.get(value)).unwrap_or(&self.common)
    }

    pub(crate) fn has_shards(&self) -> bool {
        !self.shards.is_empty()
    }

    /// All stores; a shard with several values is there several times.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<dyn StoreReader>> {
        std::iter::once(&self.common).chain(self.shards.values())
    }
}
