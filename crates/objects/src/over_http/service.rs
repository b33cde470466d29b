//! The interface of a service of objects over HTTP. The rest of a store is the same for all of them.

use std::future::Future;

use net::http_client::HttpResponse;

use super::error::ObjectStoreError;
use super::request::ContainerRequest;

/// The destination of requests for objects: a service, or a writer that has one.
pub trait Source: Send + Sync + 'static {
    /// The store and its container, for messages.
    fn name(&self) -> String;

    /// Sends a request. It may be sent twice, so `request` creates it.
    fn send<'a>(
        &self,
        request: impl Fn() -> ContainerRequest<'a> + Send + Sync,
    ) -> impl Future<Output = Result<HttpResponse, ObjectStoreError>> + Send;
}

/// A service that has one container of objects.
pub trait Service: Source {
    /// Whether its list of objects is updated separately: a server that is killed in between has an object that isn't
    /// in the list.
    fn lists_apart(&self) -> bool {
        false
    }

    /// The request that creates the container.
    fn create_container(&self) -> ContainerRequest<'static>;
}
