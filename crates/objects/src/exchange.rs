//! Objects that a writer stores and returns for gateways: the gateway created their bytes and chose their names.

use std::ops::Range;

use event::object::FoundObject;
use http::HeaderValue;

use net::http_client::RequestBody;

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
    pub body: RequestBody,
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
    Found(FoundObject, RequestBody),
}
