//! `forebay load` of a file that has grown within its last line, of one that another load is using, and of files rotated during a pause.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use crate::load::{counts, finish, load};
use crate::support::{Folder, Running, Server, payloads, wait_until};

fn append(path: &Path, bytes: &[u8]) {
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn growing_last_line_is_not_split() {
    let folder = Folder::new();
    let data = folder.data();
    let server = Server::start(&data);
    let url = server.url();
    let plain = |text: &str| text.as_bytes().to_vec();
    // The content at first, the added content, and the exit code of the first run.
    let cases = [
        ("plain", plain("1\n12"), plain("34\n5\n"), 0),
        ("carriage", plain("1\r\n12\r"), plain("34\r\n5\r\n"), 0),
        ("refused", plain("1\n[2"), plain("]\n5\n"), 3),
        ("gzip", gzip("1\n12"), gzip("34\n5\n"), 0),
    ];
    for (name, first, more, code) in cases {
        let file = folder.write(name, first);
        let arguments = [&*file, "--url", &url, "--type", name];
        assert_eq!(finish(load(&arguments)).0, code, "{name}");
        append(&folder.path(name), &more);
        let accepted = server.metric("forebay_events_accepted_total");
        for arguments in [&arguments[..], &[&arguments[..], &["--follow"]].concat()] {
            if name == "gzip" && arguments.contains(&"--follow") {
                continue;
            }
            let (code, text) = finish(load(arguments));
            assert_eq!(code, 1, "{name}: {text}");
            let at = if name == "carriage" { 6 } else { 4 };
            assert!(
                text.contains("line 2 was loaded without a line break") && text.contains(&format!("at byte {at}")),
                "{text}"
            );
        }
        assert_eq!(server.metric("forebay_events_accepted_total"), accepted, "{name}: something was sent");
    }
    // It was a whole line without its line break: the break is added, and the load resumes.
    let file = folder.write("plain", "1\n12\n34\n5\n");
    let (code, text) = finish(load(&[&file, "--url", &url, "--type", "plain"]));
    assert_eq!((code, counts(&text, "accepted")), (0, 2), "{text}");
}

#[test]
fn last_line_gets_its_line_break_later() {
    let folder = Folder::new();
    let data = folder.data();
    let server = Server::start(&data);
    let url = server.url();
    for (name, first, more) in
        [("line-feed", "1\n2", "\n3\n"), ("both", "1\r\n2", "\r\n3\r\n"), ("blank", "1\n2 ", " \n3")]
    {
        let file = folder.write(name, first);
        for (sent, more) in [(2, more), (1, "")] {
            let (code, text) = finish(load(&[&file, "--url", &url]));
            assert_eq!((code, counts(&text, "accepted")), (0, sent), "{name}: {text}");
            append(&folder.path(name), more.as_bytes());
        }
    }
    let file = folder.write("packed", gzip("1\n2"));
    for (sent, more) in [(2, gzip("\n3\n")), (1, Vec::new())] {
        let (code, text) = finish(load(&[&file, "--url", &url]));
        assert_eq!((code, counts(&text, "accepted")), (0, sent), "{text}");
        append(&folder.path("packed"), &more);
    }
    server.wait_delivered();
    let stored = payloads(&data);
    let count = |text: &str| stored.iter().filter(|payload| payload.trim() == text).count();
    assert_eq!(["1", "2", "3"].map(count), [4, 4, 4], "{stored:?}");
}

/// As before, but the first load was killed before it got the answer to the file's end.
#[test]
fn sent_last_line_that_grows_is_not_split() {
    let folder = Folder::new();
    let data = folder.data();
    let server = Server::start(&data);
    let url = server.url();
    let file = folder.write("a", "1\n12");
    let state = folder.path("a.forebay-load");
    assert_eq!(finish(load(&[&file, "--url", &url])).0, 0);
    let mut killed: serde_json::Value = serde_json::from_slice(&fs::read(&state).unwrap()).unwrap();
    assert_eq!(killed["inputs"][&file]["cut"], 4);
    killed["inputs"][&file]["place"] =
        serde_json::json!({ "offset": 0, "lines": 0, "tail_bytes": 0, "tail_sum": 0, "is_end": false });
    fs::write(&state, killed.to_string()).unwrap();
    append(&folder.path("a"), b"34\n5\n");
    let (code, text) = finish(load(&[&file, "--url", &url]));
    assert!(
        code == 1 && text.contains("line 2 was loaded without a line break") && text.contains("at byte 4"),
        "{text}"
    );
    server.wait_delivered();
    assert_eq!(payloads(&data), ["1", "12"]);
}

#[test]
fn second_load_of_a_file_is_rejected() {
    let folder = Folder::new();
    let data = folder.data();
    let server = Server::start(&data);
    let url = server.url();
    let file = folder.write("a", "1\n");
    let first = Running(load(&[&file, "--url", &url, "--follow"]).spawn().unwrap());
    server.wait("forebay_events_accepted_total", |accepted| accepted == 1);
    let (code, text) = finish(load(&[&file, "--url", &url]));
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("another load of this file is running, with the state ") && text.contains("--state"),
        "{text}"
    );
    let other = folder.text("other");
    let (code, text) = finish(load(&[&file, "--url", &url, "--state", &other, "--type", "other"]));
    assert_eq!((code, counts(&text, "accepted")), (0, 1), "{text}");

    // A killed load doesn't block the file.
    drop(first);
    append(&folder.path("a"), b"2\n");
    let (code, text) = finish(load(&[&file, "--url", &url]));
    assert_eq!(code, 0, "{text}");
    assert!(!folder.path("a.forebay-load.lock").exists());
    server.wait_delivered();
    assert_eq!(payloads(&data), ["1", "1", "2"]);
}

/// Renames the file `log`, and creates a younger one with its name.
fn rotate(folder: &Folder, to: &str, text: &str) {
    let old = folder.path(to);
    fs::rename(folder.path("log"), &old).unwrap();
    let times = |path: &Path| fs::metadata(path).map(|of| (of.modified().unwrap(), of.created().unwrap())).unwrap();
    let before = times(&old);
    loop {
        folder.write("log", text);
        let now = times(&folder.path("log"));
        if now.0 > before.0 && now.1 > before.1 {
            return;
        }
        fs::remove_file(folder.path("log")).unwrap();
    }
}

#[test]
fn files_rotated_during_a_pause_are_loaded() {
    let folder = Folder::new();
    let data = folder.data();
    let file = folder.write("log", "1\n");
    let server = Server::start_to_come_back(&data);
    let (listen, url) = (server.intake.to_string(), server.url());
    let arguments = [file.as_str(), "--url", &url, "--follow"];
    let mut loader = Running(load(&arguments).spawn().unwrap());
    server.wait("forebay_events_accepted_total", |accepted| accepted == 1);
    loader.signal("-INT");
    assert!(loader.0.wait().unwrap().success());
    append(&folder.path("log"), b"2\n");
    rotate(&folder, "log.2", "3\n");
    rotate(&folder, "log.1", "4\n");
    let mut loader = Running(load(&arguments).spawn().unwrap());
    server.wait("forebay_events_accepted_total", |accepted| accepted == 4);

    drop(server);
    append(&folder.path("log"), b"5\n");
    rotate(&folder, "log-1", "6\n");
    rotate(&folder, "log-2", "7\n");
    let server = Server::start_on(&data, &listen);
    // It may accept again the lines whose result the loader didn't get: only the store shows what is there once.
    assert!(wait_until(|| payloads(&data).len() >= 7), "{:?}", payloads(&data));
    loader.signal("-INT");
    assert!(loader.0.wait().unwrap().success());
    server.wait_delivered();
    assert_eq!(payloads(&data), ["1", "2", "3", "4", "5", "6", "7"]);
}

#[test]
fn rotated_and_compressed_unread_file_is_reported() {
    let folder = Folder::new();
    let data = folder.data();
    let file = folder.write("log", "1\n");
    let server = Server::start(&data);
    let url = server.url();
    let arguments = [file.as_str(), "--url", &url, "--follow"];
    let mut loader = Running(load(&arguments).spawn().unwrap());
    server.wait("forebay_events_accepted_total", |accepted| accepted == 1);
    loader.signal("-INT");
    assert!(loader.0.wait().unwrap().success());
    rotate(&folder, "log.1", "3\n");
    folder.write("log.1.gz", gzip("1\n2\n"));
    fs::remove_file(folder.path("log.1")).unwrap();
    let mut loader = Running(load(&arguments).spawn().unwrap());
    server.wait("forebay_events_accepted_total", |accepted| accepted == 2);
    loader.signal("-INT");
    let code = loader.0.wait().unwrap().code();
    let mut text = String::new();
    loader.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    loader.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!((code, counts(&text, "files with gaps")), (Some(3), 1), "{text}");
    assert!(text.contains("its lines from byte 2 on may be missing"), "{text}");
}
