//! An upload, and where it goes.

use std::future::Future;

use bytes::Bytes;
use event::Lane;
use http::HeaderValue;

use super::body::UploadBody;
use super::digests::Digests;
use super::error::ObjectStoreError;

/// The content type of descriptions.
pub const DESCRIPTION: HeaderValue = HeaderValue::from_static("application/json");

/// Something to be stored under a name that nothing else has.
pub struct Upload<'a, B> {
    /// The name.
    pub name: &'a str,
    /// The digests of its bytes.
    pub digests: Digests,
    /// Its content type.
    pub content_type: HeaderValue,
    /// Whether its bytes can be sent once only: then what stands under the name is looked at before.
    pub is_once: bool,
    /// Its bytes from the first on, as often as they are asked for.
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
