//! `forebay token`, and a server that lets in the right clients.

use std::cell::RefCell;
use std::net::SocketAddr;

use crate::support::{Folder, Server, exchange, forebay, wait_until};

/// The commands of one data directory, and everything that they have printed but new tokens.
struct Fixture {
    folder: Folder,
    printed: RefCell<String>,
}

impl Fixture {
    fn new() -> Self {
        Self { folder: Folder::new(), printed: RefCell::default() }
    }

    fn run(&self, token: &str, arguments: &[&str]) -> (i32, String) {
        let (code, output, error) = self.run_apart(token, arguments);
        let text = output + &error;
        self.printed.borrow_mut().push_str(&text);
        (code, text)
    }

    fn run_apart(&self, token: &str, arguments: &[&str]) -> (i32, String, String) {
        let mut command = forebay();
        command.args(arguments).env("FOREBAY_TOKEN", token);
        // `load` and `bench` have no data directory.
        if ["token", "dead", "check"].contains(&arguments[0]) {
            command.arg("--data").arg(self.folder.data());
        }
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    fn new_token(&self, arguments: &[&str]) -> String {
        let (code, output, error) = self.run_apart("", &[&["token", "new"], arguments].concat());
        assert_eq!(code, 0, "{error}");
        self.printed.borrow_mut().push_str(&error);
        let token = output.trim_end().to_owned();
        assert!(token.starts_with("fb_") && token.len() == 55, "{token}");
        token
    }

    fn ask(&self, address: SocketAddr, request: &str, token: &str) -> u16 {
        let shows = if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
        let text =
            format!("{request} HTTP/1.1\r\nHost: localhost\r\n{shows}Connection: close\r\nContent-Length: 1\r\n\r\n1");
        let (status, body) = exchange(address, &text);
        self.printed.borrow_mut().push_str(&body);
        status
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path("log")).unwrap()
    }

    fn start(&self) -> Server {
        Server::start_reachable(&self.folder.data(), &self.folder.path("log"))
    }
}

#[test]
fn token_file_is_created_once_and_reused() {
    let fixture = Fixture::new();
    let secret = fixture.folder.text("shop.secret");
    let new = ["token", "new", "shop", "--scope", "ingest", "--secret", &secret];
    let (code, output, error) = fixture.run_apart("", &new);
    assert!(code == 0 && output.is_empty(), "{output} {error}");
    let made = std::fs::read_to_string(&secret).unwrap();
    assert!(made.starts_with("fb_") && made.len() == 56, "{made}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&secret).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fixture.run("", &new).0, 0, "a container runs it at each start");
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), made);
    let (code, text) = fixture.run("", &["token", "new", "shop", "--scope", "admin", "--secret", &secret]);
    assert!(code == 1 && text.contains("the token shop already exists"), "{text}");
    // The token file may be another one, and the secret may exist already.
    let other = fixture.folder.text("writers.tokens");
    let (code, text) =
        fixture.run("", &["token", "new", "gateways", "--scope", "deliver", "--secret", &secret, "--file", &other]);
    assert_eq!(code, 0, "{text}");
    let server = {
        fixture.new_token(&["operator", "--scope", "admin"]);
        fixture.start()
    };
    assert_eq!(fixture.ask(server.intake, "POST /ingest/event", made.trim_end()), 200);
    std::fs::write(&secret, "fb_something else").unwrap();
    let (code, text) = fixture.run("", &new);
    assert!(code == 1 && text.contains("doesn't contain a token") && !text.contains("something else"), "{text}");
}

#[test]
fn one_of_concurrent_commands_creates_the_token() {
    let fixture = Fixture::new();
    let secret = fixture.folder.text("shop.secret");
    let new = ["token", "new", "shop", "--scope", "ingest", "--secret", &secret];
    let codes = std::thread::scope(|scope| {
        let run = || {
            let mut command = forebay();
            command.args(new).arg("--data").arg(fixture.folder.data());
            command.output().unwrap().status.code()
        };
        let commands: Vec<_> = (0..8).map(|_| scope.spawn(run)).collect();
        commands.into_iter().map(|command| command.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(codes, [Some(0); 8]);
    assert_eq!(fixture.run("", &new).0, 0, "the file has the token that is known");
    std::fs::remove_file(&secret).unwrap();
    let (code, text) = fixture.run("", &new);
    assert!(code == 1 && text.contains("shop.secret") && !std::path::Path::new(&secret).exists(), "{text}");
}

#[test]
fn expired_token_in_a_file_is_not_reused() {
    let fixture = Fixture::new();
    let secret = fixture.folder.text("shop.secret");
    let new = ["token", "new", "shop", "--scope", "ingest", "--expires", "1s", "--secret", &secret];
    assert_eq!(fixture.run("", &new).0, 0);
    assert!(wait_until(|| fixture.run("", &["token", "list"]).1.contains("  expired 20")));
    let (code, text) = fixture.run("", &new);
    assert!(code == 1 && text.contains("revoke it first"), "{text}");
}

#[test]
fn tokens_are_created_listed_and_revoked() {
    let fixture = Fixture::new();
    let (code, text) = fixture.run("", &["token", "list"]);
    assert!(code == 0 && text.contains("there are no tokens"), "{text}");
    assert!(fixture.run("", &["token", "revoke", "shop"]).1.contains("there is no token shop"));
    assert!(!fixture.folder.data().exists(), "to look makes nothing");
    let first = fixture.new_token(&["shop", "--scope", "ingest,read", "--expires", "90d"]);
    let second = fixture.new_token(&["other", "--scope", "admin", "--source", "ops"]);
    assert_ne!(first, second);
    let (code, text) = fixture.run("", &["token", "new", "shop", "--scope", "ingest"]);
    assert!(code == 1 && text.contains("the token shop already exists"), "{text}");
    let (_, text) = fixture.run("", &["token", "list"]);
    let lines: Vec<&str> = text.lines().collect();
    let words = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>();
    assert_eq!(words(0), ["NAME", "SCOPES", "SOURCE", "EXPIRES", "CREATED"]);
    assert!(words(1)[..4] == ["other", "admin", "ops", "never"] && words(1)[4].starts_with("20"), "{text}");
    assert!(words(2)[..3] == ["shop", "ingest,read", "shop"] && words(2)[3].starts_with("20"), "{text}");
    let (_, json) = fixture.run("", &["token", "list", "--output", "json"]);
    assert!(json.starts_with("{\"name\":\"other\",\"scopes\":[\"admin\"],\"source\":\"ops\""), "{json}");
    let (code, text) = fixture.run("", &["token", "revoke", "shop"]);
    assert!(code == 0 && text.matches("is left: requests that need one are rejected").count() == 2, "{text}");
    assert_eq!(fixture.run("", &["token", "list"]).1.lines().count(), 2);
    for wrong in [["", "ingest"], ["a b", "ingest"], ["x", "write"], ["x", ""]] {
        assert_eq!(fixture.run("", &["token", "new", wrong[0], "--scope", wrong[1]]).0, 2, "{wrong:?}");
    }
}

#[test]
fn reachable_server_needs_tokens_and_follows_them() {
    let fixture = Fixture::new();
    let reachable = ["check", "--listen", "0.0.0.0:0", "--admin", "0.0.0.0:0"];
    let (code, text) = fixture.run("", &reachable);
    assert!(code == 2 && text.matches("forebay token new NAME --scope").count() == 2, "{text}");
    let admin = fixture.new_token(&["ops", "--scope", "admin"]);
    let reader = fixture.new_token(&["prometheus", "--scope", "read"]);
    let poster = fixture.new_token(&["shop", "--scope", "ingest", "--source", "web"]);
    assert_eq!(fixture.run("", &reachable).0, 0);

    let server = fixture.start();
    let post = |token: &str| fixture.ask(server.intake, "POST /ingest/event", token);
    assert_eq!([post(""), post("fb_wrong"), post(&reader), post(&poster)], [401, 401, 403, 200]);
    let look = |path: &str| ["", &poster, &reader, &admin].map(|token| fixture.ask(server.admin, path, token));
    assert_eq!(look("GET /healthz"), [200, 200, 200, 200]);
    assert_eq!(look("GET /metrics"), [401, 403, 200, 200]);
    for path in ["GET /api/dead", "GET /api/status", "GET /api/routes", "GET /api/types", "GET /api/health"] {
        assert_eq!(look(path), [401, 403, 200, 200], "{path}");
    }
    assert_eq!(look("POST /api/dead/replay"), [401, 403, 403, 200]);

    let read = |path: &str| ["", &poster, &reader, &admin].map(|token| fixture.ask(server.intake, path, token));
    assert_eq!(read("GET /objects/archive/x"), [401, 403, 404, 403]);

    let later = fixture.new_token(&["later", "--scope", "ingest"]);
    assert!(wait_until(|| post(&later) == 200), "a new token is accepted");
    let sound = std::fs::read(fixture.folder.data().join("tokens.json")).unwrap();
    std::fs::write(fixture.folder.data().join("tokens.json"), &sound[..sound.len() - 9]).unwrap();
    assert!(wait_until(|| fixture.log().contains("is damaged")), "{}", fixture.log());
    assert_eq!([post(&later), post("")], [200, 401]);
    std::fs::write(fixture.folder.data().join("tokens.json"), sound).unwrap();
    for name in ["shop", "later", "ops", "prometheus"] {
        assert_eq!(fixture.run("", &["token", "revoke", name]).0, 0);
    }
    assert!(wait_until(|| post(&later) == 401), "a revoked token is rejected");
    assert_eq!([post(""), post(&poster)], [401, 401], "and no client is let in after the last is revoked");
    assert_eq!(server.stop("-TERM"), Some(0));

    let store = rusqlite::Connection::open(fixture.folder.data().join("events.db")).unwrap();
    let mut statement = store.prepare("select distinct source from events order by source").unwrap();
    let sources: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(sources, ["later", "web"]);
}

#[test]
fn commands_send_their_token_only_to_the_server() {
    let fixture = Fixture::new();
    let token = fixture.new_token(&["all", "--scope", "ingest,read,admin"]);
    let weak = fixture.new_token(&["weak", "--scope", "read"]);
    let server = fixture.start();
    let file = fixture.folder.write("lines.ndjson", "{\"n\":1}\n{\"n\":2}\n");
    let (url, admin) = (server.url(), server.admin.to_string());
    let load = ["load", "--url", &url, &file];
    let bench = ["bench", "--url", &url, "--duration", "50ms", "--connections", "1"];
    let dead = ["dead", "list", "--admin", &admin];
    for (arguments, without, weakly) in [(&load[..], 1, 1), (&bench[..], 3, 3), (&dead[..], 1, 0)] {
        assert_eq!(fixture.run("", arguments).0, without, "{arguments:?}");
        assert_eq!(fixture.run(&weak, arguments).0, weakly, "{arguments:?}");
        let (code, text) = fixture.run(&format!("{token} "), arguments);
        assert!(code == 1 && text.contains("visible ASCII"), "{text}");
        let (code, text) = fixture.run(&token, arguments);
        assert_eq!(code, 0, "{text}");
        let with_flag = [arguments, &["--token", &token]].concat();
        assert_eq!(fixture.run("", &with_flag).0, 0, "{arguments:?}");
    }
    fixture.run(&token, &["check"]);
    fixture.run(&token, &["token", "list"]);
    fixture.run(&token, &["load", "--help"]);
    fixture.ask(server.admin, "GET /metrics", &token);
    fixture.ask(server.intake, "POST /ingest/event", &format!("{token}x"));
    fixture.ask(server.intake, "POST /ingest/event", &weak);
    assert_eq!(server.stop("-TERM"), Some(0));
    let kept = std::fs::read_to_string(fixture.folder.data().join("tokens.json")).unwrap();
    let said = fixture.printed.borrow().clone() + &fixture.log() + &kept;
    assert!(said.contains("forebay_events_accepted_total"), "metrics were looked at");
    for secret in [&token, &weak] {
        // A part would be too much already.
        assert!(!said.contains(&secret[3..23]), "{said}");
    }
}

#[test]
fn tokens_are_needed_on_loopback_once_any_exists() {
    let fixture = Fixture::new();
    let server = Server::start(&fixture.folder.data());
    let post = |token: &str| fixture.ask(server.intake, "POST /ingest/event", token);
    assert_eq!([post(""), post("fb_any")], [200, 200]);
    let poster = fixture.new_token(&["shop", "--scope", "ingest"]);
    assert!(wait_until(|| post("") == 401), "a token is needed");
    assert_eq!(post(&poster), 200);
    let metrics = |token: &str| fixture.ask(server.admin, "GET /metrics", token);
    assert_eq!(metrics(""), 200, "no token is for the admin port");
    let admin = fixture.new_token(&["ops", "--scope", "admin"]);
    assert!(wait_until(|| metrics("") == 401), "one is");
    assert_eq!([metrics(&admin), metrics(&poster)], [200, 403]);

    assert_eq!(fixture.run("", &["token", "revoke", "ops"]).0, 0);
    assert!(wait_until(|| metrics(&admin) == 401), "a revoked token is rejected");
    let closed = || {
        ["GET /metrics", "GET /api/routes", "POST /api/dead/drop?all=true"].map(|it| fixture.ask(server.admin, it, ""))
    };
    assert_eq!(closed(), [401; 3], "no client is let in after the last token is revoked");
    // If the file is removed and created again, the server still remembers.
    std::fs::remove_file(fixture.folder.data().join("tokens.json")).unwrap();
    let other = fixture.new_token(&["other", "--scope", "ingest"]);
    assert!(wait_until(|| post(&other) == 200), "the new file is read");
    assert_eq!(closed(), [401; 3]);
    fixture.new_token(&["last", "--scope", "admin"]);
    assert_eq!(fixture.run("", &["token", "revoke", "last"]).0, 0);
    assert_eq!(server.stop("-TERM"), Some(0));

    let server = Server::start(&fixture.folder.data());
    assert_eq!(fixture.ask(server.admin, "GET /metrics", ""), 401, "a restart opens nothing");
    assert_eq!(fixture.ask(server.admin, "GET /healthz", ""), 200);
}
