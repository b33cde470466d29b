//! Objects stored through a writer: the gateway makes them, and the writer's own sink streams them to its store. The writer has the
//! credentials, and answers after the store.

use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use event::Lane;
use http::{HeaderMap, HeaderValue, Method, header};
use limits::OBJECT_READ_TIMEOUT;
use net::http_client::HttpResponse;
use objects::over_http::{
    ContainerReader, ContainerRequest, DESCRIPTION, Digests, ObjectStoreError, Source, Upload, UploadBody,
    UploadTarget, Uploader,
};
use objects::read::ObjectStoreReader;
use objects::{Manifest, MemoryBudget, ObjectDownload, ObjectFormat, ObjectQuery, ObjectStore, ObjectUpload, Parts};
use sink::{Examination, Mark, Reason, SinkError, StoreBinding};

use super::caller::{Caller, LastSearch};
use super::config::RemoteObjectsConfig;
use super::exchange::{Call, Content};
use writer_protocol::Outcome;
use writer_protocol::object::{DIGEST, ObjectLimits, PATH, digest_text};

/// A writer may be silent for as long as a reader waits for the store.
const READ_SILENCE_MAX: Duration = OBJECT_READ_TIMEOUT;

/// A writers' sink of objects.
pub struct RemoteObjects {
    uploader: Uploader,
    writers: Writers,
    /// The sink as a writer's gateways read it, created by the first read.
    reader: OnceLock<ContainerReader<Writers>>,
}

/// The writers that have the sink.
struct Writers {
    caller: Caller,
}

impl RemoteObjects {
    /// A store that connects to the writers at its first call.
    #[must_use]
    pub fn new(config: RemoteObjectsConfig) -> Self {
        let writers = Writers { caller: Caller::new(config.remote) };
        Self { uploader: Uploader::new(config.rules), writers, reader: OnceLock::new() }
    }

    fn to_read(&self) -> ContainerReader<Writers> {
        ContainerReader(Writers { caller: self.writers.caller.to_read(READ_SILENCE_MAX, LastSearch::default()) })
    }

    fn named<T>(&self, done: Result<T, ObjectStoreError>) -> Result<T, SinkError> {
        done.map_err(|failure| failure.into_sink_error(&self.writers.name()))
    }
}

#[async_trait]
impl ObjectStore for RemoteObjects {
    fn rules(&self) -> &ObjectFormat {
        &self.uploader.rules
    }

    fn memory_budget(&self) -> Option<&MemoryBudget> {
        Some(&self.uploader.memory)
    }

    fn refusal(&self, payload: &[u8]) -> Option<Reason> {
        self.uploader.refusal(payload)
    }

    /// Connects the writer's sink to its store, and compares the limits of objects.
    async fn connect(&self) -> Result<(), SinkError> {
        let (here, caller) = (ObjectLimits::from(&self.uploader.rules), &self.writers.caller);
        caller.connect(|info| here.check(info.objects, &caller.config().sink)).await
    }

    /// The writers ask their own stores, as at a start of the gateway.
    async fn examine(&self, _: bool) -> Result<Examination, SinkError> {
        let mut found = Examination::default();
        self.connect().await?;
        found.see("the writers answer, and have the same store");
        found.warn_of_loss(self.warning().map(|warning| warning.to_string()));
        Ok(found)
    }

    async fn mark(&self) -> Result<Mark, SinkError> {
        let mark = self.writers.caller.mark();
        mark.ok_or_else(|| {
            SinkError::Unavailable("no writer has responded yet: check that one runs, and its address".into())
        })
    }

    async fn put(&self, manifest: &Manifest, parts: Box<dyn Parts>) -> Result<Box<dyn Parts>, SinkError> {
        self.named(self.uploader.put(&self.writers, manifest, parts).await)
    }

    fn reader(&self) -> Box<dyn ObjectStoreReader> {
        Box::new(self.to_read())
    }

    async fn accept(&self, _: ObjectUpload) -> Result<(), SinkError> {
        Err(SinkError::Misconfigured("a writer can't store through another writer".into()))
    }

    async fn fetch(&self, name: &str, query: &ObjectQuery) -> Result<ObjectDownload, SinkError> {
        self.named(self.reader.get_or_init(|| self.to_read()).fetch(name, query).await)
    }

    fn warning(&self) -> Option<Reason> {
        self.writers.caller.binding().warning()
    }

    fn binding(&self) -> Option<&dyn StoreBinding> {
        Some(&self.writers.caller)
    }
}

impl Source for Writers {
    fn name(&self) -> String {
        format!("sink {} of a writer", self.caller.config().sink)
    }

    async fn send<'a>(
        &self,
        request: impl Fn() -> ContainerRequest<'a> + Send + Sync,
    ) -> Result<HttpResponse, ObjectStoreError> {
        let ContainerRequest { object, headers, .. } = request();
        let path = format!("/{PATH}{}", object.unwrap_or_default());
        let call = Call { headers, ..Call::new(Method::GET, &path) };
        self.caller.download(&call).await.map_err(ObjectStoreError::Writer)
    }
}

impl Writers {
    async fn upload(
        &self,
        lane: &Lane,
        upload: &Upload<'_, impl Fn() -> UploadBody + Send + Sync>,
        replaces: bool,
    ) -> Result<(), ObjectStoreError> {
        let digests = digest_text(&upload.digests.md5, &upload.digests.sha256);
        let digests = HeaderValue::try_from(digests).map_err(|_| ObjectStoreError::Unsendable)?;
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, upload.content_type.clone());
        headers.insert(DIGEST, digests);
        if !replaces {
            headers.insert(header::IF_NONE_MATCH, HeaderValue::from_static("*"));
        }
        let body = || (upload.body)().into_client();
        let path = format!("/{PATH}{}", upload.name);
        let content = Content::Object(upload.digests.bytes, &body);
        let call = Call { lane: Some(lane), headers, content, ..Call::new(Method::PUT, &path) };
        match self.caller.call(&call).await.and_then(|answer| answer).map_err(ObjectStoreError::Writer)? {
            Outcome::Stored => Ok(()),
            _ => Err(ObjectStoreError::Writer(unclear("sent the outcome of a batch as the response to an object"))),
        }
    }
}

impl UploadTarget for Writers {
    async fn put_object(
        &self,
        lane: &Lane,
        upload: &Upload<'_, impl Fn() -> UploadBody + Send + Sync>,
    ) -> Result<(), ObjectStoreError> {
        self.upload(lane, upload, false).await
    }

    async fn describe(&self, lane: &Lane, name: &str, text: Bytes) -> Result<(), ObjectStoreError> {
        let (digests, body) = (Digests::of(&text), || UploadBody::Whole(text.clone()));
        let upload = Upload { name, digests, content_type: DESCRIPTION, is_once: false, body };
        self.upload(lane, &upload, true).await
    }
}

fn unclear(what: &str) -> SinkError {
    let reason: Reason = format!("the writer {what}: check the proxies between gateway and writer").into();
    SinkError::Unavailable(reason)
}
