//! `forebay load` and lines that the server refuses though nothing is wrong with them: for now, or for the sake of others.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::load::{counts, finish, load};
use crate::support::{Folder, Running, Server, wait_until};

const TWO_STORES: &str = r#"
[gateway]
shards = 1
type_pointer = "/t"
[types.a]
routes = ["one"]
[types.b]
routes = ["two"]
[sinks.one]
kind = "sqlite"
path = "one.db"
max_backlog = "1MiB"
[sinks.two]
kind = "sqlite"
path = "two.db"
"#;

/// An event with the id `X` was posted earlier. So a line with its id is rejected, and the lines that have its `v` with it.
const DEDUPE: &str = r#"
[gateway]
shards = 1
[types.e]
routes = ["local"]
id = "/id"
transform = [{ dedupe = "/v", window = "1h", when = "v != null" }]
[sinks.local]
kind = "sqlite"
path = "events.db"
"#;

fn serve(folder: &Folder, configuration: &str) -> Server {
    folder.write("forebay.toml", configuration);
    Server::start_configured(&folder.data(), &folder.path("forebay.toml"), &folder.path("log"))
}

fn stored(folder: &Folder, store: &str) -> Vec<Value> {
    let connection = rusqlite::Connection::open(folder.data().join(store)).unwrap();
    let mut statement = connection.prepare("select payload from events where payload like '{%' order by id").unwrap();
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    rows.map(|row| serde_json::from_str(&row.unwrap()).unwrap()).collect()
}

fn state(folder: &Folder) -> Value {
    serde_json::from_slice(&fs::read(folder.path("lines.forebay-load")).unwrap()).unwrap()
}

#[test]
fn lines_over_the_backlog_limit_are_retried() {
    let folder = Folder::new();
    let server = serve(&folder, TWO_STORES);
    server.post("/ingest/event/a", "0");
    server.wait_delivered();
    let mut store = rusqlite::Connection::open(folder.data().join("one.db")).unwrap();
    let held = store.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let large = format!("\"{}\"\n", "x".repeat(1 << 19)).repeat(3);
    assert_eq!(server.post("/ingest/batch/a", &large).0, 200);
    assert!(wait_until(|| server.post("/ingest/event/a", "0").0 == 503), "its backlog is never full");

    let lines: String = (0..10).map(|n| format!("{{\"t\":\"{}\",\"n\":{n}}}\n", ["a", "b"][n % 2])).collect();
    let file = folder.write("lines", format!("{lines}no\n"));
    let mut loader = Running(load(&[&file, "--url", &server.url()]).spawn().unwrap());
    let mut errors = BufReader::new(loader.0.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert!(line.contains("5 lines of a batch rejected for now (backlog_full: "), "{line}");
    drop(held);
    assert_eq!(loader.0.wait().unwrap().code(), Some(3), "one line is no JSON");
    let mut text = String::new();
    loader.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let named = ["accepted", "duplicates", "rejected"].map(|name| counts(&text, name));
    assert_eq!(named, [10, 0, 1], "{text}");
    server.wait_delivered();
    let expected =
        |kind: &str, first: usize| -> Vec<_> { (first..10).step_by(2).map(|n| json!({ "t": kind, "n": n })).collect() };
    assert_eq!((stored(&folder, "one.db"), stored(&folder, "two.db")), (expected("a", 0), expected("b", 1)));
}

#[test]
fn dependent_lines_are_sent_alone() {
    let folder = Folder::new();
    let server = serve(&folder, DEDUPE);
    assert_eq!(server.post("/ingest/event/e", "{\"id\":\"X\"}").0, 200);
    // So many invalid lines that the list of rejections is full of them.
    let bad = "no\n".repeat(1_005);
    let file = folder.write("lines", format!("{bad}{{\"id\":\"X\",\"v\":7}}\n{{\"v\":7}}\n{{\"id\":\"C\",\"v\":8}}\n"));
    let url = server.url();
    let arguments = [&*file, "--url", &url, "--type", "e"];
    let (code, text) = finish(load(&arguments));
    let named = ["accepted", "rejected"].map(|name| counts(&text, name));
    assert_eq!((code, named), (3, [2, 1_006]), "{text}");
    server.wait_delivered();
    let sorted = || {
        let mut all = stored(&folder, "events.db");
        all.sort_by_key(ToString::to_string);
        all
    };
    let expected = [json!({ "id": "C", "v": 8 }), json!({ "id": "X" }), json!({ "v": 7 })];
    assert_eq!(sorted(), expected);

    // Killed before it got the result of the line that was sent alone: it resumes with that line, and counts the lines rejected before.
    let mut killed = state(&folder);
    assert_eq!(killed["inputs"][&file]["split"], Value::Null, "it is answered");
    let place = json!({ "offset": 0, "lines": 0, "tail_bytes": 0, "tail_sum": 0, "is_end": false });
    killed["inputs"][&file]["place"] = place;
    killed["inputs"][&file]["split"] = json!([{ "offset": 0, "alone": [1_007], "has_more": false, "refused": 1_006 }]);
    folder.write("lines.forebay-load", killed.to_string());
    let (code, text) = finish(load(&arguments));
    assert_eq!((code, counts(&text, "sent"), counts(&text, "rejected")), (3, 1, 0), "{text}");
    assert!(text.contains("1006 lines rejected and reported in earlier runs"), "{text}");
    server.wait_delivered();
    assert_eq!(sorted(), expected);
}

#[test]
fn unlisted_dependent_lines_are_sent_too() {
    let folder = Folder::new();
    let server = serve(&folder, DEDUPE);
    assert_eq!(server.post("/ingest/event/e", "{\"id\":\"X\"}").0, 200);
    // The last line isn't listed at first. It and the first one are all that isn't left out in the end.
    let leaning: String = (1..=1_100).map(|n| format!("{{\"v\":{},\"n\":{n}}}\n", u8::from(n < 1_100))).collect();
    let file = folder.write("lines", format!("{{\"id\":\"X\",\"v\":0}}\n{{\"id\":\"X\",\"v\":1}}\n{leaning}"));
    let (code, text) = finish(load(&[&file, "--url", &server.url(), "--type", "e"]));
    assert_eq!((code, counts(&text, "rejected")), (3, 2), "{text}");
    server.wait_delivered();
    let found = stored(&folder, "events.db");
    let expected = [json!({ "id": "X" }), json!({ "v": 1, "n": 1 }), json!({ "v": 0, "n": 1_100 })];
    assert!(expected.iter().all(|event| found.contains(event)) && found.len() == 3, "{found:?}");
}

/// A request's key and body.
fn take_request(stream: &mut BufReader<TcpStream>) -> Option<(String, String)> {
    let (mut key, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let field = line.trim_end().split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value));
        match field.as_ref().map(|(name, value)| (name.as_str(), *value)) {
            Some(("idempotency-key", value)) => key = value.to_owned(),
            Some(("content-length", value)) => length = value.parse().unwrap(),
            Some(_) => {}
            None if line.trim_end().is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((key, String::from_utf8(body).unwrap()))
}

fn answer(stream: &mut BufReader<TcpStream>, status: u16, body: &str) {
    let head = format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.get_mut().write_all((head + body).as_bytes()).unwrap();
}

/// Killed after it knew which line to send alone: the batch isn't resent, because it could now be accepted with that line.
#[test]
fn killed_load_resumes_lines_to_send_alone() {
    let folder = Folder::new();
    let file = folder.write("lines", "1\n2\n3\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let arguments = [&*file, "--url", &url, "--id", "mine", "--workers", "1"];
    let loader = Running(load(&arguments).stdout(Stdio::null()).spawn().unwrap());
    let accept = || BufReader::new(listener.accept().unwrap().0);
    let mut stream = accept();
    let (key, body) = take_request(&mut stream).unwrap();
    assert_eq!(body, "1\n2\n3\n");
    let response =
        r#"{"accepted":2,"duplicates":0,"refused":[{"line":2,"code":"overload","retry":"alone"}],"retry_alone":1}"#;
    answer(&mut stream, 207, response);
    let alone = Some((format!("{key}-line-2"), "2\n".to_owned()));
    assert_eq!(take_request(&mut stream), alone);
    drop(loader);

    let mut loader = Running(load(&arguments).spawn().unwrap());
    let mut stream = accept();
    assert_eq!(take_request(&mut stream), alone);
    answer(&mut stream, 200, r#"{"accepted":1,"duplicates":0,"refused":[]}"#);
    assert_eq!(loader.0.wait().unwrap().code(), Some(0));
    assert_eq!(take_request(&mut stream), None, "nothing else is sent");
}
