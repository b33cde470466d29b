//! Attachments as separate objects: written again, missing in the listing, not decodable, and with an existing name.

use objects::Codec;
use serde_json::Value;
use sink::{RejectedRecord, SinkError, WriteOutcome};
use sink_testing::containers::attachments::{check, fixture, payload, shots};
use sink_testing::containers::lines;
use sink_testing::events::{batch, deliver};
use testkit::swift::{SwiftProcess, SwiftServer};

use crate::fixture::sink_of;

#[tokio::test]
async fn repeated_object_has_the_same_attachment_names() {
    let Some(server) = SwiftServer::shared() else { return };
    let fixture = fixture(server, sink_of, Codec::None);
    let rest = "x".repeat(1_000_000);
    let long = |number: u64| payload(number).replace("\"n\"", &format!("\"rest\": \"{rest}\", \"n\""));
    let payloads: Vec<String> = (1..=12).map(long).collect();
    let batch = batch(0, 1, &payloads.iter().map(String::as_str).collect::<Vec<_>>());
    deliver(&fixture.sink(), &batch).await;
    let names = server.client().list(&fixture.container);
    let (object, lines) = names
        .iter()
        .filter(|name| name.ends_with(".ndjson"))
        .map(|name| (name, server.client().get(&fixture.container, name).unwrap()))
        .next()
        .unwrap();
    assert!(lines.len() as u64 > fixture.rules.bytes_max);
    for (_, payload) in lines::events(object, &lines) {
        let shown: Value = serde_json::from_slice(&payload).unwrap();
        assert!(names.iter().any(|name| *name == shown["image"]), "{}", shown["image"]);
    }
}

#[tokio::test]
async fn attachment_missing_in_the_listing_is_added() {
    let Some(server) = SwiftServer::start() else { return };
    let fixture = fixture(&server, sink_of, Codec::None);
    let sink = fixture.sink();
    deliver(&sink, &shots(1, 2)).await;
    server.kill_part(SwiftProcess::Container);
    deliver(&sink, &shots(3, 2)).await;
    std::fs::remove_dir_all(server.folder().join("srv/d1/async_pending")).unwrap();
    server.run_part(SwiftProcess::Container);
    assert_eq!(server.client().list(&fixture.container).len(), 4);
    deliver(&sink, &shots(3, 2)).await;
    check(&fixture, 4);
}

#[tokio::test]
async fn event_with_invalid_attachment_is_rejected_alone() {
    let Some(server) = SwiftServer::shared() else { return };
    let fixture = fixture(server, sink_of, Codec::None);
    let (good, bad) = (payload(1), payload(2).replace("\t\"", "\t\"-"));
    let batch = batch(0, 1, &[&good, &bad]);
    let Ok(WriteOutcome::Rejected { refused }) = fixture.sink().write(&batch).await else {
        panic!("nothing was rejected")
    };
    let [RejectedRecord { index: 1, reason }] = &refused[..] else { panic!("{refused:?}") };
    assert!(reason.contains("/image") && reason.contains("isn't base64"), "{reason}");
    deliver(&fixture.sink(), &batch.without(&[1])).await;
    check(&fixture, 1);
}

#[tokio::test]
async fn other_object_with_an_attachments_name_is_reported() {
    let Some(server) = SwiftServer::shared() else { return };
    let fixture = fixture(server, sink_of, Codec::None);
    deliver(&fixture.sink(), &shots(1, 1)).await;
    let client = server.client();
    let part = client.list(&fixture.container).into_iter().find(|name| !name.contains(".ndjson")).unwrap();
    let path = format!("/{}/{part}", fixture.container);
    assert!(client.ask("PUT", &path, &[], b"changed").is_success());
    let Err(SinkError::Misconfigured(reason)) = fixture.sink().write(&shots(1, 1)).await else {
        panic!("it was accepted")
    };
    assert!(reason.contains(&part), "{reason}");
    assert_eq!(client.get(&fixture.container, &part).unwrap(), b"changed");
    assert!(client.ask("DELETE", &path, &[], b"").is_success());
    deliver(&fixture.sink(), &shots(1, 1)).await;
    check(&fixture, 1);
}
