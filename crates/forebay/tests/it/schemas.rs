//! Types with a schema: from the file to the answer, through a reload, the admin API and the commands.

use std::net::SocketAddr;

use crate::support::{Folder, Server, exchange, forebay, payloads};

const CONFIG: &str = "[types.access]\nschema = \"schemas/access.json\"\nschema_formats = true\nroutes = [\"local\"]\n\
                      [types.other]\nroutes = [\"local\"]\n[sinks.local]\nkind = \"sqlite\"\n";
const ACCESS: &str = r#"{"$id": "https://example.org/schemas/access.json", "required": ["status"],
  "properties": {"status": {"$ref": "shared/status.json#/$defs/status"}, "time": {"format": "date-time"}}}"#;
const STATUS: &str = r#"{"$defs": {"status": {"type": "integer", "maximum": 599}}}"#;

struct Fixture {
    /// Killed before its directory is removed.
    server: Server,
    folder: Folder,
}

fn files() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("schemas/shared")).unwrap();
    folder.write("forebay.toml", CONFIG);
    folder.write("schemas/access.json", ACCESS);
    folder.write("schemas/shared/status.json", STATUS);
    folder
}

impl Fixture {
    fn start() -> Self {
        let folder = files();
        let server = Server::start_configured(&folder.data(), &folder.path("forebay.toml"), &folder.path("log"));
        Self { server, folder }
    }

    fn post(&self, type_name: &str, body: &str) -> (u16, String) {
        self.server.post(&format!("/ingest/event/{type_name}"), body)
    }

    fn ask(&self, method: &str, path: &str) -> (u16, String) {
        ask(self.server.admin, method, path)
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
fn schema_violation_is_422_and_not_stored() {
    let fixture = Fixture::start();
    let (status, body) = fixture.post("access", r#"{"status": 600, "time": "now"}"#);
    let problem: serde_json::Value = serde_json::from_str(&body).unwrap();
    let errors = problem["errors"].as_array().unwrap();
    assert_eq!((status, errors.len(), problem["pointer"].as_str()), (422, 2, Some("/status")), "{body}");
    assert_eq!(errors[0]["schema_pointer"], "https://example.org/schemas/shared/status.json#/$defs/status/maximum");
    assert_eq!(fixture.post("access", r#"{"status": 200, "time": "2026-11-22T04:00:00Z"}"#).0, 200);
    assert_eq!(fixture.post("other", r#"{"status": 700}"#).0, 200);
    let (status, body) = fixture.server.post("/ingest/batch/access", "{\"status\": 1}\n{}\n{\"status\": 2}\n");
    let verdict: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &verdict["accepted"]), (207, &2.into()));
    assert_eq!((&verdict["refused"][0]["line"], &verdict["refused"][0]["code"]), (&2.into(), &"schema".into()));
    fixture.server.wait_delivered();
    let stored = payloads(&fixture.folder.data());
    assert_eq!(stored.len(), 4, "{stored:?}");
    assert!(fixture.server.metrics().contains("code=\"schema\""));
}

#[test]
fn reload_reads_schemas_again_or_changes_nothing() {
    let fixture = Fixture::start();
    assert_eq!(fixture.post("access", r#"{"status": 700}"#).0, 422);
    fixture.folder.write("schemas/shared/status.json", r#"{"$defs": {"status": {"maximum": 799}}}"#);
    assert_eq!(fixture.post("access", r#"{"status": 700}"#).0, 422, "not before the reload");
    assert_eq!(fixture.ask("POST", "/api/reload").0, 200);
    assert_eq!(fixture.post("access", r#"{"status": 700}"#).0, 200);
    fixture.folder.write("schemas/shared/status.json", r#"{"$defs": {"status": {"maximum": "many"}}}"#);
    let (status, body) = fixture.ask("POST", "/api/reload");
    assert!(
        status == 422 && body.contains("`maximum` must be a number") && body.contains("status.json:1:34"),
        "{body}"
    );
    assert_eq!(fixture.post("access", r#"{"status": 700}"#).0, 200);
    assert_eq!(fixture.post("access", r#"{"status": 800}"#).0, 422);
    fixture.folder.write("schemas/access.json", "{}");
    fixture.server.signal("-HUP");
    assert!(crate::support::wait_until(|| fixture.post("access", r#"{"status": 800}"#).0 == 200));
}

#[test]
fn types_and_their_schemas_can_be_read() {
    let fixture = Fixture::start();
    let (status, body) = fixture.ask("GET", "/api/types");
    let types: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(status, 200);
    assert_eq!(
        types["types"],
        serde_json::json!([
            {"type": "access", "id": null, "aliases": [], "lowercase": false, "time": null, "ack": "disk", "ack_memory": false, "routes": ["local"],
             "unstorable": "accept", "partial": "207", "aggregates": [], "read": "local",
             "schema": {"path": "schemas/access.json", "formats": true}, "transform": []},
            {"type": "other", "id": null, "aliases": [], "lowercase": false, "time": null, "ack": "disk", "ack_memory": false, "routes": ["local"],
             "unstorable": "accept", "partial": "207", "aggregates": [], "read": "local", "schema": null, "transform": []},
        ])
    );
    assert_eq!(fixture.ask("GET", "/api/types/access/schema"), (200, ACCESS.to_owned()));
    for (method, path, status) in [
        ("GET", "/api/types/other/schema", 404),
        ("GET", "/api/types/unknown/schema", 404),
        ("GET", "/api/types/access", 404),
        ("POST", "/api/types", 405),
    ] {
        assert_eq!(fixture.ask(method, path).0, status, "{method} {path}");
    }
}

#[test]
fn references_stay_within_the_folder() {
    let folder = files();
    let outside = Folder::new();
    outside.write("secret.json", "{}");
    std::os::unix::fs::symlink(outside.path("secret.json"), folder.path("schemas/link.json")).unwrap();
    let check = |schema: &str| {
        folder.write("schemas/access.json", schema);
        let (code, _, said) = run(&folder, &["check", "--config", "forebay.toml"]);
        assert_eq!(code, 2, "{schema}");
        said
    };
    for (reference, why) in [
        ("link.json", "a link in it points outside of the configuration's folder"),
        ("../../secret.json", "it is outside of the configuration's folder"),
        ("shared", "it is not a file"),
        ("absent.json", "there is no such file"),
        ("access.json/", "Not a directory"),
        ("http://example.org/a.json", "Forebay downloads no schemas"),
        ("file:///etc/passwd", "Forebay downloads no schemas"),
    ] {
        let said = check(&format!(r#"{{"$ref": "{reference}"}}"#));
        assert!(said.contains(why) && said.contains("access.json:1:10"), "{reference}: {said}");
    }
}

#[test]
fn inferred_schema_accepts_its_samples() {
    let folder = Folder::new();
    let lines: String = (0..30).map(|n| format!("{{\"at\": \"2026-11-22T04:00:{n}Z\", \"n\": {n}}}\n\n")).collect();
    folder.write("lines.ndjson", &lines);
    let array = lines.trim_end().replace("\n\n", ",");
    folder.write("array.json", format!("\n[{array}]"));
    let (code, schema, said) = run(&folder, &["schema", "infer", "lines.ndjson", "--ranges"]);
    assert_eq!((code, said.as_str()), (0, ""));
    assert!(schema.contains("\"maximum\": 29"), "{schema}");
    assert_eq!(run(&folder, &["schema", "infer", "array.json", "--ranges"]).1, schema);
    folder.write("bad.ndjson", "\n{}\n{\n");
    let (code, _, said) = run(&folder, &["schema", "infer", "bad.ndjson"]);
    assert!(code == 1 && said.contains("bad.ndjson, record 3: "), "{code} {said}");
    folder.write("empty.ndjson", "\n");
    assert_eq!(run(&folder, &["schema", "infer", "empty.ndjson"]).0, 1);
}

#[test]
fn diff_shows_rejections_of_newer_schema() {
    let folder = Folder::new();
    folder.write("old.json", r#"{"type": "object", "properties": {"a": {"maximum": 5}}}"#);
    folder.write("new.json", r#"{"type": "object", "properties": {"a": {"maximum": 4}}, "required": ["a"]}"#);
    folder.write("wrong.json", "{\"type\": 1}");
    let (code, printed, _) = run(&folder, &["schema", "diff", "old.json", "new.json"]);
    assert_eq!(code, 1);
    assert_eq!(
        printed,
        "the value: an object without \"a\" would be rejected\n/a: a number above 4 would be rejected\n"
    );
    let (code, printed, _) = run(&folder, &["schema", "diff", "new.json", "old.json"]);
    assert_eq!((code, printed.as_str()), (0, "every payload that new.json accepts, old.json accepts too\n"));
    assert_eq!(run(&folder, &["schema", "diff", "new.json", "wrong.json"]).0, 2);
}

const VALIDATE: &str = include_str!("../../../../docs/guides/validate.md");
const EVOLVE: &str = include_str!("../../../../docs/guides/evolve-a-schema.md");

/// The texts of the blocks of one language, on the page about validation.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let begins: Vec<&str> = VALIDATE.split(&fence).skip(1).collect();
    begins.into_iter().map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn page_shows_the_response() {
    let folder = files();
    folder.write("forebay.toml", blocks("toml")[0]);
    folder.write("schemas/access.json", blocks("json")[0]);
    folder.write("schemas/shared.json", STATUS);
    let server = Server::start_configured(&folder.data(), &folder.path("forebay.toml"), &folder.path("log"));
    let event = r#"{"time": "2026-11-22T04:00:00Z", "status": 700, "path": "a"}"#;
    let (status, body) = server.post("/ingest/event/access", event);
    let [answered, shown] =
        [&*body, blocks("json")[1]].map(|text| serde_json::from_str::<serde_json::Value>(text).unwrap());
    assert_eq!((status, answered), (422, shown));
}

#[test]
fn page_shows_the_schema_diff() {
    let folder = Folder::new();
    folder.write("old.json", r#"{"properties": {"status": {"maximum": 599}, "path": {"pattern": "^/"}}}"#);
    let new = r#"{"properties": {"status": {"maximum": 499}, "path": {"pattern": "^/[a-z]*"}}, "required": ["id"]}"#;
    folder.write("new.json", new);
    let (code, printed, _) = run(&folder, &["schema", "diff", "old.json", "new.json"]);
    assert_eq!(code, 1);
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    let shown = EVOLVE.lines().filter(|line| {
        line.starts_with("the value: an object") || line.starts_with("/status: a") || line.starts_with("/path: can")
    });
    let mut shown: Vec<&str> = shown.collect();
    shown.sort_unstable();
    assert_eq!(lines, shown);
}
