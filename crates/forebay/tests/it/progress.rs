//! The line that `forebay load` and `forebay bench` rewrite in a terminal, and nothing of it elsewhere.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::load::{counts, finish, load};
use crate::support::{Folder, Running, Server, forebay};

/// Runs a command in a terminal until it shows `awaited`, ends it with Ctrl-C, and returns all that it showed.
fn in_terminal(arguments: &[&str], awaited: &str) -> String {
    const CTRL_C: &[u8] = b"\x03";
    let mut command = Command::new("sh");
    command.args(["-c", "exec script -qec \"exec $*\" /dev/null", "sh", env!("CARGO_BIN_EXE_forebay")]);
    let mut process = Running(command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let (mut output, mut shown) = (process.0.stdout.take().unwrap(), Vec::new());
    let mut byte = [0];
    while !String::from_utf8_lossy(&shown).contains(awaited) {
        assert_eq!(output.read(&mut byte).unwrap(), 1, "it ended: {}", String::from_utf8_lossy(&shown));
        shown.push(byte[0]);
    }
    process.0.stdin.as_mut().unwrap().write_all(CTRL_C).unwrap();
    output.read_to_end(&mut shown).unwrap();
    process.wait_end();
    String::from_utf8(shown).unwrap()
}

#[test]
fn bench_rewrites_and_clears_one_line() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let url = server.url();
    let bench = ["bench", "--url", &url, "--connections", "2", "--duration"];
    let shown = in_terminal(&[&bench[..], &["100s"]].concat(), "/s\u{1b}[K");
    assert!(shown.contains("\r[=") && shown.contains(" of 100 s  "), "{shown}");
    let (progress, figures) = shown.split_once("\r\u{1b}[Ksent ").unwrap_or_else(|| panic!("{shown}"));
    assert!(!progress.contains('\n') && figures.contains("events answered 200"), "{shown}");
    let output = forebay().args(bench).arg("1100ms").output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "no terminal, no line");
}

#[test]
fn resumed_load_shows_its_rate_and_the_total() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let url = server.url();
    let file = folder.write("a", "1\nno\n3");
    let (code, text) = finish(load(&[&file, "--url", &url]));
    assert!(code == 3 && counts(&text, "lines read") == 3 && !text.contains("earlier"), "{text}");
    let (code, text) = finish(load(&[&file, "--url", &url]));
    assert!(code == 3 && text.contains("with earlier runs   3 lines, 1 of them rejected\n"), "{text}");
    let arguments = ["load", &file, "--url", &url, "--follow"];
    let shown = in_terminal(&arguments, " 100 %  0 lines  0/s");
    assert!(!shown.contains(" left"), "what an earlier run has loaded says nothing of this one's speed: {shown}");
    folder.write("a", "1\nno\n3\n4\nno\n");
    let shown = in_terminal(&arguments, " 100 %  3 lines  ");
    assert!(!shown.contains("  5 lines  ") && shown.contains("  0:00 left"), "{shown}");
    assert!(shown.contains("with earlier runs   5 lines, 2 of them rejected"), "{shown}");
    assert_eq!(
        shown.lines().filter(|line| line.starts_with("time ") && line.ends_with(" lines/s")).count(),
        1,
        "{shown}"
    );
}
