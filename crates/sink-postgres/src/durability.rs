//! What the server and the tables may lose in a crash. A setting that separates rows from the cursor is rejected unless
//! it is allowed by name.

use tokio_postgres::Row;

use super::config::PostgresConfig;
use super::error::Failure;
use super::session::Talk;
use sink::Risk;

const UNLOGGED: &str = "unlogged";
const FSYNC: &str = "fsync";
const FULL_PAGE_WRITES: &str = "full_page_writes";
/// The names of the risks in the configuration.
pub(super) const NAMES: [&str; 3] = [UNLOGGED, FSYNC, FULL_PAGE_WRITES];

/// Which of the tables, and of the first table's partitions, aren't logged in the write-ahead log; then the server's
/// settings.
const QUERY: &str = "select (select string_agg(c.oid::regclass::text, ', ' order by c.oid) from pg_class c where c.relpersistence <> 'p' \
    and (c.oid in ($1::text::regclass, $2::text::regclass, $3::text::regclass) \
    or exists (select from pg_inherits i where i.inhrelid = c.oid and i.inhparent = $1::text::regclass))), \
    current_setting('fsync') = 'off', current_setting('full_page_writes') = 'off', current_setting('synchronous_commit') = 'off'";
const ASYNC_COMMIT: &str = "synchronous_commit is off: a crash of the server loses the last transactions, rows and cursor \
    together, and Forebay delivers these events again";

/// Checks the table, with its partitions, and Forebay's own two. Returns the warning for the log.
///
/// # Errors
/// [`Failure::Misfit`] if there is a risk that the configuration doesn't allow.
pub(super) async fn check(talk: &Talk, config: &PostgresConfig, tables: [&str; 3]) -> Result<Option<String>, Failure> {
    let [table, cursors, revisions] = tables;
    let row = talk.wait(talk.client.query_one(QUERY, &[&table, &cursors, &revisions])).await?;
    let mut warnings = config.allowed.check(&risks(&row)?).map_err(Failure::Misfit)?;
    warnings.extend(row.try_get::<_, bool>(3)?.then(|| ASYNC_COMMIT.to_owned()));
    Ok(Some(warnings.join("; ")).filter(|text| !text.is_empty()))
}

fn risks(row: &Row) -> Result<Vec<Risk>, Failure> {
    let (unlogged, fsync_off, torn): (Option<String>, bool, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let unlogged = unlogged.map(|tables| Risk {
        name: UNLOGGED,
        found: format!("UNLOGGED: {tables}"),
        help: "Run alter table … set logged",
    });
    let setting = |name, is_off: bool| {
        is_off.then(|| Risk { name, found: format!("the server has {name} off"), help: "Turn it on" })
    };
    Ok([unlogged, setting(FSYNC, fsync_off), setting(FULL_PAGE_WRITES, torn)].into_iter().flatten().collect())
}
