//! Routes with conditions, over HTTP and with real stores: the events of each route, the answers to clients, and the effect of a reload and a
//! kill.

use serde_json::Value;

use crate::fixture::Fixture;
use crate::support::exchange;

fn config(condition: &str) -> String {
    format!(
        "[types.access]\nroutes = [\"nothing\", {{ to = \"local\", when = \"{condition}\" }}]\n\
         [sinks.local]\nkind = \"sqlite\"\n[sinks.nothing]\nkind = \"null\"\n"
    )
}

impl Fixture {
    /// Posts an event and waits until it has its end.
    fn post(&self, body: &str) -> (u16, Value) {
        let head =
            "POST /ingest/event/access HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nForebay-Ack: stored\r\n";
        let length = body.len();
        let request = format!("{head}Accept: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
        let (status, answer) = exchange(self.server().intake, &request);
        (status, serde_json::from_str(&answer).unwrap_or_default())
    }

    /// Stored, dead, skipped and pending in a sink.
    fn counts(&self, sink: &str) -> [u64; 4] {
        let of = |name: &str| self.server().metric(&format!("{name}{{type=\"access\",sink=\"{sink}\"}}"));
        ["stored_total", "dead_total", "skipped_total", "pending"].map(|name| of(&format!("forebay_events_{name}")))
    }
}

#[test]
fn clients_get_the_outcome_of_each_event() {
    let fixture = Fixture::new(&config("status >= 500"));
    let (status, stored) = fixture.post(r#"{"status":503}"#);
    assert_eq!(status, 200, "{stored}");
    let (status, skipped) = fixture.post(r#"{"status":200}"#);
    assert_eq!(status, 200, "{skipped}");
    let (status, dead) = fixture.post(r#"{"code":7}"#);
    assert_eq!((status, &dead["code"], &dead["dead"][0]["sink"]), (424, &"dead_letter".into(), &"local".into()));
    assert_eq!(dead["dead"][0]["reason"], "condition_failed", "{dead}");
    // Skipped events are counted when the store's cursor has passed them. No request waits for that.
    fixture.server().wait_delivered();
    assert_eq!((fixture.counts("local"), fixture.counts("nothing")), ([1, 1, 1, 0], [3, 0, 0, 0]));
    let read = |event: &Value| {
        let (id, position) = (event["id"].as_str().unwrap(), event["position"].as_str().unwrap());
        fixture.get(&format!("/events/{id}?position={position}"))
    };
    assert_eq!(read(&stored).1["payload"]["status"], 503);
    let (status, answer) = read(&skipped);
    assert_eq!(status, 404);
    assert!(answer["detail"].as_str().unwrap().contains("the condition of its route"), "{answer}");
    assert_eq!(read(&dead).0, 424);
}

#[test]
fn new_condition_holds_after_reload_and_kills() {
    let mut fixture = Fixture::new(&config("status >= 500"));
    for status in [200, 500] {
        fixture.post(&format!(r#"{{"status":{status}}}"#));
    }
    fixture.folder.write("forebay.toml", config("status < 500"));
    let admin = fixture.server().admin;
    let reload = format!("POST /api/reload HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
    assert_eq!(exchange(admin, &reload).0, 200);
    for status in [200, 201, 500] {
        fixture.post(&format!(r#"{{"status":{status}}}"#));
    }
    drop(fixture.server.take());
    fixture.folder.write("forebay.toml", config("true"));
    fixture.start();
    fixture.post("{}");
    assert_eq!((fixture.counts("local"), fixture.counts("nothing")), ([4, 0, 2, 0], [6, 0, 0, 0]));
    assert_eq!(crate::support::payloads(&fixture.folder.data()).len(), 4);
}

#[test]
fn types_api_shows_conditions_of_routes() {
    let config = config("status >= 500").replace("routes", "unstorable = \"repair\"\nroutes");
    let fixture = Fixture::new(&config);
    let admin = fixture.server().admin;
    let request = format!("GET /api/types HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
    let (status, answer) = exchange(admin, &request);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let routes = serde_json::json!(["nothing", {"to": "local", "when": "status >= 500"}]);
    assert_eq!((status, &answer["types"][0]["routes"]), (200, &routes));
    assert_eq!(answer["types"][0]["unstorable"], "repair");
}
