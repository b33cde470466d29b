//! Files in a directory as their readers meet them: what is in them through kills, stops and reloads, and what is said
//! when they can't be written.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};

use random::Random;

use crate::duckdb;
use crate::support::{Folder, HANGS, Server, wait_until};

const CONFIGURATION: &str = r#"
[types."*"]
routes = ["archive"]

[sinks.archive]
kind = "directory"
path = "archive"
envelope = true
"#;

/// Codings for tests that need many files, one for each start.
pub(crate) fn codings() -> &'static [&'static str] {
    if duckdb::is_there() { &["zstd", "parquet"] } else { &["zstd"] }
}

/// The id and the payload of each event of the tables among these files, by the file's path.
fn tables(folder: &Path, names: &[String]) -> BTreeMap<PathBuf, Vec<(String, Value)>> {
    let files: Vec<PathBuf> =
        names.iter().filter(|name| name.ends_with(".parquet")).map(|name| folder.join(name)).collect();
    let mut tables = BTreeMap::new();
    if files.is_empty() {
        return tables;
    }
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let query = "select filename, id::text as id, payload::text as payload from read_parquet(FILES, filename = true)";
    for row in duckdb::rows(&files, query) {
        let payload = serde_json::from_str(&text(&row, "payload")).unwrap();
        let table: &mut Vec<_> = tables.entry(text(&row, "filename").into()).or_default();
        table.push((text(&row, "id"), payload));
    }
    tables
}

/// The id and the payload of each event of lines.
fn lines(text: &str) -> Vec<(String, Value)> {
    let events = text.lines().map(|line| -> Value { serde_json::from_str(line).unwrap() });
    events.map(|event| (event["id"].as_str().unwrap().to_owned(), event["payload"].clone())).collect()
}

/// The folder of the manifests.
pub(crate) const MANIFESTS: &str = "_manifests";

/// All files of a directory and of the manifests' folder in it.
fn names(folder: &Path) -> Vec<String> {
    let of = |folder: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let mut names = of(folder);
    names.retain(|name| name != MANIFESTS);
    names.extend(of(&folder.join(MANIFESTS)).into_iter().map(|name| format!("{MANIFESTS}/{name}")));
    names
}

/// The payload of each event by its id, from files that match their manifests.
pub(crate) fn read(folder: &Path) -> BTreeMap<String, Value> {
    let mut names = names(folder);
    let mut tables = tables(folder, &names);
    let mut events = BTreeMap::new();
    let mut described = 0;
    let in_folder = names.iter().filter_map(|name| name.strip_prefix("_manifests/"));
    for name in in_folder.filter(|name| name.ends_with(".manifest.json")) {
        let manifest: Value =
            serde_json::from_slice(&std::fs::read(folder.join(MANIFESTS).join(name)).unwrap()).unwrap();
        let file = folder.join(manifest["file"].as_str().unwrap());
        let bytes = std::fs::read(&file).unwrap();
        assert_eq!(manifest["bytes"].as_u64(), Some(bytes.len() as u64));
        let sum: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(manifest["sha256"].as_str(), Some(&*sum));
        let text = match manifest["codec"].as_str().unwrap() {
            "zstd" => Some(String::from_utf8(zstd::decode_all(&*bytes).unwrap()).unwrap()),
            "gzip" => Some(std::io::read_to_string(flate2::read::GzDecoder::new(&*bytes)).unwrap()),
            "none" => Some(String::from_utf8(bytes).unwrap()),
            _ => None,
        };
        let format = if text.is_some() { 1 } else { 3 };
        assert_eq!(manifest["format"], format, "lines are envelopes");
        if let Some(text) = &text {
            assert_eq!(manifest["line_bytes"].as_u64(), Some(text.len() as u64));
        }
        let found = text.map_or_else(|| tables.remove(&file).unwrap(), |text| lines(&text));
        assert_eq!(manifest["records"].as_u64(), Some(found.len() as u64));
        for (id, payload) in found {
            assert!(events.insert(id.clone(), payload).is_none(), "twice: {id}");
        }
        described += 1;
    }
    names.retain(|name| name != ".forebay-mark");
    assert_eq!(names.len(), 2 * described, "nothing but files, their manifests and the mark: {names:?}");
    events
}

fn start(folder: &Folder, settings: &str) -> Server {
    let configuration = folder.write("forebay.toml", format!("{CONFIGURATION}{settings}"));
    Server::start_configured(&folder.data(), Path::new(&configuration), &folder.path("log"))
}

#[test]
fn payloads_are_stored_byte_for_byte() {
    for codec in ["none", "gzip", "zstd"] {
        let folder = Folder::new();
        let server = start(&folder, &format!("codec = \"{codec}\"\nmax_age = \"1s\"\n"));
        let payloads = ["{\"a\" :\t1.0e0}", "{\r\n  \"text\": \"naïve \\u0001 🜂\"\n}", "\"plain\"", "null"];
        for payload in payloads {
            assert_eq!(server.post("/ingest/event/some.type", payload).0, 200);
        }
        server.wait_delivered();
        assert_eq!(server.stop("-TERM"), Some(0));
        let archive = folder.data().join("archive");
        assert_eq!(read(&archive).len(), payloads.len());
        if codec == "none" {
            let files = std::fs::read_dir(&archive).unwrap().map(|entry| entry.unwrap().path());
            let text: String = files
                .filter(|path| path.extension().is_some_and(|extension| extension == "ndjson"))
                .map(|path| std::fs::read_to_string(path).unwrap())
                .collect();
            assert!(text.contains("\"payload\":{\"a\" :\t1.0e0}}\n"), "{text}");
            let spread: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
            assert_eq!(spread["payload_text"].as_str(), Some(payloads[1]));
        }
    }
}

#[test]
fn lines_are_payloads_without_an_envelope() {
    let folder = Folder::new();
    let configuration = folder.write("forebay.toml", CONFIGURATION.replace("envelope = true\n", "max_age = \"1s\"\n"));
    let server = Server::start_configured(&folder.data(), Path::new(&configuration), &folder.path("log"));
    for payload in ["{\"a\" :\t1.0e0}", "[1,\r\n2]"] {
        assert_eq!(server.post("/ingest/event", payload).0, 200);
    }
    server.wait_delivered();
    assert_eq!(server.stop("-TERM"), Some(0));
    let archive = folder.data().join("archive");
    let paths = names(&archive).into_iter().map(|name| archive.join(name));
    let (manifests, files): (Vec<_>, Vec<_>) =
        paths.partition(|path| path.extension().is_some_and(|end| end == "json"));
    assert!(!manifests.is_empty() && manifests.len() == files.len(), "{manifests:?}");
    let text: String = files.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    assert!(["{\"a\" :\t1.0e0}\n", "[1,  2]\n"].iter().all(|line| text.contains(line)), "{text}");
    for manifest in manifests {
        let manifest: Value = serde_json::from_slice(&std::fs::read(manifest).unwrap()).unwrap();
        assert_eq!(manifest["format"], 2);
    }
}

#[test]
fn stop_and_reload_lose_and_repeat_nothing() {
    let folder = Folder::new();
    let server = start(&folder, "max_age = \"1h\"\n");
    for number in 0..5 {
        assert_eq!(server.post("/ingest/event", &number.to_string()).0, 200);
    }
    folder.write("forebay.toml", format!("{CONFIGURATION}max_age = \"1h\"\nmax_records = 2\ncodec = \"gzip\"\n"));
    server.signal("-HUP");
    server.wait("forebay_reloads_total{", |reloads| reloads == 1);
    server.wait("forebay_events_pending{", |pending| pending == 1);
    assert_eq!(server.stop("-TERM"), Some(0));
    assert_eq!(read(&folder.data().join("archive")).len(), 5);
}

#[test]
fn missing_directory_is_reported_and_awaited() {
    let folder = Folder::new();
    let server = start(&folder, "max_age = \"1s\"\n");
    let (archive, aside) = (folder.data().join("archive"), folder.path("aside"));
    // An existing directory may still be checked by a test file: one that has been written to isn't checked again.
    assert_eq!(server.post("/ingest/event", "0").0, 200);
    server.wait_delivered();
    std::fs::rename(&archive, &aside).unwrap();
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    let log = || std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(wait_until(|| log().contains("is missing")), "{}", log());
    assert!(!archive.exists(), "it isn't created where a disk may be mounted");
    std::fs::rename(&aside, &archive).unwrap();
    server.wait_delivered();
    assert_eq!(server.stop("-TERM"), Some(0));
    assert_eq!(read(&archive).len(), 2);
}

#[test]
fn path_used_by_another_file_is_reported() {
    let folder = Folder::new();
    std::fs::create_dir(folder.data()).unwrap();
    std::fs::write(folder.data().join("archive"), "a file").unwrap();
    let server = start(&folder, "max_age = \"1s\"\n");
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    let log = || std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(wait_until(|| log().contains("this path or one above it is something else")), "{}", log());
    std::fs::remove_file(folder.data().join("archive")).unwrap();
    server.wait_delivered();
    assert_eq!(server.stop("-TERM"), Some(0));
    assert_eq!(read(&folder.data().join("archive")).len(), 1);
}

#[test]
fn memory_is_independent_of_file_size() {
    const MIB: usize = 1 << 20;
    for codec in ["zstd", "parquet"] {
        let folder = Folder::new();
        let server = start(&folder, &format!("max_bytes = \"96MiB\"\nmax_age = \"1h\"\ncodec = \"{codec}\"\n"));
        let event = format!("{{\"text\": \"{}\"}}\n", "x".repeat(1000));
        let batch = event.repeat(MIB / event.len());
        for _ in 0..96 {
            assert_eq!(server.post("/ingest/batch", &batch).0, 200);
        }
        server.wait("forebay_events_stored_total{", |stored| stored > 0);
        let most = server.memory("VmHWM");
        assert!(most < 64 * MIB, "{} MiB for a file of 96, {codec}", most / MIB);
    }
}

/// The numbers that were acknowledged.
#[derive(Default)]
pub(crate) struct Known {
    next: AtomicU64,
    pub(crate) acknowledged: Mutex<Vec<u64>>,
    pub(crate) stop: AtomicBool,
}

impl Known {
    /// Posts batches to the current server, until it has to stop.
    pub(crate) fn post(&self, address: SocketAddr) {
        while !self.stop.load(Ordering::Relaxed) {
            let first = self.next.fetch_add(20, Ordering::Relaxed);
            let body: String = (first..first + 20).map(|number| format!("{{\"n\":{number}}}\n")).collect();
            // A killed server gives no answer: the outcome of these is unknown.
            if try_post(address, &body).is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")) {
                self.acknowledged.lock().unwrap().extend(first..first + 20);
            }
        }
    }
}

fn try_post(address: SocketAddr, body: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(HANGS))?;
    let length = body.len();
    let head = format!(
        "POST /ingest/batch HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn kills_during_writes_leave_each_event_once() {
    let mut random = Random::new(7);
    let folder = Folder::new();
    // Many files: kills have to happen while some are being written.
    let settings = |codec: &str| format!("codec = \"{codec}\"\nmax_records = 40\nmax_age = \"1s\"\n");
    let known = Arc::new(Known::default());
    for codec in codings().iter().cycle().take(12) {
        let server = start(&folder, &settings(codec));
        known.stop.store(false, Ordering::Relaxed);
        let clients: Vec<_> = (0..4)
            .map(|_| {
                let (known, address) = (known.clone(), server.intake);
                std::thread::spawn(move || known.post(address))
            })
            .collect();
        let wanted = known.acknowledged.lock().unwrap().len() + 200;
        assert!(wait_until(|| known.acknowledged.lock().unwrap().len() >= wanted));
        std::thread::sleep(Duration::from_micros(random.below(60_000)));
        drop(server);
        known.stop.store(true, Ordering::Relaxed);
        clients.into_iter().for_each(|client| client.join().unwrap());
    }
    let server = start(&folder, &settings("none"));
    server.wait_delivered();
    let stored = server.metric("forebay_events_stored_total{");
    assert_eq!(server.stop("-TERM"), Some(0));
    known.expect_each_once(&read(&folder.data().join("archive")), stored);
}

impl Known {
    /// Each event is there once, and those that were acknowledged are.
    pub(crate) fn expect_each_once(&self, found: &BTreeMap<String, Value>, stored: u64) {
        assert_eq!(found.len() as u64, stored);
        let mut numbers: Vec<u64> = found.values().map(|payload| payload["n"].as_u64().unwrap()).collect();
        numbers.sort_unstable();
        let all = numbers.len();
        numbers.dedup();
        assert_eq!(numbers.len(), all, "an event is stored twice");
        let known = self.acknowledged.lock().unwrap();
        let missing: Vec<_> = known.iter().filter(|number| numbers.binary_search(number).is_err()).collect();
        assert!(missing.is_empty(), "{} of {} are missing: {missing:?}", missing.len(), known.len());
    }
}
