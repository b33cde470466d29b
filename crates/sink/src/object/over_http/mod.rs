//! Stores of objects over HTTP. What Swift and S3 have in common stands here: an object is put under its name if nothing has it yet,
//! its digest is held against what the store says, and what has the name already is compared. What differs is who asks
//! (`service.rs`).

mod apart;
mod ask;
mod body;
mod coded;
mod container;
mod digesting;
mod escaped;
mod exchange;
mod failure;
mod making;
mod mark;
mod md5_pair;
mod put;
mod read;
mod refusal;
pub mod s3;
mod secret;
mod service;
pub mod swift;
mod writer;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

pub use container::{Container, InvalidContainer};
pub(super) use read::ReadOverHttp;
pub use secret::Secret;

use super::room::Room;
use super::{Manifest, ObjectRules, Parts};
use crate::{Mark, Reason, SinkError};
use failure::Failure;
use making::Making;
use net::http_client::{HttpClient, HttpOptions};
use put::Store;
use service::Service;
use writer::WriterSink;

/// How long a server may take to accept a connection, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What a service is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Objects are stored. Nobody waits for an answer, so requests wait as long as the store asks for.
    Storing,
    /// Objects are given to readers, who are answered at once.
    Reading,
}

fn client(ca: Option<PathBuf>, silence_max: Duration, use_of: Use) -> HttpClient {
    let waits_for_retry_after = use_of == Use::Storing;
    HttpClient::new(HttpOptions { ca, connect_timeout: CONNECT_TIMEOUT, silence_max, waits_for_retry_after })
}

/// A store of objects over HTTP. Cheap to clone.
#[derive(Clone)]
pub struct OverHttp(Arc<Shared>);

struct Shared {
    making: Making,
    target: To,
    /// The same for a writer's gateways, made when the first of them reads.
    reads: OnceLock<ReadOverHttp>,
}

/// Where objects go.
enum To {
    Service {
        store: Box<Store>,
        /// Makes the service anew, with connections and a token of its own: these belong to the thread that uses them.
        service: Box<dyn Fn(Use) -> Service + Send + Sync>,
    },
    Writer(WriterSink),
}

impl OverHttp {
    fn new(service: impl Fn(Use) -> Service + Send + Sync + 'static, rules: ObjectRules) -> Self {
        let store = Box::new(Store::new(service(Use::Storing)));
        Self::to(To::Service { store, service: Box::new(service) }, rules)
    }

    fn to(target: To, rules: ObjectRules) -> Self {
        Self(Arc::new(Shared { making: Making::new(rules), target, reads: OnceLock::new() }))
    }

    /// A container of Swift. Nothing is asked before the first call.
    #[must_use]
    pub fn swift(config: swift::SwiftConfig) -> Self {
        let rules = config.rules.clone();
        Self::new(move |use_of| Service::Swift(swift::Swift::new(config.clone(), use_of)), rules)
    }

    /// A bucket of S3. Nothing is asked before the first call.
    #[must_use]
    pub fn s3(config: s3::S3Config) -> Self {
        let rules = config.rules.clone();
        Self::new(move |use_of| Service::S3(s3::S3::new(config.clone(), use_of)), rules)
    }

    /// A sink of writers that has objects. Nothing is asked before the first call.
    #[must_use]
    pub fn writer(config: crate::remote::RemoteObjectsConfig) -> Self {
        Self::to(To::Writer(WriterSink::new(config.remote)), config.rules)
    }

    pub(super) fn refusal(&self, payload: &[u8]) -> Option<Reason> {
        self.0.making.refusal(payload)
    }

    pub(super) fn room(&self) -> &Room {
        &self.0.making.room
    }

    pub(super) fn rules(&self) -> ObjectRules {
        self.0.making.rules.clone()
    }

    fn name(&self) -> String {
        match &self.0.target {
            To::Service { store, .. } => store.name(),
            To::Writer(writer) => writer.name(),
        }
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Makes what objects are kept in, if it is missing.
    pub(crate) async fn connect(&self) -> Result<(), SinkError> {
        match &self.0.target {
            To::Service { store, .. } => self.named(store.prepare().await),
            To::Writer(writer) => writer.connect(&self.0.making.rules).await,
        }
    }

    pub(super) async fn mark(&self) -> Result<Mark, SinkError> {
        match &self.0.target {
            To::Service { store, .. } => self.named(mark::of(store, &self.0.making.rules.prefix).await),
            To::Writer(writer) => writer.mark(),
        }
    }

    pub(super) async fn put<P: Parts>(&self, manifest: &Manifest, parts: P) -> Result<P, SinkError> {
        let making = &self.0.making;
        self.named(match &self.0.target {
            To::Service { store, .. } => making.put(&**store, manifest, parts).await,
            To::Writer(writer) => making.put(writer, manifest, parts).await,
        })
    }

    pub(crate) fn caller(&self) -> Option<&crate::remote::caller::Caller> {
        match &self.0.target {
            To::Service { .. } => None,
            To::Writer(writer) => Some(writer.caller()),
        }
    }

    fn named<T>(&self, done: Result<T, Failure>) -> Result<T, SinkError> {
        done.map_err(|failure| failure.into_sink_error(&self.name()))
    }

    /// The same store for those who read.
    pub(super) fn to_read(&self) -> ReadOverHttp {
        match &self.0.target {
            To::Service { service, .. } => ReadOverHttp(read::Source::Service(Box::new(service(Use::Reading)))),
            To::Writer(writer) => ReadOverHttp(read::Source::Writer(writer.to_read())),
        }
    }

    /// Stores an object that a gateway sends.
    pub(super) async fn accept(&self, upload: super::ObjectUpload) -> Result<(), SinkError> {
        match &self.0.target {
            To::Service { store, .. } => self.named(store.accept(upload).await),
            To::Writer(_) => Err(SinkError::Misconfigured("a writer can't store through another writer".into())),
        }
    }

    /// Gives an object to a gateway.
    pub(super) async fn fetch(
        &self,
        name: &str,
        query: &super::ObjectQuery,
    ) -> Result<super::ObjectDownload, SinkError> {
        self.named(self.0.reads.get_or_init(|| self.to_read()).fetch(name, query).await)
    }
}

impl fmt::Debug for OverHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OverHttp").field(&self.name()).finish()
    }
}
