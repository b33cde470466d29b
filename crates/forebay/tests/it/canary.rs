//! A report for a colleague: it is complete, and a canary in every secret, payload, header and query occurs in nothing that is shown.

use std::path::Path;
use std::process::Command;

use crate::support::{Folder, Server, exchange, forebay, wait_until};
use testkit::mock_server::MockServer;

/// A text that no part of Forebay has.
const CANARY: &str = "cAnArYsInG";
/// The same in base64, as in keys.
const CANARY_BASE64: &str = "Y0FuQXJZc0luR2NBbkFyWXNJbkdjQW5Bcllz";

/// A configuration with the canary in each place that may have a secret. All stores but the webhook are away.
fn configuration(hook: std::net::SocketAddr) -> String {
    format!(
        "# password = {CANARY}
[types.\"*\"]
routes = [\"hook\", \"pg\", \"es\", \"key\", \"redis\", \"nats\", \"s3\", \"swift\"]
[types.hashed]
routes = [\"hook\"]
transform = [{{ hash = \"/mail\", key = \"{CANARY}{CANARY}{CANARY}{CANARY}\" }}]
[sinks.hook]
kind = \"webhook\"
url = \"http://{hook}/{CANARY}/x?key={CANARY}\"
headers = [\"Authorization: Bearer {CANARY}\"]
secrets = [\"whsec_{CANARY_BASE64}\"]
[sinks.pg]
kind = \"postgres\"
url = \"postgres://ann:{CANARY}@127.0.0.1:1/db?sslmode=disable\"
[sinks.es]
kind = \"elasticsearch\"
url = \"http://ann:{CANARY}@127.0.0.1:1\"
index = \"i\"
[sinks.key]
kind = \"elasticsearch\"
url = \"http://127.0.0.1:1\"
api_key = \"{CANARY_BASE64}\"
index = \"j\"
[sinks.redis]
kind = \"redis\"
url = \"redis://ann:{CANARY}@127.0.0.1:1\"
key = \"k\"
mode = \"stream\"
[sinks.nats]
kind = \"nats\"
url = \"nats://{CANARY}@127.0.0.1:1\"
stream = \"S\"
subject = \"s.{{type}}\"
[sinks.s3]
kind = \"s3\"
url = \"http://127.0.0.1:1\"
bucket = \"events\"
region = \"eu-central-1\"
access_key = \"AKIA\"
secret_key = \"{CANARY}\"
[sinks.swift]
kind = \"swift\"
auth = \"http://127.0.0.1:1/auth/v1.0\"
user = \"test:tester\"
key = \"{CANARY}\"
container = \"events\"
"
    )
}

/// A receiver that accepts all messages but those with the canary, which it quotes.
fn receiver() -> MockServer {
    MockServer::start(|request| {
        if request.body.windows(CANARY.len()).any(|part| part == CANARY.as_bytes()) {
            return (400, Vec::new(), [b"rejected: ", &request.body[..]].concat());
        }
        (200, Vec::new(), Vec::new())
    })
}

/// The line with the canary.
fn canary_line(text: &str) -> Option<String> {
    let at = text.find(CANARY).or_else(|| text.find(CANARY_BASE64))?;
    Some(text[text[..at].rfind('\n').map_or(0, |line| line + 1)..].lines().next().unwrap_or_default().to_owned())
}

#[test]
fn report_has_everything_but_secrets_and_payloads() {
    let folder = Folder::new();
    let hook = receiver();
    let path = folder.write("forebay.toml", configuration(hook.address));
    let log = folder.path("log");
    let server = Server::start_configured(&folder.data(), Path::new(&path), &log);
    post(&server);

    // Others add what they show: each is searched below.
    let mut shown = vec![("metrics".to_owned(), server.metrics())];
    for arguments in [["doctor", "--config", &path], ["doctor", "--output", "json"]] {
        let output = forebay()
            .args(arguments)
            .args(["--admin", &server.admin.to_string(), "--data"])
            .arg(folder.data())
            .output()
            .unwrap();
        assert!(output.stdout.len() > 100, "{output:?}");
        shown.push((
            arguments.join(" "),
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
        ));
    }
    shown.extend(report(&folder, &server, &path));
    shown.push(("log".to_owned(), std::fs::read_to_string(&log).unwrap()));
    for (what, text) in &shown {
        assert_eq!(canary_line(text), None, "{what}");
    }
    let part = |name: &str| &shown.iter().find(|(what, _)| what == name).unwrap_or_else(|| panic!("no {name}")).1;
    assert!(
        part("dead-letters.json").contains("the receiver responded … Bad Request: rejected: …"),
        "{}",
        part("dead-letters.json")
    );
    assert!(
        part("config.json").contains("[sinks.hook]") && part("config.json").contains("****"),
        "{}",
        part("config.json")
    );
    assert!(part("doctor.json").contains("\"check\": \"sink\"") && part("health.json").contains("findings"));
    assert!(part("metrics-1.txt").contains("forebay_") && part("metrics-2.txt").contains("forebay_"));
    assert!(part("CONTENTS.txt").contains("doctor.json"), "{}", part("CONTENTS.txt"));
}

/// Posts events with the canary in payloads, headers and queries, and one whose rejection quotes it.
fn post(server: &Server) {
    for (name, body) in [
        ("a", "{\"ok\": 1}".to_owned()),
        ("a", format!("{{\"mail\": \"{CANARY}\"}}")),
        ("hashed", format!("{{\"mail\": \"{CANARY}\"}}")),
        ("a", format!("{{\"wrong\": {CANARY}}}")),
    ] {
        let request = format!(
            "POST /ingest/event/{name}?{CANARY}={CANARY} HTTP/1.1\r\nHost: localhost\r\nX-{CANARY}: {CANARY}\r\nCookie: {CANARY}\r\n\
             User-Agent: {CANARY}\r\nReferer: http://x/{CANARY}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        exchange(server.intake, &request);
        for (address, path) in [(server.intake, "/nowhere"), (server.admin, "/api/dead"), (server.admin, "/nowhere")] {
            let request = format!(
                "GET {path}?{CANARY} HTTP/1.1\r\nHost: localhost\r\nX-{CANARY}: {CANARY}\r\nConnection: close\r\n\r\n"
            );
            exchange(address, &request);
        }
    }
    assert!(wait_until(|| server.metric("forebay_events_dead_total{") > 0), "{}", server.metrics());
}

/// The files of a report.
fn report(folder: &Folder, server: &Server, configuration: &str) -> Vec<(String, String)> {
    let file = folder.text("report.tar.gz");
    let mut command = forebay();
    command.args(["report", &file, "--config", configuration, "--admin", &server.admin.to_string(), "--data"]);
    let output = command.arg(folder.data()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let again = forebay().args(["report", &file]).output().unwrap();
    assert_eq!(again.status.code(), Some(1), "an existing file stays");
    let tar = Command::new("tar").args(["-xzf", &file, "-C"]).arg(folder.path("")).status().unwrap();
    assert!(tar.success());
    let files = std::fs::read_dir(folder.path("forebay-report")).unwrap();
    let read = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    let files =
        files.map(|file| file.unwrap()).map(|file| (file.file_name().into_string().unwrap(), read(&file.path())));
    files.chain([("printed".to_owned(), String::from_utf8_lossy(&output.stderr).into_owned())]).collect()
}

#[test]
fn report_without_a_process_has_the_diagnosis() {
    let folder = Folder::new();
    let address = testkit::ports::free_address().to_string();
    let output = forebay().args(["report", "-", "--admin", &address, "--data"]).arg(folder.data()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains("doctor.json") && printed.contains("no process answers at"), "{printed}");
    let file = folder.write("r.tar.gz", &output.stdout);
    let list = Command::new("tar").args(["-tzf", &file]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&list.stdout), "forebay-report/CONTENTS.txt\nforebay-report/doctor.json\n");
}
