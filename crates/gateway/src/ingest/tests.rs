//! All callers run one pipeline: a stage that is planted in it shows in all four.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use event::TypeName;
use eventlog::{EventLog, LogOptions};
use journal::DataDirectory;
use journal::disk::OsDisk;

use super::dry_run::{DryRun, RequestContext};
use crate::error_code::ErrorCode;
use crate::event_types::{GatewayTypes, TypeRules};
use crate::gateway::{Gateway, GatewayOptions};
use crate::problem::Problem;

/// The planted step: it rejects a payload that other tests don't send, and names its thread.
pub(super) fn planted_step(payload: &str) -> Result<(), Problem> {
    if payload.starts_with("{\"planted\":") {
        let detail = format!("planted, on {}", thread::current().name().unwrap_or_default());
        return Err(Problem::new(ErrorCode::Transform, detail));
    }
    Ok(())
}

fn post(gateway: &Gateway, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(gateway.local_addr()).unwrap();
    let length = body.len();
    write!(stream, "POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")
        .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn every_ingest_path_runs_a_planted_step() {
    let folder = tempfile::tempdir().unwrap();
    let directory = DataDirectory::open(Arc::new(OsDisk), &folder.path().join("data")).unwrap();
    let log =
        EventLog::open(&directory, &LogOptions { first_segment_bytes: 256 * 1024, ..LogOptions::default() }).unwrap();
    let types = GatewayTypes {
        open: Some(TypeRules::default()),
        type_pointer: Some("/type".parse().unwrap()),
        ..GatewayTypes::default()
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let gateway = Gateway::start(listener, Vec::new(), &log, types, GatewayOptions::default()).unwrap();
    let large = format!(r#"{{"planted":"{}"}}"#, "x".repeat(100_000));

    let event = post(&gateway, "/ingest/event", r#"{"planted":1}"#);
    assert!(event.contains("planted, on shard-"), "{event}");
    let batch = post(&gateway, "/ingest/batch", "{\"planted\":1}\n{\"planted\":2}\n");
    assert_eq!(batch.matches("planted, on shard-").count(), 2, "{batch}");
    for path in ["/ingest/event", "/ingest/event/a"] {
        let other = post(&gateway, path, r#"{"other":1}"#);
        assert!(other.starts_with("HTTP/1.1 200 "), "{other}");
    }
    let offloaded = post(&gateway, "/ingest/event", &large);
    assert!(offloaded.contains("planted, on ") && !offloaded.contains("shard-"), "{offloaded}");
    gateway.stop(Instant::now());

    let mut dry_run = DryRun::new(TypeName::new("a").unwrap(), TypeRules::default());
    let report = dry_run.run(br#"{"planted":1}"#, &RequestContext::default());
    let detail = report.end.refused.unwrap().detail().to_owned();
    assert!(detail.starts_with("planted, on ") && !detail.contains("shard-"), "{detail}");
    assert!(dry_run.run(br#"{"other":1}"#, &RequestContext::default()).end.refused.is_none());
}
