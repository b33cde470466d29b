//! The store: documents of indices and data streams.

use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::Arc;

use async_trait::async_trait;
use event::read::{Found, Lookup, Page, Query, ReadError};
use tokio::sync::Mutex;

use crate::batch_outcomes::Writing;
use crate::config::ElasticsearchConfig;
use crate::data_stream::DataStreams;
use crate::durability::Durability;
use crate::error::Failure;
use crate::examine;
use crate::limiter::Limiter;
use crate::mark;
use crate::reader::{Reader, Writes};
use crate::server::Server;
use sink::close_signal::CloseSignal;
use sink::read_pool::ReadPool;
use sink::{Batch, Capabilities, Examination, Mark, Reason, SinkError, Store, WriteOutcome};

/// Searches that run at the same time, each over its own connection.
const READERS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(3);
/// The store.
pub struct Elasticsearch {
    config: ElasticsearchConfig,
    server: Server,
    limiter: Limiter,
    streams: DataStreams,
    durability: Durability,
    /// Whether the store was checked and has its template.
    is_ready: Mutex<bool>,
    closed: CloseSignal,
    reads: ReadPool,
    /// Reads that begin after a write must find its documents.
    writes: Arc<Writes>,
}

impl Elasticsearch {
    /// A store that isn't connected yet.
    #[must_use]
    pub fn new(config: ElasticsearchConfig) -> Self {
        let (server, limiter) = (Server::new(&config, true), Limiter::new(config.requests_max));
        let (to_read, writes) = (config.clone(), Arc::<Writes>::default());
        let counted = Arc::clone(&writes);
        let reads = ReadPool::new("search-read", READERS, move || Reader::new(to_read.clone(), Arc::clone(&counted)));
        Self {
            config,
            server,
            limiter,
            streams: DataStreams::default(),
            durability: Durability::default(),
            is_ready: Mutex::default(),
            closed: CloseSignal::default(),
            reads,
            writes,
        }
    }

    fn check_readable(&self) -> Result<(), ReadError> {
        if self.config.can_read() {
            return Ok(());
        }
        let what = "events can't be read back without `envelope = true`, or from a data stream";
        Err(ReadError::Unavailable(what.into()))
    }

    /// Does `work`, unless the sink is closed during it.
    async fn call<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, SinkError> {
        let done = self.closed.unless_closed(Failure::Closed, work).await;
        done.map_err(|failure| failure.into_sink_error(&self.config))
    }
}

#[async_trait]
impl Store for Elasticsearch {
    fn capabilities(&self) -> Capabilities {
        Capabilities { recognises_ids: true, ..Capabilities::default() }
    }

    async fn connect(&self) -> Result<(), SinkError> {
        self.call(async {
            let mut is_ready = self.is_ready.lock().await;
            *is_ready = false;
            self.prepare().await?;
            *is_ready = true;
            Ok(())
        })
        .await
    }

    async fn examine(&self, _: bool) -> Result<Examination, SinkError> {
        self.call(examine::examine(&self.config, &self.server)).await
    }

    async fn mark(&self) -> Result<Option<Mark>, SinkError> {
        self.call(mark::of(&self.server)).await.map(Some)
    }

    async fn write(&self, batch: &Batch) -> Result<WriteOutcome, SinkError> {
        if let Some(rejected) = batch.misnamed() {
            return Ok(rejected);
        }
        if batch.is_empty() {
            return Ok(WriteOutcome::Committed);
        }
        self.call(async {
            let mut is_ready = self.is_ready.lock().await;
            if !*is_ready {
                self.prepare().await?;
                *is_ready = true;
            }
            drop(is_ready);
            self.check(batch.mark()).await?;
            let Self { config, server, limiter, streams, durability, writes, .. } = self;
            streams.prepare_for(config, server, batch).await?;
            let report = Writing { config, server, limiter, streams, durability, batch }.store().await;
            writes.add();
            report
        })
        .await
    }

    /// Whether documents contain all fields of an event.
    fn can_read(&self) -> bool {
        self.config.can_read()
    }

    async fn read(&self, query: Query) -> Result<Page, ReadError> {
        self.check_readable()?;
        self.reads.read(query).await
    }

    async fn get(&self, lookup: Lookup) -> Result<Found, ReadError> {
        self.check_readable()?;
        self.reads.get(lookup).await
    }

    fn warning(&self) -> Option<Reason> {
        let ElasticsearchConfig { nodes, index, allowed, .. } = &self.config;
        let text = "a crash of its machines may lose stored events, because allow_unsafe contains";
        allowed.first().map(|name| format!("Elasticsearch {nodes}, index {index}: {text} \"{name}\"").into())
    }

    /// Ends the calls in flight and closes the connections that wait.
    async fn close(&self) -> Result<(), SinkError> {
        self.reads.close().await;
        self.closed.close();
        self.server.close_idle();
        *self.is_ready.lock().await = false;
        Ok(())
    }
}

impl Elasticsearch {
    /// Fails if a batch is for another store. Connections open and close without notice, so each batch checks.
    async fn check(&self, expected: Option<Mark>) -> Result<(), Failure> {
        if expected.is_none() {
            return Ok(());
        }
        let mark = mark::of(&self.server).await?;
        if mark.is_expected(expected) { Ok(()) } else { Err(Failure::OtherStore(mark)) }
    }

    /// Checks the store, and creates its missing template and data stream.
    async fn prepare(&self) -> Result<(), Failure> {
        self.server.check_version().await?;
        if let Some(template) = &self.config.template {
            self.server.install(template).await?;
        }
        self.streams.forget();
        self.streams.prepare(&self.config, &self.server).await?;
        self.durability.prepare(&self.config, &self.server).await
    }
}
