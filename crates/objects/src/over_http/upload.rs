//! An upload and its destination.

use std::future::Future;

use bytes::Bytes;
use event::Lane;
use http::HeaderValue;

use super::body::UploadBody;
use super::digests::Digests;
use super::error::ObjectStoreError;

/// The content type of descriptions.
pub const DESCRIPTION: HeaderValue = HeaderValue::from_static("application/json");

/// An object to store under a unique name.
pub struct Upload<'a, B> {
    /// The name.
    pub name: &'a str,
    /// The digests of its bytes.
    pub digests: Digests,
    /// Its content type.
    pub content_type: HeaderValue,
    /// Whether its bytes can be sent only once. Then the name is checked first.
    pub is_once: bool,
    /// Returns its bytes from the first on, any number of times.
    pub body: B,
}

/// The destination of objects.
pub trait UploadTarget: Sync {
    /// Stores bytes under a unique name. If an object exists there, its bytes are compared.
    fn put_object(
        &self,
        lane: &Lane,
        upload: &Upload<'_, impl Fn() -> UploadBody + Send + Sync>,
    ) -> impl Future<Output = Result<(), ObjectStoreError>> + Send;

    /// Stores a description, and replaces an older one.
    fn describe(
        &self,
        lane: &Lane,
        name: &str,
        text: Bytes,
    ) -> impl Future<Output = Result<(), ObjectStoreError>> + Send;
}
