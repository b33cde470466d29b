//! "Why is my event missing?": a rejection in the metrics, in the log, and in the table of another type.

use std::path::Path;

use crate::support::{Folder, Server, exchange, wait_until};

const CONFIG: &str = r#"
[types.orders]
schema = "orders.json"
refused_to = "rejected"
routes = ["local"]

[types.cards]
schema = "orders.json"
transform = [{ mask = "/card", keep_last = 4 }]
refused_to = "rejected"
routes = ["local"]

[types.rejected]
time = "/time"
routes = ["quarantine"]

[sinks.local]
kind = "sqlite"

[sinks.quarantine]
kind = "sqlite"
path = "rejected.db"
table = "rejected"
"#;
const CARD: &str = "4111111111111111";

fn start(folder: &Folder) -> Server {
    folder.write("forebay.toml", CONFIG);
    folder.write("orders.json", r#"{"required": ["n"], "properties": {"n": {"type": "integer"}}}"#);
    Server::start_configured(&folder.data(), &folder.path("forebay.toml"), &folder.path("log"))
}

fn post(server: &Server, path: &str, key: &str, body: &str) -> u16 {
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nIdempotency-Key: {key}\r\nAccept: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    exchange(server.intake, &request).0
}

type Row = (String, String, Option<String>, Option<String>, Option<String>);

/// The rows of the quarantine, in the order of their types and codes.
fn rows(data: &Path) -> Vec<Row> {
    let connection = rusqlite::Connection::open(data.join("rejected.db")).unwrap();
    let sql = "select payload ->> 'type' as rejected_type, payload ->> 'code' as code, payload ->> 'pointer', payload ->> 'sha256', \
               payload ->> 'text' from rejected order by rejected_type, code";
    let mut statement = connection.prepare(sql).unwrap();
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
    statement.query_map([], row).unwrap().map(Result::unwrap).collect()
}

#[test]
fn rejected_event_is_in_metrics_log_and_table() {
    let folder = Folder::new();
    let server = start(&folder);
    assert_eq!(post(&server, "/ingest/event/orders", "order-7", r#"{"n":"seven"}"#), 422);
    assert_eq!(post(&server, "/ingest/event/orders", "order-7", r#"{"n":7}"#), 200);
    assert_eq!(post(&server, "/ingest/batch/orders", "batch-1", "{\"n\":1}\n{\"n\":\n"), 207);
    assert_eq!(post(&server, "/ingest/event/cards", "card-1", &format!(r#"{{"n":"{CARD}","card":"{CARD}"}}"#)), 422);
    assert_eq!(post(&server, "/ingest/event/unknown", "a", "{}"), 404);

    server.wait("forebay_events_stored_total{type=\"rejected\"", |stored| stored == 3);
    server.wait_delivered();
    assert_eq!(server.metric("forebay_events_accepted_total{type=\"rejected\""), 3);
    assert_eq!(server.metric("forebay_events_accepted_total{type=\"orders\""), 2);
    assert_eq!(server.metric("forebay_quarantine_events_total{result=\"stored\"}"), 3);
    let metrics = server.metrics();
    for line in [
        "forebay_refusals_total{code=\"schema\",type=\"orders\"} 1",
        "forebay_refusals_total{code=\"schema\",type=\"cards\"} 1",
        "forebay_refusals_total{code=\"json\",type=\"orders\"} 1",
        "forebay_refusals_total{code=\"unknown_type\",type=\"other\"} 1",
        "forebay_refusals_total{code=\"overload\"} 0",
    ] {
        assert!(metrics.lines().any(|found| found == line), "no {line} in {metrics}");
    }
    let text = |text: &str| Some(text.to_owned());
    let found = rows(&folder.data());
    assert_eq!(found[0], ("cards".into(), "schema".into(), None, None, None));
    assert_eq!((found[1].1.as_str(), &found[1].4), ("json", &text("{\"n\":")));
    assert_eq!((found[2].1.as_str(), &found[2].2, &found[2].4), ("schema", &text("/n"), &text("{\"n\":\"seven\"}")));
    assert!(found[2].3.as_ref().is_some_and(|hash| hash.len() == 64), "{found:?}");

    let log = || std::fs::read_to_string(folder.path("log")).unwrap();
    let expected_lines = [
        "rejected  code=schema type=orders client=127.0.0.1 pointer=/n",
        "rejected  code=schema type=cards client=127.0.0.1\n",
        "line=2",
    ];
    assert!(wait_until(|| expected_lines.iter().all(|line| log().contains(line))), "{}", log());
    assert_eq!(server.stop("-TERM"), Some(0));
    assert!(!log().contains("seven"), "{}", log());
    for kept in [log(), format!("{found:?}")] {
        assert!(!kept.contains(CARD), "{kept}");
    }
}

#[test]
fn dry_run_stores_nothing() {
    let folder = Folder::new();
    let server = start(&folder);
    let (admin, body) = (server.admin, r#"{"n":"seven"}"#);
    let request = format!(
        "POST /api/try/orders HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let (status, answer) = exchange(server.admin, &request);
    assert!(status == 200 && answer.contains("schema"), "{status} {answer}");
    assert_eq!(server.metric("forebay_refusals_total"), 0);
    assert_eq!(server.metric("forebay_quarantine_events_total"), 0);
    assert_eq!(server.metric("forebay_events_accepted_total"), 0);
    assert_eq!(server.stop("-TERM"), Some(0));
}
