//! The mark of a database: a row of a table next to the cursors.

use super::config::PostgresConfig;
use super::creation_lock::MAKING;
use super::error::Failure;
use super::session::Talk;
use sink::Mark;

/// Reads the mark, and creates it if the database has none.
pub(super) async fn of(talk: &Talk, config: &PostgresConfig) -> Result<Mark, Failure> {
    let table = config.table.beside("forebay_mark");
    let asked = format!("select to_regclass('{table}') is not null");
    let exists: bool = talk.wait(talk.client.query_one(&asked, &[])).await?.try_get(0)?;
    if exists && let Some(mark) = read(talk, &table).await? {
        return Ok(mark);
    }
    make(talk, &table).await?;
    read(talk, &table).await?.ok_or(Failure::Odd("the database's mark vanished while it was read"))
}

async fn read(talk: &Talk, table: &str) -> Result<Option<Mark>, Failure> {
    let row = talk.wait(talk.client.query_opt(&format!("select mark from {table}"), &[])).await?;
    let Some(row) = row else { return Ok(None) };
    let mark = row.try_get::<_, &[u8]>(0)?.try_into().map(Mark);
    mark.map(Some).map_err(|_| Failure::Odd("the database's mark doesn't have 16 bytes"))
}

/// Creates the mark. Of several concurrent writers one creates it, and the others wait for its commit.
async fn make(talk: &Talk, table: &str) -> Result<(), Failure> {
    let mark = Mark::random().map_err(|_| Failure::Odd("the system gives no random numbers"))?;
    let order = format!(
        "create table if not exists {table} (singleton boolean primary key default true check (singleton), mark bytea not null)"
    );
    let made = talk
        .order(&format!(
            "begin; select pg_advisory_xact_lock({MAKING}); {order};
             insert into {table} (mark) values ('\\x{mark}') on conflict do nothing; commit"
        ))
        .await;
    made.map_err(|failure| {
        if !failure.is_of_rights() {
            return failure;
        }
        Failure::Unfit(format!(
            "its user may not make the table {table}, whose row tells writers that they reach one database. As the owner of the \
             schema run: {order}; insert into {table} (mark) values ('\\x{mark}'); and let the user read it"
        ))
    })
}
