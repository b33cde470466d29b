//! The log: a reader of stderr that stopped reading blocks nothing, each line is JSON if it is configured, and changes have an author.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, ErrorKind, PipeWriter, Read, Write, pipe};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use crate::support::{Folder, HANGS, Running, Server, exchange, forebay, payloads, wait_until};

/// `O_NONBLOCK` of Linux.
const NON_BLOCKING: i32 = 0o4000;

/// Fills a pipe through a separate descriptor: the one of the pipe keeps its mode.
fn fill(pipe: &PipeWriter) {
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let mut second = OpenOptions::new().write(true).custom_flags(NON_BLOCKING).open(path).unwrap();
    for bytes in [vec![b'x'; 4096], vec![b'x']] {
        while second.write(&bytes).map_err(|error| assert_eq!(error.kind(), ErrorKind::WouldBlock)).is_ok() {}
    }
}

#[test]
#[cfg(target_os = "linux")]
fn stalled_log_reader_blocks_nothing() {
    let folder = Folder::new();
    let config =
        folder.write("forebay.toml", "[sinks.local]\nkind = \"sqlite\"\n[types.\"*\"]\nroutes = [\"local\"]\n");
    let (_reader, output) = pipe().unwrap();
    fill(&output);
    let mut command = forebay();
    command.args(["serve", "--config", &config]).stderr(output.try_clone().unwrap());
    let server = Server::start_command(command, &folder.data());
    folder.write("forebay.toml", "nonsense");
    server.signal("-HUP");
    server.wait("forebay_reloads_total{result=\"refused\"}", |refused| refused == 1);
    for number in 0..10 {
        assert_eq!(server.post("/ingest/event", &number.to_string()).0, 200);
    }
    server.wait_delivered();
    assert_eq!(server.metric("forebay_log_dropped_total"), 0);

    assert_eq!(server.stop("-TERM"), Some(0), "the last lines are dropped after a second");
    assert_eq!(payloads(&folder.data()).len(), 10);
}

const JSON: &str = "[log]\nformat = \"json\"\n";

/// Everything that a process writes, as one stream.
fn outputs(mut command: Command) -> (Running, Receiver<String>) {
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (send, lines) = channel();
    let streams: [Box<dyn Read + Send>; 2] =
        [Box::new(process.stdout.take().unwrap()), Box::new(process.stderr.take().unwrap())];
    for stream in streams {
        let send = send.clone();
        std::thread::spawn(move || {
            BufReader::new(stream).lines().map_while(Result::ok).for_each(|line| send.send(line).unwrap_or_default())
        });
    }
    (Running(process), lines)
}

/// The message of a line, which must be one object with a time and a level.
fn message(line: &str) -> String {
    let object: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    assert!(object["time"].is_string() && object["level"].is_string(), "{line}");
    object["message"].as_str().unwrap().to_owned()
}

/// Reads lines until one has this text.
fn wait_message(lines: &Receiver<String>, text: &str) -> String {
    loop {
        let line = lines.recv_timeout(HANGS).unwrap_or_else(|error| panic!("{error}: no line with {text}"));
        let message = message(&line);
        if message.contains(text) {
            return message;
        }
    }
}

/// All lines of a process that ends, and its exit code.
fn to_the_end(command: Command) -> (Option<i32>, Vec<String>) {
    let (mut process, lines) = outputs(command);
    let code = process.wait_end();
    (code, lines.iter().map(|line| message(&line)).collect())
}

fn role(role: &str, folder: &Folder, config: &str) -> Command {
    let mut command = forebay();
    command.args([role, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--config", config, "--data"]);
    command.arg(folder.path(role));
    command
}

#[test]
fn every_line_of_a_running_role_is_json() {
    let folder = Folder::new();
    let config = folder.write("forebay.toml", format!("{JSON}[sinks.unused]\nkind = \"null\"\n[sinks.local]\nkind = \"sqlite\"\n[types.\"*\"]\nroutes = [\"local\"]\n"));
    let (mut server, lines) = outputs(role("serve", &folder, &config));
    wait_message(&lines, "unused sink `unused`");
    let banner = wait_message(&lines, "accepts events on");
    assert!(banner.contains("curl"), "{banner}");
    let intake = banner.split("accepts events on http://").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let request = "POST /ingest/event HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno";
    assert_eq!(exchange(intake, request).0, 400);
    wait_message(&lines, "rejected");
    folder.write("forebay.toml", "nonsense\n[log]\nformat = \"json\"\n");
    server.signal("-HUP");
    wait_message(&lines, "Nothing has changed");
    server.signal("-TERM");
    wait_message(&lines, "stopped");
    assert_eq!(server.wait_end(), Some(0));
    lines.iter().for_each(|line| drop(message(&line)));

    let of_writer = folder.write("writer.toml", JSON);
    let (mut writer, lines) = outputs(role("writer", &folder, &of_writer));
    wait_message(&lines, "accepts batches on");
    writer.signal("-HUP");
    wait_message(&lines, "SIGHUP");
    writer.signal("-TERM");
    assert_eq!(writer.wait_end(), Some(0));
    lines.iter().for_each(|line| drop(message(&line)));

    let mut gateway = role("gateway", &folder, &of_writer);
    gateway.args(["--writer", "http://127.0.0.1:9"]);
    let (mut gateway, lines) = outputs(gateway);
    wait_message(&lines, "accepts events on");
    gateway.signal("-TERM");
    assert_eq!(gateway.wait_end(), Some(0));
    lines.iter().for_each(|line| drop(message(&line)));
}

#[test]
fn every_line_of_a_failed_start_is_json() {
    let folder = Folder::new();
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = busy.local_addr().unwrap().to_string();
    for name in ["serve", "gateway", "writer"] {
        for (text, code, says) in [
            (format!("{JSON}[no_such]\n"), 2, "unknown setting `no_such`"),
            (format!("{JSON}[sinks.a\n"), 2, "invalid configuration file: not TOML"),
            (format!("{JSON}[log.more]\n"), 2, "more"),
        ] {
            let config = folder.write("wrong.toml", text);
            let (ended, messages) = to_the_end(role(name, &folder, &config));
            assert_eq!(ended, Some(code), "{messages:?}");
            assert!(messages.iter().any(|message| message.contains(says)), "{name} {says}: {messages:?}");
        }
        let mut command = forebay();
        command.args([name, "--listen", &address, "--admin", "127.0.0.1:0", "--data"]).arg(folder.path(name));
        command.env("FOREBAY_LOG_FORMAT", "json");
        if name == "gateway" {
            command.args(["--writer", "http://127.0.0.1:9"]);
        }
        let (ended, messages) = to_the_end(command);
        assert!(ended == Some(1) && messages.iter().any(|message| message.contains("can't listen on")), "{messages:?}");

        let mut unknown = forebay();
        unknown.args([name, "--no-such-flag"]).env("FOREBAY_LOG_FORMAT", "json");
        let (ended, messages) = to_the_end(unknown);
        assert!(ended == Some(2) && messages.concat().contains("--no-such-flag"), "{messages:?}");
    }
    let mut wrong = forebay();
    wrong.envs([("FOREBAY_ROLE", "none"), ("FOREBAY_LOG_FORMAT", "json")]);
    let (ended, messages) = to_the_end(wrong);
    assert!(ended == Some(2) && messages.concat().contains("FOREBAY_ROLE"), "{messages:?}");
    let mut unreadable = forebay();
    unreadable.args(["serve", "--config"]).arg(folder.path("none")).env("FOREBAY_LOG_FORMAT", "json");
    let (ended, messages) = to_the_end(unreadable);
    assert!(ended == Some(2) && messages.concat().contains("cannot read"), "{messages:?}");
}

#[test]
fn log_names_clients_that_changed_dead_letters() {
    let folder = Folder::new();
    std::fs::create_dir(folder.data()).unwrap();
    let store = rusqlite::Connection::open(folder.data().join("events.db")).unwrap();
    let table =
        "create table events (id blob not null unique, type text, source text, received_at integer, payload text)";
    let reject = "create trigger reject before insert on events when new.payload like '%bad%' begin select raise(abort, 'no'); end";
    store.execute_batch(&format!("{table}; {reject}")).unwrap();
    let server = Server::start_with(&folder.data(), &[], &folder.path("log"));
    let log = || std::fs::read_to_string(folder.path("log")).unwrap();
    let command = |token: &str, arguments: &[&str]| {
        let mut command = forebay();
        command.args(arguments).args(["--admin", &server.admin.to_string()]).env("FOREBAY_TOKEN", token);
        command.output().unwrap()
    };
    for number in 0..3 {
        assert_eq!(server.post("/ingest/event", &format!("{{\"bad\": {number}}}")).0, 200);
    }
    server.wait("forebay_events_dead_total", |dead| dead == 3);
    let listed = command("", &["dead", "list", "--output", "json"]).stdout;
    let first: serde_json::Value = serde_json::from_slice(listed.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
    let id = first["id"].as_str().unwrap();
    let payload = folder.write("payload.json", "{\"good\": 1}");
    assert!(command("", &["dead", "edit", id, "--payload", &payload]).status.success());
    assert!(
        wait_until(|| log()
            .contains("dead edit  by=\"loopback without token\" sink=local stored=0 refused=0 dropped=0 edited=1")),
        "{}",
        log()
    );
    let made =
        forebay().args(["token", "new", "ops", "--scope", "admin", "--data"]).arg(folder.data()).output().unwrap();
    let token = String::from_utf8(made.stdout).unwrap();
    let token = token.trim_end();
    assert!(wait_until(|| !command("", &["route", "list"]).status.success()), "the server follows the file of tokens");
    assert_eq!(command(token, &["dead", "replay"]).status.code(), Some(1));
    assert!(wait_until(|| log().contains("dead replay  by=\"token ops\" sink=local stored=1 refused=2")), "{}", log());
    assert!(command(token, &["dead", "drop", "--all"]).status.success());
    assert!(
        wait_until(|| log().contains("dead drop  by=\"token ops\" sink=local stored=0 refused=0 dropped=2")),
        "{}",
        log()
    );
    assert!(command(token, &["reload"]).status.success());
    assert!(wait_until(|| log().contains("reload requested  by=\"token ops\"")), "{}", log());
}
