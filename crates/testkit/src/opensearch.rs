//! An OpenSearch server of a test's own: a folder under the temporary one, a free port. It needs a Java runtime, what `cargo xtask services` has fetched.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::ports;
use crate::skipped;
use crate::tools::tool;

/// A Java program that begins on a busy machine.
const PATIENCE: Duration = Duration::from_mins(5);
/// Of a server that shall begin quickly and take little memory, with time for nothing else.
pub const SMALL: &[&str] = &["-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
/// The base port of the server's runner; the server listens on the port after it, or on one that follows.
const BASE_PORTS: std::ops::Range<u16> = 9200..9298;
/// The runner's own program leaves the role `ingest` out; pipelines need it.
const WITH_INGEST: &str = r#"import org.codelibs.opensearch.runner.OpenSearchRunner;
public class Run { public static void main(String[] arguments) throws Exception {
    OpenSearchRunner runner = new OpenSearchRunner();
    runner.onBuild((number, settings) -> settings.putList("node.roles", "cluster_manager", "data", "ingest"));
    runner.build(OpenSearchRunner.newConfigs().basePath(arguments[0]).clusterName(arguments[1]).numOfNode(1)
        .baseHttpPort(Integer.parseInt(arguments[2])).build());
    Thread.sleep(Long.MAX_VALUE);
} }
"#;
/// The folder of its programs.
const JARS: &str = "opensearch/lib";
/// The log's message when the server is ready, followed by its address.
const LISTENS: &str = "HttpServerTransport] publish_address {";
static NUMBER: AtomicU32 = AtomicU32::new(0);
/// The address of a running server that the test programs of a run share.
pub const SHARED: &str = "FOREBAY_TEST_OPENSEARCH";

/// A server that ends with its test, however that ends; or the shared one, of which only the address is known.
pub struct OpenSearch {
    shared_at: Option<SocketAddr>,
    folder: PathBuf,
    jars: PathBuf,
    options: &'static [&'static str],
    has_ingest: bool,
    base_port: u16,
    running: Mutex<Option<Child>>,
    /// Ends the server and removes its files as soon as this end of its pipe is closed. The shared one has another owner.
    watcher: Option<Child>,
}

/// The server's answer.
#[derive(Clone, Debug)]
pub struct OpenSearchResponse {
    pub status: u16,
    pub body: String,
}

impl OpenSearch {
    /// The server that the run shares, or else this process, with ingest pipelines. Its tests use indices, templates and pipelines that no
    /// other test names, and never stop it.
    pub fn shared() -> Option<&'static Self> {
        static SERVER: OnceLock<Option<OpenSearch>> = OnceLock::new();
        let attached = |address: String| Self {
            shared_at: Some(address.parse().unwrap()),
            folder: PathBuf::new(),
            jars: PathBuf::new(),
            options: &[],
            has_ingest: true,
            base_port: 0,
            running: Mutex::default(),
            watcher: None,
        };
        SERVER.get_or_init(|| std::env::var(SHARED).ok().map(attached).or_else(Self::start_shared)).as_ref()
    }

    /// The server that a run shares: it lives as long as the returned value.
    pub fn start_shared() -> Option<Self> {
        Self::start_as(tool(JARS), SMALL, true)
    }

    /// A running server; `None`, and a message, if it wasn't fetched.
    pub fn start() -> Option<Self> {
        Self::start_from(tool(JARS), SMALL)
    }

    /// The same from a folder with its programs, and with options of Java.
    pub fn start_from(jars: PathBuf, options: &'static [&'static str]) -> Option<Self> {
        Self::start_as(jars, options, false)
    }

    fn start_as(jars: PathBuf, options: &'static [&'static str], has_ingest: bool) -> Option<Self> {
        let java = Command::new("java").arg("-version").stderr(Stdio::null()).status();
        if !jars.is_dir() || java.is_err() {
            skipped::report("OpenSearch isn't there (cargo xtask services fetches it)");
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("forebay-opensearch-{}-{number}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let script = "cat > /dev/null; kill -9 $(cat \"$1/pid\") 2> /dev/null; rm -rf \"$1\"";
        let watcher = Command::new("sh").args(["-c", script, "sh"]).arg(&folder).stdin(Stdio::piped()).spawn().unwrap();
        let (base_port, running) = (free_base(number), Mutex::new(None));
        let (shared_at, watcher) = (None, Some(watcher));
        let server = Self { shared_at, folder, jars, options, has_ingest, base_port, running, watcher };
        server.run();
        Some(server)
    }

    /// Starts the server over its data, and waits until it answers.
    pub fn run(&self) {
        assert!(self.shared_at.is_none(), "the shared server runs");
        let mut running = self.running.lock().unwrap();
        let log = File::create(self.folder.join("log")).unwrap();
        let mut java = Command::new("java");
        java.args(self.options).arg("-cp").arg(self.jars.join("*"));
        // Servers of one name would find one another.
        let (data, name, port) =
            (self.folder.join("server"), self.folder.file_name().unwrap(), self.base_port.to_string());
        if self.has_ingest {
            let program = self.folder.join("Run.java");
            fs::write(&program, WITH_INGEST).unwrap();
            java.arg(program).arg(data).arg(name).arg(port);
        } else {
            java.arg("org.codelibs.opensearch.runner.OpenSearchRunner");
            java.arg("-basePath").arg(data).args(["-numOfNode", "1"]);
            java.arg("-clusterName").arg(name).arg("-baseHttpPort").arg(port);
        }
        java.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let mut child = java.current_dir(&self.folder).spawn().unwrap();
        fs::write(self.folder.join("pid"), child.id().to_string()).unwrap();
        let deadline = Instant::now() + PATIENCE;
        while !self.is_ready() {
            assert!(child.try_wait().unwrap().is_none(), "OpenSearch ended: {}", self.log());
            assert!(Instant::now() < deadline, "OpenSearch doesn't answer: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        *running = Some(child);
        // A machine whose disk is nearly full would otherwise get no index.
        let settings = r#"{"persistent": {"cluster.routing.allocation.disk.threshold_enabled": false}}"#;
        self.done("PUT", "/_cluster/settings", settings);
    }

    fn is_ready(&self) -> bool {
        let health = "/_cluster/health?wait_for_status=yellow&timeout=1s";
        self.listening().and_then(|address| try_ask(address, "GET", health, "").ok()).is_some_and(|a| a.status == 200)
    }

    fn listening(&self) -> Option<SocketAddr> {
        if self.shared_at.is_some() {
            return self.shared_at;
        }
        let log = self.log();
        let (_, behind) = log.rsplit_once(LISTENS)?;
        behind.split_once('}')?.0.parse().ok()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Its address: also after it was killed and runs again.
    pub fn address(&self) -> SocketAddr {
        self.listening().unwrap()
    }

    /// Ends the server immediately, as a crash would. It is one process.
    pub fn kill(&self) {
        let Some(mut child) = self.running.lock().unwrap().take() else { return };
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its answer to a direct request. A connection that fails, fails the test.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> OpenSearchResponse {
        try_ask(self.address(), method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// The same, which must succeed.
    pub fn get(&self, path: &str) -> String {
        self.done("GET", path, "")
    }

    /// The same with a body.
    pub fn done(&self, method: &str, path: &str, body: &str) -> String {
        let OpenSearchResponse { status, body } = self.ask(method, path, body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {body}");
        body
    }
}

impl Drop for OpenSearch {
    fn drop(&mut self) {
        self.kill();
        if let Some(watcher) = &mut self.watcher {
            drop(watcher.stdin.take());
            let _ = watcher.wait();
        }
    }
}

/// A base whose next port is free, and reserved.
fn free_base(number: u32) -> u16 {
    let bases = u32::from(BASE_PORTS.end - BASE_PORTS.start);
    let base = |step: u32| BASE_PORTS.start + u16::try_from((std::process::id() + number * 13 + step) % bases).unwrap();
    (0..bases).map(base).find(|base| ports::reserve(base + 1)).unwrap()
}

/// Asks over a separate connection.
pub fn try_ask(address: SocketAddr, method: &str, path: &str, body: &str) -> std::io::Result<OpenSearchResponse> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let kind = if path.starts_with("/_bulk") { "application/x-ndjson" } else { "application/json" };
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: {kind}\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let odd = || std::io::Error::other(format!("no answer: {answer:?}"));
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(odd)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(odd)?;
    Ok(OpenSearchResponse { status, body: body.to_owned() })
}
