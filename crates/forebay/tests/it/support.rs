//! A running server, and its state as tests see it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use testkit::ports::free_address;

/// A test that waits longer than this hangs. It says nothing about speed: the test fails instead of waiting forever,
/// and shows the last state.
pub(crate) const HANGS: Duration = Duration::from_secs(120);

/// The program.
pub(crate) fn forebay() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    // Its environment is the test's, not that of the user who runs it.
    let own = std::env::vars_os().map(|(name, _)| name);
    for name in own.filter(|name| name.as_encoded_bytes().starts_with(b"FOREBAY_")) {
        command.env_remove(name);
    }
    command
}

/// The program as it begins after a command of the shell.
pub(crate) fn after(shell: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{shell}; exec \"$@\""), "sh", env!("CARGO_BIN_EXE_forebay")]);
    command
}

/// A process that is killed when it is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for its end and returns its exit code, if it ends with one.
    pub(crate) fn wait_end(&mut self) -> Option<i32> {
        assert!(wait_until(|| self.0.try_wait().unwrap().is_some()), "it doesn't end");
        self.0.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory for one test.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The data directory of its servers.
    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), bytes).unwrap();
        self.text(name)
    }
}

/// A running server; killed when it is dropped.
pub(crate) struct Server {
    process: Running,
    pub(crate) intake: SocketAddr,
    pub(crate) admin: SocketAddr,
    /// Its message at the start.
    pub(crate) banner: String,
}

impl Server {
    /// Starts it on ports that the operating system chooses.
    pub(crate) fn start(data: &Path) -> Self {
        Self::start_on(data, "127.0.0.1:0")
    }

    /// Starts it on a port that no other process gets while it is down.
    pub(crate) fn start_to_come_back(data: &Path) -> Self {
        Self::start_on(data, &free_address().to_string())
    }

    /// Starts it on this address, and reads from the banner where it is.
    pub(crate) fn start_on(data: &Path, listen: &str) -> Self {
        Self::spawn(forebay(), data, listen, "127.0.0.1:0")
    }

    /// Starts it on an address that other machines can reach; its log goes to `log`.
    pub(crate) fn start_reachable(data: &Path, log: &Path) -> Self {
        let mut command = forebay();
        command.stderr(std::fs::File::create(log).unwrap());
        Self::spawn(command, data, "0.0.0.0:0", "0.0.0.0:0")
    }

    /// Starts it on an address that other machines can reach, where every client may post.
    pub(crate) fn start_open(data: &Path) -> Self {
        let mut command = forebay();
        command.env("FOREBAY_GATEWAY_ALLOW_ANONYMOUS", "true");
        Self::spawn(command, data, "0.0.0.0:0", "127.0.0.1:0")
    }

    /// Starts it with a configuration; its log goes to `log`.
    pub(crate) fn start_configured(data: &Path, configuration: &Path, log: &Path) -> Self {
        Self::start_with(data, &["--config", configuration.to_str().unwrap()], log)
    }

    /// Starts it in a terminal, with a configuration. Its end is [`Self::stop_in_terminal`].
    pub(crate) fn start_in_terminal(data: &Path, configuration: &Path) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", "exec script -qec \"exec $*\" /dev/null", "sh", env!("CARGO_BIN_EXE_forebay"), "serve"]);
        command.arg("--config").arg(configuration).stdin(Stdio::piped());
        Self::spawn_serving(command, data, "127.0.0.1:0", "127.0.0.1:0")
    }

    /// Ends it with Ctrl-C, as in a terminal: its exit code.
    pub(crate) fn stop_in_terminal(mut self) -> Option<i32> {
        const CTRL_C: &[u8] = b"\x03";
        self.process.0.stdin.as_mut().unwrap().write_all(CTRL_C).unwrap();
        self.wait_end()
    }

    /// Starts it with more arguments; its log goes to `log`.
    pub(crate) fn start_with(data: &Path, arguments: &[&str], log: &Path) -> Self {
        let mut command = forebay();
        command.arg("serve").args(arguments).stderr(std::fs::File::create(log).unwrap());
        Self::spawn_serving(command, data, "127.0.0.1:0", "127.0.0.1:0")
    }

    /// Starts it after a command of the shell, as `ulimit` or `umask`, with a configuration; its log goes to `log`.
    pub(crate) fn start_after(shell: &str, data: &Path, configuration: &Path, log: &Path) -> Self {
        let mut command = after(shell);
        command.stderr(std::fs::File::create(log).unwrap());
        command.arg("serve").arg("--config").arg(configuration);
        Self::spawn_serving(command, data, "127.0.0.1:0", "127.0.0.1:0")
    }

    /// Starts it with a limit on its file descriptors, and optionally on a client's connections; its log goes to `log`.
    pub(crate) fn start_with_descriptors(data: &Path, descriptors: u32, per_client: Option<u32>, log: &Path) -> Self {
        let mut command = after(&format!("ulimit -n {descriptors}"));
        command.stderr(std::fs::File::create(log).unwrap());
        if let Some(connections) = per_client {
            command.env("FOREBAY_GATEWAY_MAX_CONNECTIONS_PER_CLIENT", connections.to_string());
        }
        Self::spawn(command, data, "127.0.0.1:0", "127.0.0.1:0")
    }

    /// Starts it as this command of a server says.
    pub(crate) fn start_command(command: Command, data: &Path) -> Self {
        Self::spawn_serving(command, data, "127.0.0.1:0", "127.0.0.1:0")
    }

    /// Starts it by this command.
    pub(crate) fn start_by(command: Command, data: &Path) -> Self {
        Self::spawn(command, data, "127.0.0.1:0", "127.0.0.1:0")
    }

    fn spawn(mut command: Command, data: &Path, listen: &str, admin: &str) -> Self {
        command.arg("serve");
        Self::spawn_serving(command, data, listen, admin)
    }

    pub(crate) fn spawn_serving(mut command: Command, data: &Path, listen: &str, admin: &str) -> Self {
        command.args(["--listen", listen, "--admin", admin, "--data"]).arg(data);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut banner = String::new();
        let mut address = |mark: &str| -> SocketAddr {
            let line = lines.find(|line| {
                banner += line;
                banner.push('\n');
                line.contains(mark)
            });
            // With TLS the address is a name.
            let line = line.unwrap().replace("localhost", "127.0.0.1");
            line.split("://").nth(1).unwrap().split(['/', ' ']).next().unwrap().parse().unwrap()
        };
        let (intake, admin) = (address("accepts events on"), address("/metrics"));
        // Read on to the end, or the server could meet a closed pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process: Running(process), intake, admin, banner }
    }

    /// Starts it on these addresses, with a log in JSON: its banner is in the log.
    pub(crate) fn start_at(mut command: Command, data: &Path, [intake, admin]: [SocketAddr; 2]) -> Self {
        command.args(["--listen", &intake.to_string(), "--admin", &admin.to_string(), "--data"]).arg(data);
        let process = Running(command.stdout(Stdio::null()).spawn().unwrap());
        assert!(wait_until(|| [intake, admin].iter().all(|address| TcpStream::connect(address).is_ok())));
        Self { process, intake, admin, banner: String::new() }
    }

    /// Its memory according to the operating system, in bytes: `VmRSS` now, `VmHWM` the most so far.
    pub(crate) fn memory(&self, field: &str) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.0.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        let kibibytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kibibytes << 10
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.0.id()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.intake)
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: &str) {
        self.process.signal(signal);
    }

    /// Sends it a signal and returns its exit code, if it ends with one.
    pub(crate) fn stop(self, signal: &str) -> Option<i32> {
        self.process.signal(signal);
        self.wait_end()
    }

    /// Waits for its end and returns its exit code, if it ends with one.
    pub(crate) fn wait_end(mut self) -> Option<i32> {
        self.process.wait_end()
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> (u16, String) {
        let length = body.len();
        exchange(
            self.intake,
            &format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
            ),
        )
    }

    /// Posts an event of type `access` under a key: the answer's status.
    pub(crate) fn post_with_key(&self, key: &str, body: &str) -> u16 {
        let length = body.len();
        let request = format!(
            "POST /ingest/event/access HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nIdempotency-Key: {key}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        exchange(self.intake, &request).0
    }

    pub(crate) fn metrics(&self) -> String {
        exchange(self.admin, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").1
    }

    /// The sum of all series that begin like this.
    pub(crate) fn metric(&self, series: &str) -> u64 {
        sum(&self.metrics(), series)
    }

    /// Waits until the sum of these series is the wanted one.
    pub(crate) fn wait(&self, series: &str, wanted: impl Fn(u64) -> bool) {
        let mut text = String::new();
        let found = wait_until(|| {
            text = self.metrics();
            wanted(sum(&text, series))
        });
        assert!(found, "{series} isn't what is waited for in {text}");
    }

    /// Waits until nothing is pending.
    pub(crate) fn wait_delivered(&self) {
        self.wait("forebay_events_pending{", |pending| pending == 0);
    }
}

fn sum(metrics: &str, series: &str) -> u64 {
    let name = series.split('{').next().unwrap();
    assert!(metrics.contains(&format!("# TYPE {name} ")), "no {name} in {metrics}");
    let lines = metrics.lines().filter(|line| line.starts_with(series));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// Between two checks of another process. Without a pause two programs that answer each other can keep a core
/// so busy that the kernel never ends the writes that all wait for: seen for as long as the loop ran.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Asks until the answer is yes. No: it hangs.
pub(crate) fn wait_until(mut ask: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < HANGS {
        if ask() {
            return true;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    false
}

/// The header field of a gateway's requests to a writer.
pub(crate) const PROTOCOL: &str = "Forebay-Protocol: 2/test\r\n";

/// One request on a separate connection: status and body of its answer.
pub(crate) fn exchange(address: SocketAddr, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(HANGS)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap_or_else(|error| panic!("{error} after {answer:?} to {request}"));
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

/// The payloads of the store, in the order of the bytes.
pub(crate) fn payloads(data: &Path) -> Vec<String> {
    let connection = rusqlite::Connection::open(data.join("events.db")).unwrap();
    let mut statement = connection.prepare("select payload from events order by payload").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}
