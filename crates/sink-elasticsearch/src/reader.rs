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
    writes: Arc<Writes>,
    /// Read with the first page, and again when a page has failed.
    fields: Option<Fields>,
}

/// The sink's writes, and the one up to which searches find documents: all readers share it.
#[derive(Debug)]
pub(super) struct Writes {
    written: AtomicU64,
    refreshed: AtomicU64,
}

impl Default for Writes {
    /// An earlier process may have written what searches don't find yet.
    fn default() -> Self {
        Self { written: AtomicU64::new(1), refreshed: AtomicU64::new(0) }
    }
}

impl Writes {
    /// Something was written: reads that begin later find it.
    pub(super) fn add(&self) {
        self.written.fetch_add(1, Ordering::Release);
    }

    /// The last write, if searches don't find it yet.
    fn to_refresh(&self) -> Option<u64> {
        let written = self.written.load(Ordering::Acquire);
        (self.refreshed.load(Ordering::Acquire) < written).then_some(written)
    }

    /// A refresh that began after this write is over.
    fn refreshed(&self, written: u64) {
        self.refreshed.fetch_max(written, Ordering::AcqRel);
    }
}

impl Reader {
    pub(super) fn new(config: ElasticsearchConfig, writes: Arc<Writes>) -> Self {
        let server = Server::new(&config, false);
        Self { config, server, writes, fields: None }
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
    async fn refresh(&self) -> Result<(), Failure> {
        if let Some(written) = self.writes.to_refresh() {
            let path = format!("/{}/_refresh?{EXISTING_INDICES}", self.config.index.wildcard(None));
            self.server.of_indices(&path, None).await?;
            self.writes.refreshed(written);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_share_a_refresh() {
        let writes = Writes::default();
        let first = writes.to_refresh().expect("an earlier process may have written");
        writes.add();
        writes.refreshed(first);
        let second = writes.to_refresh().expect("this write was later than the refresh");
        writes.refreshed(second);
        writes.refreshed(first);
        assert_eq!(writes.to_refresh(), None);
        writes.add();
        assert!(writes.to_refresh() > Some(second));
    }
}
