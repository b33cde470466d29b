//! An etcd for one test, with a temporary folder and free ports.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::ports::free_address;
use crate::skipped;
use crate::wait::wait_until;

static NUMBER: AtomicU32 = AtomicU32::new(0);
/// The log message with which etcd accepts requests.
const READY: &str = "ready to serve client requests";

/// An etcd that ends with its test, also if the test is killed.
pub struct EtcdServer {
    folder: PathBuf,
    client: SocketAddr,
    peer: SocketAddr,
    is_secure: bool,
    process: Option<Child>,
    /// Ends the server and removes its files as soon as this end of its pipe is closed.
    watcher: Child,
}

impl EtcdServer {
    /// A running etcd; `None`, and a message, if etcd isn't installed.
    pub fn start() -> Option<Self> {
        Self::start_with(None)
    }

    /// A running etcd with this certificate and key.
    pub fn start_with(pair: Option<(&str, &str)>) -> Option<Self> {
        let is_there = |program: &str| Command::new(program).arg("version").output().is_ok();
        if !is_there("etcd") || !is_there("etcdctl") {
            skipped::report("etcd isn't installed (apt install etcd-server etcd-client)");
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("forebay-etcd-{}-{number}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let script = "cat > /dev/null; kill -9 $(cat \"$1/pid\") 2> /dev/null; rm -rf \"$1\"";
        let watcher = Command::new("sh").args(["-c", script, "sh"]).arg(&folder).stdin(Stdio::piped()).spawn().unwrap();
        if let Some((certificate, key)) = pair {
            fs::write(folder.join("etcd.pem"), certificate).unwrap();
            fs::write(folder.join("etcd.key"), key).unwrap();
        }
        let (client, peer) = (free_address(), free_address());
        let mut server = Self { folder, client, peer, is_secure: pair.is_some(), process: None, watcher };
        server.run();
        Some(server)
    }

    /// Its endpoint.
    pub fn url(&self) -> String {
        let (scheme, host) = if self.is_secure { ("https", "localhost") } else { ("http", "127.0.0.1") };
        format!("{scheme}://{host}:{}", self.client.port())
    }

    /// The file of its certificate, which is its own authority.
    pub fn certificate(&self) -> String {
        self.folder.join("etcd.pem").to_str().unwrap().to_owned()
    }

    /// Starts it on its data, and waits until it accepts requests.
    pub fn run(&mut self) {
        let log = File::options().create(true).append(true).open(self.folder.join("log")).unwrap();
        let (client, peer) = (self.url(), format!("http://{}", self.peer));
        let mut etcd = Command::new("etcd");
        etcd.arg("--data-dir").arg(self.folder.join("data")).args(["--listen-client-urls", &client]);
        etcd.args(["--advertise-client-urls", &client, "--listen-peer-urls", &peer]);
        etcd.args(["--initial-advertise-peer-urls", &peer, "--initial-cluster", &format!("default={peer}")]);
        // A restart extends leases by an election timeout.
        etcd.args(["--election-timeout", "500", "--heartbeat-interval", "50"]);
        if self.is_secure {
            etcd.arg("--cert-file").arg(self.folder.join("etcd.pem"));
            etcd.arg("--key-file").arg(self.folder.join("etcd.key"));
        }
        let before = self.log().matches(READY).count();
        let child = etcd.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        fs::write(self.folder.join("pid"), child.id().to_string()).unwrap();
        let child = self.process.insert(child);
        let log = self.folder.join("log");
        let says = || fs::read_to_string(&log).unwrap_or_default();
        wait_until("etcd accepts requests", || {
            assert!(child.try_wait().unwrap().is_none(), "etcd ended: {}", says());
            says().matches(READY).count() > before
        });
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Kills it, as a crash would.
    pub fn kill(&mut self) {
        let Some(mut child) = self.process.take() else { return };
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Removes its data while it doesn't run.
    pub fn forget(&self) {
        fs::remove_dir_all(self.folder.join("data")).unwrap();
    }

    /// Runs `etcdctl` with these arguments. Returns its output.
    pub fn control(&self, arguments: &[&str]) -> String {
        let mut control = Command::new("etcdctl");
        control.env("ETCDCTL_API", "3").args(["--endpoints", &self.url()]).args(arguments);
        if self.is_secure {
            control.args(["--cacert", &self.certificate()]);
        }
        let output = control.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    /// The number of keys under the prefix of writers.
    pub fn registered(&self) -> usize {
        self.control(&["get", "--prefix", "--keys-only", "/forebay/writers/"]).matches("/forebay/").count()
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        self.kill();
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}
