//! Stores of objects over HTTP. An object is put under its name if no object has the name yet, and its digest is
//! compared with the store's response. An existing object with the name is compared. A [`Service`] adds the difference:
//! the requests' authentication.

mod attachments;
mod body;
mod container_target;
mod digests;
mod error;
mod examine;
mod exchange;
mod mark;
mod read;
mod refusal;
mod request;
mod secret;
mod service;
pub mod settings;
mod upload;
mod upload_body;
mod uploader;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use net::http_client::{HttpClient, HttpOptions};
use sink::{Examination, Mark, Reason, SinkError};

pub use body::UploadBody;
pub use container_target::{CHECKSUM, drain, expect_success};
pub use digests::Digests;
pub use error::ObjectStoreError;
pub use read::ContainerReader;
pub use refusal::ServiceRefusal;
pub use request::ContainerRequest;
pub use secret::Secret;
pub use service::{Service, Source};
pub use upload::{DESCRIPTION, Upload, UploadTarget};
pub use uploader::Uploader;

use crate::read::ObjectStoreReader;
use crate::{Manifest, MemoryBudget, ObjectDownload, ObjectFormat, ObjectQuery, ObjectStore, ObjectUpload, Parts};
use container_target::ContainerTarget;

/// How long a server may take to accept a connection, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The purpose of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Objects are stored. No caller waits for a response, so requests wait as long as the store demands.
    Storing,
    /// Objects are returned to readers, who get a response immediately.
    Reading,
}

/// A client of the service.
#[must_use]
pub fn client(ca: Option<PathBuf>, silence_max: Duration, use_of: Use) -> HttpClient {
    let waits_for_retry_after = use_of == Use::Storing;
    HttpClient::new(HttpOptions { ca, connect_timeout: CONNECT_TIMEOUT, silence_max, waits_for_retry_after })
}

/// A store of objects over HTTP.
pub struct OverHttp<S> {
    uploader: Uploader,
    target: ContainerTarget<S>,
    /// Creates another service, with separate connections and a separate token: these belong to the thread that uses
    /// them.
    service: Box<dyn Fn(Use) -> S + Send + Sync>,
    /// The store as a writer's gateways read it, created by the first read.
    reader: OnceLock<ContainerReader<S>>,
}

impl<S: Service> OverHttp<S> {
    /// A store of objects with these rules, at the service that `service` creates. Nothing is requested before the
    /// first call.
    #[must_use]
    pub fn new(service: impl Fn(Use) -> S + Send + Sync + 'static, rules: ObjectFormat) -> Self {
        let target = ContainerTarget::new(service(Use::Storing));
        Self { uploader: Uploader::new(rules), target, service: Box::new(service), reader: OnceLock::new() }
    }

    fn new_reader(&self) -> ContainerReader<S> {
        ContainerReader((self.service)(Use::Reading))
    }

    fn named<T>(&self, done: Result<T, ObjectStoreError>) -> Result<T, SinkError> {
        done.map_err(|failure| failure.into_sink_error(&self.target.name()))
    }
}

#[async_trait]
impl<S: Service> ObjectStore for OverHttp<S> {
    fn rules(&self) -> &ObjectFormat {
        &self.uploader.rules
    }

    fn memory_budget(&self) -> Option<&MemoryBudget> {
        Some(&self.uploader.memory)
    }

    fn refusal(&self, payload: &[u8]) -> Option<Reason> {
        self.uploader.refusal(payload)
    }

    async fn connect(&self) -> Result<(), SinkError> {
        self.named(self.target.prepare().await)
    }

    async fn examine(&self, may_write: bool) -> Result<Examination, SinkError> {
        let trial = may_write.then_some(&self.uploader.rules.prefix);
        self.named(examine::examine(&self.target, trial).await)
    }

    async fn mark(&self) -> Result<Mark, SinkError> {
        self.named(mark::of(&self.target, &self.uploader.rules.prefix).await)
    }

    async fn put(&self, manifest: &Manifest, parts: Box<dyn Parts>) -> Result<Box<dyn Parts>, SinkError> {
        self.named(self.uploader.put(&self.target, manifest, parts).await)
    }

    fn reader(&self) -> Box<dyn ObjectStoreReader> {
        Box::new(self.new_reader())
    }

    async fn accept(&self, upload: ObjectUpload) -> Result<(), SinkError> {
        self.named(self.target.accept(upload).await)
    }

    async fn fetch(&self, name: &str, query: &ObjectQuery) -> Result<ObjectDownload, SinkError> {
        self.named(self.reader.get_or_init(|| self.new_reader()).fetch(name, query).await)
    }
}
