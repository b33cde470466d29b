//! Commands whose reader has ended, as in a pipe to `head`.

use std::io::{BufRead, BufReader, Read, pipe};
use std::process::{Command, Stdio};

use crate::support::{Folder, Server, forebay};

/// 128 and the number of SIGPIPE, as shells show a process that it ended.
const UNREAD: i32 = 141;

/// The exit code without a reader, and the messages about it.
fn unread(mut command: Command) -> (i32, String) {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let output = command.stdout(writer).stderr(Stdio::piped()).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn commands_end_silently_when_their_reader_ends() {
    let folder = Folder::new();
    let data = folder.data();
    let file = folder.write("a", "1\n");
    let server = Server::start(&data);
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    server.wait_delivered();
    let (url, admin) = (server.url(), server.admin.to_string());
    let of_server: [&[&str]; 4] = [
        &["route", "list", "--admin", &admin],
        &["bench", "--url", &url, "--duration", "10ms"],
        &["load", "--url", &url, &file],
        &["load", "--count", &file],
    ];
    for arguments in of_server {
        let mut command = forebay();
        command.args(arguments);
        assert_eq!(unread(command), (UNREAD, String::new()), "{arguments:?}");
    }
    assert_eq!(server.stop("-TERM"), Some(0));
    let of_data: [&[&str]; 8] = [
        &["check"],
        &["token", "new", "a", "--scope", "ingest"],
        &["token", "list"],
        &["route", "list"],
        &["journal", "dump"],
        &["journal", "verify"],
        &["journal", "export"],
        &["journal", "repair"],
    ];
    for arguments in of_data {
        let mut command = forebay();
        command.args(arguments).arg("--data").arg(&data);
        assert_eq!(unread(command), (UNREAD, String::new()), "{arguments:?}");
    }
}

#[test]
fn long_dump_ends_when_its_reader_ends() {
    let folder = Folder::new();
    let data = folder.data();
    let server = Server::start(&data);
    // More than fits in a pipe.
    assert_eq!(server.post("/ingest/batch", &"1\n".repeat(20_000)).0, 200);
    assert_eq!(server.stop("-TERM"), Some(0));
    let mut command = forebay();
    command.args(["journal", "dump", "--data"]).arg(&data).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut first = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("origin "), "{first}");
    let mut errors = String::new();
    process.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!((process.wait().unwrap().code(), &*errors), (Some(UNREAD), ""));
}
