//! Types with a transform: from the file to the store, through a reload, the metrics and the commands.

use std::net::SocketAddr;

use crate::dry_runs;
use crate::support::{Folder, Server, exchange, forebay, payloads};

const CONFIG: &str = r#"
[types.access]
schema = "access.json"
transform = [
  { drop = "/referrer", when = "referrer == null" },
  { set = "/slow", to = "bytes > 1000000" },
  { hash = "/client", key = "${HASH_KEY}", digits = 16 },
  { lookup = "/country", table = "countries", to = "/name" },
  { filter = "path != '/health'" },
]
routes = ["local"]

[types.order]
transform = [{ explode = "/items" }]
routes = ["local"]

[types.once]
transform = [{ dedupe = "/n", window = "1h" }]
routes = ["local"]

[tables.countries]
path = "countries.csv"
value = "name"

[sinks.local]
kind = "sqlite"
"#;

struct Fixture {
    /// Killed before its directory is removed.
    server: Server,
    folder: Folder,
}

fn files() -> Folder {
    let folder = Folder::new();
    folder.write("forebay.toml", CONFIG.replace("${HASH_KEY}", "secret"));
    folder.write("access.json", r#"{"required": ["path"]}"#);
    folder.write("countries.csv", "code,name\nNL,Netherlands\n");
    folder
}

impl Fixture {
    fn start() -> Self {
        let folder = files();
        let server = Server::start_configured(&folder.data(), &folder.path("forebay.toml"), &folder.path("log"));
        Self { server, folder }
    }

    fn post(&self, type_name: &str, body: &str) -> u16 {
        self.server.post(&format!("/ingest/event/{type_name}"), body).0
    }

    /// In the order of their bytes.
    fn stored(&self) -> Vec<String> {
        self.server.wait_delivered();
        payloads(&self.folder.data())
    }
}

fn ask(admin: SocketAddr, method: &str, path: &str) -> (u16, String) {
    exchange(admin, &format!("{method} {path} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n"))
}

fn run(folder: &Folder, arguments: &[&str]) -> (i32, String, String) {
    let output = forebay().args(arguments).current_dir(folder.path("")).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn events_are_stored_as_the_steps_leave_them() {
    let fixture = Fixture::start();
    let event = r#"{"path":"/a","bytes":2000000,"client":"192.0.2.7","referrer":null,"country":"NL"}"#;
    assert_eq!(fixture.post("access", event), 200);
    assert_eq!(fixture.post("access", r#"{"path":"/health","bytes":1}"#), 200);
    assert_eq!(fixture.post("access", r#"{"bytes":1}"#), 422, "the schema");
    assert_eq!(fixture.post("access", r#"{"path":"/a"}"#), 422, "null is not greater");
    assert_eq!(fixture.post("order", r#"{"no":7,"items":["a","b"]}"#), 200);
    let hashed =
        r#"{"path":"/a","bytes":2000000,"client":"f5545939bbd24a61","country":"NL","slow":true,"name":"Netherlands"}"#;
    assert_eq!(fixture.stored(), [r#"{"no":7,"items":"a"}"#, r#"{"no":7,"items":"b"}"#, hashed]);
    let metrics = fixture.server.metrics();
    for line in [
        "forebay_events_filtered_total{type=\"access\",step=\"5\",operation=\"filter\"} 1",
        "forebay_events_filtered_total{type=\"once\",step=\"1\",operation=\"dedupe\"} 0",
        "forebay_events_accepted_total{type=\"access\"} 1",
        "forebay_events_accepted_total{type=\"order\"} 2",
        "forebay_refusals_total{code=\"transform\",type=\"access\"} 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "no {line} in {metrics}");
    }
    let types = ask(fixture.server.admin, "GET", "/api/types").1;
    assert!(types.contains(r#""transform":["drop","set","hash","lookup","filter"]"#), "{types}");
}

#[test]
fn reload_changes_steps_and_keeps_other_state() {
    let fixture = Fixture::start();
    assert_eq!(fixture.post("once", "{\"n\":1}"), 200);
    let other = CONFIG.replace("${HASH_KEY}", "secret").replace("{ explode = \"/items\" }", "{ drop = \"/no\" }");
    fixture.folder.write("forebay.toml", &other);
    assert_eq!(ask(fixture.server.admin, "POST", "/api/reload").0, 200);
    assert_eq!(fixture.post("order", r#"{"no":7,"items":[]}"#), 200);
    assert_eq!(fixture.post("once", "{\"n\":1}"), 200);
    assert_eq!(fixture.stored(), [r#"{"items":[]}"#, "{\"n\":1}"]);
    fixture.folder.write("countries.csv", "code,name\nNL,Nederland\n");
    assert_eq!(ask(fixture.server.admin, "POST", "/api/reload").0, 200);
    let event = r#"{"path":"/a","bytes":2,"country":"NL"}"#;
    assert_eq!(fixture.post("access", event), 200);
    assert_eq!(fixture.post("once", "{\"n\":1}"), 200);
    assert_eq!(fixture.stored().len(), 3, "another table makes `dedupe` forget nothing");
    assert_eq!(fixture.stored()[2], r#"{"path":"/a","bytes":2,"country":"NL","slow":false,"name":"Nederland"}"#);
    fixture.folder.write("forebay.toml", other.replace("{ drop", "{ dorp"));
    let (status, body) = ask(fixture.server.admin, "POST", "/api/reload");
    assert!(status == 422 && body.contains("did you mean `drop`?"), "{body}");
}

/// Events that a transform has something to do with, some of them broken.
fn events() -> Vec<String> {
    let paths = ["\"/a\"", "\"/health\"", "7", "\"\\u00e9 \\\"\""];
    let bytes = ["1", "1e7", "null", "\"many\"", "2000000.50"];
    let rest =
        ["", ", \"referrer\" : null", ",\"client\":\"192.0.2.7\"", ",\"country\":\"NL\",\"x\":[ 1.50, {} ]", "}"];
    let each = |n: usize| format!("{{\"path\":{},\"bytes\": {}{}}}", paths[n % 4], bytes[n / 4 % 5], rest[n / 20 % 5]);
    (0..100).map(each).collect()
}

#[test]
fn dry_run_shows_the_stored_bytes() {
    let fixture = Fixture::start();
    let (mut expected, mut refused) = (Vec::new(), 0);
    for event in events() {
        fixture.folder.write("event.json", &event);
        let arguments = ["try", "--config", "forebay.toml", "access", "event.json", "--json"];
        let (code, printed, said) = run(&fixture.folder, &arguments);
        let status = fixture.post("access", &event);
        assert_eq!(code, if status == 200 { 0 } else { 3 }, "{event}: {printed}{said}");
        refused += u32::from(status != 200);
        expected.extend(dry_runs::payloads_of(&printed));
    }
    assert!(refused > 20 && expected.len() > 20, "{refused} refused, {} stored", expected.len());
    expected.sort();
    assert_eq!(fixture.stored(), expected);
}

#[test]
fn dry_run_shows_each_step() {
    let folder = files();
    folder.write("event.json", r#"{"path":"/a","bytes":2000000,"client":"192.0.2.7"}"#);
    let (code, printed, said) = run(&folder, &["try", "--config", "forebay.toml", "access", "event.json"]);
    assert_eq!((code, said.as_str()), (0, ""), "{printed}");
    let lines: Vec<_> = printed.lines().map(|line| line.split(", ").next().unwrap()).collect();
    let known = [
        r#"received  {"path":"/a","bytes":2000000,"client":"192.0.2.7"}"#,
        "type      access",
        "schema    ok",
        "step 1    drop: done",
        "step 2    set: done",
        r#"          {"path":"/a","bytes":2000000,"client":"192.0.2.7","slow":true}"#,
        "step 3    hash: done",
        r#"          {"path":"/a","bytes":2000000,"client":"f5545939bbd24a61","slow":true}"#,
        "step 4    lookup: done",
        "step 5    filter: done",
        r#"stored    {"path":"/a","bytes":2000000,"client":"f5545939bbd24a61","slow":true}"#,
        "          with a new id",
    ];
    assert_eq!(lines, known);
    folder.write("event.json", r#"{"bytes":2000000}"#);
    let (code, printed, _) = run(&folder, &["try", "--config", "forebay.toml", "access", "event.json"]);
    assert!(
        code == 3 && printed.contains("refused   schema: the schema of type access: expected a member \"path\""),
        "{printed}"
    );
    let (code, _, said) = run(&folder, &["try", "--config", "forebay.toml", "unknown", "event.json"]);
    assert!(code == 1 && said.contains("[types.unknown]"), "{said}");
}

#[test]
fn cases_run_and_show_differences() {
    let folder = files();
    let case = |name: &str, file: &str, text: &str| {
        std::fs::create_dir_all(folder.path(&format!("cases/{name}"))).unwrap();
        folder.write(&format!("cases/{name}/{file}"), text);
    };
    let input = "{\"path\":\"/a\",\"bytes\":1}\n\n{\"path\":\"/health\",\"bytes\":1}\n{\"path\":\"/b\"}\n{}\n";
    case("good/access", "case.toml", "type = \"access\"\n");
    case("good/access", "input.ndjson", input);
    let test = |more: &[&str]| run(&folder, &[&["test", "--config", "forebay.toml"], more].concat());
    let (code, printed, _) = test(&[]);
    assert_eq!(code, 1);
    assert!(printed.starts_with("FAILED  cases/good/access\nexpected.ndjson\n+ {\"path\":\"/a\""), "{printed}");
    assert_eq!(test(&["--update"]), (0, "ok      cases/good/access\n1 case, 0 failed\n".to_owned(), String::new()));
    assert_eq!(test(&[]).0, 0);
    let read = |file: &str| std::fs::read_to_string(folder.path(&format!("cases/good/access/{file}"))).unwrap();
    assert_eq!(read("expected.ndjson"), "{\"path\":\"/a\",\"bytes\":1,\"slow\":false}\n");
    assert_eq!(read("filtered.ndjson"), "{\"line\":3,\"step\":5,\"operation\":\"filter\"}\n");
    let refused = read("refused.ndjson");
    assert!(refused.starts_with("{\"line\":4,\"code\":\"transform\",\"pointer\":\"/slow\",\"step\":2,"), "{refused}");
    assert!(refused.lines().nth(1).unwrap().starts_with("{\"line\":5,\"code\":\"schema\""), "{refused}");
    case("good/access", "expected.ndjson", "{\"path\":\"/a\",\"bytes\":2,\"slow\":false}\n");
    case("once", "case.toml", "type = \"once\"\nreceived = \"2026-11-22T10:00:00Z\"\n");
    case("once", "input.ndjson", "{\"n\":1}\n{\"n\":1}\n");
    case("once", "expected.ndjson", "{\"n\":1}\n");
    case("once", "filtered.ndjson", "{\"line\":2,\"step\":1,\"operation\":\"dedupe\"}\n");
    let (code, printed, _) = test(&["cases"]);
    let expected = "FAILED  cases/good/access\nexpected.ndjson\n- {\"path\":\"/a\",\"bytes\":2,\"slow\":false}\n\
                    + {\"path\":\"/a\",\"bytes\":1,\"slow\":false}\nok      cases/once\n2 cases, 1 failed\n";
    assert_eq!((code, printed.as_str()), (1, expected));
    std::fs::create_dir(folder.path("empty")).unwrap();
    let (code, _, said) = test(&["empty"]);
    assert!(code == 1 && said.contains("empty has no case"), "{said}");
}

#[test]
fn dry_run_shows_each_part() {
    let folder = Folder::new();
    let configuration = "[types.order]\ntransform = [{ explode = \"/n\" }, { set = \"/k\", value = 1 }]\nroutes = [\"local\"]\n\
                         [sinks.local]\nkind = \"null\"\n";
    folder.write("forebay.toml", configuration);
    folder.write("event.json", r#"{"n":[1,2]}"#);
    let (code, printed, said) = run(&folder, &["try", "--config", "forebay.toml", "order", "event.json"]);
    assert_eq!((code, said.as_str()), (0, ""), "{printed}");
    let before_commas = |line: &str| {
        if line.starts_with("step") { line.rsplit_once(", ").unwrap().0.to_owned() } else { line.to_owned() }
    };
    let lines: Vec<_> = printed.lines().map(before_commas).collect();
    let known = [
        "step 1    explode: became 2 events",
        r#"          [{"n":1},{"n":2}]"#,
        "step 2    set, event 1: done",
        r#"          {"n":1,"k":1}"#,
        "step 2    set, event 2: done",
        r#"          {"n":2,"k":1}"#,
    ];
    assert_eq!(lines[2..8], known, "{printed}");
    let (code, _, said) = run(&folder, &["try", "--config", "forebay.toml", "event.json"]);
    assert!(
        code == 1 && said.contains("`event.json` is a file") && said.contains("forebay try TYPE event.json"),
        "{said}"
    );
}
