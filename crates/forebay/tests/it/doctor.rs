//! `forebay doctor` with prepared faults: each is found with its remedy, and nothing else that a run without the fault doesn't find.
#![allow(clippy::print_stdout, reason = "why a fault is skipped")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::support::{Folder, Server, after, forebay};
use testkit::mock_server::MockServer;
use testkit::opensearch::OpenSearch;
use testkit::ports::free_address;
use testkit::postgres::PostgresServer;
use testkit::proxy::Proxy;
use testkit::redis::RedisServer;
use testkit::swift::{KEY, SwiftServer, USER};

/// What a run has found that isn't ok: check, subject, state, and the whole line.
type Found = Vec<(String, String)>;

/// Runs the command, and returns what isn't ok, and its exit code.
fn run(mut command: Command, folder: &Folder, arguments: &[&str]) -> (Option<i32>, Found) {
    command.args(["doctor", "--output", "json", "--admin", &free_address().to_string(), "--data"]);
    command.arg(folder.data()).args(arguments);
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let checks = json["checks"].as_array().unwrap_or_else(|| panic!("{error}"));
    let text = |check: &Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
    let wrong = checks.iter().filter(|check| matches!(check["state"].as_str(), Some("warning" | "problem")));
    let found = wrong.map(|check| {
        assert!(!text(check, "remedy").is_empty(), "{check}");
        let key = format!("{} {} {}", text(check, "state"), text(check, "check"), text(check, "subject"));
        (key, format!("{}. {}", text(check, "seen"), text(check, "remedy")))
    });
    (output.status.code(), found.collect())
}

fn of_configuration(folder: &Folder, configuration: &str) -> (Option<i32>, Found) {
    let path = folder.write("forebay.toml", configuration);
    run(forebay(), folder, &["--config", &path])
}

/// What the second run has found and the first hasn't: one line.
fn only_new(before: &Found, after: Found) -> (String, String) {
    let mut new: Found = after.into_iter().filter(|(key, _)| before.iter().all(|(known, _)| known != key)).collect();
    assert_eq!(new.len(), 1, "{new:?}");
    new.remove(0)
}

/// The fault has this key, and its line has all these words.
fn check(found: &(String, String), key: &str, words: &[&str]) {
    assert_eq!(found.0.trim_end(), key, "{found:?}");
    assert!(words.iter().all(|word| found.1.contains(word)), "{found:?}");
}

fn sink(kind: &str, settings: &str) -> String {
    format!("[types.\"*\"]\nroutes = [\"s\"]\n[sinks.s]\nkind = \"{kind}\"\n{settings}\n")
}

fn prepared() -> (Folder, Found) {
    let folder = Folder::new();
    std::fs::create_dir(folder.data()).unwrap();
    let (code, found) = run(forebay(), &folder, &[]);
    let has_problem = found.iter().any(|(key, _)| key.starts_with("problem"));
    assert_eq!(code, Some(if has_problem { 3 } else { 0 }), "{found:?}");
    (folder, found)
}

#[test]
fn slow_fsync_is_found_with_write_only() {
    let (folder, _) = prepared();
    let before = run(forebay(), &folder, &["--write"]).1;
    let slow = || {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_exit=60000"]);
        strace.arg(env!("CARGO_BIN_EXE_forebay"));
        strace
    };
    if Command::new("strace").args(["-o", "/dev/null", "true"]).status().is_ok_and(|status| status.success()) {
        let found = run(slow(), &folder, &["--write"]).1;
        check(
            &only_new(&before, found),
            &format!("warning fsync {}", folder.data().display()),
            &["slow: median 6", "faster disk"],
        );
        assert!(run(slow(), &folder, &[]).1.iter().all(|(key, _)| !key.contains("fsync")));
    } else {
        testkit::skipped::report("strace can't be used here");
    }
    assert_eq!(std::fs::read_dir(folder.data()).unwrap().count(), 0, "nothing stays in the data directory");
}

#[test]
fn nearly_full_disk_is_found() {
    let (folder, before) = prepared();
    let free = rustix::fs::statvfs(folder.data()).unwrap();
    let free = free.f_bavail * free.f_frsize;
    for (part, key) in [(free / 10 * 7, "warning"), (free * 2, "problem")] {
        let found = of_configuration(&folder, &format!("[journal]\nkeep_free = \"{}MiB\"\n", part >> 20)).1;
        let key = format!("{key} space {}", folder.data().display());
        check(&only_new(&before, found), &key, &["free", "`keep_free` in [journal]"]);
    }
}

#[test]
fn disk_in_memory_is_found() {
    let memory = Path::new("/dev/shm");
    let Ok(inside) = tempfile::tempdir_in(memory) else {
        return testkit::skipped::report("/dev/shm can't be written");
    };
    let (folder, before) = prepared();
    let data = inside.path().to_str().unwrap();
    let mut command = forebay();
    command.args(["doctor", "--output", "json", "--admin", &free_address().to_string(), "--data", data]);
    let output = command.output().unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let wrong: Vec<_> = json["checks"].as_array().unwrap().iter().filter(|check| check["state"] != "ok").collect();
    let new: Vec<_> = wrong.iter().filter(|check| check["subject"] == data).collect();
    assert_eq!(new.len(), 1, "{wrong:?}");
    assert_eq!(new[0]["check"], "disk");
    assert!(new[0]["seen"].as_str().unwrap().starts_with("tmpfs is in memory"), "{new:?}");
    assert!(new[0]["remedy"].as_str().unwrap().contains("volume"), "{new:?}");
    drop((folder, before));
}

#[test]
fn few_descriptors_are_found() {
    let (folder, before) = prepared();
    let found = run(after("ulimit -n 64"), &folder, &[]).1;
    check(&only_new(&before, found), "warning descriptors", &["the limit is 64", "ulimit -n", "LimitNOFILE"]);
}

/// A control group of version 1; removed when it is dropped. Version 2 is tested with recorded files.
struct Group(PathBuf);

impl Group {
    fn new(controller: &str, settings: &[(&str, &str)]) -> Option<Self> {
        let group = Self(format!("/sys/fs/cgroup/{controller}/forebay-doctor-{}", std::process::id()).into());
        let made = std::fs::create_dir(&group.0).is_ok()
            && settings.iter().all(|(file, value)| std::fs::write(group.0.join(file), value).is_ok());
        if !made {
            testkit::skipped::report("no control group of version 1 can be created here");
        }
        made.then_some(group)
    }

    fn command(&self) -> Command {
        after(&format!("echo $$ > {}", self.0.join("cgroup.procs").display()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn small_memory_limit_is_found() {
    let (folder, before) = prepared();
    let Some(group) = Group::new("memory", &[("memory.limit_in_bytes", "67108864")]) else { return };
    let found = run(group.command(), &folder, &[]).1;
    check(&only_new(&before, found), "warning memory", &["64 MiB", "Raise the memory limit"]);
}

#[test]
fn cpu_limit_is_found() {
    let (folder, before) = prepared();
    let limit = [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "20000")];
    let Some(group) = Group::new("cpu", &limit) else { return };
    let found = run(group.command(), &folder, &[]).1;
    check(&only_new(&before, found), "warning cpu", &["the limit is 0.2 CPUs", "Raise the container's CPU limit"]);
}

#[test]
fn clock_of_a_store_is_compared() {
    let (folder, before) = prepared();
    let elasticsearch = |ahead: i64| {
        MockServer::start(move |request| {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
            let now = now.checked_add_signed(ahead).unwrap();
            match request.path.as_str() {
                "/" => (200, Vec::new(), br#"{"version": {"number": "8.15.0"}}"#.to_vec()),
                "/_cat/health?format=json" => {
                    (200, Vec::new(), format!(r#"[{{"epoch": "{now}", "status": "green"}}]"#).into())
                }
                _ => (404, Vec::new(), b"{}".to_vec()),
            }
        })
    };
    let found = |ahead| {
        let server = elasticsearch(ahead);
        of_configuration(
            &folder,
            &sink("elasticsearch", &format!("url = \"http://{}\"\nindex = \"i\"", server.address)),
        )
    };
    assert_eq!(found(0).1, before);
    for (ahead, words) in [(300, "300 s fast"), (-300, "300 s slow")] {
        let (code, found) = found(ahead);
        let words_near = ["299 s", "300 s", "301 s"].map(|seconds| words.replace("300 s", seconds));
        let found = only_new(&before, found);
        check(&found, "problem clock s", &["Set both clocks by a time service"]);
        assert!(words_near.iter().any(|words| found.1.contains(words)), "{found:?}");
        assert_eq!(code, Some(3));
    }
}

#[test]
fn store_that_is_away_is_found() {
    let (folder, before) = prepared();
    let address = free_address();
    for (kind, settings) in [
        ("postgres", format!("url = \"postgres://ann:s3cret@{address}/db?sslmode=disable\"")),
        ("elasticsearch", format!("url = \"http://{address}\"\nindex = \"i\"")),
        ("redis", format!("url = \"redis://{address}\"\nkey = \"k\"")),
        ("nats", format!("url = \"nats://{address}\"\nstream = \"S\"\nsubject = \"s.{{type}}\"")),
        ("webhook", format!("url = \"http://{address}/hook\"")),
    ] {
        let (code, found) = of_configuration(&folder, &sink(kind, &settings));
        let found = only_new(&before, found);
        check(&found, "problem sink s", &["refused", "Start the store", "[sinks.s]"]);
        assert!(code == Some(3) && !found.1.contains("s3cret"), "{found:?}");
    }
}

#[test]
fn password_and_rights_of_postgres_are_checked() {
    let Some(postgres) = PostgresServer::start() else { return };
    let (folder, before) = prepared();
    let look = |url: &str| of_configuration(&folder, &sink("postgres", &format!("url = \"{url}\""))).1;
    assert_eq!(look(&postgres.url()), before, "before the tables exist");
    assert_eq!(postgres.psql("select count(*) from pg_class where relname like 'forebay%'"), "0", "nothing is created");

    let server = {
        let path = folder.write("forebay.toml", sink("postgres", &format!("url = \"{}\"", postgres.url())));
        Server::start_configured(&folder.path("other"), Path::new(&path), &folder.path("log"))
    };
    assert_eq!(server.post("/ingest/event/a", "{}").0, 200);
    server.wait_delivered();
    drop(server);
    assert_eq!(look(&postgres.url()), before, "with the tables");

    postgres.psql("create user reader; grant select on all tables in schema public to reader");
    let user = postgres.url();
    let (scheme, rest) = user.split_once("://").unwrap();
    let (_, place) = rest.split_once('@').unwrap_or(("", rest));
    let reader = format!("{scheme}://reader@{place}");
    let found = only_new(&before, look(&reader));
    check(&found, "problem sink s", &["may not read and write", "events", "grant select, insert, update on"]);

    let folder_of_server = postgres.folder().to_owned();
    let rules = folder_of_server.join("data/pg_hba.conf");
    let rules = if rules.exists() { rules } else { folder_of_server.join("pg_hba.conf") };
    if let Ok(text) = std::fs::read_to_string(&rules) {
        std::fs::write(&rules, format!("local all reader scram-sha-256\nhost all reader all scram-sha-256\n{text}"))
            .unwrap();
        postgres.psql("alter user reader password 'right'; select pg_reload_conf()");
        let wrong = format!("{scheme}://reader:wr0ng@{place}");
        let found = only_new(&before, look(&wrong));
        check(
            &found,
            "problem sink s",
            &["password authentication failed", "the user of `url` may log in with its password"],
        );
        assert!(!found.1.contains("wr0ng"), "{found:?}");
    } else {
        panic!("the server has no pg_hba.conf in {}", folder_of_server.display());
    }
}

#[test]
fn old_store_is_found() {
    let (folder, before) = prepared();
    let server = MockServer::start(|_| (200, Vec::new(), br#"{"version": {"number": "7.8.1"}}"#.to_vec()));
    let found = of_configuration(
        &folder,
        &sink("elasticsearch", &format!("url = \"http://{}\"\nindex = \"i\"", server.address)),
    );
    check(&only_new(&before, found.1), "problem sink s", &["its version is 7.8.1", "upgrade it to 7.9 or later"]);
}

#[test]
fn healthy_stores_have_nothing_to_report() {
    let (folder, before) = prepared();
    if let Some(redis) = RedisServer::start() {
        let proxy = Proxy::start(&redis.socket());
        let settings = format!("url = \"redis://{}\"\nkey = \"k\"", proxy.address());
        let found = of_configuration(&folder, &sink("redis", &settings)).1;
        let new: Found = found.into_iter().filter(|(key, _)| before.iter().all(|(known, _)| known != key)).collect();
        // What its persistence may lose, as at a connection.
        assert!(new.iter().all(|(key, line)| key == "warning sink s" && line.contains("restart")), "{new:?}");
        assert_eq!(redis.ask(&["DBSIZE"]).number(), 0, "nothing is created");
    }
    if let Some(store) = OpenSearch::shared() {
        let settings = format!("url = \"http://{}\"\nindex = \"doctor\"", store.address());
        assert_eq!(of_configuration(&folder, &sink("elasticsearch", &settings)).1, before);
        assert_eq!(store.ask("GET", "/doctor", "").status, 404, "nothing is created");
    }
}

#[test]
fn container_is_written_to_only_with_write() {
    let Some(swift) = SwiftServer::shared() else { return };
    let (folder, before) = prepared();
    let place = swift.address();
    let container = "doctor-checks";
    let of_swift =
        format!("auth = \"http://{place}/auth/v1.0\"\nuser = \"{USER}\"\nkey = \"{KEY}\"\ncontainer = \"{container}\"");
    let of_s3 =
        format!("url = \"http://{place}\"\naccess_key = \"{USER}\"\nsecret_key = \"{KEY}\"\nbucket = \"{container}\"");
    for (kind, settings) in [("swift", &of_swift), ("s3", &of_s3)] {
        let path = folder.write("forebay.toml", sink(kind, settings));
        let look = |more: &[&str]| run(forebay(), &folder, &[&["--config", &path], more].concat()).1;
        assert_eq!(look(&[]), before, "{kind}, before the container exists");
        let client = swift.client();
        assert_eq!(client.ask("PUT", &format!("/{container}"), &[], b"").status, 201);
        let found: Found = look(&["--write"]).into_iter().filter(|(key, _)| !key.contains(" fsync ")).collect();
        assert_eq!(found, before, "{kind}");
        assert_eq!(client.list(container), [""; 0], "{kind}: the object is removed");
        assert_eq!(client.ask("DELETE", &format!("/{container}"), &[], b"").status, 204, "{kind}");
        let wrong = settings.replace(KEY, "wr0ng");
        let found = only_new(&before, of_configuration(&folder, &sink(kind, &wrong)).1);
        check(&found, "problem sink s", &["key"]);
        assert!(!found.1.contains("wr0ng"), "{found:?}");
    }
}

#[test]
fn token_that_ends_tomorrow_is_found() {
    let (folder, before) = prepared();
    let new = |name: &str, expires: &str| {
        let mut command = forebay();
        command.args(["token", "new", name, "--scope", "ingest", "--expires", expires, "--data"]).arg(folder.data());
        assert!(command.output().unwrap().status.success());
    };
    new("later", "30d");
    assert_eq!(run(forebay(), &folder, &[]).1, before);
    new("shop", "1d");
    let found = run(forebay(), &folder, &[]).1;
    check(&only_new(&before, found), "warning token shop", &["expires in 23 hours", "Create another token"]);
}

#[test]
fn running_process_reports_its_own_limits() {
    let folder = Folder::new();
    let configuration = folder.write("forebay.toml", "");
    let server = Server::start_after("ulimit -n 300", &folder.data(), Path::new(&configuration), &folder.path("log"));
    let mut command = forebay();
    command.args(["doctor", "--admin", &server.admin.to_string(), "--data"]).arg(folder.data());
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains(&format!(
            "ok       process: serve {} answers at http://{}",
            env!("CARGO_PKG_VERSION"),
            server.admin
        )),
        "{text}"
    );
    assert!(text.contains("warning  descriptors: the limit is 300"), "{text}");
    assert!(text.contains(" warning"), "{text}");

    let mut command = forebay();
    command.args(["doctor", "--role", "writer", "--admin", &server.admin.to_string(), "--data"]).arg(folder.path("w"));
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(text.contains("Name its role with --role serve"), "{text}");
}

#[test]
fn wrong_configuration_is_no_diagnosis() {
    let folder = Folder::new();
    let path = folder.write("forebay.toml", "[gateway]\nno_such = 1\n");
    let output = forebay().args(["doctor", "--config", &path]).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no_such"));
}

#[test]
fn checks_end_although_a_store_never_answers() {
    let (folder, before) = prepared();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let settings = format!("url = \"http://{}\"\nindex = \"i\"\ntimeout = \"10m\"", silent.local_addr().unwrap());
    let begun = std::time::Instant::now();
    let found = of_configuration(&folder, &sink("elasticsearch", &settings)).1;
    check(&only_new(&before, found), "problem sink s", &["no answer within 15 s"]);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}
