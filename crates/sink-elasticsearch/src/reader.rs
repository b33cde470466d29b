//! Reads: over separate connections, after everything that this sink has written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use event::read::{Found, Lookup, Page, Query, ReadError};

use super::config::ElasticsearchConfig;
use super::error::Failure;
use super::fields::{Fields, WANTED};
use super::lookup;
use super::page;
use super::search::EXISTING_INDICES;
use super::server::Server;
use sink::read_pool::PooledReader;

/// The state of the thread that reads.
pub(super) struct Reader {
    config: ElasticsearchConfig,
    server: Server,
    /// Counts the sink's writes.
    written: Arc<AtomicU64>,
    /// Up to which write searches find documents.
    refreshed: Option<u64>,
    /// Read with the first page, and again when a page has failed.
    fields: Option<Fields>,
}

impl Reader {
    pub(super) fn new(config: ElasticsearchConfig, written: Arc<AtomicU64>) -> Self {
        let server = Server::new(&config, false);
        Self { config, server, written, refreshed: None, fields: None }
    }

    /// The page; `None` if the bookmark isn't this store's.
    async fn page(&mut self, query: &Query) -> Result<Option<Page>, Failure> {
        let Some(fields) = self.begin().await? else {
            // There is no index yet: a bookmark must be from another store.
            return Ok(query.after.is_none().then(Page::default));
        };
        let page = page::read(&self.server, &self.config.index, &fields, query).await?;
        self.fields = Some(fields);
        Ok(page)
    }

    async fn found(&mut self, lookup: &Lookup) -> Result<Found, Failure> {
        let Some(fields) = self.begin().await? else { return Ok(Found::default()) };
        let found = lookup::get(&self.server, &self.config.index, &fields, lookup).await?;
        self.fields = Some(fields);
        Ok(found)
    }

    /// The fields of the documents that are searchable now; `None` if there is no index yet.
    async fn begin(&mut self) -> Result<Option<Fields>, Failure> {
        self.refresh().await?;
        match self.fields.take() {
            Some(fields) => Ok(Some(fields)),
            None => self.look_up_fields().await,
        }
    }

    fn unavailable(&self, failure: Failure) -> ReadError {
        ReadError::Unavailable(failure.into_sink_error(&self.config).into_reason())
    }

    /// Makes all written documents searchable, which otherwise takes a while.
    async fn refresh(&mut self) -> Result<(), Failure> {
        let written = self.written.load(Ordering::Acquire);
        if self.refreshed != Some(written) {
            let path = format!("/{}/_refresh?{EXISTING_INDICES}", self.config.index.wildcard(None));
            self.server.of_indices(&path, None).await?;
            self.refreshed = Some(written);
        }
        Ok(())
    }

    async fn look_up_fields(&self) -> Result<Option<Fields>, Failure> {
        let index = self.config.index.wildcard(None);
        let path = format!("/{index}/_field_caps?fields={WANTED}&{EXISTING_INDICES}");
        Fields::read(&self.server.of_indices(&path, None).await?)
    }
}

#[async_trait(?Send)]
impl PooledReader for Reader {
    async fn read(&mut self, query: &Query) -> Result<Page, ReadError> {
        match self.page(query).await {
            Ok(page) => page.ok_or(ReadError::Bookmark),
            Err(failure) => Err(self.unavailable(failure)),
        }
    }

    async fn get(&mut self, lookup: &Lookup) -> Result<Found, ReadError> {
        self.found(lookup).await.map_err(|failure| self.unavailable(failure))
    }

    async fn hang_up(&mut self) {
        self.server.close_idle();
        self.fields = None;
    }
}
