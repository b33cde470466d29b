//! Reads: a connection of their own, which can't write, so that nothing that they do holds up a lane. They take turns on it.

use std::pin::pin;
use std::time::Duration;

use event::read::{Page, Query, ReadError};
use futures_util::future::{Either, select};
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::time::timeout;

use super::config::PostgresConfig;
use super::failure::Failure;
use super::page;
use super::session::Session;

/// Reads that wait for their turn, and the one whose turn it is.
const WAITING_MAX: usize = 32;
/// A read that has waited for so long isn't begun any more.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The connection that reads.
#[derive(Debug)]
pub(super) struct Reader {
    places: Semaphore,
    open: Mutex<Option<Session>>,
    closed: watch::Sender<u64>,
}

impl Default for Reader {
    fn default() -> Self {
        Self { places: Semaphore::new(WAITING_MAX), open: Mutex::default(), closed: watch::Sender::new(0) }
    }
}

impl Reader {
    pub(super) async fn read(&self, config: &PostgresConfig, query: &Query) -> Result<Page, ReadError> {
        let Ok(_place) = self.places.try_acquire() else { return Err(ReadError::Busy) };
        let mut closed = self.closed.subscribe();
        match select(pin!(self.read_in_turn(config, query)), pin!(closed.changed())).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => Err(Failure::Closed.into_read_error(config)),
        }
    }

    async fn read_in_turn(&self, config: &PostgresConfig, query: &Query) -> Result<Page, ReadError> {
        let mut open = timeout(WAIT_MAX, self.open.lock()).await.map_err(|_| ReadError::Busy)?;
        let mut before = open.take();
        let is_fresh = match &mut before {
            Some(session) => session.is_fresh().await,
            None => false,
        };
        let mut session = match before.filter(|_| is_fresh) {
            Some(session) => session,
            None => begin(config).await.map_err(|failure| failure.into_read_error(config))?,
        };
        let table = config.table.quoted();
        let (talk, driver) = session.parts();
        let page = driver.run(page::read(talk, &table, query)).await;
        let page = page.map_err(|failure| failure.into_read_error(config))?;
        *open = Some(session);
        page.ok_or(ReadError::Bookmark)
    }

    /// Ends the read in hand and closes the connection. A later read opens another.
    pub(super) async fn close(&self) {
        self.closed.send_modify(|count| *count += 1);
        let open = self.open.lock().await.take();
        if let Some(session) = open {
            session.close().await;
        }
    }
}

async fn begin(config: &PostgresConfig) -> Result<Session, Failure> {
    let mut session = Session::open(config).await?;
    let (talk, driver) = session.parts();
    driver.run(talk.order("set default_transaction_read_only = on")).await?;
    Ok(session)
}
