//! Settings, values, variables and flags under the names that they had in 276bf5a1: they work, and each is warned of by name.

use std::process::Output;

use crate::support::{Folder, Server, exchange, forebay, wait_until};

const CONFIG: &str = r#"[gateway]
open = true

[types.access]
names = ["Access Logged"]
text = "repair"
routes = ["local", "late"]

[types.access.aggregate.hits]
window = "1m"
measures = { requests = "count" }
late = "part"
quiet = "1s"
routes = ["local"]

[types.any]
text = "any"
routes = ["local"]

[types.exact]
text = "refuse"
routes = ["local"]

[types.third]
routes = ["local"]

[types.third.aggregate.hits]
window = "1m"
measures = { requests = "count" }
routes = ["local"]

[sinks.local]
kind = "sqlite"
keep = "30d"

[sinks.late]
kind = "null"
from = "latest"

[sinks.other]
kind = "sqlite"
table = "other"
from = "earliest"
"#;

const VARIABLES: [(&str, &str); 6] = [
    ("FOREBAY_GATEWAY_OPEN", "true"),
    ("FOREBAY_TYPES_THIRD_NAMES", "3rd,Third One"),
    ("FOREBAY_TYPES_THIRD_TEXT", "refuse"),
    ("FOREBAY_TYPES_THIRD_AGGREGATE_HITS_LATE", "part"),
    ("FOREBAY_TYPES_THIRD_AGGREGATE_HITS_QUIET", "7m"),
    ("FOREBAY_SINKS_OTHER_KEEP", "12h"),
];

/// The title and the label of each warning.
const WARNINGS: [(&str, &str); 17] = [
    ("`gateway.open` has a new name", "write `allow_anonymous`"),
    ("`types.access.names` has a new name", "write `aliases`"),
    ("`types.access.text` has a new name", "write `unstorable`"),
    ("`types.access.aggregate.hits.quiet` has a new name", "write `idle_timeout`"),
    ("the value \"part\" of `types.access.aggregate.hits.late` has a new name", "write \"separate\""),
    ("`types.any.text` has a new name", "write `unstorable`"),
    ("the value \"any\" of `types.any.unstorable` has a new name", "write \"accept\""),
    ("`types.exact.text` has a new name", "write `unstorable`"),
    ("the value \"refuse\" of `types.exact.unstorable` has a new name", "write \"reject\""),
    ("`sinks.local.keep` has a new name", "write `retention`"),
    ("`FOREBAY_GATEWAY_OPEN` has a new name", "write `FOREBAY_GATEWAY_ALLOW_ANONYMOUS`"),
    ("`FOREBAY_TYPES_THIRD_NAMES` has a new name", "write `FOREBAY_TYPES_THIRD_ALIASES`"),
    ("`FOREBAY_TYPES_THIRD_TEXT` has a new name", "write `FOREBAY_TYPES_THIRD_UNSTORABLE`"),
    ("the value \"refuse\" of `types.third.unstorable` has a new name", "write \"reject\""),
    ("the value \"part\" of `types.third.aggregate.hits.late` has a new name", "write \"separate\""),
    (
        "`FOREBAY_TYPES_THIRD_AGGREGATE_HITS_QUIET` has a new name",
        "write `FOREBAY_TYPES_THIRD_AGGREGATE_HITS_IDLE_TIMEOUT`",
    ),
    ("`FOREBAY_SINKS_OTHER_KEEP` has a new name", "write `FOREBAY_SINKS_OTHER_RETENTION`"),
];

/// Each old name is warned of once. Nothing goes to the sink `other`, which is the only other warning.
fn assert_warns(text: &str) {
    let warnings: Vec<&str> = text.split("warning: ").skip(1).collect();
    for (title, label) in WARNINGS {
        let of_title: Vec<&&str> = warnings.iter().filter(|warning| warning.starts_with(title)).collect();
        assert!(of_title.len() == 1 && of_title[0].contains(label), "{title}: {text}");
        assert!(of_title[0].contains("until version 0.2"), "{text}");
    }
    assert_eq!(warnings.len(), WARNINGS.len() + 1, "{text}");
}

fn run(variables: &[(&str, &str)], arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = forebay().args(arguments).envs(variables.iter().copied()).output().unwrap();
    (status.code(), [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat())
}

#[test]
fn server_accepts_old_names_and_warns_of_each() {
    let folder = Folder::new();
    let config = folder.write("forebay.toml", CONFIG);
    let (code, checked) = run(&VARIABLES, &["check", "--config", &config, "--data", &folder.text("data")]);
    assert_eq!(code, Some(0), "{checked}");
    assert_warns(&checked);
    for shown in ["rows are kept for 30days", "rows are kept for 12h"] {
        assert!(checked.contains(shown), "{checked}");
    }

    let mut command = forebay();
    command.args(["serve", "--config", &config]).envs(VARIABLES);
    command.stderr(std::fs::File::create(folder.path("log")).unwrap());
    // Without a token only a server that lets everybody in starts on such an address.
    let server = Server::spawn_serving(command, &folder.data(), "0.0.0.0:0", "127.0.0.1:0");
    let log = || std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(wait_until(|| log().contains(" warnings\n")), "{}", log());
    assert_warns(&log());
    let twice = r#"{"a":1,"a":2}"#;
    for (type_name, status) in
        [("Access%20Logged", 200), ("any", 200), ("exact", 422), ("3rd", 422), ("Third%20One", 422)]
    {
        assert_eq!(server.post(&format!("/ingest/event/{type_name}"), twice).0, status, "{type_name}");
    }
    assert_eq!(server.post("/ingest/event/3rd", "{}").0, 200);

    let admin = server.admin;
    let request = format!("POST /api/reload HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
    let (status, body) = exchange(admin, &request);
    let reloaded: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(status, 200, "{body}");
    assert_warns(reloaded["warnings"].as_str().unwrap());
    let (_, types) = exchange(admin, &request.replace("POST /api/reload", "GET /api/types"));
    let types: serde_json::Value = serde_json::from_str(&types).unwrap();
    let of_type = |name: &str, key: &str| {
        types["types"].as_array().unwrap().iter().find(|found| found["type"] == name).unwrap()[key].clone()
    };
    assert_eq!(of_type("third", "aliases"), serde_json::json!(["3rd", "Third One"]));
    assert_eq!(["access", "any", "exact"].map(|name| of_type(name, "unstorable")), ["repair", "accept", "reject"]);
}

#[test]
fn writer_accepts_old_names_and_warns_of_each() {
    let folder = Folder::new();
    let config = folder.write("writer.toml", "[writer]\nlisten = \"0.0.0.0:8081\"\nopen = true\n");
    let data = folder.text("data");
    let arguments = ["check", "--role", "writer", "--config", &config, "--data", &data];
    let (code, checked) = run(&[("FOREBAY_SINKS_LOCAL_KEEP", "30d")], &arguments);
    assert_eq!(code, Some(0), "{checked}");
    assert!(
        checked.contains("`writer.open` has a new name") && checked.contains("rows are kept for 30days"),
        "{checked}"
    );
    assert!(checked.contains("`FOREBAY_SINKS_LOCAL_KEEP` has a new name"), "{checked}");
}

#[test]
fn old_and_new_name_together_are_an_error() {
    let folder = Folder::new();
    let config = folder.write("forebay.toml", "[gateway]\nopen = true\nallow_anonymous = false\n");
    let (code, checked) = run(&[], &["check", "--config", &config]);
    assert_eq!(code, Some(2), "{checked}");
    assert!(checked.contains("`gateway.allow_anonymous` and its old name `open` are both set"), "{checked}");
    let variables = [("FOREBAY_GATEWAY_OPEN", "true"), ("FOREBAY_GATEWAY_ALLOW_ANONYMOUS", "true")];
    let (code, checked) = run(&variables, &["check"]);
    assert_eq!(code, Some(2), "{checked}");
    let both = "`FOREBAY_GATEWAY_ALLOW_ANONYMOUS` and its old name `FOREBAY_GATEWAY_OPEN` are both set";
    assert!(checked.contains(both), "{checked}");
}

#[test]
fn old_flag_is_accepted_with_a_warning() {
    let folder = Folder::new();
    let (file, id) = (folder.text("tokens"), "0f".repeat(16));
    let new = ["token", "new", "gateway-1", "--scope", "deliver", "--file", &file];
    let (code, said) = run(&[], &[&new[..], &["--origin", &id]].concat());
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("--origin is now --gateway"), "{said}");
    let accept = ["route", "accept", "local", "--again", "--data", &folder.text("none")];
    assert!(run(&[], &accept).1.contains("--again is now --resend"));
    let (_, listed) = run(&[], &["token", "list", "--file", &file]);
    assert!(listed.contains("GATEWAY ID") && listed.contains(&id), "{listed}");
    let (code, said) = run(&[], &[&new[..], &["--origin", &id, "--gateway", &id]].concat());
    assert!(code == Some(2) && said.contains("--origin") && said.contains("--gateway"), "{said}");
}
