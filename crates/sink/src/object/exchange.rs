//! Objects that a writer stores and returns for gateways: the gateway made their bytes and chose their names.

use std::ops::Range;

use event::object::FoundObject;
use http::HeaderValue;

use super::ObjectStore;
use super::read::ObjectPlace;
use crate::SinkError;
use net::http_client::Body;

/// An object to store, as a stream of bytes.
#[derive(Debug)]
pub struct ObjectUpload {
    /// The object's name.
    pub name: String,
    /// Its content type.
    pub content_type: HeaderValue,
    /// Its size in bytes.
    pub bytes: u64,
    /// Their MD5.
    pub md5: [u8; 16],
    /// Their SHA-256.
    pub sha256: [u8; 32],
    /// Whether they replace an existing object. If not, an existing object must have the same bytes.
    pub replaces: bool,
    /// The bytes.
    pub body: Body,
}

/// Which part of an object to fetch, and under which condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectQuery {
    /// All of it, unless it has this tag.
    Unless(Option<String>),
    /// These bytes of the one with this tag: at least one byte.
    Part(String, Range<u64>),
}

/// The result of fetching an object.
#[derive(Debug)]
pub enum ObjectDownload {
    /// There is no object of this name.
    Missing,
    /// The object still has the given tag.
    Same,
    /// The object. Its content, or the requested part of it, is in the body.
    Found(FoundObject, Body),
}

impl ObjectStore {
    /// The lane and position in an object's name; `None` if it isn't an object's name. Such a name must not be used: it could address
    /// something else.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<ObjectPlace> {
        ObjectPlace::of(name, !matches!(self, Self::Directory(_)))
    }

    /// Stores an object that a gateway has made. It is durable under its name when this returns.
    ///
    /// # Errors
    /// [`SinkError`] if it may not be stored: the gateway then sends the same bytes again.
    pub async fn accept(&self, upload: ObjectUpload) -> Result<(), SinkError> {
        let accepted = match self {
            Self::Directory(directory) => directory.accept(upload).await,
            Self::OverHttp(store) => store.accept(upload).await,
        };
        accepted.map_err(SinkError::visible)
    }

    /// Returns an object, or a part of it.
    ///
    /// # Errors
    /// [`SinkError`] if the store doesn't answer, or if the object of a requested part has changed.
    pub async fn fetch(&self, name: &str, query: &ObjectQuery) -> Result<ObjectDownload, SinkError> {
        let fetched = match self {
            Self::Directory(directory) => directory.fetch(name, query).await,
            Self::OverHttp(store) => store.fetch(name, query).await,
        };
        fetched.map_err(SinkError::visible)
    }
}
