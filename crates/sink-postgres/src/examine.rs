//! Examines a server: version, clock, room for connections, and the rights to the tables. It changes nothing.

use std::time::Duration;

use sink::Examination;

use super::config::{Partition, PostgresConfig};
use super::error::Failure;
use super::session::{Session, Talk};
use super::table::Table;

/// The oldest version with the features that Forebay needs: unique keys and default partitions of partitioned tables.
const VERSION_MIN: i32 = 11;
/// The server, its clock, and the connections that it has for ordinary users, without those that other users have open.
const SERVER: &str = "select current_setting('server_version'), current_setting('server_version_num')::int4 / 10000, \
    extract(epoch from clock_timestamp())::float8, current_setting('max_connections')::int4, \
    current_setting('max_connections')::int4 - current_setting('superuser_reserved_connections')::int4 \
    - (select count(*) from pg_stat_activity where usename <> current_user)::int4";
/// Whether a table exists, whether the user may read, insert and update in it, and whether the user is its owner.
const RIGHTS: &str = "select c.oid is not null, coalesce(has_table_privilege(c.oid, 'select') \
    and has_table_privilege(c.oid, 'insert') and has_table_privilege(c.oid, 'update'), false), \
    coalesce(pg_has_role(c.relowner, 'member'), false) \
    from (select to_regclass($1::text)::oid as oid) t left join pg_class c on c.oid = t.oid";
const MAY_CREATE: &str = "select coalesce(has_schema_privilege(coalesce($1::text, current_schema()), 'create'), false)";

/// Examines the server.
pub(super) async fn examine(config: &PostgresConfig) -> Result<Examination, Failure> {
    let mut session = Session::connect(config).await?;
    let (talk, driver) = session.parts();
    let found = driver.run(look(talk, config)).await?;
    session.close().await;
    Ok(found)
}

async fn look(talk: &Talk, config: &PostgresConfig) -> Result<Examination, Failure> {
    let mut found = Examination::default();
    // The checks can't change anything. A setting of the session could reach another client of a pooler.
    talk.execute("begin transaction read only").await?;
    let major = check_server(talk, config, &mut found).await?;
    if major < VERSION_MIN {
        let remedy = format!("Upgrade the server to version {VERSION_MIN} or later");
        found.fail(format!("its version is {major}, which lacks what partitioned tables need"), remedy);
        return Ok(found);
    }
    let names =
        [config.table.quoted(), config.table.in_schema("forebay_cursors"), config.table.in_schema("forebay_revisions")];
    let is_ready = check_rights(talk, config, &names, &mut found).await?;
    if is_ready {
        let table = Table::open(talk, config).await?;
        found.see(format!("table {} has the expected columns and key", config.table));
        found.warn_of_loss(table.warning);
    }
    talk.execute("rollback").await?;
    Ok(found)
}

/// Checks the clock and the room for connections. Returns the major version.
async fn check_server(talk: &Talk, config: &PostgresConfig, found: &mut Examination) -> Result<i32, Failure> {
    found.begin_clock();
    let row = talk.wait(talk.client.query_one(SERVER, &[])).await?;
    let (version, major): (String, i32) = (row.try_get(0)?, row.try_get(1)?);
    found.see(format!("PostgreSQL {version}"));
    if let Ok(time) = Duration::try_from_secs_f64(row.try_get(2)?) {
        found.compare_clock(time, Duration::ZERO);
    }
    let (max, free): (i32, i32) = (row.try_get(3)?, row.try_get(4)?);
    let limits = &config.connections;
    let wanted = limits.max.map_or(1, usize::from) + usize::from(limits.readers);
    if i64::from(free) < i64::try_from(wanted).unwrap_or(i64::MAX) {
        found.warn(
            format!("Forebay may open {wanted} connections or more, and max_connections ({max}) leaves {free}"),
            "Raise max_connections of the server, or lower `max_connections` or `read_connections` of the sink",
        );
    }
    Ok(major)
}

/// Checks the rights to the three tables, or to create the missing ones. Returns whether all exist and can be written.
async fn check_rights(
    talk: &Talk,
    config: &PostgresConfig,
    names: &[String; 3],
    found: &mut Examination,
) -> Result<bool, Failure> {
    let (mut missing, mut denied) = (Vec::new(), Vec::new());
    for name in names {
        let row = talk.wait(talk.client.query_one(RIGHTS, &[name])).await?;
        let (exists, may_write, is_owner): (bool, bool, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let needs_owner = config.partition == Partition::Day && *name == names[0];
        match (exists, may_write) {
            (false, _) => missing.push(name.as_str()),
            (true, false) => denied.push(name.as_str()),
            (true, true) if needs_owner && !is_owner => found.fail(
                format!("the user doesn't own the partitioned table {name}, so it can't create partitions"),
                "Make the user its owner: alter table … owner to …",
            ),
            _ => {}
        }
    }
    if !denied.is_empty() {
        let tables = denied.join(", ");
        found.fail(
            format!("the user may not read and write {tables}"),
            format!("Grant the rights: grant select, insert, update on {tables} to …"),
        );
    }
    if !missing.is_empty() {
        let row = talk.wait(talk.client.query_one(MAY_CREATE, &[&config.table.schema()])).await?;
        let tables = missing.join(", ");
        if row.try_get(0)? {
            found.see(format!("Forebay creates {tables} at the first connection"));
        } else {
            found.fail(
                format!("{tables} doesn't exist, and the user may not create tables in the schema"),
                "Grant create on the schema, or create the tables as docs/guides/stores/postgres.md shows",
            );
        }
    }
    Ok(missing.is_empty() && denied.is_empty())
}
