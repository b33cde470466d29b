//! `forebay load --where`: matching lines, undecided lines, and the page's own examples.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::load::{counts, finish, generated, load};
use crate::support::{Folder, Server, payloads};

#[test]
fn only_lines_meeting_the_condition_are_stored() {
    let folder = Folder::new();
    let lines = [
        r#"{"status":503,"path":" /A"}"#,
        r#"{"status":200,"path":"/B"}"#,
        "",
        r#"{"status":500.0,"path":"/C","id":12345678901234567890123}"#,
        r#"{"path":"/no-status"}"#,
        "no json",
        r#"{"status":504,"path":"/skip"}"#,
        r#"{"status":"505","path":"/text"}"#,
    ];
    let file = folder.write("a", lines.join("\n"));
    let data = folder.data();
    let server = Server::start(&data);
    let url = server.url();
    let refused = folder.text("refused");
    let arguments = ["--url", &url, "--refused", &refused, "--trim", "/path", "--match", "path|json"];
    let arguments = [&[file.as_str(), "--where", "status >= 500 && path != '/skip'"], &arguments[..]].concat();

    let (code, text) = finish(load(&arguments));
    let named = ["lines read", "matched", "undecided", "sent", "accepted", "rejected"].map(|name| counts(&text, name));
    assert_eq!((code, named), (3, [8, 2, 3, 2, 2, 0]), "{text}");
    server.wait_delivered();
    let expected = [r#"{"status":500.0,"path":"/C","id":12345678901234567890123}"#, r#"{"status":503,"path":"/A"}"#];
    assert_eq!(payloads(&data), expected);

    let kept = fs::read_to_string(&refused).unwrap();
    let rows: Vec<Value> = kept.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    let rows: Vec<_> =
        rows.iter().map(|row| (row["line"].as_u64(), row["code"].as_str(), row["text"].as_str())).collect();
    let row = |number, code, text| (Some(number), Some(code), Some(text));
    assert_eq!(rows, [row(5, "where", lines[4]), row(6, "json", lines[5]), row(8, "where", lines[7])]);
    let shown = format!(
        "{file} line 5: `status >= 500`: >= can't be applied to null and an int; a member that is absent is null"
    );
    assert!(text.contains(&shown), "{text}");

    // It resumes with the same condition, and with no other.
    let (code, text) = finish(load(&arguments));
    assert_eq!((code, counts(&text, "sent"), counts(&text, "undecided")), (0, 0, 0), "{text}");
    let (code, text) = finish(load(&[&file, "--url", &url, "--where", "true"]));
    assert!(code == 1 && text.contains("other settings") && text.contains("status >= 500"), "{text}");
}

#[test]
fn only_ten_undecided_lines_are_shown() {
    let folder = Folder::new();
    let file = folder.write("a", "{\"a\":1}\n{}\n".repeat(100_000));
    let refused = folder.text("refused");
    let mut command = load(&[&file, "--count", "--where", "a >= 1", "--refused", &refused]);
    let output = command.output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stdout).unwrap()), (Some(3), "100000\n".to_owned()));
    let shown = String::from_utf8(output.stderr).unwrap();
    assert_eq!((shown.matches(" line ").count(), shown.matches("only counted").count()), (10, 1), "{shown}");
    let kept = fs::read_to_string(&refused).unwrap();
    let numbers = kept.lines().map(|row| serde_json::from_str::<Value>(row).unwrap()["line"].as_u64().unwrap());
    let mut numbers: Vec<_> = numbers.collect();
    numbers.sort_unstable();
    assert!(numbers == (1..=100_000).map(|number| 2 * number).collect::<Vec<_>>(), "{} rows", numbers.len());

    let mut piped = load(&["-", "--count", "--where", "payload > 1"]).stdin(Stdio::piped()).spawn().unwrap();
    piped.stdin.take().unwrap().write_all(b"1\n2\n3\n\n").unwrap();
    assert_eq!(String::from_utf8(piped.wait_with_output().unwrap().stdout).unwrap(), "2\n");
}

#[test]
fn invalid_condition_is_shown_with_its_place() {
    for (condition, shown) in [
        (
            "status >= 500 and path == '/'",
            "for `and`, write `&&`\n  status >= 500 and path == '/'\n                ^^^",
        ),
        ("statuses.contains(", "expected a value"),
        (&"(".repeat(8_000), "levels"),
        (&"x".repeat(9_000), "at most 8192 bytes"),
    ] {
        let (code, text) = finish(load(&["-", "--count", "--where", condition]));
        assert!(code == 2 && text.contains(shown), "{text}");
    }
}

/// A condition that never ends elsewhere has an end here, line by line.
#[test]
fn hostile_condition_ends() {
    let folder = Folder::new();
    let file = folder.write("a", format!("[{}0]\n", "1,".repeat(10_000)).repeat(3));
    let hostile = "payload.all(a, payload.all(b, payload.all(c, a + b + c >= 0)))";
    let (code, text) = finish(load(&[&file, "--count", "--where", hostile]));
    assert!(
        code == 3 && text.matches("too many steps").count() == 3 && text.contains("\n0\n") || text.starts_with("0\n"),
        "{text}"
    );
}

/// The commands of the page that only count, run by a shell next to a file of that name.
#[test]
fn examples_of_the_page_count_as_documented() {
    let folder = Folder::new();
    let lines = generated(2_000);
    folder.write("access.ndjson", &lines);
    let records: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected = |wanted: fn(&Value) -> bool| records.iter().filter(|record| wanted(record)).count();
    let expected = [
        expected(|record| record["status"].as_u64() >= Some(400)),
        expected(|record| record["method"] == "POST" && record["bytes"].as_u64() > Some(10_000)),
        expected(|record| {
            let path = record["path"].as_str().unwrap();
            path.starts_with("/feed") || path.starts_with("/robots") || record["referrer"].is_null()
        }),
    ];
    assert!(expected.iter().all(|count| (1..2_000).contains(count)), "{expected:?}");
    let page = include_str!("../../../../docs/guides/load-files.md");
    let commands: Vec<_> =
        page.lines().filter(|line| line.contains("--count --") && line.contains("--where '")).collect();
    assert_eq!(commands.len(), expected.len());
    let binaries = Path::new(env!("CARGO_BIN_EXE_forebay")).parent().unwrap();
    for (command, expected) in commands.iter().zip(expected) {
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", command]).current_dir(folder.path("")).env("PATH", binaries);
        let output = shell.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text == format!("{expected}\n"), "{command}: {text}, not {expected}");
    }
}
