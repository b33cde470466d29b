//! Lost segments, the checks of a data directory, and foreign files in it.

use std::path::{Path, PathBuf};

use crate::support::{Folder, Server, after, forebay, wait_until};

const UNREACHABLE: &str =
    "[types.\"*\"]\nroutes = [\"late\"]\n[sinks.late]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/\"\n";
const SQLITE: &str = "[types.\"*\"]\nroutes = [\"late\"]\n[sinks.late]\nkind = \"sqlite\"\n";
const CONDITION: &str = "[types.a]\nroutes = [{ to = \"cond\", when = \"n > 3\" }]\n[sinks.cond]\nkind = \"sqlite\"\n";

fn start(folder: &Folder, config: &str) -> Server {
    let config = PathBuf::from(folder.write("forebay.toml", format!("[gateway]\nshards = 1\n{config}")));
    Server::start_configured(&folder.data(), &config, &folder.path("log"))
}

fn log(folder: &Folder) -> String {
    std::fs::read_to_string(folder.path("log")).unwrap()
}

fn segments(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "segment"));
    paths.sort();
    paths
}

/// Exit code and all output of `forebay journal …`.
fn journal(command: &str, data: &Path) -> (i32, String) {
    let output = forebay().args(["journal", command, "--data"]).arg(data).output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code().unwrap(), text)
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A data directory whose newest segment has two of six events, none of which is stored.
fn with_two_segments(folder: &Folder) -> PathBuf {
    let server = start(folder, UNREACHABLE);
    for _ in 0..6 {
        assert_eq!(server.post("/ingest/event", &format!("\"{}\"", "x".repeat(900_000))).0, 200);
    }
    let is_counted = |copy: &str| {
        let bytes = std::fs::read(folder.data().join(copy)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains("\n{\"counted_up_to\":[6]}\n")
    };
    assert!(wait_until(|| is_counted("ledger.0") || is_counted("ledger.1")));
    server.stop("-KILL");
    let mut segments = segments(&folder.data().join("journal/0000"));
    assert_eq!(segments.len(), 2);
    segments.pop().unwrap()
}

fn lost_newest_segment_is_reported_until_accepted(lose: impl Fn(&Path)) {
    let folder = Folder::new();
    let newest = with_two_segments(&folder);
    lose(&newest);
    let (code, text) = journal("verify", &folder.data());
    assert!(code == 1 && text.contains("case N") && text.contains("journal/0000"), "{text}");
    for start_number in 0..2 {
        let server = start(&folder, SQLITE);
        server.wait_delivered();
        let count = |name: &str| server.metric(&format!("forebay_events_{name}_total"));
        assert_eq!((count("accepted"), count("stored"), count("lost")), (6, 4, 2), "start {start_number}");
        assert!(server.metric("forebay_journal_open_losses") > 0);
        let (code, text) = crate::status::at(server.admin);
        assert!(code == 3 && text.contains("\nUNHEALTHY events or dead letters are lost: "), "{text}");
        server.stop("-KILL");
        let says = || log(&folder).contains("forebay journal accept-loss");
        assert!(wait_until(says), "start {start_number}: {}", log(&folder));
    }
    let (code, text) = journal("verify", &folder.data());
    assert!(code == 1 && text.contains("accept-loss"), "{text}");
    let (code, text) = journal("accept-loss", &folder.data());
    assert!(code == 0 && text.contains("accepted: the journal of shard 0: positions 5 to 6 are lost"), "{text}");
    assert_eq!(journal("verify", &folder.data()).0, 0);

    let server = start(&folder, SQLITE);
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    server.wait_delivered();
    assert_eq!(server.metric("forebay_events_lost_total"), 2);
    assert_eq!(server.metric("forebay_events_stored_total"), 5);
    assert_eq!(server.metric("forebay_journal_open_losses"), 0);
    assert_eq!(server.stop("-TERM"), Some(0));
    assert!(!log(&folder).contains("WARN"), "{}", log(&folder));
}

#[test]
fn missing_newest_segment_is_lost() {
    lost_newest_segment_is_reported_until_accepted(|newest| std::fs::remove_file(newest).unwrap());
}

#[test]
fn newest_segment_without_header_is_lost() {
    lost_newest_segment_is_reported_until_accepted(|newest| {
        let mut bytes = std::fs::read(newest).unwrap();
        bytes[..4096].fill(0);
        std::fs::write(newest, bytes).unwrap();
    });
}

#[test]
fn damaged_event_is_lost_after_the_next_start() {
    let folder = Folder::new();
    with_two_segments(&folder);
    let oldest = segments(&folder.data().join("journal/0000")).remove(0);
    let mut bytes = std::fs::read(&oldest).unwrap();
    bytes[1 << 20] ^= 1;
    std::fs::write(&oldest, bytes).unwrap();
    for (lost, pending) in [(0, 1), (1, 0)] {
        let server = start(&folder, SQLITE);
        server.wait("forebay_events_stored_total", |stored| stored == 5);
        server.wait("forebay_events_pending{", |now| now == pending);
        assert_eq!(server.metric("forebay_events_lost_total"), lost);
        assert_eq!(server.stop("-TERM"), Some(0));
    }
}

/// A data directory with several segments of dead letters.
fn with_dead_letters(folder: &Folder) -> Vec<PathBuf> {
    let server = start(folder, CONDITION);
    let pad = "x".repeat(4000);
    for batch in 0..4 {
        let lines: String =
            (0..50).map(|line| format!("{{\"u\":{},\"pad\":\"{pad}\"}}\n", batch * 50 + line)).collect();
        assert_eq!(server.post("/ingest/batch/a", &lines).0, 200);
    }
    server.wait_delivered();
    assert_eq!(server.post("/ingest/event/a", "{}").0, 200);
    server.wait_delivered();
    assert_eq!(server.stop("-TERM"), Some(0));
    let segments = segments(&folder.data().join("dead/cond"));
    assert!(segments.len() >= 2, "{segments:?}");
    assert_eq!(journal("verify", &folder.data()).0, 0);
    segments
}

#[test]
fn lost_segment_of_dead_letters_is_noticed() {
    for which in ["first", "newest", "all"] {
        let folder = Folder::new();
        let segments = with_dead_letters(&folder);
        match which {
            "first" => std::fs::remove_file(&segments[0]).unwrap(),
            "newest" => std::fs::remove_file(segments.last().unwrap()).unwrap(),
            _ => std::fs::remove_dir_all(folder.data().join("dead")).unwrap(),
        }
        let (code, text) = journal("verify", &folder.data());
        assert!(code == 1 && text.contains("dead/cond: dead letters: case"), "{which}: {text}");
        for _ in 0..2 {
            let server = start(&folder, CONDITION);
            server.wait("forebay_dead_letters_lost{", |lost| lost > 0);
            let held = server.metric("forebay_dead_letters{");
            assert!(held < 201, "{which}: {held}");
            let admin = server.admin.to_string();
            let list = forebay().args(["dead", "list", "--limit", "1", "--admin", &admin]).output().unwrap();
            let text = String::from_utf8(list.stderr).unwrap();
            assert!(text.contains("positions in the journals of dead letters are lost"), "{which}: {text}");
            assert_eq!(server.stop("-TERM"), Some(0));
            let log = log(&folder);
            assert!(log.contains("the dead letters of sink cond: positions"), "{which}: {log}");
        }
        assert_eq!(journal("accept-loss", &folder.data()).0, 0);
        assert_eq!(journal("verify", &folder.data()).0, 0, "{which}");
    }
}

#[test]
fn freed_dead_letter_segments_are_no_loss() {
    let folder = Folder::new();
    let before = with_dead_letters(&folder).len();
    let server = start(&folder, CONDITION);
    let admin = server.admin.to_string();
    let drop = forebay().args(["dead", "drop", "--all", "--admin", &admin]).output().unwrap();
    assert!(drop.status.success(), "{drop:?}");
    let dead = folder.data().join("dead/cond");
    assert!(wait_until(|| segments(&dead).len() < before));
    server.stop("-KILL");
    let server = start(&folder, CONDITION);
    server.wait("forebay_dead_letters_lost{", |lost| lost == 0);
    assert_eq!(server.stop("-TERM"), Some(0));
    assert!(!log(&folder).contains("lost"), "{}", log(&folder));
    assert_eq!(journal("verify", &folder.data()).0, 0);
}

#[test]
fn verify_only_reads() {
    let folder = Folder::new();
    let server = start(&folder, SQLITE);
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    server.wait_delivered();
    assert_eq!(server.stop("-TERM"), Some(0));
    let data = folder.data();
    ["lock", "reserve"].into_iter().for_each(|file| std::fs::remove_file(data.join(file)).unwrap());
    let before = names(&data);
    for command in ["verify", "dump", "export"] {
        let (code, text) = journal(command, &data);
        assert_eq!(code, 0, "{command}: {text}");
    }
    assert_eq!(names(&data), before);

    let other = folder.path("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("letter.txt"), "x").unwrap();
    for command in ["verify", "dump", "export", "repair", "accept-loss"] {
        let (code, text) = journal(command, &other);
        assert!(code == 1 && text.contains("is not a data directory"), "{command}: {text}");
    }
    let list = forebay().args(["dead", "list", "--data"]).arg(&other).output().unwrap();
    assert_eq!(list.status.code(), Some(1), "{list:?}");
    assert_eq!(names(&other), ["letter.txt"]);
}

#[test]
fn damage_anywhere_is_found_with_its_path() {
    let folder = Folder::new();
    let server = start(&folder, SQLITE);
    assert_eq!(server.post_with_key("k", "1"), 200);
    server.wait_delivered();
    assert_eq!(server.stop("-TERM"), Some(0));
    let data = folder.data();
    assert_eq!(journal("verify", &data).0, 0);
    let ids = data.join("duplicates/ids-00000001");
    std::fs::create_dir_all(data.join("duplicates")).unwrap();
    for (content, code) in [(b"FIDS".to_vec(), 0), (vec![0; 100], 1), ([&b"FIDS"[..], &[0; 96]].concat(), 1)] {
        std::fs::write(&ids, &content).unwrap();
        assert_eq!(journal("verify", &data).0, code, "a frame that was cut is no damage");
    }
    assert!(journal("verify", &data).1.contains("duplicates/ids-00000001"));
    std::fs::remove_file(ids).unwrap();
    let files = ["ledger.0", "ledger.1", "origin.0", "origin.1"];
    for file in files {
        let path = data.join(file);
        let bytes = std::fs::read(&path).unwrap();
        let mut damaged = bytes.clone();
        damaged[40] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        let (code, text) = journal("verify", &data);
        assert!(code == 1 && text.contains(file), "{file}: {text}");
        std::fs::write(&path, bytes).unwrap();
    }
    std::fs::write(data.join("tokens.json"), "{").unwrap();
    let (code, text) = journal("verify", &data);
    assert!(code == 1 && text.contains("tokens.json is damaged"), "{text}");
}

#[test]
fn foreign_files_among_journals_are_ignored() {
    let folder = Folder::new();
    let server = start(&folder, SQLITE);
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    assert_eq!(server.stop("-TERM"), Some(0));
    let data = folder.data();
    for stray in ["journal/2026", "journal/300", "dead/lost+found", "dead/.cache"] {
        std::fs::create_dir_all(data.join(stray)).unwrap();
    }
    for stray in ["dead/notes.txt", "journal/notes.txt", "duplicates/ids-7", "duplicates/ids-18446744073709551615"] {
        std::fs::write(data.join(stray), "x").unwrap();
    }
    let server = start(&folder, SQLITE);
    let metrics = server.metrics();
    assert!(metrics.contains("forebay_journal_segments{shard=\"0\"}"), "{metrics}");
    assert!(["300", "2026"].iter().all(|stray| !metrics.contains(&format!("{{shard=\"{stray}\""))), "{metrics}");
    assert_eq!(server.post("/ingest/event", "2").0, 200);
    server.wait_delivered();
    assert_eq!(server.stop("-TERM"), Some(0));
    let log = log(&folder);
    assert!(log.contains("journal/2026 is not the journal of a shard") && log.contains("journal/notes.txt"), "{log}");
    assert_eq!(names(&data.join("dead/lost+found")), [""; 0]);
    assert_eq!(journal("verify", &data).0, 0);
}

#[test]
fn file_size_limit_is_a_named_error() {
    let folder = Folder::new();
    let mut command = after("ulimit -f 0");
    command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data"]).arg(folder.data());
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("raise the limit"), "{text}");

    // With a larger limit the journal's files stay small, or events are rejected: the process continues.
    let config = PathBuf::from(folder.write("forebay.toml", SQLITE));
    let server = Server::start_after("ulimit -f 1000", &folder.data(), &config, &folder.path("log"));
    let event = format!("\"{}\"", "x".repeat(100_000));
    for _ in 0..20 {
        let (status, text) = server.post("/ingest/event", &event);
        assert!(matches!(status, 200 | 507), "{status}: {text}");
    }
    assert!(server.metrics().contains("forebay_build_info"));
}
