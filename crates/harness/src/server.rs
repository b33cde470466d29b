//! A Forebay process of our own, of any role: started on free ports, watched from outside, killed or stopped.

use std::ffi::OsString;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::http;
use crate::metrics;
use crate::wait::until;
use crate::workspace;
use testkit::ports::free_address;

/// A configuration whose events are delivered and discarded.
pub const NULL_SINK: &str = "[types.\"*\"]\nroutes = [\"none\"]\n\n[sinks.none]\nkind = \"null\"\n";

/// Lines of a log that an error shows.
const LOG_LINES: usize = 10;
/// A stop that takes longer hangs.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// A start that takes longer hangs.
pub const READY_LIMIT: Duration = Duration::from_secs(30);
/// A delivery without progress for this long has stopped: a lane retries after a minute at the latest.
pub const PATIENCE: Duration = Duration::from_secs(150);

/// The role of a process of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessRole {
    /// Everything in one process.
    Serve,
    /// The front-end of two services.
    Gateway,
    /// The back-end of two services.
    Writer,
}

/// How a server is started; a server started again has the same.
#[derive(Clone, Debug)]
pub struct Launch {
    program: PathBuf,
    role: ProcessRole,
    config: Option<PathBuf>,
    environment: Vec<(String, OsString)>,
    /// The data directory.
    pub data: PathBuf,
    log: PathBuf,
    /// The intake port; a writer's port for gateways.
    pub intake: SocketAddr,
    /// The admin port.
    pub admin: SocketAddr,
}

/// A process that is killed when the value is dropped.
#[derive(Debug)]
pub struct Process(Child);

/// A running server.
pub struct Server {
    launch: Launch,
    /// The process, to read its `/proc`.
    pub process: Process,
    started: Instant,
}

impl ProcessRole {
    /// How the command line calls it.
    pub const fn subcommand(self) -> &'static str {
        match self {
            Self::Serve => "serve",
            Self::Gateway => "gateway",
            Self::Writer => "writer",
        }
    }
}

impl Launch {
    /// A server with its data in `folder/data`. Without a configuration it stores in SQLite.
    pub fn new(program: &Path, folder: &Path, config: Option<&str>) -> Result<Self> {
        Self::of_role(ProcessRole::Serve, program, folder, config)
    }

    /// A process of any role in a folder that is emptied before.
    pub fn fresh(role: ProcessRole, program: &Path, folder: &Path, config: &str) -> Result<Self> {
        workspace::empty_directory(folder)?;
        Self::of_role(role, program, folder, Some(config))
    }

    /// The same for a process of any role. `folder` exists.
    pub fn of_role(role: ProcessRole, program: &Path, folder: &Path, config: Option<&str>) -> Result<Self> {
        let data = folder.join("data");
        let config_path = folder.join("forebay.toml");
        if let Some(text) = config {
            std::fs::write(&config_path, text).with_context(|| format!("writing {}", config_path.display()))?;
        }
        let [intake, admin] = [free_address(), free_address()];
        let log = folder.join("server.log");
        let config = config.map(|_| config_path);
        let (program, environment) = (program.to_path_buf(), Vec::new());
        Ok(Self { program, role, config, environment, data, log, intake, admin })
    }

    /// The same data directory and addresses with another program.
    #[must_use]
    pub fn with_program(&self, program: &Path) -> Self {
        Self { program: program.to_path_buf(), ..self.clone() }
    }

    /// The same with more variables in its environment.
    #[must_use]
    pub fn with_environment(mut self, more: impl IntoIterator<Item = (String, OsString)>) -> Self {
        self.environment.extend(more);
        self
    }

    /// Starts the process; it isn't ready yet. Its log goes to `server.log` in the folder, added to.
    pub fn start(&self) -> Result<Server> {
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.with_context(|| format!("opening {}", self.log.display()))?;
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let started = Instant::now();
        let process = Process::start(&mut command)?;
        Ok(Server { launch: self.clone(), process, started })
    }

    /// Starts the process, and waits until it is ready.
    pub fn ready(&self) -> Result<Server> {
        self.ready_after().map(|(server, _)| server)
    }

    /// The same, with the time that it took.
    pub fn ready_after(&self) -> Result<(Server, Duration)> {
        let mut server = self.start()?;
        let took = server.wait_ready(READY_LIMIT)?;
        Ok((server, took))
    }

    /// The program with its arguments.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.arg(self.role.subcommand()).arg("--data").arg(&self.data);
        command.args(["--listen", &self.intake.to_string(), "--admin", &self.admin.to_string()]);
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
        command
    }

    /// Replaces the configuration; the server uses it after the next reload.
    pub fn write_config(&self, text: &str) -> Result<()> {
        let path = self.config.as_ref().context("a server without a configuration")?;
        std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    }

    fn log_tail(&self) -> String {
        tail(&self.log)
    }
}

impl Server {
    /// Waits until `/readyz` answers 200, and says how long that took from the start of the process.
    pub fn wait_ready(&mut self, limit: Duration) -> Result<Duration> {
        loop {
            let (is_ready, elapsed) = (http::is_ready(self.launch.intake), self.started.elapsed());
            if is_ready {
                return Ok(elapsed);
            }
            if let Some(status) = self.process.0.try_wait()? {
                bail!("the server ended before it was ready: {status}\n{}", self.launch.log_tail());
            }
            if elapsed > limit {
                bail!("the server wasn't ready after {elapsed:?}\n{}", self.launch.log_tail());
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// The metrics of the admin port.
    pub fn metrics(&self) -> Result<String> {
        Ok(String::from_utf8(self.admin_get("/metrics")?)?)
    }

    /// The admin port's answer to a GET.
    pub fn admin_get(&self, path: &str) -> Result<Vec<u8>> {
        let answer = http::get(self.launch.admin, path).with_context(|| format!("asking the admin port for {path}"))?;
        if answer.status != 200 {
            bail!("{path} answered {}", answer.status);
        }
        Ok(answer.body)
    }

    /// Events that are not in their store yet.
    pub fn pending(&self) -> Result<f64> {
        const PENDING: &str = "forebay_events_pending";
        let text = self.metrics()?;
        if !metrics::has(&text, PENDING) {
            bail!("/metrics has no {PENDING}");
        }
        Ok(metrics::sum(&text, PENDING))
    }

    /// Waits until nothing is pending. It fails when the figure hasn't fallen for a minute.
    pub fn wait_stored(&self) -> Result<()> {
        let mut least = f64::INFINITY;
        let mut fell = Instant::now();
        loop {
            let pending = self.pending()?;
            if pending <= 0.0 {
                return Ok(());
            }
            if pending < least {
                (least, fell) = (pending, Instant::now());
            }
            if fell.elapsed() > Duration::from_secs(60) {
                bail!("{pending} events are pending, and no fewer for a minute\n{}", self.launch.log_tail());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it as a power button would: without any notice to the process.
    pub fn kill(mut self) -> Result<()> {
        self.process.end()
    }

    /// Has it read its configuration again (SIGHUP).
    pub fn hang_up(&self) -> Result<()> {
        self.signal(Signal::HUP)
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.process.signal(signal)
    }

    /// Asks it to stop (SIGTERM), and waits for its end.
    pub fn stop(mut self) -> Result<()> {
        self.signal(Signal::TERM)?;
        let ended = self.process.wait_success(STOP_LIMIT);
        ended.with_context(|| format!("asked to stop, the server logged:\n{}", self.launch.log_tail()))
    }
}

impl Process {
    /// Starts a program.
    pub fn start(command: &mut Command) -> Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        Ok(Self(command.spawn().with_context(|| format!("starting {program}"))?))
    }

    /// The process's number.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Sends a signal to it.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).context("a process has an id")?;
        kill_process(pid, signal).context("sending a signal")
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.0.try_wait().context("looking after a process")
    }

    /// Waits until it has ended with success.
    pub fn wait_success(&mut self, limit: Duration) -> Result<()> {
        let mut ended = None;
        until("it ends", limit, || {
            ended = self.ended()?;
            Ok(ended.is_some())
        })?;
        match ended {
            Some(status) if !status.success() => bail!("it ended with {status}"),
            _ => Ok(()),
        }
    }

    /// Kills it.
    pub fn end(&mut self) -> Result<()> {
        self.0.kill().context("killing a process")?;
        self.0.wait().map(|_: ExitStatus| ()).context("waiting for a killed process")
    }

    /// User and system time of all its threads, also of those that have ended.
    pub fn cpu(&self) -> Result<Duration> {
        ticks_of_fields(&self.proc_file("stat")?, 13).map(ticks).context("/proc/…/stat has no times")
    }

    /// Bytes in memory: now, and at most so far.
    pub fn memory(&self) -> Result<Memory> {
        let status = self.proc_file("status")?;
        let field = |name| status_bytes(&status, name).with_context(|| format!("/proc/…/status has no {name}"));
        Ok(Memory { now: field("VmRSS:")?, most: field("VmHWM:")? })
    }

    /// Resident bytes that belong to the process alone: neither its program nor files that it has mapped.
    pub fn anonymous_memory(&self) -> Result<u64> {
        status_bytes(&self.proc_file("status")?, "RssAnon:").context("/proc/…/status has no RssAnon")
    }

    /// Open file descriptors.
    pub fn descriptors(&self) -> Result<usize> {
        let path = format!("/proc/{}/fd", self.0.id());
        Ok(std::fs::read_dir(&path).with_context(|| format!("reading {path}"))?.count())
    }

    /// Restarts the measurement of the peak memory.
    pub fn forget_peak(&self) -> Result<()> {
        let path = format!("/proc/{}/clear_refs", self.0.id());
        std::fs::write(&path, "5").with_context(|| format!("writing {path}"))
    }

    fn proc_file(&self, name: &str) -> Result<String> {
        let path = format!("/proc/{}/{name}", self.0.id());
        std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// The last lines of a log.
pub fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

/// Resident bytes of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Resident bytes.
    pub now: u64,
    /// The most that were resident at a time.
    pub most: u64,
}

/// User and system time of all children that have ended and were waited for.
pub fn children_cpu() -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").context("reading /proc/self/stat")?;
    ticks_of_fields(&stat, 15).map(ticks).context("/proc/self/stat has no times of children")
}

/// Kernel ticks as time.
fn ticks(ticks: u64) -> Duration {
    Duration::from_micros(ticks * 1_000_000 / rustix::param::clock_ticks_per_second())
}

/// The sum of two fields of a `stat` file: that after so many others, and the next. The second field is the program's
/// name in parentheses and may hold anything.
fn ticks_of_fields(stat: &str, before: usize) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(before - 2);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn status_bytes(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_read() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 50 1 2 20 0 3";
        assert_eq!((ticks_of_fields(stat, 13), ticks_of_fields(stat, 15)), (Some(300), Some(3)));
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(status_bytes(status, "VmRSS:"), Some(1024 * 1024));
        assert_eq!(status_bytes(status, "VmSwap:"), None);
    }

    #[test]
    fn free_ports_differ() {
        assert_ne!(free_address(), free_address());
    }
}
