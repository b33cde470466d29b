//! `forebay load` of a file that has grown within its last line, and of one that another load is busy with.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::load::{counts, finish, load};
use crate::support::{Folder, Running, Server, payloads};

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
fn a_last_line_that_grows_is_never_cut_in_two() {
    let folder = Folder::new();
    let data = folder.data();
    let server = Server::start(&data);
    let url = server.url();
    let plain = |text: &str| text.as_bytes().to_vec();
    // What it has at first, what comes, and what the first run exits with.
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
            assert!(text.contains("line 2 had no line break") && text.contains(&format!("at byte {at}")), "{text}");
        }
        assert_eq!(server.metric("forebay_events_accepted_total"), accepted, "{name}: something was sent");
    }
    // It was a whole line, whose break was left out: it is put there, and the load goes on.
    let file = folder.write("plain", "1\n12\n34\n5\n");
    let (code, text) = finish(load(&[&file, "--url", &url, "--type", "plain"]));
    assert_eq!((code, counts(&text, "accepted")), (0, 2), "{text}");
}

#[test]
fn a_last_line_gets_its_line_break_later() {
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

/// As before, though the first load was killed before it heard the answer to the file's end.
#[test]
fn a_last_line_that_was_sent_and_grows_is_never_cut_in_two() {
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
    assert!(code == 1 && text.contains("line 2 had no line break") && text.contains("at byte 4"), "{text}");
    server.wait_delivered();
    assert_eq!(payloads(&data), ["1", "12"]);
}

#[test]
fn a_second_load_of_a_file_is_told_of_the_first() {
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

    // One that was killed is in nobody's way.
    drop(first);
    append(&folder.path("a"), b"2\n");
    let (code, text) = finish(load(&[&file, "--url", &url]));
    assert_eq!(code, 0, "{text}");
    assert!(!folder.path("a.forebay-load.lock").exists());
    server.wait_delivered();
    assert_eq!(payloads(&data), ["1", "1", "2"]);
}
