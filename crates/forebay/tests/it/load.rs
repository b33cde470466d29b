//! `forebay load` against the real server: killed on both sides, packed inputs, bad lines, rotated files.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Output, Stdio};

use load::generator::{Generator, RecordKind};

use crate::support::{Folder, Running, Server, after, forebay, payloads, wait_until};

fn wait_accepted(server: &Server, count: u64) {
    server.wait("forebay_events_accepted_total", |accepted| accepted >= count);
}

pub(crate) fn load(arguments: &[&str]) -> Command {
    let mut command = forebay();
    command.arg("load").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it to its end and returns its exit code and its counts.
pub(crate) fn finish(mut command: Command) -> (i32, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
    (status.code().unwrap(), text)
}

pub(crate) fn counts(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

pub(crate) fn generated(count: u64) -> String {
    let mut text = Vec::new();
    let mut generator = Generator::new(RecordKind::Access, 1);
    (0..count).for_each(|_| generator.next_line(&mut text));
    String::from_utf8(text).unwrap()
}

fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn lines_are_stored_once_through_kills() {
    let folder = Folder::new();
    let lines = generated(20_000);
    let file = folder.write("access.ndjson", &lines);
    let data = folder.data();
    let server = Server::start_to_come_back(&data);
    let (listen, url) = (server.intake.to_string(), server.url());
    let arguments = [file.as_str(), "--url", &url, "--batch-bytes", "20000"];

    let loader = Running(load(&arguments).spawn().unwrap());
    wait_accepted(&server, 2_000);
    drop(loader);
    let before = server.metric("forebay_events_accepted_total");

    let mut loader = Running(load(&arguments).spawn().unwrap());
    wait_accepted(&server, before + 2_000);
    drop(server);
    let server = Server::start_on(&data, &listen);
    assert!(loader.0.wait().unwrap().success());
    server.wait_delivered();
    assert!(payloads(&data) == sorted(&lines), "what is stored isn't what was loaded");

    // Everything is known to be loaded; and without that knowledge a name of the load will do.
    let (code, text) = finish(load(&arguments));
    assert_eq!((code, counts(&text, "sent")), (0, 0), "{text}");
    let notice = format!("{file} was completely loaded at 20");
    assert!(
        text.contains(&notice) && text.contains(&format!("remove {file}.forebay-load or give another --state")),
        "{text}"
    );
    server.wait_delivered();
    assert_eq!(payloads(&data).len(), 20_000);
}

#[test]
fn named_load_resumes_without_its_state() {
    let folder = Folder::new();
    let file = folder.write("a", "{\"a\":1}\n{\"a\":2}\n");
    let data = folder.data();
    let server = Server::start(&data);
    let url = server.url();
    for _ in 0..2 {
        let (code, text) = finish(load(&[&file, "--url", &url, "--id", "mine"]));
        assert_eq!((code, counts(&text, "sent")), (0, 2), "{text}");
        fs::remove_file(folder.path("a.forebay-load")).unwrap();
    }
    server.wait_delivered();
    assert_eq!(payloads(&data), ["{\"a\":1}", "{\"a\":2}"]);
}

#[test]
fn grown_file_resumes_and_replaced_file_restarts() {
    let folder = Folder::new();
    let file = folder.write("a", "1\n2");
    let data = folder.data();
    let server = Server::start(&data);
    let url = server.url();
    for (content, sent) in [("1\n2", 2), ("1\n2\n3\n", 1), ("4\n5\n6\n7\n", 4)] {
        folder.write("a", content);
        let (code, text) = finish(load(&[&file, "--url", &url]));
        assert_eq!((code, counts(&text, "sent")), (0, sent), "{text}");
        assert!(!text.contains("was completely loaded"), "{text}");
    }
    let (code, text) = finish(load(&[&file, "--url", &url, "--set", "/a=1"]));
    assert!(code == 1 && text.contains("other settings"), "{text}");
    server.wait_delivered();
    assert_eq!(payloads(&data), ["1", "2", "3", "4", "5", "6", "7"]);
}

/// A loader that was killed before it heard the answer to a file's last batch, and a file that has grown since: the
/// batch under the old key is the old batch.
#[test]
fn end_of_file_is_resent_unchanged() {
    let folder = Folder::new();
    let file = folder.write("a", "1\n2\n");
    let state = folder.path("a.forebay-load");
    let data = folder.data();
    let server = Server::start(&data);
    let url = server.url();
    let arguments = [file.as_str(), "--url", &url, "--id", "mine"];
    let read = || -> serde_json::Value { serde_json::from_slice(&fs::read(&state).unwrap()).unwrap() };
    let mut before = serde_json::json!({ "offset": 0, "lines": 0, "tail_bytes": 0, "tail_sum": 0, "is_end": false });
    assert_eq!(finish(load(&arguments)).0, 0);
    for (content, sent) in [("1\n2\n3\n", 3), ("1\n2\n3\n4", 2), ("1\n2\n3\n4\n5\n", 2)] {
        let mut killed = read();
        // The state that was durable before the last batch was sent.
        std::mem::swap(&mut killed["inputs"][&file]["place"], &mut before);
        fs::write(&state, killed.to_string()).unwrap();
        folder.write("a", content);
        let (code, text) = finish(load(&arguments));
        assert_eq!((code, counts(&text, "sent")), (0, sent), "{text}");
    }
    server.wait_delivered();
    assert_eq!(payloads(&data), ["1", "2", "3", "4", "5"]);
}

#[test]
fn compressed_files_and_arrays_are_loaded() {
    let folder = Folder::new();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"{\"gzip\":1}\n\nno\n").unwrap();
    let gzip = folder.write("a.gz", gzip.finish().unwrap());
    let zstd = folder.write("a.zst", zstd::encode_all(&b"{\"zstd\" : \" X\"}\n{\"other\":1}\n"[..], 1).unwrap());
    let array = folder.write("a.json", "[{\"array\":\n1}, 2,{]");
    let bad = folder.write("bad", "x\n".repeat(1_500));
    let data = folder.data();
    let server = Server::start(&data);
    let url = server.url();
    let refused = folder.text("refused");
    let common = ["--url", &url, "--refused", &refused, "--type", "packed"];

    let load_file = |more: &[&str]| finish(load(&[&common, more].concat()));
    let (code, text) = load_file(&[&gzip]);
    assert_eq!((code, counts(&text, "accepted"), counts(&text, "rejected")), (3, 1, 1), "{text}");
    let (code, text) = load_file(&[&zstd, "--match", "zst[d]", "--trim", "/zstd", "--lower", "/zstd"]);
    assert_eq!((code, counts(&text, "lines read"), counts(&text, "matched")), (0, 2, 1), "{text}");
    let (code, text) = load_file(&[&array]);
    // The last element isn't closed, so the array isn't either.
    assert!(code == 1 && text.contains("ends within") && counts(&text, "accepted") == 2, "{text}");
    folder.write("a.json", "[{\"array\":\n1}, 2,]");
    let (code, text) = load_file(&[&array]);
    assert_eq!((code, counts(&text, "accepted")), (0, 0), "{text}");
    let (code, text) = load_file(&[&bad]);
    assert_eq!((code, counts(&text, "rejected")), (3, 1_500), "{text}");

    server.wait_delivered();
    assert_eq!(payloads(&data), ["2", "{\"array\": 1}", "{\"gzip\":1}", "{\"zstd\" : \"x\"}"]);
    let kept = fs::read_to_string(&refused).unwrap();
    assert_eq!(kept.lines().count(), 1_501);
    let first = kept.lines().next().unwrap();
    assert!(first.contains("\"line\":3,\"code\":\"json\"") && first.ends_with("\"text\":\"no\"}"), "{first}");
}

#[test]
fn standard_input_is_loaded_and_counted() {
    let folder = Folder::new();
    let data = folder.data();
    let server = Server::start(&data);
    let url = server.url();
    let pipe = |arguments: &[&str]| {
        let mut process = load(arguments).stdin(Stdio::piped()).spawn().unwrap();
        process.stdin.take().unwrap().write_all(b"\"a\"\n\"b\"\n\"ab\"").unwrap();
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(pipe(&["-", "--count"]), "3\n");
    assert_eq!(pipe(&["-", "--count", "--match", "b\"$"]), "2\n");
    assert_eq!(counts(&pipe(&["-", "--url", &url, "--match", "^\"a"]), "accepted"), 2);
    server.wait_delivered();
    assert_eq!(payloads(&data), ["\"a\"", "\"ab\""]);
}

#[test]
fn file_is_followed_through_growth_rotation_and_truncation() {
    let folder = Folder::new();
    let file = folder.write("log", "1\n2");
    let data = folder.data();
    let server = Server::start(&data);
    let url = server.url();
    let arguments = [file.as_str(), "--url", &url, "--follow"];
    let append = |text: &str| {
        let mut file = fs::OpenOptions::new().append(true).open(folder.path("log")).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    let loader = Running(load(&arguments).spawn().unwrap());
    wait_accepted(&server, 1);
    append("2\n3");
    wait_accepted(&server, 2);
    // The last line never gets a line break; the next file begins with the same bytes.
    fs::rename(folder.path("log"), folder.path("log.1")).unwrap();
    folder.write("log", "1\n");
    wait_accepted(&server, 4);
    fs::write(folder.path("log"), "").unwrap();
    // The loader must see it empty before it grows, as with tools that truncate a log in use.
    let entry = || fs::read_to_string(folder.path("log.forebay-load")).unwrap();
    assert!(wait_until(|| entry().contains("\"generation\": 2")), "{}", entry());
    append("5\n");
    wait_accepted(&server, 5);
    drop(loader);

    // Without a follower, the file grows and is rotated: its rest comes first.
    append("6\n");
    fs::rename(folder.path("log"), folder.path("log.2")).unwrap();
    folder.write("log", "7\n");
    let mut loader = Running(load(&arguments).spawn().unwrap());
    // The server may accept again the lines whose result the killed loader didn't get: only the store shows what is there once.
    assert!(wait_until(|| payloads(&data).len() >= 7), "{:?}", payloads(&data));
    loader.signal("-INT");
    assert!(loader.0.wait().unwrap().success());
    assert_eq!(payloads(&data), ["1", "1", "22", "3", "5", "6", "7"]);
}

#[test]
fn first_rejected_lines_are_reported() {
    let folder = Folder::new();
    let file = folder.write("a", format!("1\n\n{}2\n", "no\n".repeat(30)));
    let server = Server::start(&folder.data());
    let (code, text) = finish(load(&[&file, "--url", &server.url()]));
    assert_eq!((code, counts(&text, "rejected")), (3, 30), "{text}");
    assert_eq!(text.matches("was rejected (json): ").count(), 10, "{text}");
    assert!(text.contains("a line 3 was rejected") && text.contains("a line 12 was rejected"), "{text}");
    assert_eq!(text.matches("--refused FILE keeps all of them").count(), 1, "{text}");
    // The resumed load had rejected lines, although none is sent this time.
    for _ in 0..2 {
        let (code, text) = finish(load(&[&file, "--url", &server.url()]));
        assert_eq!((code, counts(&text, "sent"), counts(&text, "rejected")), (3, 0, 0), "{text}");
        assert!(text.contains("30 lines rejected and reported in earlier runs"), "{text}");
    }
}

#[test]
fn load_failing_at_first_shows_no_counts() {
    let folder = Folder::new();
    folder.write("forebay.toml", "[types.a]\nroutes = [\"x\"]\n[sinks.x]\nkind = \"null\"\n");
    let server = Server::start_configured(&folder.data(), &folder.path("forebay.toml"), &folder.path("log"));
    let file = folder.write("a", "1\n");
    let absent = folder.text("absent");
    for (arguments, why) in [
        ([&*file, "--type", "b"], "responded with 404: the configuration has neither [types.b]"),
        ([&absent, "--type", "a"], "can't open"),
    ] {
        let (code, text) = finish(load(&[&arguments[..], &["--url", &server.url()]].concat()));
        assert!(code == 1 && text.contains(why), "{text}");
        assert!(!text.contains("lines read"), "{text}");
    }
}

/// Whose terminal is closed is sent SIGHUP.
#[test]
fn load_stops_on_hangup_unless_ignored() {
    let folder = Folder::new();
    let file = folder.write("a", "1\n");
    // No server listens there: the loader retries, and reports that after a few attempts. By then it handles signals.
    let start = |shell: &str| {
        let mut command = after(shell);
        command.args(["load", &file, "--url", "http://127.0.0.1:9"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Running(command.spawn().unwrap());
        let mut errors = BufReader::new(process.0.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        assert!(line.contains("and retries until the server responds"), "{line}");
        (process, errors)
    };
    let (mut process, mut errors) = start("true");
    // A process under nohup inherits that SIGHUP is ignored, the first bit of the mask.
    let status = fs::read_to_string(format!("/proc/{}/status", process.0.id())).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
    if u64::from_str_radix(ignored, 16).unwrap() & 1 == 1 {
        return testkit::skipped::report("SIGHUP is ignored here, as under nohup");
    }
    process.signal("-HUP");
    assert_eq!(process.0.wait().unwrap().code(), Some(1));
    let mut rest = String::new();
    errors.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("stopped before the end: start the load again"), "{rest}");

    let (mut process, _errors) = start("trap '' HUP");
    process.signal("-HUP");
    process.signal("-TERM");
    assert_eq!(process.0.wait().unwrap().code(), Some(1), "a second signal would end it with another code");
}

#[test]
fn invalid_expression_is_reported_with_its_place() {
    let folder = Folder::new();
    let file = folder.write("a", "1\n");
    let (code, text) = finish(load(&[&file, "--match", "ab(c"]));
    assert!(code == 2 && text.contains("unclosed group") && text.contains("ab(c\n      ^"), "{text}");
}
