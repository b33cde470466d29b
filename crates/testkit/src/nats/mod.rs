//! A NATS server of a test's own: a folder under the temporary one, a free port. It needs what `cargo xtask services` has built.

mod client;

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::ports::free_address;
use crate::skipped;
use crate::tools::tool;
use crate::wait::PATIENCE;
pub use client::{NatsClient, NatsMessage};

/// Room for the largest event and its headers.
pub const ROOMY: &str = "max_payload: 2MB\n";
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A server that ends with its test, however that ends.
pub struct NatsServer {
    program: PathBuf,
    folder: PathBuf,
    address: SocketAddr,
    process: Mutex<Option<Child>>,
    /// Ends the server and removes its files as soon as this end of its pipe is closed.
    watcher: Child,
}

impl NatsServer {
    /// A running server with JetStream; `None`, and a message, if it wasn't built.
    pub fn start() -> Option<Self> {
        Self::start_with(ROOMY)
    }

    /// The same with a configuration in addition to its address and its folder.
    pub fn start_with(configuration: &str) -> Option<Self> {
        Self::start_from(tool("nats/nats-server"), configuration)
    }

    /// The same of the program at this path.
    pub fn start_from(program: PathBuf, configuration: &str) -> Option<Self> {
        if !program.is_file() {
            skipped::report("NATS isn't there (cargo xtask services builds it)");
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("forebay-nats-{}-{number}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let address = free_address();
        let script = "cat > /dev/null; kill -9 $(cat \"$1/pid\") 2> /dev/null; rm -rf \"$1\"";
        let watcher = Command::new("sh").args(["-c", script, "sh"]).arg(&folder).stdin(Stdio::piped()).spawn().unwrap();
        let server = Self { program, folder, address, process: Mutex::new(None), watcher };
        server.configure(configuration);
        server.run();
        Some(server)
    }

    /// The settings from the next start on.
    pub fn configure(&self, configuration: &str) {
        let store = self.folder.join("data");
        let is_configured = configuration.lines().any(|line| line.starts_with("jetstream"));
        let jetstream = if is_configured { "" } else { "jetstream: enabled\n" };
        let store = format!("listen: \"{}\"\nstore_dir: \"{}\"\n", self.address, store.display());
        fs::write(self.folder.join("conf"), format!("{store}{jetstream}{configuration}")).unwrap();
    }

    /// Starts the server over its data, and waits until it answers.
    pub fn run(&self) {
        let mut process = self.process.lock().unwrap();
        let log = File::options().create(true).append(true).open(self.folder.join("log")).unwrap();
        let mut nats = Command::new(&self.program);
        nats.arg("--config").arg(self.folder.join("conf")).arg("--pid").arg(self.folder.join("pid"));
        let mut child = nats.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let deadline = Instant::now() + PATIENCE;
        let before = self.log().matches(READY).count();
        while self.log().matches(READY).count() == before {
            assert!(child.try_wait().unwrap().is_none(), "NATS ended: {}", self.log());
            assert!(Instant::now() < deadline, "NATS doesn't answer: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
        *process = Some(child);
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Ends the server immediately, as a crash would.
    pub fn kill(&self) {
        let Some(mut child) = self.process.lock().unwrap().take() else { return };
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Sends a signal, such as `USR2` for the lame duck mode.
    pub fn signal(&self, name: &str) {
        let pid = fs::read_to_string(self.folder.join("pid")).unwrap();
        let status = Command::new("kill").args([&format!("-{name}"), pid.trim()]).status().unwrap();
        assert!(status.success());
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// A connection past sink and proxy.
    pub fn client(&self) -> NatsClient {
        NatsClient::connect(self.address, "")
    }

    /// The same as a user: `"user":"ann","pass":"x"`.
    pub fn client_of(&self, user: &str) -> NatsClient {
        NatsClient::connect(self.address, user)
    }
}

/// The log's message when the server accepts connections.
const READY: &str = "Server is ready";

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}
