//! The interface that reads a store's objects back.

use std::ops::Range;

use async_trait::async_trait;
use event::object::FoundObject;
use sink::SinkError;

use super::{ObjectCache, PieceSender};

/// The result of looking an object up.
pub enum ObjectLookup {
    /// There is no object of this name.
    Missing,
    /// The object still has the known tag.
    Same,
    /// The object, with its bytes if the cache has room for them.
    Found(FoundObject),
}

/// A store for readers, with separate connections. They belong to the thread that reads.
#[async_trait]
pub trait ObjectStoreReader: Send + Sync {
    /// The object under a name that a sink assigned, unless it has the tag `known`.
    async fn look(&self, name: &str, known: Option<&str>, cache: &ObjectCache) -> Result<ObjectLookup, SinkError>;

    /// Sends bytes of the object with this name and tag. The receiver may be dropped before the end.
    async fn give(&self, named: (&str, &str), range: Range<u64>, sender: &PieceSender) -> Result<(), SinkError>;

    /// Whether names may have folders in them.
    fn has_folders(&self) -> bool {
        true
    }
}
