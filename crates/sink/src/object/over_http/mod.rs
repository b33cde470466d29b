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
mod failure;
mod mark;
mod md5_pair;
mod put;
mod read;
mod refusal;
#[cfg(feature = "s3")]
pub mod s3;
mod secret;
mod service;
#[cfg(feature = "swift")]
pub mod swift;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use container::{Container, InvalidContainer};
pub(super) use read::ReadOverHttp;
pub use secret::Secret;

use super::room::Room;
use super::{Manifest, ObjectRules, Parts};
use crate::http_client::{HttpClient, HttpOptions};
use crate::{Mark, Reason, SinkError};
use put::Store;
use service::Service;

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
    store: Store,
    /// Makes the service anew, with connections and a token of its own: these belong to the thread that uses them.
    service: Box<dyn Fn(Use) -> Service + Send + Sync>,
}

impl OverHttp {
    fn new(service: impl Fn(Use) -> Service + Send + Sync + 'static, rules: ObjectRules) -> Self {
        Self(Arc::new(Shared { store: Store::new(service(Use::Storing), rules), service: Box::new(service) }))
    }

    /// A container of Swift. Nothing is asked before the first call.
    #[cfg(feature = "swift")]
    #[must_use]
    pub fn swift(config: swift::SwiftConfig) -> Self {
        let rules = config.rules.clone();
        Self::new(move |use_of| Service::Swift(swift::Swift::new(config.clone(), use_of)), rules)
    }

    /// A bucket of S3. Nothing is asked before the first call.
    #[cfg(feature = "s3")]
    #[must_use]
    pub fn s3(config: s3::S3Config) -> Self {
        let rules = config.rules.clone();
        Self::new(move |use_of| Service::S3(s3::S3::new(config.clone(), use_of)), rules)
    }

    pub(super) fn refusal(&self, payload: &[u8]) -> Option<Reason> {
        self.0.store.refusal(payload)
    }

    pub(super) fn room(&self) -> &Room {
        &self.0.store.room
    }

    pub(super) fn rules(&self) -> ObjectRules {
        self.0.store.rules.clone()
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Makes what objects are kept in, if it is missing.
    pub(crate) async fn connect(&self) -> Result<(), SinkError> {
        self.0.store.prepare().await.map_err(|failure| failure.into_sink_error(&self.0.store.name()))
    }

    pub(super) async fn mark(&self) -> Result<Mark, SinkError> {
        mark::of(&self.0.store).await.map_err(|failure| failure.into_sink_error(&self.0.store.name()))
    }

    pub(super) async fn put<P: Parts>(&self, manifest: &Manifest, parts: P) -> Result<P, SinkError> {
        self.0.store.put(manifest, parts).await.map_err(|failure| failure.into_sink_error(&self.0.store.name()))
    }

    /// The same store for those who read.
    pub(super) fn to_read(&self) -> ReadOverHttp {
        ReadOverHttp::new((self.0.service)(Use::Reading))
    }
}

impl fmt::Debug for OverHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OverHttp").field(&self.0.store.name()).finish()
    }
}
