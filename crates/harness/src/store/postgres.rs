//! A PostgreSQL server, queried with `psql`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, anyhow, bail};

use super::{BulkLoaded, CampaignStore, Shared, StoreServer};
use testkit::postgres::PostgresServer;

/// Settings of a server that is killed often.
const SMALL: &[&str] = &["shared_buffers=32MB"];
/// Settings of one that is filled: the rest is its own default, so it waits for its disk.
const LARGE: &[&str] = &["max_wal_size=4GB", "shared_buffers=256MB"];
/// The number of stored events by the lanes' cursors, which is cheaper than to count rows.
const STORED: &str = "select coalesce(sum(position), 0)::bigint from forebay_cursors";

/// A server.
pub struct PostgresStore(PostgresServer);

impl PostgresStore {
    /// Leaves the server running after this process: its id, and the folder with its data and its socket.
    pub fn leave_running(self) -> Result<(u32, PathBuf)> {
        let (server, folder) = self.0.leave_running();
        Ok((server.context("PostgreSQL isn't running")?.id(), folder))
    }

    /// Runs `sql` in the database of the events. Returns rows as lines, columns between bars.
    pub fn psql(&self, sql: &str) -> Result<String> {
        self.0.try_psql(sql).map_err(|error| anyhow!("{sql}: {error}"))
    }

    /// Runs `sql` in a database that is never closed to connections.
    pub fn order(&self, sql: &str) -> Result<()> {
        let status = self.0.psql_command().args(["-d", "template1", "-c", sql]).stdout(Stdio::null()).status()?;
        if status.success() { Ok(()) } else { bail!("{sql}: {status}") }
    }

    /// The number that `sql` returns.
    fn number(&self, sql: &str) -> Result<u64> {
        self.psql(sql)?.parse().with_context(|| format!("{sql} returns a number"))
    }
}

impl StoreServer for PostgresStore {
    fn sink(&self) -> String {
        format!("{}payload_type = \"text\"\n", self.usual_sink())
    }

    fn run(&mut self) -> Result<()> {
        self.0.run();
        Ok(())
    }

    fn kill(&mut self) -> Result<()> {
        self.0.kill();
        Ok(())
    }

    fn stored(&mut self) -> u64 {
        // There is no table before the first event.
        self.number(STORED).unwrap_or(0)
    }

    fn write_payloads(&mut self, out: &mut BufWriter<File>) -> Result<()> {
        let mut psql = self.0.psql_command();
        let status = psql.args(["-c", "select payload from events"]).stdout(out.get_ref().try_clone()?).status()?;
        if status.success() { Ok(()) } else { bail!("psql couldn't read the stored payloads: {status}") }
    }

    fn ids(&mut self) -> Result<Option<u64>> {
        self.number("select count(distinct id) from events").map(Some)
    }
}

impl CampaignStore for PostgresStore {
    const NAME: &'static str = "PostgreSQL";

    fn start() -> Result<Option<Self>> {
        Ok(PostgresServer::start_with(SMALL).map(Self))
    }
}

impl Shared for PostgresStore {
    fn connections(&self) -> Result<usize> {
        let clients = "select count(*) from pg_stat_activity where backend_type = 'client backend' \
                       and application_name <> 'psql'";
        Ok(usize::try_from(self.number(clients)?)?)
    }

    fn cursors(&self) -> Result<BTreeMap<String, u64>> {
        let rows =
            self.psql("select encode(origin, 'hex') || '/' || shard || '/' || sink, position from forebay_cursors")?;
        let cursor = |row: &str| Some((row.split_once('|')?.0.to_owned(), row.split_once('|')?.1.parse().ok()?));
        rows.lines().map(|row| cursor(row).with_context(|| format!("{row:?} is not a cursor"))).collect()
    }
}

impl BulkLoaded for PostgresStore {
    const TOOL: &'static str = "\\copy";
    const BAR: f64 = 0.8;

    fn start_large() -> Result<Self> {
        let server = PostgresServer::start_with(LARGE);
        server.map(Self).context("PostgreSQL is missing: `cargo xtask services` installs it")
    }

    fn folder(&self) -> &Path {
        self.0.folder()
    }

    fn usual_sink(&self) -> String {
        format!("kind = \"postgres\"\nurl = \"{}\"\n", self.0.url())
    }

    fn empty(&mut self) -> Result<()> {
        self.psql("drop table if exists events, copied, forebay_cursors, forebay_revisions").map(drop)
    }

    fn settle(&mut self) -> Result<()> {
        self.psql("checkpoint").map(drop)
    }

    fn events(&mut self) -> Result<f64> {
        Ok(self.number("select count(*) from events")? as f64)
    }

    fn save(&mut self, file: &Path) -> Result<()> {
        self.psql(&format!("\\copy events to '{}'", file.display())).map(drop)
    }

    /// An equal table, with its primary key.
    fn before_load(&mut self) -> Result<()> {
        self.psql("drop table if exists copied; create table copied (like events including all); checkpoint").map(drop)
    }

    fn load(&mut self, file: &Path) -> Result<()> {
        self.psql(&format!("\\copy copied from '{}'", file.display())).map(drop)
    }

    fn loaded(&mut self) -> Result<f64> {
        Ok(self.number("select count(*) from copied")? as f64)
    }
}
