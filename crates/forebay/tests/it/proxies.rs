//! The configurations of HAProxy and nginx in `deploy/`, in front of two gateways: the client's address, retries, and large batches.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::{Folder, Running, Server, exchange, wait_until};
use testkit::ports::free_address;

/// The address of a client that is neither a proxy nor a gateway.
const CLIENT: &str = "127.0.0.9";

#[derive(Clone, Copy)]
enum Kind {
    Haproxy,
    Nginx,
}

/// A running proxy. It is killed when the value is dropped.
struct Proxy {
    address: SocketAddr,
    _process: Running,
}

impl Kind {
    fn program(self) -> &'static str {
        match self {
            Self::Haproxy => "haproxy",
            Self::Nginx => "nginx",
        }
    }

    /// Starts it in front of these gateways. `None`, and a message, if it isn't installed.
    #[allow(clippy::print_stdout, reason = "a test that is skipped says so")]
    fn start(self, folder: &Folder, gateways: [SocketAddr; 2]) -> Option<Proxy> {
        if Command::new(self.program()).arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            testkit::skipped::report(&format!("there is no {}; `cargo xtask services` installs it", self.program()));
            return None;
        }
        let address = free_address();
        let (configuration, arguments) = match self {
            Self::Haproxy => (haproxy(address, gateways), vec!["-db", "-f"]),
            Self::Nginx => (nginx(&folder.text(""), address, gateways), vec!["-e", "stderr", "-c"]),
        };
        let mut command = Command::new(self.program());
        command.args(arguments).arg(folder.write("proxy.conf", configuration));
        let process = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        assert!(wait_until(|| TcpStream::connect(address).is_ok()), "{} listens", self.program());
        Some(Proxy { address, _process: process })
    }
}

/// The delivered file, with these replacements.
fn delivered(file: &str, changes: &[(&str, &str)]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(file);
    let mut text = std::fs::read_to_string(path).unwrap();
    for (old, new) in changes {
        assert_eq!(text.matches(old).count(), 1, "{file} has {old:?}");
        text = text.replace(old, new);
    }
    text
}

fn haproxy(listen: SocketAddr, [one, other]: [SocketAddr; 2]) -> String {
    let servers = format!("server one {one}\n    server other {other}");
    let template = "server-template gateway 16 \"${GATEWAYS}\" resolvers dns init-addr libc,none";
    let changes = [
        ("bind :8080", format!("bind {listen}")),
        ("bind :8404", format!("bind {}", free_address())),
        (template, servers),
    ];
    delivered("haproxy/haproxy.cfg", &changes.each_ref().map(|(old, new)| (*old, new.as_str())))
}

/// A single process: a kill leaves no other.
fn nginx(folder: &str, listen: SocketAddr, [one, other]: [SocketAddr; 2]) -> String {
    let changes = [
        ("listen 8080", format!("listen {listen}")),
        ("server gateway-1:8080", format!("server {one}")),
        ("server gateway-2:8080", format!("server {other}")),
    ];
    let delivered = delivered("nginx/forebay.conf", &changes.each_ref().map(|(old, new)| (*old, new.as_str())));
    format!(
        "daemon off; master_process off; pid {folder}/pid;
         events {{ worker_connections 256; }}
         http {{
             access_log off;
             client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
             uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
             {delivered}
         }}"
    )
}

/// A gateway that trusts the proxy.
fn gateway(folder: &Folder) -> Server {
    let configuration = folder.write("gateway.toml", "[gateway]\nshards = 1\ntrusted_proxies = [\"127.0.0.1\"]\n");
    Server::start_with(&folder.data(), &["--config", &configuration], &folder.path("log"))
}

/// The folders of two gateways and of a proxy.
struct Fixture {
    folders: [Folder; 3],
}

impl Fixture {
    fn new() -> Self {
        Self { folders: [(); 3].map(|()| Folder::new()) }
    }

    fn gateways(&self) -> [Server; 2] {
        [gateway(&self.folders[0]), gateway(&self.folders[1])]
    }

    fn proxy(&self, kind: Kind, gateways: [SocketAddr; 2]) -> Option<Proxy> {
        kind.start(&self.folders[2], gateways)
    }
}

/// The status of a post on a separate connection.
fn post(proxy: &Proxy, path: &str, body: &str) -> u16 {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/x-ndjson\r\n"
    );
    exchange(proxy.address, &format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())).0
}

/// The client's address as the gateway sees it, for a client at [`CLIENT`] that sends false headers.
fn seen_address(proxy: &Proxy) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(CLIENT.parse().unwrap(), 0)).unwrap();
        socket.connect(proxy.address).await.unwrap().into_std().unwrap()
    });
    stream.set_nonblocking(false).unwrap();
    let lies = "X-Forwarded-For: 203.0.113.7\r\nForwarded: for=203.0.113.8\r\n";
    let request = format!("GET /ip HTTP/1.1\r\nHost: localhost\r\n{lies}Connection: close\r\n\r\n");
    (&stream).write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    (&stream).read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    answer.split("\r\n\r\n").nth(1).unwrap().to_owned()
}

fn accepted(gateway: &Server) -> u64 {
    gateway.metric("forebay_events_accepted_total{type=\"event\"}")
}

fn a_clients_address_arrives_and_large_batches_pass(kind: Kind) {
    let fixture = Fixture::new();
    let gateways = fixture.gateways();
    let Some(proxy) = fixture.proxy(kind, gateways.each_ref().map(|gateway| gateway.intake)) else { return };
    assert!(seen_address(&proxy).contains(CLIENT), "{}", seen_address(&proxy));
    // The largest batch that a gateway accepts.
    let lines = format!("\"{}\"\n", "x".repeat((1 << 20) - 3)).repeat(32);
    assert_eq!(lines.len(), 32 << 20);
    assert_eq!(post(&proxy, "/ingest/batch", &lines), 200);
}

fn a_gateway_that_is_gone_fails_no_request(kind: Kind) {
    let fixture = Fixture::new();
    let [gone, other] = fixture.gateways();
    let Some(proxy) = fixture.proxy(kind, [gone.intake, other.intake]) else { return };
    let posts = 20;
    for _ in 0..posts {
        assert_eq!(post(&proxy, "/ingest/event", "1"), 200);
    }
    let before = accepted(&other);
    assert_eq!(accepted(&gone) + before, posts);
    assert!(before < posts, "both get events");
    drop(gone);
    for _ in 0..posts {
        assert_eq!(post(&proxy, "/ingest/event", "1"), 200);
    }
    assert_eq!(accepted(&other), before + posts);
}

/// A server that reads requests and closes without an answer, like a gateway that is killed after its commit. Its `/readyz` answers 200.
fn mute_server() -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, taken) = (listener.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
    let counted = taken.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut bytes) = (stream.unwrap(), [0; 4096]);
            let Ok(read @ 1..) = stream.read(&mut bytes) else { continue };
            if bytes[..read].starts_with(b"GET /readyz") {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            } else {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    (address, taken)
}

fn a_post_that_was_sent_is_never_sent_to_another_gateway(kind: Kind) {
    let fixture = Fixture::new();
    let gateway = gateway(&fixture.folders[0]);
    let (mute, taken) = mute_server();
    let Some(proxy) = fixture.proxy(kind, [mute, gateway.intake]) else { return };
    let statuses: Vec<u16> = (0..20).map(|_| post(&proxy, "/ingest/event", "1")).collect();
    let count = |status: u16| statuses.iter().filter(|one| **one == status).count() as u64;
    assert_eq!(accepted(&gateway), count(200), "{statuses:?}");
    assert_eq!(taken.load(Ordering::SeqCst), count(502), "{statuses:?}");
    assert!(count(200) > 0 && count(502) > 0 && count(200) + count(502) == 20, "{statuses:?}");
}

#[test]
fn haproxy_passes_client_addresses_and_large_batches() {
    a_clients_address_arrives_and_large_batches_pass(Kind::Haproxy);
}

#[test]
fn nginx_passes_client_addresses_and_large_batches() {
    a_clients_address_arrives_and_large_batches_pass(Kind::Nginx);
}

#[test]
fn haproxy_avoids_a_stopped_gateway() {
    a_gateway_that_is_gone_fails_no_request(Kind::Haproxy);
}

#[test]
fn nginx_avoids_a_stopped_gateway() {
    a_gateway_that_is_gone_fails_no_request(Kind::Nginx);
}

#[test]
fn haproxy_never_retries_a_sent_post() {
    a_post_that_was_sent_is_never_sent_to_another_gateway(Kind::Haproxy);
}

#[test]
fn nginx_never_retries_a_sent_post() {
    a_post_that_was_sent_is_never_sent_to_another_gateway(Kind::Nginx);
}
