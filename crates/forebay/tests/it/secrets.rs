//! No secret is shown: neither logs nor metrics nor error answers have a token or a key in them.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::{HANGS, Server, forebay, wait_until};
use crate::tls::{Pair, TlsFixture, ask};

/// All that anybody could read.
struct Shown(String);

impl Shown {
    fn run(&mut self, token: &str, arguments: &[&str]) {
        let output = forebay().args(arguments).env("FOREBAY_TOKEN", token).output().unwrap();
        assert_ne!(output.status.code(), Some(0), "{arguments:?} is rejected");
        self.add(&output.stdout);
        self.add(&output.stderr);
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0 += &String::from_utf8_lossy(bytes);
        self.0.push('\n');
    }
}

fn new_token(fixture: &TlsFixture, name: &str, scope: &str) -> String {
    let data = fixture.folder.text("data");
    let output = forebay().args(["token", "new", name, "--scope", scope, "--data", &data]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// Waits until both ports have logged it once more.
fn log_grows(fixture: &TlsFixture, what: &str, act: impl FnOnce()) {
    let count = || fixture.log().matches(what).count();
    let before = count();
    act();
    assert!(wait_until(|| count() >= before + 2), "no more {what} in {}", fixture.log());
}

/// The lines of a key, and the rest of them when each is cut: enough to be recognised by.
fn pieces(key: &str) -> Vec<String> {
    let lines = key.lines().filter(|line| !line.starts_with('-'));
    lines
        .flat_map(|line| line.as_bytes().chunks_exact(12).map(|piece| String::from_utf8(piece.to_vec()).unwrap()))
        .collect()
}

/// The secrets.
struct Secrets {
    ingest: String,
    admin: String,
    revoked: String,
    /// A pair that isn't the server's.
    other: Pair,
}

impl Secrets {
    fn new(fixture: &TlsFixture) -> Self {
        let [ingest, admin] = [new_token(fixture, "shop", "ingest"), new_token(fixture, "ops", "admin")];
        let revoked = new_token(fixture, "gone", "ingest");
        let data = fixture.folder.text("data");
        forebay().args(["token", "revoke", "gone", "--data", &data]).output().unwrap();
        Self { ingest, admin, revoked, other: Pair::new() }
    }

    /// Parts of each by which it would be recognised.
    fn parts(&self, fixture: &TlsFixture) -> Vec<String> {
        let tokens = [&self.ingest, &self.admin, &self.revoked].map(|token| &token["fb_".len()..]);
        let of_tokens = tokens.iter().flat_map(|token| [token[..16].to_owned(), token[20..36].to_owned()]);
        let keys = [&self.other.key, &fixture.pair.key].into_iter().flat_map(|key| pieces(key));
        of_tokens.chain(keys).collect()
    }
}

#[test]
fn no_refusal_shows_a_token_or_a_key() {
    let fixture = TlsFixture::new();
    let secrets = Secrets::new(&fixture);
    let server = fixture.start();
    let mut shown = Shown(String::new());
    requests(&fixture, &server, &secrets, &mut shown);
    assert!(shown.0.len() > 10_000 && shown.0.contains(" 401 ") && shown.0.contains(" 400 "), "there were refusals");
    commands(&fixture, &server, &secrets, &mut shown);
    wrong_files(&fixture, &secrets, &mut shown);

    let metrics =
        format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n", secrets.admin);
    let metrics = ask(&mut fixture.pair.connect(server.admin).unwrap(), &metrics);
    assert!(metrics.contains("forebay_refusals_total{code=\"unauthorized\"} "), "{metrics}");
    shown.add(metrics.as_bytes());
    assert_eq!(server.stop("-TERM"), Some(0));
    shown.add(fixture.log().as_bytes());
    for secret in secrets.parts(&fixture) {
        if let Some(at) = shown.0.find(&secret) {
            let around = shown.0[..at].lines().next_back().unwrap_or_default();
            panic!("{secret} is shown after {around}");
        }
    }
}

/// Requests with good tokens and with bad ones, in the right place and in wrong ones, with TLS and without.
fn requests(fixture: &TlsFixture, server: &Server, secrets: &Secrets, shown: &mut Shown) {
    let Secrets { ingest, admin, revoked, .. } = secrets;
    let tokens = [ingest, admin, revoked, &ingest[..50], &format!("{ingest} {admin}"), &format!("{admin}\u{e9}")];
    let fields = ["Authorization: Bearer", "Authorization: Basic", "Cookie:", "Bad Name: Bearer"];
    for token in tokens {
        for (address, path) in
            [(server.intake, "/ingest/event"), (server.admin, "/api/dead"), (server.admin, "/metrics")]
        {
            for field in fields {
                let body = format!("{{\"token\": \"{token}\"");
                let length = body.len();
                let request = format!(
                    "POST {path}?token={token} HTTP/1.1\r\nHost: localhost\r\n{field} {token}\r\nConnection: close\r\n\
                     Content-Length: {length}\r\n\r\n{body}"
                );
                shown.add(ask(&mut fixture.pair.connect(address).unwrap(), &request).as_bytes());
                let mut socket = TcpStream::connect(address).unwrap();
                socket.set_read_timeout(Some(HANGS)).unwrap();
                // It may be closed before it has read all of it.
                let _ = socket.write_all(request.as_bytes());
                let mut answer = Vec::new();
                let _ = socket.read_to_end(&mut answer);
                shown.add(&answer);
            }
        }
    }
}

/// Commands with tokens that aren't valid there, or that trust another authority.
fn commands(fixture: &TlsFixture, server: &Server, secrets: &Secrets, shown: &mut Shown) {
    let Secrets { ingest, admin, revoked, other } = secrets;
    let [url, at] = [format!("https://{}", server.intake), format!("https://{}", server.admin)];
    let lines = fixture.folder.write("lines.ndjson", "1\n");
    let ca = fixture.folder.text("shown.pem");
    let untrusted = fixture.folder.write("untrusted.pem", &other.certificate);
    for token in [admin, revoked, &format!("{ingest} x")] {
        shown.run(token, &["load", &lines, "--url", &url, "--ca", &ca]);
        shown.run(token, &["load", &lines, "--url", &url, "--ca", &untrusted]);
        shown.run(token, &["bench", "--duration", "100ms", "--url", &url, "--ca", &untrusted]);
    }
    for token in [ingest, revoked] {
        shown.run(token, &["dead", "list", "--admin", &at, "--ca", &ca]);
        shown.run(token, &["dead", "list", "--admin", &at, "--ca", &untrusted]);
        shown.run("", &["dead", "list", "--token", token, "--admin", &at, "--ca", &ca]);
    }
}

/// Keys in every wrong place and state, for a running server and for one that would start; and a file of tokens with one
/// in it that isn't hashed.
fn wrong_files(fixture: &TlsFixture, secrets: &Secrets, shown: &mut Shown) {
    let key = &secrets.other.key;
    let damaged = key.replacen('\n', "\n-----BEGIN ", 2);
    let cut = &key[..key.len() / 2];
    let wrong = [key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"), damaged, cut.to_owned(), key.clone()];
    let config = fixture.folder.text("forebay.toml");
    let places = wrong.iter().map(|wrong| ("shown.key", wrong)).chain([("shown.pem", &wrong[1]), ("shown.pem", key)]);
    for (name, wrong) in places {
        // Both ports use the valid pair again, and then both have detected the error.
        log_grows(fixture, "is in use now", || fixture.show(&fixture.pair));
        log_grows(fixture, "the previous certificate stays in use", || {
            fixture.folder.write(name, wrong);
        });
        shown.run("", &["check", "--config", &config]);
        shown.run("", &["serve", "--config", &config, "--data", &fixture.folder.text("elsewhere")]);
    }
    let tokens = format!("{{\"tokens\": [{{\"name\": \"{}\", \"sha256\": 1}}]}}", secrets.ingest);
    fs::write(fixture.folder.path("data/tokens.json"), tokens).unwrap();
    assert!(wait_until(|| fixture.log().contains("tokens.json is damaged")), "{}", fixture.log());
}
