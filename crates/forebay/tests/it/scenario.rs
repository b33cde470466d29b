//! `forebay bench --scenario` against the real server: its users act, its counts agree with the server's, and assertions decide the exit code.

use std::io::Read;
use std::process::Stdio;

use crate::support::{Folder, Running, Server, forebay};

const USERS: &str = "[users]\ncount = 20\nramp = \"200ms\"\nthink = \"100ms\"\n";
const STEPS: &str = "[[step]]\nname = \"log in\"\npost = \"/ingest/event/login\"\nack = \"stored\"\n\
    key = \"user-{user}\"\nbody = '{\"user\": {user}}'\n[[step]]\nname = \"read\"\nweight = 3\n\
    get = \"/events?type=login&key=user-{user}\"\n[[step]]\nname = \"task\"\nweight = 1\npost = \"/ingest/event/task\"\n";

/// The exit code, the standard output and the errors.
fn bench(server: &str, file: &str, more: &[&str]) -> (i32, String, String) {
    let mut command = forebay();
    let output = command.args(["bench", "--url", server, "--scenario", file]).args(more).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn users_log_in_and_act_and_the_counts_agree() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let file = folder.write("users.toml", format!("{USERS}{STEPS}[assert]\np99 = \"30s\"\n"));
    let (code, text, errors) = bench(&server.url(), &file, &["--duration", "1500ms", "--json"]);
    assert_eq!(code, 0, "{text}{errors}");
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let requests = |step: usize| report["steps"][step]["requests"].as_u64().unwrap();
    assert_eq!((requests(0), report["all"]["errors"].as_u64()), (20, Some(0)), "{text}");
    assert!(requests(1) > requests(2) && requests(2) > 0, "{text}");
    assert_eq!(report["connections"], 20, "{text}");
    server.wait("forebay_events_accepted_total", |accepted| accepted == requests(0) + requests(2));
}

#[test]
fn broken_assertions_decide_the_exit_code() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let file = folder
        .write("users.toml", format!("{USERS}{STEPS}assert = {{ max = \"0s\" }}\n[[step]]\nget = \"/nowhere\"\n"));
    let (code, text, _) = bench(&server.url(), &file, &["--duration", "800ms"]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("/nowhere: 20 answered 404, the first: "), "{text}");
    let last = text.lines().last().unwrap();
    assert!(last.contains("NOT CLEAN: task: max is ") && last.contains("all steps: 20 errors"), "{text}");
}

#[test]
fn restarted_server_is_counted_as_errors() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let file = folder.write("users.toml", format!("{USERS}{STEPS}"));
    let mut command = forebay();
    command.args(["bench", "--url", &server.url(), "--scenario", &file, "--duration", "2s"]);
    let mut process = Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    server.wait("forebay_events_accepted_total", |accepted| accepted > 20);
    drop(server);
    let mut text = String::new();
    process.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(process.0.wait().unwrap().code(), Some(3), "{text}");
    assert!(text.contains("read: ") && text.contains(" without a response: Connection refused"), "{text}");
}

#[test]
fn mistakes_in_the_file_are_shown_before_the_load() {
    let folder = Folder::new();
    let file = folder.write("users.toml", format!("{USERS}[[step]]\ngte = \"/\"\n"));
    let (code, _, errors) = bench("http://127.0.0.1:9", &file, &[]);
    assert!(code == 1 && errors.contains("users.toml:6:1") && errors.contains("did you mean `get`?"), "{errors}");
    let file = folder.write("many.toml", format!("[users]\ncount = 100000\nthink = \"1s\"\n{STEPS}"));
    let (code, _, errors) = bench("http://127.0.0.1:9", &file, &["--rate", "5"]);
    assert!(code == 2 && errors.contains("cannot be used with"), "{errors}");
}
