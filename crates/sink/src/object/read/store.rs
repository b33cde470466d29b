//! The stores side by side, as they are read: each with connections of its own, which belong to the thread that reads.

use std::ops::Range;

use event::object::FoundObject;

use super::{ObjectCache, Sender};
use crate::SinkError;
use crate::object::directory::Directory;
use crate::object::over_http::ReadOverHttp;

/// What a store says when it is asked for an object.
pub(in crate::object) enum Looked {
    /// There is none.
    Missing,
    /// The one that is known.
    Same,
    /// This one, with its bytes where the cache has given room for them.
    Found(FoundObject),
}

/// A store that is read.
pub(in crate::object) enum ReadStore {
    /// Files of a directory.
    Directory(Directory),
    /// A container of Swift, or a bucket of S3.
    OverHttp(Box<ReadOverHttp>),
}

impl ReadStore {
    /// What stands under a name, which is one that a sink gives, unless it has the tag that is known.
    pub(super) async fn look(&self, name: &str, known: Option<&str>, cache: &ObjectCache) -> Result<Looked, SinkError> {
        match self {
            Self::Directory(directory) => directory.look(name, known, cache).await,
            Self::OverHttp(store) => store.look(name, known, cache).await,
        }
    }

    /// Gives bytes of the object with this tag. Whoever waits for them may leave.
    pub(super) async fn give(
        &self,
        (name, etag): (&str, &str),
        range: Range<u64>,
        sender: &Sender,
    ) -> Result<(), SinkError> {
        match self {
            Self::Directory(directory) => directory.give((name, etag), range, sender).await,
            Self::OverHttp(store) => store.give((name, etag), range, sender).await,
        }
    }

    /// Whether names may have folders in them.
    pub(super) const fn has_folders(&self) -> bool {
        match self {
            Self::Directory(_) => false,
            Self::OverHttp(_) => true,
        }
    }
}
