//! A reader: it has a connection that can't write, and never blocks the thread that writes. SQLite blocks, so each call
//! goes to a separate thread.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use event::read::{Found, Lookup, Page, Query, ReadError};
use rusqlite::{Connection, OpenFlags};

use super::config::SqliteConfig;
use super::file_identity::FileIdentity;
use super::page::{self, ReadSql};
use super::{error, lookup};
use sink::read_pool::PooledReader;

/// How long a read waits for another connection's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection, and the file that it has open.
type Open = (Connection, Option<FileIdentity>);

pub(super) struct Reader {
    shared: Arc<(ReadSql, PathBuf)>,
    open: Option<Open>,
}

#[async_trait(?Send)]
impl PooledReader for Reader {
    async fn read(&mut self, query: &Query) -> Result<Page, ReadError> {
        let query = query.clone();
        self.call(move |connection, sql| page::read(connection, sql, &query)).await?.ok_or(ReadError::Bookmark)
    }

    async fn get(&mut self, wanted: &Lookup) -> Result<Found, ReadError> {
        let wanted = wanted.clone();
        self.call(move |connection, sql| lookup::get(connection, sql, &wanted)).await
    }

    async fn hang_up(&mut self) {
        self.open = None;
    }
}

impl Reader {
    pub(super) fn new(config: &SqliteConfig) -> Self {
        Self { shared: Arc::new((ReadSql::new(&config.table), config.path.clone())), open: None }
    }

    /// Does `work` with a connection to the path's current file. A connection with which it failed is closed.
    async fn call<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Connection, &ReadSql) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, ReadError> {
        let (shared, open) = (self.shared.clone(), self.open.take());
        let work = move || {
            let (sql, path) = &*shared;
            let (connection, file) = connect(path, open)?;
            let answer = work(&connection, sql)?;
            Ok((answer, (connection, file)))
        };
        let path = &self.shared.1;
        match tokio::task::spawn_blocking(work).await {
            Ok(Ok((answer, open))) => {
                self.open = Some(open);
                Ok(answer)
            }
            Ok(Err(failed)) => Err(error::of_read(path, &failed)),
            Err(ended) => Err(error::no_answer_to_read(path, &ended)),
        }
    }
}

/// The open connection, or another one if the path is of another file by now.
fn connect(path: &Path, open: Option<Open>) -> rusqlite::Result<Open> {
    let file = FileIdentity::of(path);
    if let Some(open) = open.filter(|(_, of)| *of == file) {
        return Ok(open);
    }
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok((connection, file))
}
