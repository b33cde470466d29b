//! Reads: over a separate connection, which can't write.

use async_trait::async_trait;
use event::read::{Page, Query, ReadError};

use super::config::PostgresConfig;
use super::error::Failure;
use super::open_session;
use super::read;
use super::session::Session;
use sink::read_pool::PooledReader;

/// The state of the thread that reads.
pub(super) struct Reader {
    config: PostgresConfig,
    open: Option<Session>,
}

impl Reader {
    pub(super) const fn new(config: PostgresConfig) -> Self {
        Self { config, open: None }
    }

    /// The page, or why the query isn't possible.
    async fn page(&mut self, query: &Query) -> Result<Result<Page, ReadError>, Failure> {
        let mut before = self.open.take();
        let is_fresh = match &mut before {
            Some(session) => session.check_fresh().await,
            None => false,
        };
        let mut session = match before.filter(|_| is_fresh) {
            Some(session) => session,
            None => begin(&self.config).await?,
        };
        let (talk, driver) = session.parts();
        let page = driver.run(read::read(talk, &self.config, query)).await?;
        self.open = Some(session);
        Ok(page)
    }
}

#[async_trait(?Send)]
impl PooledReader for Reader {
    async fn read(&mut self, query: &Query) -> Result<Page, ReadError> {
        self.page(query).await.unwrap_or_else(|failure| Err(failure.into_read_error(&self.config)))
    }

    async fn hang_up(&mut self) {
        if let Some(session) = self.open.take() {
            session.close().await;
        }
    }
}

async fn begin(config: &PostgresConfig) -> Result<Session, Failure> {
    let mut session = open_session::open(config).await?;
    let (talk, driver) = session.parts();
    // The bounds of partitions are parsed in the server's format.
    let settings = "set default_transaction_read_only = on; set datestyle = 'ISO'; set timezone = 'UTC'";
    driver.run(talk.execute(settings)).await?;
    Ok(session)
}
