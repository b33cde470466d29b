//! Reading whole objects back: the facts that a store has of one, and the trait between a gateway and the stores.

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
    /// The tag that identifies its bytes, as in `ETag`: a strong one, with its quotes.
    pub etag: Box<str>,
    /// Its stored content type.
    pub content_type: Box<str>,
    /// How many bytes it has.
    pub bytes: u64,
    /// The bytes, if they are in memory: few enough to be cached, and within the cache's limit. They count until the
    /// last reader drops them.
    pub content: Option<Bytes>,
}

/// Bytes of an object, piece by piece.
pub trait Pieces: Send {
    /// The next piece, which isn't empty; `None` after the last.
    ///
    /// # Errors
    /// The store has interrupted the transfer, or has another object under this name now.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReadError>>>;
}

/// A pending answer: `None` if there is no such object.
pub type Looking<'a> = Pin<Box<dyn Future<Output = Result<Option<Arc<FoundObject>>, ReadError>> + Send + 'a>>;
/// An object that is being opened.
pub type Opening<'a> = Pin<Box<dyn Future<Output = Result<Box<dyn Pieces>, ReadError>> + Send + 'a>>;

/// The interface through which a gateway reads objects: a sink that serves them.
pub trait ObjectReader: Send + Sync {
    /// The sink's name in the configuration.
    fn name(&self) -> &Arc<str>;

    /// The object of this name.
    fn look<'a>(&'a self, name: &'a str) -> Looking<'a>;

    /// A range of bytes of an object that was found and isn't in memory.
    fn open<'a>(&'a self, name: &'a str, found: &'a FoundObject, range: Range<u64>) -> Opening<'a>;

    /// The position of the event that an object of this name would hold, if the sink hasn't reached it yet.
    fn awaited(&self, name: &str) -> Option<Position>;

    /// The `Cache-Control` header of responses.
    fn cache_control(&self) -> &str;
}
