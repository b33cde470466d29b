//! The connections to a database: up to a maximum, each used for a limited time, and lent to one call at a time.
//!
//! No task monitors them. The server closes a session that is idle for too long, so nothing runs here for an idle sink.

use super::config::PostgresConfig;
use super::connection_limits::PoolLimits;
use super::error::Failure;
use super::mark;
use super::open_session;
use super::partitions::Days;
use super::session::Session;
use super::table::Table;
use super::transaction::{self, WriteOptions};
use sink::connection_pool::{ConnectionPool, Lent};
use sink::{Batch, Mark, WriteOutcome};

/// A connection whose table passed all checks.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) session: Session,
    pub(super) table: Table,
    pub(super) days: Days,
    /// Whether the table accepts COPY.
    copies: bool,
    /// The database's store id, once it was read.
    mark: Option<Mark>,
}

impl Open {
    pub(super) async fn new(config: &PostgresConfig) -> Result<Self, Failure> {
        let mut session = open_session::open(config).await?;
        let (talk, driver) = session.parts();
        let table = driver.run(Table::open(talk, config)).await?;
        Ok(Self { session, table, days: Days::default(), copies: true, mark: None })
    }

    /// The store id of the database that the connection reaches.
    pub(super) async fn mark(&mut self, config: &PostgresConfig) -> Result<Mark, Failure> {
        if let Some(mark) = self.mark {
            return Ok(mark);
        }
        let (talk, driver) = self.session.parts();
        let mark = driver.run(mark::of(talk, config)).await?;
        self.mark = Some(mark);
        Ok(mark)
    }

    /// Stores a batch.
    async fn write(&mut self, config: &PostgresConfig, batch: &Batch, probes: usize) -> Result<WriteOutcome, Failure> {
        if batch.mark().is_some() {
            let mark = self.mark(config).await?;
            if !mark.is_expected(batch.mark()) {
                return Err(Failure::OtherStore(mark));
            }
        }
        let Self { session, table, days, copies, .. } = self;
        let (talk, driver) = session.parts();
        let options = WriteOptions { probes, copies: *copies };
        let work = async {
            days.prepare(talk, table, batch).await?;
            transaction::write(talk, table, batch, options).await
        };
        driver.run(work).await
    }

    /// Stores a batch, also if the table rejects COPY, or was altered since it was checked.
    pub(super) async fn write_to_current_table(
        &mut self,
        config: &PostgresConfig,
        batch: &Batch,
        probes: usize,
    ) -> Result<WriteOutcome, Failure> {
        let written = match self.write(config, batch, probes).await {
            Err(Failure::NoCopy(_)) => {
                *self = Self { copies: false, ..Self::new(config).await? };
                self.write(config, batch, probes).await
            }
            written => written,
        };
        match written {
            Err(failure) if failure.may_be_outdated_table() => {
                let has_changed = self.check_again(config).await?;
                if has_changed { self.write(config, batch, probes).await } else { Err(failure) }
            }
            done => done,
        }
    }

    /// Rolls back, and checks the table again. Returns whether the table has changed.
    async fn check_again(&mut self, config: &PostgresConfig) -> Result<bool, Failure> {
        let (talk, driver) = self.session.parts();
        let check = async {
            talk.execute("rollback").await?;
            Table::open(talk, config).await
        };
        let table = driver.run(check).await?;
        let has_changed = !table.is_like(&self.table);
        (self.table, self.days) = (table, Days::default());
        Ok(has_changed)
    }
}

/// The connections of a sink.
pub(super) struct Pool(ConnectionPool<Open>);

impl Pool {
    pub(super) fn new(limits: &PoolLimits) -> Self {
        Self(ConnectionPool::new(limits.max, limits.idle))
    }

    /// An idle connection, or a new one, as soon as the limit allows it.
    pub(super) async fn take(&self, config: &PostgresConfig) -> Result<Lent<'_, Open>, Failure> {
        let permit = self.0.permit().await;
        while let Some(mut open) = self.0.pop() {
            if open.session.check_fresh().await {
                return Ok(permit.lend(open));
            }
        }
        Ok(permit.lend(Open::new(config).await?))
    }

    pub(super) fn give_back(&self, lent: Lent<'_, Open>) {
        self.0.give_back(lent);
    }

    /// Closes the idle connections.
    pub(super) async fn close(&self) {
        while let Some(open) = self.0.pop() {
            open.session.close().await;
        }
    }
}
