//! Types by rule, unknown types, and the handling of texts that stores can't store: from the file to the rows of a store.

use serde_json::Value;

use crate::fixture::Fixture;
use crate::support::{exchange, forebay, payloads, wait_until};

const CONFIG: &str = r#"
[gateway]
shards = 1
unknown_type = "other"
[[gateway.type_rules]]
type = "access"
when = "has(method)"
[types.access]
time = "/time"
unstorable = "repair"
transform = [{ filter = "method != 'OPTIONS'" }]
routes = ["local"]
[types.access.aggregate.hits]
window = "1m"
idle_timeout = "1day"
measures = { requests = "count" }
routes = [{ to = "results", when = "requests > 1" }]
[types.other]
unstorable = "reject"
routes = ["local"]
[sinks.local]
kind = "sqlite"
[sinks.results]
kind = "sqlite"
table = "results"
"#;

#[test]
fn rules_select_types_and_repair_texts() {
    let fixture = Fixture::new(CONFIG);
    let post = |path: &str, body: &str| fixture.server().post(path, body).0;
    assert_eq!(post("/ingest/event", r#"{"method":"GET","a":1,"a":"\u0000\ud800"}"#), 200);
    assert_eq!(post("/ingest/event", r#"{"b":1,"b":2}"#), 422, "it is of type event, which is unknown");
    assert_eq!(post("/ingest/event/nobody.knows", r#"{"b":2}"#), 200);
    fixture.server().wait_delivered();
    assert_eq!(payloads(&fixture.folder.data()), [r#"{"b":2}"#, r#"{"method":"GET","a":"\ufffd\ufffd"}"#]);
    assert_eq!(fixture.server().metric("forebay_events_accepted_total{type=\"other\"}"), 1);
    let (_, answer) = fixture.get("/events?type=other");
    assert_eq!(answer["events"][0]["payload"], serde_json::json!({"b": 2}));
}

#[test]
fn filtered_events_are_duplicates_after_a_restart() {
    let mut fixture = Fixture::new(CONFIG);
    for method in ["OPTIONS", "GET", "OPTIONS"] {
        assert_eq!(fixture.server().post("/ingest/event", &format!(r#"{{"method":"{method}"}}"#)).0, 200);
    }
    let series = "forebay_events_filtered_total{type=\"access\",step=\"1\",operation=\"filter\"}";
    assert_eq!(fixture.server().metric(series), 2);
    let saves = fixture.server().metric("forebay_ledger_saves_total");
    // The ledger changes when the event is stored, at the latest.
    fixture.server().post("/ingest/event", r#"{"method":"PUT"}"#);
    fixture.server().wait_delivered();
    fixture.server().wait("forebay_ledger_saves_total", |now| now > saves + 1);
    drop(fixture.server.take());
    fixture.start();
    assert_eq!(fixture.server().metric(series), 2);
}

#[test]
fn aggregate_results_are_read_from_their_routes() {
    let fixture = Fixture::new(CONFIG);
    let hit = |time: &str| {
        let body = format!(r#"{{"method":"GET","time":"2026-11-20T{time}Z"}}"#);
        assert_eq!(fixture.server().post("/ingest/event/access", &body).0, 200);
    };
    // The window of two hits is stored, that of one isn't.
    for time in ["10:00:20", "10:00:40", "10:01:00", "10:09:00"] {
        hit(time);
    }
    let mut answer = Value::Null;
    let found = wait_until(|| {
        answer = fixture.get("/events?type=access.hits").1;
        answer["events"].as_array().is_some_and(|events| !events.is_empty())
    });
    assert!(found, "{answer}");
    assert_eq!(answer["events"][0]["payload"]["requests"], 2);
    let skipped = "forebay_events_skipped_total{type=\"access.hits\",sink=\"results\"}";
    fixture.server().wait(skipped, |skipped| skipped == 1);
    assert_eq!(fixture.get("/events?type=access.hits").1["events"].as_array().unwrap().len(), 1);
}

#[test]
fn dry_run_finds_the_type_like_a_request() {
    let fixture = Fixture::new(CONFIG);
    let path = fixture.folder.text("forebay.toml");
    let (admin, intake) = (fixture.server().admin, fixture.server().intake);
    let accepted = |name: &str| fixture.server().metric(&format!("forebay_events_accepted_total{{type=\"{name}\"}}"));
    for (header, event, expected) in [
        ("", r#"{"method":"GET"}"#, Some("access")),
        ("", r#"{"b":1}"#, Some("other")),
        ("", r#"{"b":1,"b":2}"#, None),
        ("", r#"{"b":"#, None),
        ("Forebay-Type: access", r#"{"b":1}"#, Some("access")),
        ("Forebay-Type: nobody.knows", r#"{"method":"GET"}"#, Some("other")),
        ("Forebay-Type: access.hits", r#"{"b":1}"#, None),
    ] {
        let request = |path: &str, host: &str| {
            let (header, length) = (if header.is_empty() { "X-A: b" } else { header }, event.len());
            format!(
                "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{header}\r\nContent-Length: {length}\r\n\r\n{event}"
            )
        };
        let before = ["access", "other"].map(accepted);
        let (status, answer) = exchange(intake, &request("/ingest/event", "localhost"));
        let after = ["access", "other"].map(accepted);
        let taken_as = ["access", "other"].into_iter().zip(before).zip(after).find(|((_, was), is)| was < is);
        assert_eq!(taken_as.map(|((name, _), _)| name), expected, "{event}: {status} {answer}");
        let (tried, report) = exchange(admin, &request("/api/try", &admin.to_string()));
        let file = fixture.folder.write("event.json", event);
        let mut command = forebay();
        command.args(["try", "--config", &path, "--json", "-", &file]);
        let output = if header.is_empty() { command.output() } else { command.args(["--header", header]).output() };
        let printed = String::from_utf8(output.unwrap().stdout).unwrap();
        assert_eq!(tried, 200, "{report}");
        let answer: Option<Value> = serde_json::from_str(&answer).ok();
        for report in [&report, &printed] {
            let report: Value = serde_json::from_str(report).unwrap();
            if expected.is_some() {
                assert_eq!(report["type"].as_str(), expected, "{event}: {report}");
            }
            assert_eq!(report.get("refused"), answer.as_ref(), "{header} {event}");
        }
    }
    let (code, printed) = {
        let output =
            forebay().args(["try", "--config", &path, "nobody.knows"]).arg(fixture.folder.write("e", "{}")).output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert!(code == Some(0) && printed.contains("type      other\n"), "{printed}");
}

const TIMES: &str = r#"
[types.t]
time = "/at"
routes = ["local"]
[types.strict]
time = "/at"
time_format = "unix"
time_unreadable = "refuse"
routes = ["local"]
[types.strict.aggregate.hits]
window = "1m"
measures = { n = "count" }
routes = ["local"]
[sinks.local]
kind = "sqlite"
"#;

#[test]
fn unreadable_time_is_counted_and_logged_once() {
    let fixture = Fixture::new(TIMES);
    let post = |path: &str, body: &str| fixture.server().post(path, body);
    let unread = || fixture.server().metric("forebay_event_times_unread_total{type=\"t\"}");
    for form in ["2026-11-21T10:00:30+0000", "2026-11-21T10:00Z", "2026-11-21 10:00:30+00", "2026-11-21T10:00:30,5Z"] {
        assert_eq!(post("/ingest/event/t", &format!(r#"{{"at":"{form}"}}"#)).0, 200);
    }
    assert_eq!(post("/ingest/event/t", r#"{"at":null}"#).0, 200);
    assert!(!fixture.server().metrics().contains("forebay_event_times_unread_total{"));
    for unreadable in ["\"not a time\"", "7", "\"2026-11-21T10:00:30\""] {
        assert_eq!(post("/ingest/event/t", &format!(r#"{{"at":{unreadable}}}"#)).0, 200);
    }
    assert_eq!(post("/ingest/batch/t", "{\"at\":{}}\n").0, 200);
    assert_eq!(unread(), 4);
    let log = || std::fs::read_to_string(fixture.folder.path("log")).unwrap();
    assert!(wait_until(|| log().contains("the time of an event can't be read")), "{}", log());
    assert_eq!(log().matches("the time of an event").count(), 1, "{}", log());

    assert_eq!(post("/ingest/event/strict", r#"{"at":1.7951688e9}"#).0, 200);
    let (status, body) = post("/ingest/event/strict", r#"{"at":"soon"}"#);
    assert_eq!(status, 422);
    assert!(body.contains("\"code\":\"time\"") && body.contains("\"pointer\":\"/at\""), "{body}");
    assert_eq!(post("/ingest/batch/strict", "{\"at\":1}\n{\"at\":\"soon\"}\n").0, 207);
    let admin = fixture.server().admin;
    let tried = |of: &str, body: &str| {
        let head = format!("POST /api/try/{of} HTTP/1.1\r\nHost: {admin}\r\nContent-Length: {}", body.len());
        exchange(admin, &format!("{head}\r\nConnection: close\r\n\r\n{body}")).1
    };
    assert!(tried("t", r#"{"at":"not a time"}"#).contains("\"time_unread\":\"/at: the value is not a time"));
    assert!(!tried("t", r#"{"at":"2026-11-21T10:00Z"}"#).contains("time_unread"));
    assert!(tried("strict", r#"{"at":"soon"}"#).contains("\"code\":\"time\""));
}
