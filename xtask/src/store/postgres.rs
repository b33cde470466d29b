//! A PostgreSQL server of our own: its data in a folder of the temporary directory, reached by a socket in it, killed and
//! started again as a campaign wants.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::{BulkLoaded, CampaignStore, Shared};

/// A server that doesn't answer must not hang a campaign.
const PATIENCE: Duration = Duration::from_secs(60);
/// Where distributions put each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// Of a server that is killed all the time.
const SMALL: &[&str] = &["shared_buffers=32MB"];
/// Of one that is to be filled: the rest is its own default, so it waits for its disk.
const LARGE: &[&str] = &["max_wal_size=4GB", "shared_buffers=256MB"];
/// Events that were stored, as the lanes' cursors tell: cheaper than to count rows.
const STORED: &str = "select coalesce(sum(position), 0)::bigint from forebay_cursors";

/// A server that ends, and whose files go, when the value is dropped.
pub struct PostgresStore {
    folder: PathBuf,
    programs: PathBuf,
    account: Option<(u32, u32)>,
    settings: &'static [&'static str],
    process: Option<Child>,
}

impl PostgresStore {
    /// A running server with nothing in it, and with these settings.
    fn start_with(settings: &'static [&'static str]) -> Result<Self> {
        let programs = programs().context("PostgreSQL is missing: `cargo xtask services` installs it")?;
        let folder = std::env::temp_dir().join(format!("forebay-xtask-postgres-{}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("making {}", folder.display()))?;
        let mut server = Self { folder, programs, account: account(), settings, process: None };
        fs::set_permissions(&server.folder, Permissions::from_mode(0o755))?;
        if let Some((user, group)) = server.account {
            chown(&server.folder, Some(user), Some(group))?;
        }
        let mut initdb = server.command("initdb");
        initdb.args([
            "--auth=trust",
            "--username=postgres",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
            "-D",
            "data",
        ]);
        let made = initdb.output().context("starting initdb")?;
        if !made.status.success() {
            bail!("initdb failed: {}", String::from_utf8_lossy(&made.stderr));
        }
        server.run()?;
        Ok(server)
    }

    /// Whether its programs are there.
    pub fn is_installed() -> bool {
        programs().is_some()
    }

    /// Lets the server live on behind this process: its id, and the folder with its data and its socket.
    pub fn leave_running(mut self) -> Result<(u32, PathBuf)> {
        let process = self.process.take().context("PostgreSQL isn't running")?;
        // An empty path is none that a drop would remove.
        Ok((process.id(), std::mem::take(&mut self.folder)))
    }

    fn is_ready(&self) -> bool {
        self.command("pg_isready").arg("-q").arg("-h").arg(&self.folder).status().is_ok_and(|status| status.success())
    }

    /// What a sink connects to.
    fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.folder.display().to_string().replace('/', "%2F"))
    }

    /// What `psql` answers to `sql`: rows as lines, columns between bars.
    fn psql(&self, sql: &str) -> Result<String> {
        let mut child =
            self.psql_command().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        child.stdin.take().context("psql reads what to do")?.write_all(sql.as_bytes())?;
        let output = child.wait_with_output()?;
        if !output.status.success() {
            bail!("{sql}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
    }

    /// Does what `sql` says, by a database that is never closed to connections.
    pub(crate) fn order(&self, sql: &str) -> Result<()> {
        let mut psql = self.psql_command();
        let status = psql.args(["-d", "template1", "-c", sql]).stdout(Stdio::null()).status()?;
        if status.success() { Ok(()) } else { bail!("{sql}: {status}") }
    }

    /// The same in the database of the events.
    pub(crate) fn alter(&self, sql: &str) -> Result<()> {
        self.psql(sql).map(drop)
    }

    /// The number that `sql` answers.
    fn number(&self, sql: &str) -> Result<u64> {
        self.psql(sql)?.parse().with_context(|| format!("{sql} answers a number"))
    }

    /// A `psql` that prints what `query` gives, a row a line.
    fn print(&self, query: &str) -> Result<Child> {
        let mut psql = self.psql_command();
        psql.args(["-c", query]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("starting psql")
    }

    fn psql_command(&self) -> Command {
        let mut psql = self.command("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", "postgres", "-h"]);
        psql.arg(&self.folder);
        psql
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(&self.folder);
        if let Some((user, group)) = self.account {
            command.uid(user).gid(group);
        }
        command
    }
}

impl CampaignStore for PostgresStore {
    const NAME: &'static str = "PostgreSQL";

    fn start() -> Result<Option<Self>> {
        programs().map(|_| Self::start_with(SMALL)).transpose()
    }

    fn sink(&self) -> String {
        format!("kind = \"postgres\"\nurl = \"{}\"\npayload_type = \"text\"\n", self.url())
    }

    fn run(&mut self) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let log = File::options().create(true).append(true).open(self.folder.join("log"))?;
            let mut postgres = self.command("postgres");
            postgres.args(["-D", "data", "-c", "listen_addresses=", "-k"]).arg(&self.folder);
            self.settings.iter().for_each(|setting| {
                postgres.args(["-c", setting]);
            });
            let mut child = postgres.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?;
            while child.try_wait()?.is_none() && begun.elapsed() < PATIENCE {
                if self.is_ready() {
                    self.process = Some(child);
                    return Ok(());
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            // Processes of the one before may not have noticed its end: then it is tried again.
            let _ = child.kill();
            child.wait()?;
        }
        bail!("PostgreSQL doesn't answer:\n{}", fs::read_to_string(self.folder.join("log")).unwrap_or_default())
    }

    fn kill(&mut self) -> Result<()> {
        let Some(mut child) = self.process.take() else { return Ok(()) };
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap_or_default();
        child.kill().context("killing PostgreSQL")?;
        for other in children.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)) {
            // It may have ended by itself.
            let _ = kill_process(other, Signal::KILL);
        }
        child.wait().map(|_: ExitStatus| ()).context("waiting for PostgreSQL's end")
    }

    fn stored(&mut self) -> u64 {
        // There is no table before the first event.
        self.number(STORED).unwrap_or(0)
    }

    fn read_payloads(&mut self, _: &Path, read: impl FnOnce(&mut dyn BufRead) -> Result<()>) -> Result<()> {
        let mut rows = self.print("select payload from events")?;
        read(&mut BufReader::new(rows.stdout.take().context("psql prints rows")?))?;
        if !rows.wait()?.success() {
            bail!("psql couldn't read what is stored");
        }
        Ok(())
    }

    fn ids(&mut self) -> Result<Option<u64>> {
        self.number("select count(distinct id) from events").map(Some)
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
        rows.lines().map(|row| cursor(row).with_context(|| format!("{row:?} is no cursor"))).collect()
    }
}

impl BulkLoaded for PostgresStore {
    const TOOL: &'static str = "\\copy";
    const BAR: f64 = 0.8;

    fn start_large() -> Result<Self> {
        Self::start_with(LARGE)
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn usual_sink(&self) -> String {
        format!("kind = \"postgres\"\nurl = \"{}\"\n", self.url())
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

impl Drop for PostgresStore {
    fn drop(&mut self) {
        let _ = self.kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Where the newest version's programs are.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir(VERSIONS).ok()?;
    let version = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let newest = versions.filter_map(|entry| Some(entry.ok()?.path())).max_by_key(version)?.join("bin");
    newest.join("postgres").exists().then_some(newest)
}

/// The account to run as where the server would refuse: it doesn't run as root.
fn account() -> Option<(u32, u32)> {
    if !geteuid().is_root() {
        return None;
    }
    let accounts = fs::read_to_string("/etc/passwd").ok()?;
    let mut fields = accounts.lines().find(|line| line.starts_with("postgres:"))?.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}
