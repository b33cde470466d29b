//! TLS on both ports of a running server: certificates that are checked, shown and replaced, and commands that trust.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Output;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use net::tls::{ClientStream, ClientTls};
use rcgen::{CertificateParams, CertifiedKey, KeyPair, date_time_ymd, generate_simple_self_signed};

use crate::support::{Folder, HANGS, Server, exchange, forebay, wait_until};

/// A server's certificate, which is its own authority, and its key.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Pair {
    pub(crate) fn new() -> Self {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
        Self { certificate: cert.pem(), key: signing_key.serialize_pem() }
    }

    /// Connects to a server that shows this certificate.
    pub(crate) fn connect(&self, address: SocketAddr) -> std::io::Result<ClientStream> {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(HANGS)).unwrap();
        ClientTls::trusting(self.certificate.as_bytes()).unwrap().connect("localhost", stream)
    }
}

/// A directory with the files of both ports.
pub(crate) struct TlsFixture {
    pub(crate) folder: Folder,
    pub(crate) pair: Pair,
}

impl TlsFixture {
    pub(crate) fn new() -> Self {
        let fixture = Self { folder: Folder::new(), pair: Pair::new() };
        fixture.show(&fixture.pair);
        let table = "tls = { certificate = \"shown.pem\", key = \"shown.key\" }\n";
        fixture.folder.write("forebay.toml", format!("[gateway]\n{table}[admin]\n{table}"));
        fixture
    }

    /// Replaces the pair, file after file, as tools do that renew certificates.
    pub(crate) fn show(&self, pair: &Pair) {
        self.folder.write("shown.pem", &pair.certificate);
        self.folder.write("shown.key", &pair.key);
    }

    pub(crate) fn start(&self) -> Server {
        Server::start_configured(&self.folder.data(), &self.configuration(), &self.folder.path("log"))
    }

    fn configuration(&self) -> PathBuf {
        self.folder.path("forebay.toml")
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path("log")).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        forebay().args(arguments).output().unwrap()
    }
}

pub(crate) fn ask(stream: &mut (impl Read + Write), request: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    stream.flush().unwrap();
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        text.push(byte[0]);
    }
    let head = String::from_utf8(text).unwrap();
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).unwrap();
    head + std::str::from_utf8(&body).unwrap()
}

const POST: &str = "POST /ingest/event HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n1";
const METRICS: &str = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn both_ports_speak_tls_and_nothing_else() {
    let fixture = TlsFixture::new();
    let server = fixture.start();
    let ask_at = |address, request: &str| ask(&mut fixture.pair.connect(address).unwrap(), request);
    assert!(ask_at(server.intake, POST).starts_with("HTTP/1.1 200 "));
    let metrics = ask_at(server.admin, METRICS);
    for line in ["forebay_tls_handshakes_total 1\n", "forebay_tls_failures_total 0\n"] {
        assert!(metrics.contains(line), "{metrics}");
    }
    for (address, request) in [(server.intake, POST), (server.admin, METRICS)] {
        let (status, body) = exchange(address, request);
        assert!(status == 400 && body.contains("this port speaks TLS"), "{status} {body}");
    }
    // Pages of the port itself may use it: they are of https now.
    let page = |origin: &str| {
        let host = server.admin;
        ask_at(host, &format!("GET /api/dead HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}{host}\r\n\r\n"))
    };
    assert!(page("https://").starts_with("HTTP/1.1 200 "));
    assert!(page("http://").starts_with("HTTP/1.1 403 "));
    // TLS 1.1, without the client's signature algorithms.
    let hello = [&[22, 3, 1, 0, 47, 1, 0, 0, 43, 3, 2][..], &[7; 32], &[0, 0, 4, 0xc0, 0x13, 0, 0x2f, 1, 0]].concat();
    for address in [server.intake, server.admin] {
        let mut socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(HANGS)).unwrap();
        socket.write_all(&hello).unwrap();
        let mut alert = Vec::new();
        socket.read_to_end(&mut alert).unwrap();
        assert_eq!((alert.first(), alert.get(5)), (Some(&21), Some(&2)), "a fatal alert: {alert:?}");
    }
    assert_eq!(server.stop("-TERM"), Some(0));
}

#[test]
fn new_certificate_is_used_without_dropping_connections() {
    let fixture = TlsFixture::new();
    let server = fixture.start();
    let (stop, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
    let renewed = Pair::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            // Each on one connection, which was opened under the first certificate.
            let mut stream = fixture.pair.connect(server.intake).unwrap();
            let (stop, sent) = (&stop, &sent);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    assert!(ask(&mut stream, POST).starts_with("HTTP/1.1 200 "));
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let grows = || {
            let before = sent.load(Ordering::Relaxed);
            assert!(wait_until(|| sent.load(Ordering::Relaxed) > before + 100), "the load has stopped");
        };
        grows();
        fixture.show(&renewed);
        for address in [server.intake, server.admin] {
            assert!(wait_until(|| renewed.connect(address).is_ok()), "{}", fixture.log());
            assert!(fixture.pair.connect(address).is_err());
        }
        grows();
        // An error changes nothing, and the log names it.
        let other = Pair::new();
        for (name, bytes, why) in [
            ("shown.key", other.key.as_str(), "the private key belongs to another certificate"),
            ("shown.key", "", "there is no private key in the file"),
            ("shown.pem", "-----BEGIN CERTIFICATE-----\n", "its certificate is damaged"),
        ] {
            fixture.folder.write(name, bytes);
            assert!(wait_until(|| fixture.log().matches(why).count() == 2), "{why}: {}", fixture.log());
            assert!(renewed.connect(server.intake).is_ok() && renewed.connect(server.admin).is_ok());
        }
        std::fs::remove_file(fixture.folder.path("shown.pem")).unwrap();
        assert!(wait_until(|| fixture.log().contains("shown.pem: No such file")), "{}", fixture.log());
        grows();
        fixture.show(&other);
        assert!(wait_until(|| other.connect(server.intake).is_ok()), "{}", fixture.log());
        grows();
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(server.stop("-TERM"), Some(0));
}

#[test]
fn invalid_certificate_files_fail_check_and_start() {
    let fixture = TlsFixture::new();
    let Pair { certificate, key } = &fixture.pair;
    std::fs::create_dir(fixture.folder.path("folder")).unwrap();
    for (name, bytes) in [
        ("good.pem", certificate.clone()),
        ("good.key", key.clone()),
        ("other.key", Pair::new().key),
        ("locked.key", key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY")),
        ("long.pem", "x".repeat((1 << 20) + 1)),
    ] {
        fixture.folder.write(name, bytes);
    }
    for (certificate, key, at, why) in [
        ("absent.pem", "good.key", ":2:15", "invalid value for `gateway.tls.certificate`: No such file"),
        ("folder", "good.key", ":2:15", "it is not a file"),
        ("/dev/zero", "good.key", ":2:15", "it is not a file"),
        ("long.pem", "good.key", ":2:15", "it is too large"),
        ("good.key", "good.key", ":2:15", "there is no certificate in the file"),
        ("good.pem", "good.pem", ":3:7", "invalid value for `gateway.tls.key`: there is no private key in the file"),
        ("good.pem", "locked.key", ":3:7", "its private key is encrypted"),
        ("good.pem", "other.key", ":3:7", "the private key belongs to another certificate"),
    ] {
        let table = format!("[gateway.tls]\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n");
        let file = fixture.folder.write("wrong.toml", table);
        for command in ["check", "serve"] {
            let data = fixture.folder.text("data");
            let output = fixture.run(&[command, "--config", &file, "--data", &data, "--listen", "127.0.0.1:0"]);
            let shown = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{shown}");
            assert!(shown.contains(&format!("wrong.toml{at}")) && shown.contains(why), "{why}: {shown}");
        }
    }
    let output = fixture.run(&["check", "--config", &fixture.folder.text("forebay.toml")]);
    let shown = text(&output.stdout);
    assert!(output.status.success() && shown.contains("listen  127.0.0.1:8080, TLS as "), "{shown}");
    // In variables paths are as the shell has them, and no file is needed.
    let mut command = forebay();
    command.arg("check").current_dir(fixture.folder.path("")).env_clear();
    command.env("FOREBAY_GATEWAY_TLS_CERTIFICATE", "good.pem").env("FOREBAY_GATEWAY_TLS_KEY", "good.key");
    let output = command.output().unwrap();
    assert!(text(&output.stdout).contains("TLS as good.pem"), "{output:?}");
}

#[test]
fn commands_trust_the_given_authority() {
    let fixture = TlsFixture::new();
    let server = fixture.start();
    let url = format!("https://localhost:{}", server.intake.port());
    let admin = format!("https://{}", server.admin);
    let lines = fixture.folder.write("lines.ndjson", "1\n2\n3\n");
    let ca = fixture.folder.text("shown.pem");
    let untrusted = fixture.folder.write("untrusted.pem", Pair::new().certificate);
    let commands = [
        &["load", &lines, "--url", &url][..],
        &["bench", "--url", &url, "--duration", "200ms", "--connections", "3", "--batch", "1000"],
        &["bench", "--url", &url, "--duration", "200ms", "--connections", "3", "--rate", "10"],
        &["dead", "list", "--admin", &admin],
    ];
    for arguments in commands {
        for trusts in [&["--ca", &untrusted][..], &[]] {
            let output = fixture.run(&[arguments, trusts].concat());
            let shown = text(&output.stderr);
            assert!(
                output.status.code() == Some(1) && shown.contains("name its authority with --ca")
                    || shown.contains("no list of authorities"),
                "{arguments:?} {shown}"
            );
        }
        let output = fixture.run(&[arguments, &["--ca", &ca]].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?} {}{}", text(&output.stdout), text(&output.stderr));
    }
    let wrong = fixture.folder.write("wrong.pem", "");
    for (ca, why) in [(wrong.as_str(), "there is no certificate in the file"), ("/absent", "can't read /absent")] {
        let output = fixture.run(&["load", &lines, "--url", &url, "--ca", ca]);
        assert!(output.status.code() == Some(1) && text(&output.stderr).contains(why), "{output:?}");
    }
    // The reverse: a command without TLS gets an error that says so.
    let output = fixture.run(&["dead", "list", "--admin", &server.admin.to_string()]);
    assert!(text(&output.stderr).contains("begin the URL with https://"), "{output:?}");
    let url = format!("http://{}", server.intake);
    let output = fixture.run(&["load", &lines, "--url", &url, "--state", &fixture.folder.text("other-state")]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("begin the URL with https://"), "{output:?}");
}

/// The reason that a server's certificate isn't accepted.
fn certificate_error(names: &[&str], from: i32, until: i32) -> String {
    let mut parameters =
        CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
    (parameters.not_before, parameters.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(until, 1, 1));
    let key = KeyPair::generate().unwrap();
    let pair = Pair { certificate: parameters.self_signed(&key).unwrap().pem(), key: key.serialize_pem() };
    let fixture = TlsFixture::new();
    fixture.show(&pair);
    let server = fixture.start();
    let (ca, admin) = (fixture.folder.text("shown.pem"), format!("https://localhost:{}", server.admin.port()));
    let output = fixture.run(&["route", "list", "--admin", &admin, "--ca", &ca]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let message = text(&output.stderr).to_owned();
    assert!(message.contains(&admin), "where: {message}");
    message
}

#[test]
fn certificate_errors_are_explained() {
    let message = certificate_error(&["localhost"], 2020, 2021);
    assert!(
        message.contains("its certificate has expired, ") && message.contains("renew it on the server"),
        "{message}"
    );
    let message = certificate_error(&["localhost"], 4000, 4001);
    assert!(message.contains("isn't valid yet: compare this machine's clock"), "{message}");
    let message = certificate_error(&["other.example"], 2020, 4000);
    assert!(
        message.contains("other.example") && message.contains("not for localhost: use a name of the certificate"),
        "{message}"
    );
}

#[test]
fn bench_without_tls_reports_a_tls_port() {
    let fixture = TlsFixture::new();
    let server = fixture.start();
    let output = fixture.run(&["bench", "--url", &server.url(), "--duration", "200ms", "--connections", "1"]);
    let shown = text(&output.stdout);
    assert!(output.status.code() == Some(3) && shown.contains("begin the URL with https://"), "{shown}");
}

#[test]
fn port_without_tls_differs_from_unreachable_server() {
    let fixture = TlsFixture::new();
    let server = Server::start(&fixture.folder.data());
    let ca = fixture.folder.text("shown.pem");
    let lines = fixture.folder.write("lines.ndjson", "1\n");
    let (url, admin) = (format!("https://{}", server.intake), format!("https://{}", server.admin));
    for arguments in [
        &["load", &lines, "--url", &url][..],
        &["bench", "--url", &url, "--duration", "200ms"],
        &["dead", "list", "--admin", &admin],
    ] {
        let output = fixture.run(&[arguments, &["--ca", &ca]].concat());
        let shown = text(&output.stderr);
        assert!(output.status.code() == Some(1) && shown.contains("TLS on this port: write http://"), "{shown}");
    }
}

#[test]
fn thousand_idle_connections_take_little() {
    let fixture = TlsFixture::new();
    let server = fixture.start();
    let before = server.memory("VmRSS");
    let mut idle: Vec<ClientStream> = (0..1000).map(|_| fixture.pair.connect(server.intake).unwrap()).collect();
    assert!(idle.iter_mut().all(|stream| ask(stream, POST).starts_with("HTTP/1.1 200 ")));
    let each = (server.memory("VmRSS").saturating_sub(before)) / idle.len();
    assert!(each < 32 * 1024, "{each} bytes for each");
    println!("{each} bytes for each idle connection with TLS");
    drop(idle);
    let mut stream = fixture.pair.connect(server.admin).unwrap();
    let mut metrics = String::new();
    let closed = wait_until(|| {
        metrics = ask(&mut stream, METRICS);
        metrics.contains("forebay_http_connections 0\n")
    });
    assert!(closed, "{metrics}");
}
