//! Events and the story of one event on the admin port, in real processes.

use serde_json::Value;

use crate::fixture::Fixture;
use crate::support::{Folder, exchange, wait_until};
use crate::two_services::{BackEnd, gateway};
use testkit::ports::free_address;

/// The default store, a webhook whose receiver is away, and a sink that gets few events.
fn config() -> String {
    format!(
        "[gateway]\nshards = 1\n[types.order]\nroutes = [\"local\", \"away\", {{ to = \"few\", when = \"total > 100\" }}]\nread = \"local\"\n\
         [sinks.local]\nkind = \"sqlite\"\n[sinks.few]\nkind = \"null\"\n\
         [sinks.away]\nkind = \"webhook\"\nurl = \"http://{}/\"\n",
        free_address()
    )
}

const PLAIN: &str = "[types.order]\nroutes = [\"local\"]\n[sinks.local]\nkind = \"sqlite\"\n";

impl Fixture {
    fn admin(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let (admin, length) = (self.server().admin, body.len());
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n");
        let (status, answer) = exchange(admin, &format!("{head}Content-Length: {length}\r\n\r\n{body}"));
        (status, serde_json::from_str(&answer).unwrap_or_default())
    }

    fn read(&self, path: &str) -> Value {
        let (status, answer) = self.admin("GET", path, "");
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// Posts an order, with a key if it isn't empty: its id and position.
    fn order(&self, key: &str, body: &str) -> (String, String) {
        let key = if key.is_empty() { String::new() } else { format!("Idempotency-Key: {key}\r\n") };
        let length = body.len();
        let head =
            "POST /ingest/event/order HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: application/json\r\n";
        let request = format!("{head}{key}Content-Length: {length}\r\n\r\n{body}");
        let (status, answer) = exchange(self.server().intake, &request);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(status, 200, "{answer}");
        (answer["id"].as_str().unwrap().to_owned(), answer["position"].as_str().unwrap().to_owned())
    }

    fn sql(&self, text: &str) {
        rusqlite::Connection::open(self.folder.data().join("events.db")).unwrap().execute_batch(text).unwrap();
    }
}

fn sink<'a>(story: &'a Value, name: &str) -> &'a Value {
    let sinks = story["sinks"].as_array().unwrap();
    sinks.iter().find(|sink| sink["sink"] == name).unwrap_or_else(|| panic!("no {name} in {story}"))
}

fn outcomes(story: &Value) -> Vec<String> {
    ["away", "few", "local"].iter().map(|name| sink(story, name)["outcome"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn story_has_the_outcome_of_each_sink() {
    let fixture = Fixture::new(&config());
    fixture.order("", r#"{"total": 500}"#);
    let (id, position) = fixture.order("cart-8812", r#"{"total": 7}"#);
    fixture.server().wait("forebay_events_pending{type=\"order\",sink=\"local\"", |pending| pending == 0);
    fixture.server().wait("forebay_events_pending{type=\"order\",sink=\"few\"", |pending| pending == 0);
    let by_key = "/api/events/by-key/story?key=cart-8812&type=order";
    assert!(wait_until(|| sink(&fixture.read(by_key), "away")["failures"][0]["tries"].as_u64() > Some(0)));
    let paths = [format!("/api/events/{id}/story"), format!("/api/events/{position}/story"), by_key.to_owned()];
    for path in &paths {
        let story = fixture.read(path);
        assert_eq!(outcomes(&story), ["pending", "skipped", "stored"], "{path}: {story}");
        assert_eq!((&story["id"], &story["type"]), (&id.as_str().into(), &"order".into()));
        assert_eq!(story["journal"]["position"], position.as_str());
        assert_eq!(
            (&sink(&story, "away")["before_it"], &sink(&story, "few")["condition"]),
            (&1.into(), &"total > 100".into())
        );
        assert_eq!((&story["payload"]["total"], &story["journal"]["still_there"]), (&7.into(), &true.into()));
        assert_eq!(story["received"]["client"], "127.0.0.1");
    }
    assert_eq!(fixture.read(by_key)["received"]["asked_by_key"], "cart-8812");
    let created = fixture.order("", r#"{"total": 8}"#).0;
    let story = fixture.read(&format!("/api/events/{created}/story"));
    assert_eq!(
        (&story["known_from"][0], &story["payload"]["total"]),
        (&"journal".into(), &8.into()),
        "by the time in its id"
    );
    let (status, unknown) = fixture.admin("GET", "/api/events/01a2177a-4d3c-770b-baa2-b33028300118/story", "");
    assert_eq!((status, &unknown["code"]), (404, &"unknown_event".into()));
    assert!(unknown["looked_in"].as_array().unwrap().contains(&"store local".into()), "{unknown}");
    assert_eq!(fixture.admin("GET", "/api/events/x/story", "").0, 400);
}

#[test]
fn story_follows_dead_letter_to_its_replay() {
    let fixture = Fixture::new(PLAIN);
    fixture.order("", r#"{"n": 1}"#);
    fixture.server().wait_delivered();
    fixture.sql("create trigger refuse before insert on events when new.payload like '%bad%' begin select raise(abort, 'no bad ones'); end");
    let (id, _) = fixture.order("", r#"{"bad": 2}"#);
    fixture.server().wait_delivered();
    let path = format!("/api/events/{id}/story");
    let story = fixture.read(&path);
    let local = sink(&story, "local");
    assert_eq!(local["outcome"], "dead", "{story}");
    assert!(local["reason"].as_str().unwrap().contains("no bad ones") && local["at"]["from"].is_string(), "{story}");
    let rejected = local["at"].clone();
    let (status, edited) = fixture.admin("PUT", &format!("/api/dead/{id}?sink=local"), r#"{"good": 2}"#);
    assert_eq!(status, 200, "{edited}");
    let story = fixture.read(&path);
    let local = sink(&story, "local");
    assert_eq!((&local["outcome"], &local["at"]), (&"dead".into(), &rejected), "{story}");
    assert!(local["edits"][0]["at"].as_str() > rejected["to"].as_str(), "the edit has its own time: {story}");
    let (status, replayed) = fixture.admin("POST", &format!("/api/dead/replay?sink=local&id={id}"), "");
    assert_eq!(status, 200, "{replayed}");
    let story = fixture.read(&path);
    let local = sink(&story, "local");
    assert_eq!((&local["outcome"], local["at"]["from"].is_string()), (&"stored".into(), true), "{story}");
    assert!(local["at"]["from"].as_str() > rejected["to"].as_str(), "the replay has its own time: {story}");
}

#[test]
fn story_is_known_after_journal_freed_event() {
    let fixture = Fixture::new(PLAIN);
    let (id, position) = fixture.order("", r#"{"n": 1}"#);
    let long = format!("\"{}\"", "x".repeat(900_000));
    for _ in 0..8 {
        fixture.order("", &long);
    }
    fixture.server().wait_delivered();
    fixture.server().wait("forebay_journal_freed_segments_total", |freed| freed > 0);
    for path in [format!("/api/events/{id}/story?position={position}"), format!("/api/events/{id}/story")] {
        assert!(wait_until(|| sink(&fixture.read(&path), "local")["at"].is_object()), "{}", fixture.read(&path));
        let story = fixture.read(&path);
        assert_eq!(
            (&sink(&story, "local")["outcome"], &story["known_from"]),
            (&"stored".into(), &serde_json::json!(["store local"]))
        );
        assert_eq!(story["payload"]["n"], 1);
        let (at, received) = (&sink(&story, "local")["at"], story["received"]["at"].as_str().unwrap());
        assert!(at["to"].as_str().unwrap() >= received, "{story}");
    }
}

#[test]
fn story_names_the_writer_that_stored_the_event() {
    let folder = Folder::new();
    let writer = BackEnd::start_on(&folder.path("writer"), "127.0.0.1:0", &[]);
    let server = gateway(&folder.data(), &["--writer", &writer.url()], &folder.path("log"));
    let request = "POST /ingest/event HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: application/json\r\nContent-Length: 1\r\n\r\n1";
    let (status, answer) = exchange(server.intake, request);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(status, 200, "{answer}");
    let path = format!("/api/events/{}/story", answer["position"].as_str().unwrap());
    let named = || {
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let story: Value = serde_json::from_str(&exchange(server.admin, &head).1).unwrap();
        sink(&story, "local")["server"].as_str().unwrap_or_default().to_owned()
    };
    assert!(wait_until(|| !named().is_empty()));
    assert_eq!(named(), writer.url());
}

#[test]
fn events_are_paged_by_their_source() {
    let fixture = Fixture::new(PLAIN);
    for number in 0..30 {
        fixture.order("", &format!("{{\"n\": {number}}}"));
    }
    fixture.server().wait_delivered();
    fixture.sql("update events set source = 'shop' where json_extract(payload, '$.n') % 10 = 4");
    let numbers = |query: &str| -> Vec<u64> {
        let page = fixture.read(&format!("/api/events?{query}"));
        page["events"].as_array().unwrap().iter().map(|event| event["payload"]["n"].as_u64().unwrap()).collect()
    };
    assert_eq!(numbers("source=shop&limit=2"), [24, 14]);
    assert_eq!(numbers("source=shop&where=n%20%3C%2020"), [14, 4]);
    assert_eq!((numbers("source=other").len(), numbers("limit=200").len()), (0, 30));
}

#[test]
fn events_are_paged_by_a_condition() {
    let fixture = Fixture::new(PLAIN);
    for number in 0..30 {
        fixture.order(&format!("k{number}"), &format!("{{\"n\": {number}}}"));
    }
    fixture.server().wait_delivered();
    let (mut found, mut cursor, mut looked_at) = (Vec::new(), String::new(), 0);
    loop {
        let page = fixture.read(&format!("/api/events?type=order&where=n%20%25%203%20%3D%3D%200&limit=4{cursor}"));
        let numbers = page["events"].as_array().unwrap().iter().map(|event| event["payload"]["n"].as_u64().unwrap());
        found.extend(numbers);
        looked_at += page["looked_at"].as_u64().unwrap();
        assert_eq!((&page["sink"], page["looked_to"].is_string()), (&"local".into(), true), "{page}");
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(found, (0..30).rev().filter(|number| number % 3 == 0).collect::<Vec<u64>>());
    assert_eq!(looked_at, 30, "each event is compared once");
    let other = format!("type=order&where=n%20%3E%201&limit=4{cursor}");
    let by_key = fixture.read("/api/events?type=order&key=k7&sink=local");
    let id = by_key["events"][0]["id"].as_str().unwrap();
    assert_eq!(fixture.read(&format!("/api/events/{id}"))["payload"]["n"], 7);
    for (query, code) in [
        ("type=none", 404),
        ("where=n%20%3D", 400),
        ("limit=201", 400),
        ("sink=none", 404),
        ("kind=a", 400),
        (&*other, 400),
    ] {
        let (status, answer) = fixture.admin("GET", &format!("/api/events?{query}"), "");
        assert_eq!((status, answer["detail"].is_string()), (code, true), "{query}: {answer}");
    }
    assert_eq!(fixture.admin("POST", "/api/events", "").0, 405);
}
