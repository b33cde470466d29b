//! Batches that are open while the rules of their type change: records checked by the old rules aren't accepted under the new ones.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::Fixture;
use crate::support::HANGS;

/// A type whose rules change, and one whose rules don't, though it has some of each kind.
fn config(rules: &str, sink: &str) -> String {
    format!(
        "[types.t]\nack_memory = true\nroutes = [\"{sink}\"]\n{rules}\n\
         [types.kept]\nid = \"/id\"\nschema = \"kept.json\"\ntransform = [{{ drop = \"/x\" }}]\nroutes = [\"one\", \"two\"]\n\
         [sinks.one]\nkind = \"sqlite\"\n[sinks.two]\nkind = \"sqlite\"\ntable = \"two\"\n"
    )
}

/// Begins a batch, whose first half was received when this returns.
fn begin(fixture: &Fixture, type_name: &str, headers: &str) -> TcpStream {
    let before = fixture.server().metric("forebay_http_in_flight_bytes");
    let mut client = TcpStream::connect(fixture.server().intake).unwrap();
    client.set_read_timeout(Some(HANGS)).unwrap();
    let head = format!(
        "POST /ingest/batch/{type_name} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\
         Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{{\"x\":1}}\n\r\n"
    );
    client.write_all(head.as_bytes()).unwrap();
    fixture.server().wait("forebay_http_in_flight_bytes", |bytes| bytes >= before + 8);
    client
}

fn end(mut client: TcpStream) -> String {
    client.write_all(b"8\r\n{\"x\":2}\n\r\n0\r\n\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

fn assert_later(answer: &str, of: &str) {
    assert!(answer.starts_with("HTTP/1.1 503 "), "{of}: {answer}");
    assert!(answer.contains("retry-after: 1\r\n"), "{of}: {answer}");
    assert!(answer.contains("Configuration reload in progress"), "{of}: {answer}");
}

#[test]
fn batch_checked_by_old_rules_must_be_retried() {
    let mut fixture = Fixture { server: None, folder: crate::support::Folder::new() };
    fixture.folder.write("kept.json", "{\"type\": \"object\"}");
    fixture.folder.write("t.json", "{\"type\": \"object\"}");
    let plain = config("", "one");
    fixture.folder.write("forebay.toml", &plain);
    fixture.start();
    for (rules, headers) in [
        ("transform = [{ drop = \"/x\" }]", ""),
        ("transform = [{ drop = \"/x\" }]", "Forebay-Ack: memory\r\n"),
        ("transform = [{ drop = \"/x\" }]", "Forebay-Atomic: true\r\n"),
        ("schema = \"t.json\"", ""),
        ("id = \"/x\"", ""),
        ("unstorable = \"repair\"", ""),
        // Nothing of the filtered events is stored, and yet they would be answered.
        ("transform = [{ filter = \"x > 9\" }]", ""),
    ] {
        let (there, back) = (config(rules, "two"), &plain);
        for (to, of) in [(&there, "a change"), (back, "the way back")] {
            let (changed, kept) = (begin(&fixture, "t", headers), begin(&fixture, "kept", ""));
            fixture.accepts(to);
            assert_later(&end(changed), &format!("{of}: {rules} {headers}"));
            let kept = end(kept);
            assert!(kept.starts_with("HTTP/1.1 200 "), "{of}: {rules}: {kept}");
        }
    }
    fixture.server().wait_delivered();
    assert_eq!(fixture.counts("t", "one"), [0; 4]);
    assert_eq!((fixture.rows("events"), fixture.rows("two")), (28, 28), "those of the other type");
    assert_eq!(fixture.server().metric("forebay_ledger_errors_total"), 0);
}

#[test]
fn changed_schema_file_is_reloaded() {
    let mut fixture = Fixture { server: None, folder: crate::support::Folder::new() };
    fixture.folder.write("kept.json", "{\"type\": \"object\"}");
    fixture.folder.write("t.json", "{\"type\": \"object\"}");
    let config = config("schema = \"t.json\"", "one");
    fixture.folder.write("forebay.toml", &config);
    fixture.start();
    let same = begin(&fixture, "t", "");
    fixture.accepts(&config);
    let same = end(same);
    assert!(same.starts_with("HTTP/1.1 200 "), "{same}");
    let changed = begin(&fixture, "t", "");
    fixture.folder.write("t.json", "{\"required\": [\"y\"]}");
    fixture.accepts(&config);
    assert_later(&end(changed), "the file");
    fixture.server().wait_delivered();
    assert_eq!(fixture.rows("events"), 2);
}

/// A batch whose steps filter or reject events that others would accept.
#[test]
fn batch_emptied_by_old_rules_must_be_retried() {
    let mut fixture = Fixture { server: None, folder: crate::support::Folder::new() };
    fixture.folder.write("kept.json", "{\"type\": \"object\"}");
    fixture.folder.write("t.json", "{\"required\": [\"y\"]}");
    for rules in ["transform = [{ filter = \"x > 9\" }]", "schema = \"t.json\""] {
        fixture.folder.write("forebay.toml", config(rules, "one"));
        fixture.start();
        let begun = begin(&fixture, "t", "");
        fixture.accepts(&config("", "one"));
        assert_later(&end(begun), rules);
        assert_eq!(fixture.stop("-TERM"), Some(0));
    }
}
