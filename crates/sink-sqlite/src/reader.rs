//! The reader: it has a separate thread and a connection that can't write, and never blocks the thread that writes.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use event::read::{Page, Query, ReadError};
use rusqlite::{Connection, OpenFlags};

use super::config::SqliteConfig;
use super::error;
use super::file_identity::FileIdentity;
use super::page::{self, ReadSql};
use sink::read_pool::PooledReader;

/// How long a read waits for another connection's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) struct Reader {
    sql: ReadSql,
    path: PathBuf,
    /// The connection, and the file that it has open.
    open: Option<(Connection, Option<FileIdentity>)>,
}

#[async_trait(?Send)]
impl PooledReader for Reader {
    async fn read(&mut self, query: &Query) -> Result<Page, ReadError> {
        let connection = self.connection()?;
        match page::read(&connection, &self.sql, query) {
            Ok(page) => {
                self.open = Some((connection, FileIdentity::of(&self.path)));
                page.ok_or(ReadError::Bookmark)
            }
            Err(error) => Err(error::of_read(&self.path, &error)),
        }
    }

    async fn hang_up(&mut self) {
        self.open = None;
    }
}

impl Reader {
    pub(super) fn new(config: &SqliteConfig) -> Self {
        Self { sql: ReadSql::new(&config.table), path: config.path.clone(), open: None }
    }

    /// A connection to the path's current file. The user of the connection returns it, unless it failed.
    fn connection(&mut self) -> Result<Connection, ReadError> {
        let now = FileIdentity::of(&self.path);
        if let Some((connection, file)) = self.open.take()
            && file == now
        {
            return Ok(connection);
        }
        let open = || {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(&self.path, flags)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            Ok(connection)
        };
        open().map_err(|error| error::of_read(&self.path, &error))
    }
}
