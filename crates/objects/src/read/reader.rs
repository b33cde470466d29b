//! What reads a store's objects back.

use std::ops::Range;

use event::object::FoundObject;
use futures_util::future::BoxFuture;
use sink::SinkError;

use super::{ObjectCache, PieceSender};

/// The result of looking an object up.
pub enum Lookup {
    /// There is no object of this name.
    Missing,
    /// The object still has the known tag.
    Same,
    /// The object, with its bytes if the cache has room for them.
    Found(FoundObject),
}

/// A store as it is read, with connections of its own. They belong to the thread that reads.
pub trait ObjectReader: Send + Sync {
    /// The object under a name that a sink gives, unless it has the tag `known`.
    fn look<'a>(
        &'a self,
        name: &'a str,
        known: Option<&'a str>,
        cache: &'a ObjectCache,
    ) -> BoxFuture<'a, Result<Lookup, SinkError>>;

    /// Sends bytes of the object with this name and tag. The receiver may be dropped before the end.
    fn give<'a>(
        &'a self,
        named: (&'a str, &'a str),
        range: Range<u64>,
        sender: &'a PieceSender,
    ) -> BoxFuture<'a, Result<(), SinkError>>;

    /// Whether names may have folders in them.
    fn has_folders(&self) -> bool {
        true
    }
}
