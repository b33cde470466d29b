//! The store id (mark) of a database: a row of a table next to the cursors.

use super::config::PostgresConfig;
use super::creation_lock::CREATION_LOCK;
use super::error::Failure;
use super::session::Talk;
use sink::Mark;

/// Reads the store id, and creates it if the database has none.
pub(super) async fn of(talk: &Talk, config: &PostgresConfig) -> Result<Mark, Failure> {
    let table = config.table.in_schema("forebay_mark");
    let query = format!("select to_regclass('{table}') is not null");
    let exists: bool = talk.wait(talk.client.query_one(&query, &[])).await?.try_get(0)?;
    if exists && let Some(mark) = read(talk, &table).await? {
        return Ok(mark);
    }
    create(talk, &table).await?;
    read(talk, &table)
        .await?
        .ok_or(Failure::Unexpected("the store id in forebay_mark disappeared while Forebay read it"))
}

async fn read(talk: &Talk, table: &str) -> Result<Option<Mark>, Failure> {
    let row = talk.wait(talk.client.query_opt(&format!("select mark from {table}"), &[])).await?;
    let Some(row) = row else { return Ok(None) };
    let mark = row.try_get::<_, &[u8]>(0)?.try_into().map(Mark);
    mark.map(Some).map_err(|_| Failure::Unexpected("the store id in forebay_mark isn't 16 bytes long"))
}

/// Creates the store id. Of several concurrent writers one creates it, and the others wait for its commit.
async fn create(talk: &Talk, table: &str) -> Result<(), Failure> {
    let mark = Mark::random().map_err(|_| Failure::Unexpected("the operating system returned no random numbers"))?;
    let command = format!(
        "create table if not exists {table} (singleton boolean primary key default true check (singleton), mark bytea not null)"
    );
    let created = talk
        .execute(&format!(
            "begin; select pg_advisory_xact_lock({CREATION_LOCK}); {command};
             insert into {table} (mark) values ('\\x{mark}') on conflict do nothing; commit"
        ))
        .await;
    created.map_err(|failure| {
        if !failure.is_permission_denied() {
            return failure;
        }
        Failure::Misfit(format!(
            "its user may not create {table}, the table of the store id. As the schema's owner, run: {command}; insert \
             into {table} (mark) values ('\\x{mark}'); then grant the user select on it"
        ))
    })
}
