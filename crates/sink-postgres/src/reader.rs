//! Reads: over separate connections, which can't write.

use async_trait::async_trait;
use event::read::{Found, Lookup, Page, Query, ReadError};
use limits::READ_TIMEOUT;

use super::config::PostgresConfig;
use super::error::Failure;
use super::open_session;
use super::read::{self, Kept, Reads};
use super::session::Session;
use sink::read_pool::PooledReader;

/// A connection of the pool, once it is open.
pub(super) struct Reader {
    config: PostgresConfig,
    open: Option<(Session, Kept)>,
}

impl Reader {
    pub(super) fn new(config: PostgresConfig) -> Self {
        let timeout = config.timeout.min(READ_TIMEOUT);
        Self { config: PostgresConfig { timeout, ..config }, open: None }
    }

    /// The answer, or why the query isn't possible. If the table may have changed since its statements were prepared,
    /// they are prepared again on another connection.
    async fn call<T>(
        &mut self,
        work: impl AsyncFn(&mut Reads<'_>, &PostgresConfig) -> Result<Result<T, ReadError>, Failure>,
    ) -> Result<T, ReadError> {
        loop {
            let kept = self.kept().await;
            let is_first = kept.is_none();
            let done = async {
                let (mut session, mut kept) = match kept {
                    Some(kept) => kept,
                    None => (begin(&self.config).await?, Kept::default()),
                };
                let (talk, driver) = session.parts();
                let answer = driver.run(work(&mut Reads::new(talk, &mut kept), &self.config)).await?;
                self.open = Some((session, kept));
                Ok::<_, Failure>(answer)
            };
            match done.await {
                Ok(answer) => return answer,
                Err(failure) if !is_first && failure.may_be_outdated_statement() => {}
                Err(failure) => return Err(failure.into_read_error(&self.config)),
            }
        }
    }

    /// The connection of the call before, if it is still good.
    async fn kept(&mut self) -> Option<(Session, Kept)> {
        let (mut session, kept) = self.open.take()?;
        session.check_fresh().await.then_some((session, kept))
    }
}

#[async_trait(?Send)]
impl PooledReader for Reader {
    async fn read(&mut self, query: &Query) -> Result<Page, ReadError> {
        self.call(async |reads, config| read::read(reads, config, query).await).await
    }

    async fn get(&mut self, lookup: &Lookup) -> Result<Found, ReadError> {
        self.call(async |reads, config| read::get(reads, config, lookup).await).await
    }

    async fn hang_up(&mut self) {
        if let Some((session, _)) = self.open.take() {
            session.close().await;
        }
    }
}

/// The settings of a connection. The bounds of partitions are parsed in the server's format.
///
/// A statement is planned once, and the table may be small then. So its plan uses the index: all that varies between
/// two calls is the place where it begins. Older servers have fewer of these settings.
const SETTINGS: &str = "set default_transaction_read_only = on; set datestyle = 'ISO'; set timezone = 'UTC'; \
    select set_config(name, value, false) from pg_settings join (values ('plan_cache_mode', 'force_generic_plan'), \
    ('enable_seqscan', 'off'), ('jit', 'off')) wanted (name, value) using (name)";

async fn begin(config: &PostgresConfig) -> Result<Session, Failure> {
    let mut session = open_session::open(config).await?;
    let (talk, driver) = session.parts();
    driver.run(talk.execute(SETTINGS)).await?;
    Ok(session)
}
