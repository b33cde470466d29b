//! Reading whole objects back: what a store says of one, and the trait between a gateway, which asks, and whoever knows the
//! stores.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

pub use bytes::Bytes;

use crate::Position;
use crate::read::ReadError;

/// An object that a store has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundObject {
    /// What tells its bytes from others, as `ETag` shows it: a strong one, with its quotes.
    pub etag: Box<str>,
    /// Its content type, as it was stored.
    pub content_type: Box<str>,
    /// How many bytes it has.
    pub bytes: u64,
    /// These bytes, where they are in memory: few enough to be kept, and with room for them. They count until the last who reads them
    /// lets go of them.
    pub content: Option<Bytes>,
}

/// Bytes of an object, piece by piece.
pub trait Pieces: Send {
    /// The next piece, which isn't empty; `None` behind the last.
    ///
    /// # Errors
    /// The store has broken off, or has another object under this name now.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReadError>>>;
}

/// An answer to come: `None` where there is no such object.
pub type Looking<'a> = Pin<Box<dyn Future<Output = Result<Option<Arc<FoundObject>>, ReadError>> + Send + 'a>>;
/// An object that is being opened.
pub type Opening<'a> = Pin<Box<dyn Future<Output = Result<Box<dyn Pieces>, ReadError>> + Send + 'a>>;

/// Whom a gateway asks for objects: a sink that serves them.
pub trait ObjectReader: Send + Sync {
    /// The sink's name in the configuration.
    fn name(&self) -> &Arc<str>;

    /// What stands under this name.
    fn look<'a>(&'a self, name: &'a str) -> Looking<'a>;

    /// Some bytes of an object that was found and isn't in memory.
    fn open<'a>(&'a self, name: &'a str, found: &'a FoundObject, range: Range<u64>) -> Opening<'a>;

    /// Where the event stands that an object of this name would hold, if the sink hasn't come to it yet.
    fn awaited(&self, name: &str) -> Option<Position>;

    /// What `Cache-Control` says to who gets one.
    fn cache_control(&self) -> &str;
}
