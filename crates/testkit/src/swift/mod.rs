//! OpenStack Swift of a test's own: the four servers, their rings and a memcached on free ports, in a folder under the temporary one.
//! Its proxy speaks S3 too.

mod client;
mod configuration;

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::ports::free_port;
use crate::skipped;
use crate::wait::PATIENCE;
pub use client::SwiftClient;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The user that may do everything in account `AUTH_test`, for Swift and for S3.
pub const USER: &str = "test:tester";
pub const KEY: &str = "testing";

/// The proxy's address of running servers that the test programs of a run share.
pub const SHARED: &str = "FOREBAY_TEST_SWIFT";

/// One of the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwiftProcess {
    Memcached,
    Account,
    Container,
    Object,
    Proxy,
}

impl SwiftProcess {
    pub const ALL: [Self; 5] = [Self::Memcached, Self::Account, Self::Container, Self::Object, Self::Proxy];

    const fn name(self) -> &'static str {
        match self {
            Self::Memcached => "memcached",
            Self::Account => "account",
            Self::Container => "container",
            Self::Object => "object",
            Self::Proxy => "proxy",
        }
    }
}

/// The servers, which end with their test, however that ends; or the shared ones, of which only the proxy's address is known.
pub struct SwiftServer {
    folder: PathBuf,
    ports: [u16; 5],
    processes: Mutex<[Option<Child>; 5]>,
    /// Ends the servers and removes their files as soon as this end of its pipe is closed. The shared ones have another owner.
    watcher: Option<Child>,
}

impl SwiftServer {
    /// The servers that the run shares, or else this process. For tests that neither stop nor set up their servers, and whose containers no
    /// other test names.
    pub fn shared() -> Option<&'static Self> {
        static SERVERS: OnceLock<Option<SwiftServer>> = OnceLock::new();
        let attached = |address: String| {
            let mut ports = [0; 5];
            ports[SwiftProcess::Proxy as usize] = address.parse::<SocketAddr>().unwrap().port();
            Self { folder: PathBuf::new(), ports, processes: Mutex::default(), watcher: None }
        };
        SERVERS.get_or_init(|| std::env::var(SHARED).ok().map(attached).or_else(Self::start)).as_ref()
    }

    /// Running servers; `None`, and a message, if Swift isn't installed.
    pub fn start() -> Option<Self> {
        if !["swift-proxy-server", "swift-object-server", "memcached"].into_iter().all(is_installed) {
            skipped::report("Swift isn't installed (cargo xtask services)");
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("forebay-swift-{}-{number}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let script =
            "cat > /dev/null; for pid in \"$1\"/*.pid; do kill -9 $(cat \"$pid\") 2> /dev/null; done; rm -rf \"$1\"";
        let mut watcher = Command::new("sh");
        // In a separate process group it outlives a signal to that of the tests, such as Ctrl-C.
        watcher.args(["-c", script, "sh"]).arg(&folder).stdin(Stdio::piped()).process_group(0);
        let watcher = watcher.spawn().unwrap();
        let server =
            Self { ports: [0; 5].map(|_| free_port()), folder, processes: Mutex::default(), watcher: Some(watcher) };
        configuration::write(&server.folder, server.ports);
        server.run();
        Some(server)
    }

    /// Starts the processes that aren't running, and waits until they answer.
    pub fn run(&self) {
        SwiftProcess::ALL.into_iter().for_each(|part| self.run_part(part));
        self.wait_ready();
    }

    /// Starts one of the processes if it isn't running, and waits until it takes connections.
    pub fn run_part(&self, part: SwiftProcess) {
        let mut processes = self.processes.lock().unwrap();
        let process = &mut processes[part as usize];
        if process.is_some() {
            return;
        }
        let log = File::options().create(true).append(true).open(self.folder.join("log")).unwrap();
        let mut command = configuration::command(&self.folder, part, self.ports[part as usize]);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let mut child = command.spawn().unwrap();
        fs::write(self.folder.join(format!("{}.pid", part.name())), child.id().to_string()).unwrap();
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(self.address_of(part)).is_err() {
            assert!(child.try_wait().unwrap().is_none(), "{part:?} ended: {}", self.log());
            assert!(Instant::now() < deadline, "{part:?} doesn't answer: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
        *process = Some(child);
    }

    /// The first requests of a new account may be rejected.
    fn wait_ready(&self) {
        let deadline = Instant::now() + PATIENCE;
        while !SwiftClient::try_new(self.address())
            .is_some_and(|client| client.ask("PUT", "/ready", &[], b"").is_success())
        {
            assert!(Instant::now() < deadline, "Swift isn't ready: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Brings the listings up to date: an object that is stored while its container's server is away is put on them later.
    pub fn update_listings(&self) {
        configuration::update_listings(&self.folder);
    }

    /// Ends one of the processes immediately, as a crash would.
    pub fn kill_part(&self, part: SwiftProcess) {
        let Some(mut child) = self.processes.lock().unwrap()[part as usize].take() else { return };
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Ends them all.
    pub fn kill(&self) {
        SwiftProcess::ALL.into_iter().rev().for_each(|part| self.kill_part(part));
    }

    /// The proxy's address.
    pub fn address(&self) -> SocketAddr {
        self.address_of(SwiftProcess::Proxy)
    }

    fn address_of(&self, part: SwiftProcess) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.ports[part as usize]))
    }

    /// An independent client of the store.
    pub fn client(&self) -> SwiftClient {
        SwiftClient::try_new(self.address()).unwrap()
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn log(&self) -> String {
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        log.lines().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for SwiftServer {
    fn drop(&mut self) {
        self.kill();
        if let Some(watcher) = &mut self.watcher {
            drop(watcher.stdin.take());
            let _ = watcher.wait();
        }
    }
}

fn is_installed(program: &str) -> bool {
    let found = |folder: PathBuf| folder.join(program).exists();
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(found))
}
