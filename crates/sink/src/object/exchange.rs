//! Objects that a writer stores and gives back for its gateways: bytes that another process has made, under the name that it chose.

use std::ops::Range;

use event::object::FoundObject;
use http::HeaderValue;

use super::ObjectStore;
use super::read::ObjectPlace;
use crate::SinkError;
use crate::http_client::Body;

/// Bytes to be stored under a name. Memory never holds all of them.
#[derive(Debug)]
pub struct ObjectUpload {
    /// The object's name.
    pub name: String,
    /// Its content type.
    pub content_type: HeaderValue,
    /// How many bytes it has.
    pub bytes: u64,
    /// Their MD5.
    pub md5: [u8; 16],
    /// Their SHA-256.
    pub sha256: [u8; 32],
    /// Whether they take the place of another object under this name. Without it such an object is compared, and must be the same.
    pub replaces: bool,
    /// The bytes.
    pub body: Body,
}

/// Which object is fetched, and what of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectQuery {
    /// All of it, unless it has this tag.
    Unless(Option<String>),
    /// These bytes of the one with this tag: at least one byte.
    Part(String, Range<u64>),
}

/// What a store gives.
#[derive(Debug)]
pub enum ObjectDownload {
    /// Nothing stands under the name.
    Missing,
    /// The object has the tag that is known.
    Same,
    /// An object, whose `content` isn't here but in the body, or a part of it is.
    Found(FoundObject, Body),
}

impl ObjectStore {
    /// What an object of this name would hold, if names of objects look like it. Other names lead elsewhere, and aren't to be used.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<ObjectPlace> {
        ObjectPlace::of(name, !matches!(self, Self::Directory(_)))
    }

    /// Stores an object that a gateway has made. It is durable under its name when this returns.
    ///
    /// # Errors
    /// [`SinkError`] where it isn't known to be there: then its gateway sends the same bytes again.
    pub async fn accept(&self, upload: ObjectUpload) -> Result<(), SinkError> {
        let accepted = match self {
            Self::Directory(directory) => directory.accept(upload).await,
            #[cfg(feature = "objects-over-http")]
            Self::OverHttp(store) => store.accept(upload).await,
        };
        accepted.map_err(SinkError::visible)
    }

    /// Gives an object, or a part of it.
    ///
    /// # Errors
    /// [`SinkError`] where the store can't be asked, or has another object than the one whose part is wanted.
    pub async fn fetch(&self, name: &str, query: &ObjectQuery) -> Result<ObjectDownload, SinkError> {
        let fetched = match self {
            Self::Directory(directory) => directory.fetch(name, query).await,
            #[cfg(feature = "objects-over-http")]
            Self::OverHttp(store) => store.fetch(name, query).await,
        };
        fetched.map_err(SinkError::visible)
    }
}
