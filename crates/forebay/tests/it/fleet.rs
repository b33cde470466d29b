//! The processes of a fleet through the admin port of one of them.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::fixture::Fixture;
use crate::support::{Folder, exchange, forebay, wait_until};
use crate::two_services::{BackEnd, gateway};

const CONFIG: &str = "[types.access]\nroutes = [\"local\"]\n[sinks.local]\nkind = \"sqlite\"\n";

fn request(admin: SocketAddr, method: &str, path: &str, token: Option<&str>) -> (u16, Value) {
    let token = token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{token}Connection: close\r\nContent-Length: 0\r\n\r\n");
    let (status, body) = exchange(admin, &head);
    (status, serde_json::from_str(&body).unwrap_or_default())
}

fn get(admin: SocketAddr, path: &str) -> (u16, Value) {
    request(admin, "GET", path, None)
}

fn token(folder: &Folder, name: &str, scope: &str) -> String {
    let created =
        forebay().args(["token", "new", name, "--scope", scope, "--data"]).arg(folder.data()).output().unwrap();
    assert!(created.status.success());
    String::from_utf8(created.stdout).unwrap().trim().to_owned()
}

/// The peer at an address, in the list of `admin`.
fn peer(admin: SocketAddr, name: &str) -> Value {
    let (status, list) = get(admin, "/api/peers");
    assert_eq!((status, &list["peers"][0]["this"]), (200, &Value::Bool(true)), "{list}");
    let peers = list["peers"].as_array().unwrap();
    peers.iter().find(|peer| peer["name"] == name).unwrap_or_else(|| panic!("no {name} in {list}")).clone()
}

#[test]
fn fleet_is_shown_through_one_port() {
    let folder = Folder::new();
    let writer = BackEnd::start_on(&folder.path("writer"), "127.0.0.1:0", &[]);
    let other = gateway(&folder.data(), &["--writer", &writer.url()], &folder.path("log"));
    let peers = format!(
        "{CONFIG}[console.peers]\nservers = [\"http://{}\"]\ndns = \"http://localhost:{}\"\n",
        other.admin,
        writer.admin.port()
    );
    let fixture = Fixture::new(&peers);
    let server = fixture.server();
    let (of_gateway, of_writer) = (other.admin.to_string(), format!("127.0.0.1:{}", writer.admin.port()));
    assert!(wait_until(|| peer(server.admin, &of_writer)["error"].is_null()));
    let shown = peer(server.admin, &of_gateway);
    assert_eq!((&shown["role"], &shown["error"]), (&"gateway".into(), &Value::Null), "{shown}");
    assert_eq!(shown["overview"]["sinks"][0]["sink"], "local");
    assert!(shown["seen"].is_string());
    assert_eq!(peer(server.admin, &of_writer)["role"], "writer");

    let (status, overview) = get(server.admin, &format!("/api/peers/{of_writer}/api/overview"));
    assert_eq!((status, &overview["role"]), (200, &"writer".into()));
    let (status, problem) = get(server.admin, &format!("/api/peers/{of_gateway}/api/dead?sinks=a"));
    assert_eq!((status, &problem["code"]), (400, &"query".into()), "the peer's answer is passed on");
    for (path, code) in [("127.0.0.1:1/api/status", "peer"), ("x/metrics", "path")] {
        let (status, problem) = get(server.admin, &format!("/api/peers/{path}"));
        assert_eq!((status, &problem["code"]), (404, &code.into()), "{path}");
    }

    drop(writer);
    assert!(wait_until(|| peer(server.admin, &of_writer)["error"].is_string()), "its end is seen");
    let gone = peer(server.admin, &of_writer);
    assert_eq!((&gone["role"], gone["seen"].is_string()), (&"writer".into(), true), "its last answer stays");
    let (status, problem) = get(server.admin, &format!("/api/peers/{of_writer}/api/overview"));
    assert_eq!((status, &problem["code"]), (502, &"peer".into()));
}

#[test]
fn peer_gets_no_more_than_the_viewer_may() {
    let other = Fixture::new(CONFIG);
    let peer = other.server();
    let fixture = Fixture::new(&format!("{CONFIG}[console.peers]\nservers = [\"http://{}\"]\n", peer.admin));
    let [admin, read] = [("anna", "admin"), ("bob", "read")].map(|(name, scope)| token(&fixture.folder, name, scope));
    let server = fixture.server();
    assert!(wait_until(|| get(server.admin, "/api/status").0 == 401), "the server uses the tokens");
    let reload = format!("/api/peers/{}/api/reload", peer.admin);
    assert_eq!(request(server.admin, "POST", &reload, Some(&read)).0, 403);
    assert_eq!(request(server.admin, "POST", &reload, None).0, 401);
    let (status, reloaded) = request(server.admin, "POST", &reload, Some(&admin));
    assert_eq!((status, &reloaded["applied"]), (200, &Value::Bool(true)), "{reloaded}");
}

/// A peer that knows two paths. Its answer to `/api/whole` is complete. To `/api/half` it sends a half, and closes the
/// connection after a message to `close`.
fn peer_with_incomplete_answer(close: mpsc::Receiver<()>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n5\r\n{{\"a\":\r\n");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let head: Vec<String> =
                BufReader::new(&stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            let path = head.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
            let answer = match path {
                "/api/whole" => format!("{chunked}2\r\n1}}\r\n0\r\n\r\n"),
                "/api/half" => chunked.clone(),
                _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
            };
            // A client that has gone gets none.
            let _ = (&stream).write_all(answer.as_bytes());
            if path == "/api/half" {
                let _ = close.recv();
            }
        }
    });
    address
}

#[test]
fn incomplete_peer_answer_is_passed_without_end() {
    let (closes, close) = mpsc::channel();
    let peer = peer_with_incomplete_answer(close);
    let fixture = Fixture::new(&format!("{CONFIG}[console.peers]\nservers = [\"http://{peer}\"]\n"));
    let admin = fixture.server().admin;
    let ask = |path: &str| {
        let mut client = TcpStream::connect(admin).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let head = format!("GET /api/peers/{peer}{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        client.write_all(head.as_bytes()).unwrap();
        client
    };
    let mut whole = String::new();
    ask("/api/whole").read_to_string(&mut whole).unwrap();
    assert!(whole.starts_with("HTTP/1.1 200") && whole.ends_with("\r\n0\r\n\r\n"), "{whole}");

    let (mut client, mut half, mut part) = (ask("/api/half"), Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&half).contains("{\"a\":\r\n") {
        let read = client.read(&mut part).unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&half));
        half.extend_from_slice(&part[..read]);
    }
    closes.send(()).unwrap();
    if let Err(error) = client.read_to_end(&mut half) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    let half = String::from_utf8(half).unwrap();
    assert!(half.starts_with("HTTP/1.1 200") && !half.ends_with("0\r\n\r\n"), "{half}");
}
