//! Commands in messages: each runs as printed, from another working directory and without the server's environment.

use std::process::Command;

use crate::support::{Folder, Server, forebay, wait_until};
use crate::tls::Pair;

const LOCAL: &str = "[sinks.local]\nkind = \"sqlite\"\n";

/// Everything between backticks that begins with the program's name.
fn commands(text: &str) -> Vec<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    let mut found: Vec<_> = quoted.filter(|text| text.starts_with("forebay ")).map(str::to_owned).collect();
    found.sort();
    found.dedup();
    found
}

/// Runs a printed command with a shell that has nothing of the server's environment: its exit code and all output.
fn run(command: &str, folder: &Folder) -> (Option<i32>, String) {
    let program = env!("CARGO_BIN_EXE_forebay");
    let line = format!("forebay() {{ '{program}' \"$@\"; }}; {command}");
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).current_dir(folder.path("elsewhere")).env_clear();
    let output = shell.output().unwrap();
    (output.status.code(), [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat())
}

/// A server whose store rejects events, with a removed sink that holds some.
fn provoke(folder: &Folder, server: Server, start: &dyn Fn() -> Server) -> (Server, String) {
    server.wait("forebay_events_dead_total", |dead| dead == 2);
    assert_eq!(server.stop("-TERM"), Some(0));
    let server = start();
    let log = || std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(wait_until(|| log().contains("route drop gone")), "{}", log());
    (server, log())
}

#[test]
fn printed_commands_reach_a_server_with_flags() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("elsewhere")).unwrap();
    std::fs::create_dir(folder.path("my data")).unwrap();
    let data = folder.path("my data");
    let store = rusqlite::Connection::open(data.join("events.db")).unwrap();
    let table =
        "create table events (id blob not null unique, type text, source text, received_at integer, payload text)";
    let reject = "create trigger reject before insert on events when new.payload like '%bad%' begin select raise(abort, 'no'); end";
    store.execute_batch(&format!("{table}; {reject}")).unwrap();
    let text = |routes: &str, gone: &str| format!("{LOCAL}{gone}[types.\"*\"]\nroutes = [{routes}]\n");
    // Nothing listens there.
    let gone = "[sinks.gone]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/\"\n";
    let file = folder.write("forebay.toml", text("\"local\", \"gone\"", gone));
    let start = || Server::start_configured(&data, file.as_ref(), &folder.path("log"));
    let server = start();
    for body in ["{\"bad\": 1}", "{\"bad\": 2}", "{\"good\": 3}"] {
        assert_eq!(server.post("/ingest/event/access", body).0, 200);
    }
    assert!(wait_until(|| {
        let log = std::fs::read_to_string(folder.path("log")).unwrap();
        log.contains("forebay dead replay")
    }));
    let of_dead = std::fs::read_to_string(folder.path("log")).unwrap();
    folder.write("forebay.toml", text("\"local\"", ""));
    let (server, of_routes) = provoke(&folder, server, &start);
    store.execute_batch("drop trigger reject").unwrap();

    // The first server had another port: the flag chose it.
    let port = server.admin.port();
    let first = of_dead.split("--admin http://127.0.0.1:").nth(1).unwrap();
    let first: String = first.chars().take_while(char::is_ascii_digit).collect();
    let all = format!("{}{of_routes}", of_dead.replace(&format!(":{first}"), &format!(":{port}")));
    let commands = commands(&all);
    for wanted in
        ["dead list --sink local --type access ", "dead replay --sink local --type access ", "route drop gone "]
    {
        assert!(
            commands.iter().any(|command| command.starts_with(&format!("forebay {wanted}"))),
            "{wanted}: {commands:?}"
        );
    }
    for command in &commands {
        let (code, output) = run(command, &folder);
        assert_eq!(code, Some(0), "{command}: {output}");
    }
    server.wait("forebay_events_dead_total", |dead| dead == 0);
    drop(server);
}

#[test]
fn token_hint_names_the_servers_file() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("elsewhere")).unwrap();
    let file =
        folder.write("forebay.toml", "data = \"store\"\n[gateway]\nlisten = \"0.0.0.0:0\"\nadmin = \"127.0.0.1:0\"\n");
    let check = || {
        let output = forebay().args(["check", "--config", &file]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, text) = check();
    assert_eq!(code, Some(2), "{text}");
    let printed = commands(&text);
    let [command] = printed.as_slice() else { panic!("{text}") };
    assert_eq!(run(command, &folder).0, Some(0), "{command}");
    assert_eq!(check().0, Some(0), "{command} has created the token that lets it start");
    assert!(folder.path("store/tokens.json").is_file());
}

#[test]
fn hint_of_a_command_keeps_its_own_flags() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("elsewhere")).unwrap();
    let pair = Pair::new();
    let (certificate, _) = (folder.write("shown.pem", &pair.certificate), folder.write("shown.key", &pair.key));
    let tls = "tls = { certificate = \"shown.pem\", key = \"shown.key\" }\n";
    let file = folder.write("forebay.toml", format!("[admin]\n{tls}"));
    let token =
        forebay().args(["token", "new", "ops", "--scope", "admin", "--data"]).arg(folder.data()).output().unwrap();
    let secret = folder.write("secret", token.stdout);
    let server = Server::start_configured(&folder.data(), file.as_ref(), &folder.path("log"));
    let admin = format!("https://localhost:{}", server.admin.port());
    let data = folder.data();
    let route = |token: &[&str]| {
        let mut command = forebay();
        command.args(["route", "list", "--admin", &admin, "--ca", &certificate, "--data"]).arg(&data).args(token);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, text) = route(&[]);
    assert_eq!(code, Some(1), "{text}");
    let printed = commands(&text);
    let [command] = printed.as_slice() else { panic!("{text}") };
    assert_eq!(run(command, &folder).0, Some(0), "{command}");
    assert!(std::fs::read_to_string(data.join("tokens.json")).unwrap().contains("NAME"), "{command}");
    assert_eq!(route(&["--token-file", &secret]).0, Some(0));
}
