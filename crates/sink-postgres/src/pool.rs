//! The connections to a database: so many at most, each used for so long, and lent to one call at a time.
//!
//! No task watches over them: the server itself ends a session that is idle for too long, so that nothing runs here for a
//! sink that has nothing to do.

use super::config::PostgresConfig;
use super::connection_limits::PoolLimits;
use super::error::Failure;
use super::mark;
use super::open_session;
use super::partitions::Days;
use super::session::Session;
use super::table::Table;
use super::transaction::{self, How};
use sink::connection_pool::{ConnectionPool, Lent};
use sink::{Batch, Mark, WriteOutcome};

/// A connection to a table that fits.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) session: Session,
    pub(super) table: Table,
    pub(super) days: Days,
    /// Whether the table takes a COPY.
    copies: bool,
    /// The database's mark, if it was asked for.
    mark: Option<Mark>,
}

impl Open {
    pub(super) async fn new(config: &PostgresConfig) -> Result<Self, Failure> {
        let mut session = open_session::open(config).await?;
        let (talk, driver) = session.parts();
        let table = driver.run(Table::open(talk, config)).await?;
        Ok(Self { session, table, days: Days::default(), copies: true, mark: None })
    }

    /// The mark of the database that the connection leads to.
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
        let how = How { probes, copies: *copies };
        let work = async {
            days.prepare(talk, table, batch).await?;
            transaction::write(talk, table, batch, how).await
        };
        driver.run(work).await
    }

    /// The same, also to a table that takes no COPY, or was altered since it was looked at.
    pub(super) async fn write_as_it_is_now(
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
            Err(failure) if failure.may_be_of_an_older_table() => {
                let is_another = self.look_again(config).await?;
                if is_another { self.write(config, batch, probes).await } else { Err(failure) }
            }
            done => done,
        }
    }

    /// Gives up what was begun, and looks at the table anew: whether it isn't what it was.
    async fn look_again(&mut self, config: &PostgresConfig) -> Result<bool, Failure> {
        let (talk, driver) = self.session.parts();
        let look = async {
            talk.order("rollback").await?;
            Table::open(talk, config).await
        };
        let table = driver.run(look).await?;
        let is_another = !table.is_like(&self.table);
        (self.table, self.days) = (table, Days::default());
        Ok(is_another)
    }
}

/// The connections of a sink.
pub(super) struct Pool(ConnectionPool<Open>);

impl Pool {
    pub(super) fn new(limits: &PoolLimits) -> Self {
        Self(ConnectionPool::new(limits.max, limits.idle))
    }

    /// A connection that is free, or a new one, as soon as there may be one.
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

    /// Closes those that are free.
    pub(super) async fn close(&self) {
        while let Some(open) = self.0.pop() {
            open.session.close().await;
        }
    }
}
