//! Creates missing tables: the table of events, and Forebay's own two next to it.

use super::columns::{Content, Field, STORED_IN, STORED_NUMBER, THIS_TRANSACTION};
use super::config::{Partition, PostgresConfig};
use super::creation_lock::CREATION_LOCK;
use super::error::Failure;
use super::session::Talk;

/// Checks before it creates: a user without the right to create tables can still write to existing ones.
pub(super) async fn create_missing(
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
    talk.execute(&format!(
        "begin; select pg_advisory_xact_lock({CREATION_LOCK});
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

/// A table of a version without claims has no column for them.
async fn add_claims(talk: &Talk, cursors: &str) -> Result<(), Failure> {
    let command = add_claim(cursors);
    talk.execute(&command).await.map_err(|failure| {
        if !failure.is_permission_denied() {
            return failure;
        }
        Failure::Misfit(format!(
            "its table forebay_cursors, created by an older version, lacks the column claim, and only the table's \
             owner may add it. As the owner, run: {command}"
        ))
    })
}

/// The SQL that creates the table, and its default partition if it is partitioned.
fn creation(config: &PostgresConfig, table: &str, fields: &[Field]) -> String {
    let is_partitioned = config.partition == Partition::Day;
    let column = |field: &Field| {
        let rule = match field.content {
            Content::Id if !is_partitioned => " primary key",
            Content::EventTime => " not null",
            _ => "",
        };
        format!("{} {}{rule}", field.quoted(), field.kind.name())
    };
    let mut columns: Vec<String> = fields.iter().map(column).collect();
    // A column of a payload's values may have one of these names. Then reads use the order of `ctid`.
    let has_same_name = fields.iter().any(|field| [STORED_IN, STORED_NUMBER].contains(&field.name.as_str()));
    let is_ordered = config.is_readable() && !has_same_name;
    if is_ordered {
        columns.push(format!("{STORED_IN} bigint not null default {THIS_TRANSACTION}"));
        columns.push(format!("{STORED_NUMBER} bigserial"));
    }
    let columns = columns.join(", ");
    let sql = if is_partitioned {
        let default = config.table.with_suffix("_default");
        format!(
            "create table {table} ({columns}, primary key (id, event_time)) partition by range (event_time); \
             create table {default} partition of {table} default"
        )
    } else {
        format!("create table {table} ({columns})")
    };
    let sql = if is_ordered { sql + &ordering(table) } else { sql };
    // In one command: an existing table is used as it is, in any schema of the search path.
    format!("do $$ begin if to_regclass('{table}') is null then {sql}; end if; end $$")
}

/// The SQL that lets readers read the rows of a new table in insertion order.
fn ordering(table: &str) -> String {
    // A connection reserves this many numbers at a time. They ascend within a transaction, and nothing else is required
    // of them. A role that may insert rows may also use the sequence, so the operator needs no extra grant for it.
    format!(
        "; create index on {table} ({STORED_IN}, {STORED_NUMBER}); \
         execute 'alter sequence ' || pg_get_serial_sequence('{table}', '{STORED_NUMBER}') || ' cache 1000'; \
         execute 'grant usage on sequence ' || pg_get_serial_sequence('{table}', '{STORED_NUMBER}') || ' to public'"
    )
}
