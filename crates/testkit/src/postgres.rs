//! A PostgreSQL server of a test's own: a data directory under the temporary one, with a socket in it; or a database of a test's own on
//! the server that a whole run shares.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::skipped;
use crate::wait::PATIENCE;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The folder of a running server that the test programs of a run share.
pub const SHARED: &str = "FOREBAY_TEST_POSTGRES";
/// How that server is started: several programs use it at a time.
const SETTINGS_OF_SHARED: &[&str] = &["shared_buffers=64MB", "autovacuum=off", "max_connections=500"];

/// A server that ends with its test, however that ends; or a database on the shared one, which stays.
pub struct PostgresServer {
    folder: PathBuf,
    programs: PathBuf,
    settings: Vec<String>,
    port: u16,
    database: String,
    process: Mutex<Option<Child>>,
    /// Ends the server and removes its files as soon as this end of its pipe is closed. The shared server has another owner.
    watcher: Option<Child>,
}

impl PostgresServer {
    /// A separate database on the server that the run shares, or else this process. For tests that neither stop nor set up their server.
    pub fn shared() -> Option<Self> {
        static OF_THIS_PROCESS: OnceLock<Option<PostgresServer>> = OnceLock::new();
        let folder = std::env::var_os(SHARED).map(PathBuf::from);
        let folder =
            folder.or_else(|| Some(OF_THIS_PROCESS.get_or_init(Self::start_shared).as_ref()?.folder.clone()))?;
        let database = format!("test_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let (settings, process) = (Vec::new(), Mutex::default());
        let mut shared = Self {
            folder,
            programs: programs()?,
            settings,
            port: 5432,
            database: "postgres".into(),
            process,
            watcher: None,
        };
        shared.psql(&format!("create database {database}"));
        shared.database = database;
        Some(shared)
    }

    /// The server that a run shares: it lives as long as the returned value.
    pub fn start_shared() -> Option<Self> {
        Self::start_with(SETTINGS_OF_SHARED)
    }

    /// A running server; `None`, and a message, if PostgreSQL isn't installed.
    pub fn start() -> Option<Self> {
        Self::start_with(&["shared_buffers=32MB", "autovacuum=off"])
    }

    /// The same with additional settings.
    pub fn start_with(settings: &[&str]) -> Option<Self> {
        let server = Self::prepare(settings.iter().map(|setting| (*setting).to_owned()).collect())?;
        let mut initdb = server.command("initdb");
        initdb.args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"]);
        expect_success(initdb.arg(server.data()));
        server.run();
        Some(server)
    }

    /// A folder without a server in it.
    fn prepare(settings: Vec<String>) -> Option<Self> {
        let Some(programs) = programs() else {
            skipped::report("PostgreSQL isn't installed (apt install postgresql)");
            return None;
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("forebay-postgres-{}-{number}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        own(&folder);
        let script = "cat > /dev/null; kill -9 $(head -1 \"$1/data/postmaster.pid\") 2> /dev/null; rm -rf \"$1\"";
        let watcher = Command::new("sh").args(["-c", script, "sh"]).arg(&folder).stdin(Stdio::piped()).spawn().unwrap();
        let port = settings.iter().find_map(|setting| setting.strip_prefix("port=")?.parse().ok()).unwrap_or(5432);
        let database = "postgres".to_owned();
        Some(Self { folder, programs, settings, port, database, process: Mutex::default(), watcher: Some(watcher) })
    }

    /// Another server that replicates this one, and has this one's data by now.
    pub fn standby(&self) -> Self {
        let standby = Self::prepare(self.settings.clone()).unwrap();
        let mut copy = self.command("pg_basebackup");
        copy.args(["--username=postgres", "--write-recovery-conf", "--checkpoint=fast", "--no-sync", "-h"]);
        expect_success(copy.arg(&self.folder).arg("-D").arg(standby.data()));
        standby.run();
        standby
    }

    /// Whether its programs are there.
    pub fn is_installed() -> bool {
        programs().is_some()
    }

    /// Leaves the server running after this process: the server, and the folder with its data and its socket.
    pub fn leave_running(mut self) -> (Option<Child>, PathBuf) {
        self.watcher.iter_mut().for_each(|watcher| watcher.kill().unwrap());
        (self.process.lock().unwrap().take(), self.folder.clone())
    }

    /// A standby takes writes from now on.
    pub fn promote(&self) {
        assert_eq!(self.psql("select pg_promote()"), "t", "{}", self.log());
    }

    /// Makes the server speak TLS with this certificate and key, and no longer anything else over TCP.
    pub fn secure(&self, certificate: &str, key: &str) {
        for (name, text) in [
            ("server.crt", certificate),
            ("server.key", key),
            (
                "pg_hba.conf",
                "local all all trust\nhostssl all scram all scram-sha-256\nhostssl all all 127.0.0.1/32 trust\n\
                 hostssl all all ::1/128 trust\n",
            ),
        ] {
            let path = self.data().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            own(&path);
        }
        self.psql("alter system set ssl = on; select pg_reload_conf()");
        let deadline = Instant::now() + PATIENCE;
        while self.psql("show ssl") != "on" {
            assert!(Instant::now() < deadline, "no TLS: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(&self.folder);
        if let Some((user, group)) = account() {
            command.uid(user).gid(group);
        }
        command
    }

    /// Starts the server over its data, and waits until it answers.
    pub fn run(&self) {
        assert!(self.watcher.is_some(), "the shared server runs");
        let deadline = Instant::now() + PATIENCE;
        let mut process = self.process.lock().unwrap();
        loop {
            let log = File::options().create(true).append(true).open(self.folder.join("log")).unwrap();
            let mut postgres = self.command("postgres");
            postgres.arg("-D").arg(self.data()).arg("-k").arg(&self.folder);
            postgres.args(["-c", "listen_addresses="]);
            self.settings.iter().for_each(|setting| {
                postgres.args(["-c", setting]);
            });
            let mut child = postgres.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
            while child.try_wait().unwrap().is_none() {
                assert!(Instant::now() < deadline, "PostgreSQL doesn't answer: {}", self.log());
                if self.is_ready() {
                    *process = Some(child);
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            // The processes of the one before may not have noticed its end yet.
            assert!(Instant::now() < deadline, "PostgreSQL doesn't start: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn is_ready(&self) -> bool {
        let mut asked = self.command("pg_isready");
        asked.arg("-q").arg("-h").arg(&self.folder).args(["-p", &self.port.to_string()]);
        asked.status().is_ok_and(|status| status.success())
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Ends all processes of the server immediately, as a crash would; not those of the shared one.
    pub fn kill(&self) {
        let Some(mut child) = self.process.lock().unwrap().take() else { return };
        let id = child.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        child.kill().unwrap();
        for other in children.split_whitespace() {
            let _ = Command::new("kill").args(["-9", other]).stderr(Stdio::null()).status();
        }
        child.wait().unwrap();
    }

    /// The folder that the socket is in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.join(format!(".s.PGSQL.{}", self.port))
    }

    pub fn connect(&self) -> std::io::Result<UnixStream> {
        UnixStream::connect(self.socket())
    }

    /// The folder of the socket as a host of a URL.
    pub fn host(&self) -> String {
        self.folder.display().to_string().replace('/', "%2F")
    }

    /// The URL for a sink.
    pub fn url(&self) -> String {
        self.url_of(&self.database)
    }

    /// The same for another database.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@{}:{}/{database}", self.host(), self.port)
    }

    /// The same database through a proxy or a pool at this address.
    pub fn url_at(&self, address: impl std::fmt::Display) -> String {
        format!("postgres://postgres@{address}/{}?sslmode=disable", self.database)
    }

    /// The output of `psql` for `sql`: rows as lines, columns between bars.
    pub fn psql(&self, sql: &str) -> String {
        self.try_psql(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The same, or the error.
    pub fn try_psql(&self, sql: &str) -> Result<String, String> {
        let mut psql = self.psql_command();
        let psql = psql.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = psql.spawn().unwrap();
        child.stdin.take().unwrap().write_all(sql.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(String::from_utf8(output.stdout).unwrap().trim_end().to_owned())
    }

    /// A `psql` for the database of the events. It prints rows as lines, columns between bars.
    pub fn psql_command(&self) -> Command {
        let mut psql = self.command("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", &self.database, "-h"]);
        psql.arg(&self.folder).args(["-p", &self.port.to_string()]);
        psql
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
        if let Some(watcher) = &mut self.watcher {
            drop(watcher.stdin.take());
            let _ = watcher.wait();
        }
    }
}

fn expect_success(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Gives a file or folder to the account that the server runs as.
fn own(path: &Path) {
    if let Some((user, group)) = account() {
        chown(path, Some(user), Some(group)).unwrap();
    }
}

/// The folder of the newest version's programs.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let version = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let newest = versions.filter_map(|entry| Some(entry.ok()?.path())).max_by_key(version)?.join("bin");
    newest.join("postgres").exists().then_some(newest)
}

/// The account to run as, if needed: the server doesn't run as root.
pub fn account() -> Option<(u32, u32)> {
    use std::os::unix::fs::MetadataExt;
    if fs::metadata("/proc/self").ok()?.uid() != 0 {
        return None;
    }
    let accounts = fs::read_to_string("/etc/passwd").ok()?;
    let mut fields = accounts.lines().find(|line| line.starts_with("postgres:"))?.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}
