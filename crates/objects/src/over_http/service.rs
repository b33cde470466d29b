//! What a service of objects over HTTP implements. The rest of a store is the same for all of them.

use std::future::Future;

use net::http_client::HttpResponse;

use super::error::ObjectStoreError;
use super::request::ContainerRequest;

/// Where objects are requested: a service, or a writer that has one.
pub trait Source: Send + Sync + 'static {
    /// The store and its container, for messages.
    fn name(&self) -> String;

    /// Sends a request. It may be sent twice, so `request` makes it.
    fn send<'a>(
        &self,
        request: impl Fn() -> ContainerRequest<'a> + Send + Sync,
    ) -> impl Future<Output = Result<HttpResponse, ObjectStoreError>> + Send;
}

/// A service that has one container of objects.
pub trait Service: Source {
    /// Whether its list of objects is kept apart from them: a server that is killed between the two has an object that no list names.
    fn lists_apart(&self) -> bool {
        false
    }

    /// The request that creates the container.
    fn create_container(&self) -> ContainerRequest<'static>;
}
