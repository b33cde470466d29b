//! Jobs on dead letters, with a webhook that answers when the test lets it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use serde_json::Value;

use crate::support::{Folder, Server, exchange, wait_until};
use crate::webhook_receiver::{self, ACCEPTED};

/// Always accepted: a receiver that rejects all events may be the wrong one, so the lane would wait.
const WITNESS: &[u8] = b"{\"witness\":true}";
const ASYNC: &str = "Prefer: respond-async\r\n";

#[derive(Clone, Copy, Default, PartialEq)]
enum Mood {
    #[default]
    Rejects,
    Waits,
    Accepts,
}

/// A receiver of webhooks.
#[derive(Default)]
struct Receiver {
    mood: Mutex<Mood>,
    changed: Condvar,
    /// How often each message was accepted, by its identifier.
    accepted: Mutex<BTreeMap<String, u32>>,
    /// Requests that wait now, or have waited.
    waited: Mutex<u64>,
}

impl Receiver {
    fn start() -> (Arc<Self>, SocketAddr) {
        let receiver = Arc::<Self>::default();
        let answering = receiver.clone();
        (receiver, webhook_receiver::start(move |identifier, body| answering.answer(identifier, body)))
    }

    fn answer(&self, identifier: String, body: &[u8]) -> &'static str {
        if body == WITNESS {
            return ACCEPTED;
        }
        let mut mood = self.mood.lock().unwrap();
        if *mood == Mood::Waits {
            *self.waited.lock().unwrap() += 1;
            mood = self.changed.wait_while(mood, |mood| *mood == Mood::Waits).unwrap();
        }
        if *mood == Mood::Rejects {
            return "422 Bad";
        }
        *self.accepted.lock().unwrap().entry(identifier).or_default() += 1;
        ACCEPTED
    }

    fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
        self.changed.notify_all();
    }

    fn wait_for_request(&self) {
        assert!(wait_until(|| *self.waited.lock().unwrap() > 0), "no request");
    }

    /// Accepted messages, and whether any was accepted twice.
    fn accepted(&self) -> (usize, bool) {
        let accepted = self.accepted.lock().unwrap();
        (accepted.len(), accepted.values().any(|count| *count > 1))
    }
}

struct Fixture {
    server: Server,
    receiver: Arc<Receiver>,
    folder: Folder,
}

impl Fixture {
    /// A server whose webhook has rejected this many events of this size.
    fn with(letters: usize, bytes: usize) -> Self {
        let (folder, (receiver, address)) = (Folder::new(), Receiver::start());
        let configuration = format!(
            "[types.\"*\"]\nroutes = [\"hook\"]\n[sinks.hook]\nkind = \"webhook\"\nurl = \"http://{address}/\"\n"
        );
        let configuration = folder.write("forebay.toml", configuration);
        let server = Server::start_configured(&folder.data(), Path::new(&configuration), &folder.path("log"));
        let padding = "x".repeat(bytes);
        let numbers: Vec<usize> = (0..letters).collect();
        for part in numbers.chunks(100) {
            let line = |number: &usize| format!("{{\"number\":{number},\"padding\":\"{padding}\"}}\n");
            let lines = part.iter().map(line).collect::<String>() + str::from_utf8(WITNESS).unwrap() + "\n";
            assert_eq!(server.post("/ingest/batch/access", &lines).0, 200);
        }
        server.wait_delivered();
        assert_eq!(server.metric("forebay_dead_letters{"), letters as u64);
        Self { server, receiver, folder }
    }

    fn api(&self, method: &str, target: &str, headers: &str) -> (u16, Value) {
        let admin = self.server.admin;
        let request = format!("{method} {target} HTTP/1.1\r\nHost: {admin}\r\n{headers}Connection: close\r\n\r\n");
        let (status, body) = exchange(admin, &request);
        (status, serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}")))
    }

    /// Starts a job.
    fn start(&self, target: &str) -> String {
        let (status, answer) = self.api("POST", target, ASYNC);
        assert_eq!(status, 202, "{answer}");
        answer["job"].as_str().unwrap().to_owned()
    }

    fn job(&self, id: &str) -> Value {
        self.api("GET", &format!("/api/jobs/{id}"), "").1
    }

    fn wait_end(&self, id: &str) -> Value {
        assert!(wait_until(|| !self.job(id)["ended"].is_null()), "{}", self.job(id));
        self.job(id)
    }
}

#[test]
fn job_ends_without_its_client() {
    let fixture = Fixture::with(50, 10);
    fixture.receiver.set(Mood::Waits);
    let id = fixture.start("/api/dead/replay?sink=hook&expect=50");
    fixture.receiver.wait_for_request();
    let running = fixture.job(&id);
    assert_eq!((&running["state"], &running["letters"]), (&"running".into(), &50.into()), "{running}");
    assert_eq!((&running["action"], &running["filter"]), (&"replay".into(), &"sink=hook".into()), "{running}");
    for headers in [ASYNC, ""] {
        let (status, answer) = fixture.api("POST", "/api/dead/replay?sink=hook&expect=50", headers);
        assert_eq!((status, &answer["code"]), (409, &"running".into()), "{answer}");
        assert!(answer["detail"].as_str().unwrap().contains(&format!("job {id} ")), "{answer}");
    }
    fixture.receiver.set(Mood::Accepts);
    let ended = fixture.wait_end(&id);
    assert_eq!((&ended["state"], &ended["sinks"][0]["stored"]), (&"done".into(), &50.into()), "{ended}");
    assert_eq!(fixture.receiver.accepted(), (50, false), "each once");
    let (status, answer) = fixture.api("POST", "/api/dead/replay?sink=hook&expect=50", ASYNC);
    assert_eq!((status, &answer["code"]), (409, &"changed".into()), "the click after its end: {answer}");
    let jobs = fixture.api("GET", "/api/jobs", "").1;
    assert_eq!(jobs["jobs"].as_array().unwrap().len(), 1, "{jobs}");
    assert_eq!(fixture.api("GET", "/api/jobs/77", "").1["code"], "job");
    let actions = fixture.api("GET", "/api/actions", "").1;
    assert_eq!(actions["actions"][0]["result"], "hook: 50 stored", "{actions}");
    let log = || std::fs::read_to_string(fixture.folder.path("log")).unwrap();
    let is_logged = || log().lines().any(|line| line.contains("dead replay") && line.contains("stored=50"));
    assert!(wait_until(is_logged), "{}", log());
}

#[test]
fn choice_of_dead_letters_is_one_job() {
    let fixture = Fixture::with(5, 10);
    let held = || {
        let listed = fixture.api("GET", "/api/dead", "").1;
        let letters = listed["letters"].as_array().unwrap().iter();
        letters.map(|letter| letter["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let [first, second, third, fourth, fifth] = held().try_into().unwrap();
    // As many as a request may have: the others match nothing.
    let unknown: String = (0..997).map(|number| format!(",00000000-0000-0000-0000-{number:012}")).collect();
    let chosen = format!("/api/dead/replay?sink=hook&id={fifth},{first},{third}{unknown}");
    let plan = fixture.api("POST", &format!("{chosen}&dry_run=true"), "").1;
    assert_eq!(plan["letters"], 3, "{plan}");
    let (status, answer) = fixture.api("POST", &format!("{chosen}&expect=4"), ASYNC);
    assert_eq!((status, &answer["code"]), (409, &"changed".into()), "{answer}");
    let (status, answer) = fixture.api("POST", &format!("{chosen},{second}"), ASYNC);
    assert_eq!((status, &answer["code"]), (400, &"query".into()), "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains("1001 ids are too many"), "{answer}");
    fixture.receiver.set(Mood::Accepts);
    let job = fixture.wait_end(&fixture.start(&format!("{chosen}&expect=3")));
    assert_eq!((&job["state"], &job["letters"], &job["sinks"][0]["stored"]), (&"done".into(), &3.into(), &3.into()));
    assert!(job["filter"].as_str().unwrap().ends_with(" and 997 others"), "{job}");
    let accepted = fixture.receiver.accepted.lock().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(accepted, BTreeSet::from([first.clone(), third, fifth]));
    assert_eq!(held(), [&*second, &fourth]);
    let dropped = fixture.api("POST", &format!("/api/dead/drop?id={first},{fourth}&expect=1"), "").1;
    assert_eq!(dropped["sinks"][0]["dropped"], 1, "{dropped}");
    assert_eq!(held(), [second]);
}

#[test]
fn concurrent_clicks_start_one_job() {
    let fixture = Fixture::with(20, 10);
    fixture.receiver.set(Mood::Waits);
    let click = || fixture.api("POST", "/api/dead/replay?expect=20", ASYNC).0;
    let statuses = std::thread::scope(|scope| {
        let clicks: Vec<_> = (0..8).map(|_| scope.spawn(click)).collect();
        clicks.into_iter().map(|click| click.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 202).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 7, "{statuses:?}");
    fixture.receiver.set(Mood::Accepts);
    fixture.wait_end("1");
    assert_eq!(fixture.receiver.accepted(), (20, false), "each once");
}

#[test]
fn stopped_job_ends_after_its_batch() {
    // Batches have 4 MiB.
    let fixture = Fixture::with(600, 20_000);
    fixture.receiver.set(Mood::Waits);
    let id = fixture.start("/api/dead/replay?type=access");
    fixture.receiver.wait_for_request();
    let (status, stopping) = fixture.api("DELETE", &format!("/api/jobs/{id}"), "");
    assert_eq!((status, &stopping["state"]), (200, &"stopping".into()), "{stopping}");
    fixture.receiver.set(Mood::Accepts);
    let ended = fixture.wait_end(&id);
    let stored = ended["sinks"][0]["stored"].as_u64().unwrap();
    assert!(ended["state"] == "stopped" && (1..600).contains(&stored), "{ended}");
    assert_eq!(fixture.server.metric("forebay_dead_letters{"), 600 - stored);
    let rest = format!("/api/dead/replay?expect={}", 600 - stored);
    let (status, answer) = fixture.api("POST", &rest, "");
    assert_eq!((status, &answer["sinks"][0]["stored"]), (200, &(600 - stored).into()), "{answer}");
    assert_eq!(fixture.receiver.accepted(), (600, false), "each once");
    assert_eq!(fixture.job(&id)["sinks"][0]["stored"], stored, "an ended job doesn't change");
}

#[test]
fn job_skips_events_that_die_again() {
    let fixture = Fixture::with(30, 10);
    fixture.receiver.set(Mood::Waits);
    let id = fixture.start("/api/dead/replay?sink=hook");
    fixture.receiver.wait_for_request();
    fixture.receiver.set(Mood::Rejects);
    let ended = fixture.wait_end(&id);
    assert_eq!((&ended["state"], &ended["sinks"][0]["refused"]), (&"done".into(), &30.into()), "{ended}");
    assert_eq!(fixture.server.metric("forebay_dead_letters{"), 30);
    let plan = fixture.api("POST", "/api/dead/replay?dry_run=true", "").1;
    assert_eq!(plan["sinks"][0]["repeatable"], "again", "a webhook may get it twice: {plan}");
}

#[test]
fn stopping_server_ends_a_job() {
    let fixture = Fixture::with(600, 20_000);
    fixture.receiver.set(Mood::Waits);
    fixture.start("/api/dead/replay");
    fixture.receiver.wait_for_request();
    fixture.server.signal("-TERM");
    fixture.receiver.set(Mood::Accepts);
    let Fixture { server, folder, receiver } = fixture;
    assert_eq!(server.wait_end(), Some(0));
    let log = std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(!log.contains("panicked") && !log.contains("BUG"), "{log}");
    let configuration = folder.path("forebay.toml");
    let server = Server::start_configured(&folder.data(), &configuration, &folder.path("log"));
    server.wait("forebay_dead_letters{", |dead| dead + receiver.accepted().0 as u64 == 600);
    assert!(!receiver.accepted().1, "none was sent twice");
}
