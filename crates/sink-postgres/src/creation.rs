//! The tables that are missing: that of the events, and Forebay's own two beside it.

use super::columns::{Content, Field, STORED_IN, STORED_NUMBER, THIS_TRANSACTION};
use super::config::{Partition, PostgresConfig};
use super::creation_lock::MAKING;
use super::error::Failure;
use super::session::Talk;

/// Asks before it makes: who may not make tables may still write to those that are there.
pub(super) async fn make_missing(
    talk: &Talk,
    config: &PostgresConfig,
    fields: &[Field],
    cursors: &str,
    revisions: &str,
) -> Result<(), Failure> {
    let table = config.table.quoted();
    let asked = format!(
        "select to_regclass('{table}') is not null and to_regclass('{cursors}') is not null \
         and to_regclass('{revisions}') is not null, \
         exists (select from pg_attribute where attrelid = to_regclass('{cursors}') and attname = 'claim' and not attisdropped)"
    );
    let row = talk.wait(talk.client.query_one(&asked, &[])).await?;
    if row.try_get(0)? {
        return if row.try_get(1)? { Ok(()) } else { add_claims(talk, cursors).await };
    }
    talk.order(&format!(
        "begin; select pg_advisory_xact_lock({MAKING});
         {};
         create table if not exists {cursors} (origin bytea not null, shard integer not null, sink text not null,
             position bigint not null, claim bytea, set_at timestamptz, primary key (origin, shard, sink)) with (fillfactor = 50);
         {};
         create table if not exists {revisions} (\"table\" text not null, id uuid not null, revision bigint not null,
             primary key (\"table\", id));
         commit",
        creation(config, &table, fields),
        add_claim(cursors)
    ))
    .await
}

fn add_claim(cursors: &str) -> String {
    format!("alter table {cursors} add column if not exists claim bytea")
}

/// A table of a version that made no claims has no column for them.
async fn add_claims(talk: &Talk, cursors: &str) -> Result<(), Failure> {
    let order = add_claim(cursors);
    talk.order(&order).await.map_err(|failure| {
        if !failure.is_of_rights() {
            return failure;
        }
        Failure::Unfit(format!(
            "its table forebay_cursors is of an older version and has no column claim, which its owner only may add. As its owner, \
             run: {order}"
        ))
    })
}

/// What makes the table, and where it is divided the partition for what no other one takes.
fn creation(config: &PostgresConfig, table: &str, fields: &[Field]) -> String {
    let is_divided = config.partition == Partition::Day;
    let column = |field: &Field| {
        let rule = match field.content {
            Content::Id if !is_divided => " primary key",
            Content::EventTime => " not null",
            _ => "",
        };
        format!("{} {}{rule}", field.quoted(), field.kind.name())
    };
    let mut columns: Vec<String> = fields.iter().map(column).collect();
    // A column of a payload's values may have one of these names. Then the table is read by places.
    let is_taken = fields.iter().any(|field| [STORED_IN, STORED_NUMBER].contains(&field.name.as_str()));
    let is_read_back = config.is_readable() && !is_taken;
    if is_read_back {
        columns.push(format!("{STORED_IN} bigint not null default {THIS_TRANSACTION}"));
        columns.push(format!("{STORED_NUMBER} bigserial"));
    }
    let columns = columns.join(", ");
    let making = if is_divided {
        let default = config.table.with_suffix("_default");
        format!(
            "create table {table} ({columns}, primary key (id, event_time)) partition by range (event_time); \
             create table {default} partition of {table} default"
        )
    } else {
        format!("create table {table} ({columns})")
    };
    let making = if is_read_back { making + &in_order(table) } else { making };
    // Within one command: a table that is there already, in whichever schema of the search path, is looked at as it is.
    format!("do $$ begin if to_regclass('{table}') is null then {making}; end if; end $$")
}

/// What lets the rows of a new table be read in the order of storing.
fn in_order(table: &str) -> String {
    // A connection takes so many numbers at a time: they ascend within a transaction, and nothing more is asked of them. So who may
    // add rows may number them, without being told of the sequence too.
    format!(
        "; create index on {table} ({STORED_IN}, {STORED_NUMBER}); \
         execute 'alter sequence ' || pg_get_serial_sequence('{table}', '{STORED_NUMBER}') || ' cache 1000'; \
         execute 'grant usage on sequence ' || pg_get_serial_sequence('{table}', '{STORED_NUMBER}') || ' to public'"
    )
}
