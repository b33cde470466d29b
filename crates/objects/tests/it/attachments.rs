//! Parts of payloads that are objects of their own: their bytes, their names in the lines, and that each is there once whatever
//! goes wrong.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use objects::AttachmentRule;
use objects::{Codec, SideFolder};
use serde_json::Value;
use sink::{RejectedRecord, SinkError, WriteOutcome};

use crate::fixture::{BOTH, Fixture, OF_LINES, Protocol, server};
use crate::lines;
use sink_testing::events::{batch, deliver};
use testkit::swift::{SwiftProcess, SwiftServer};

/// Each so many bytes of the server's answers is a place to cut at; with `FOREBAY_SWIFT_CUTS=all` each byte is.
const CUT_STEP: usize = 97;

fn fixture(server: &SwiftServer, protocol: Protocol, codec: Codec) -> Fixture<'_> {
    let mut fixture = Fixture::with(server, protocol, codec);
    fixture.rules.apart =
        Some(AttachmentRule { data: "/image".into(), content_type: Some("/type".into()), folder: SideFolder::parts() });
    fixture
}

/// The bytes of an image: all values, and another length for each.
fn image(number: u64) -> Vec<u8> {
    (0..2_000 + number * 7).map(|at| (at * 31 + number).to_le_bytes()[0]).collect()
}

fn payload(number: u64) -> String {
    format!("{{\"n\": {number},\"image\":\t\"{}\", \"type\" : \"image/x-{number}\"}}", STANDARD.encode(image(number)))
}

fn shots(first: u64, count: u64) -> sink::Batch {
    let payloads: Vec<String> = (first..first + count).map(payload).collect();
    batch(0, first, &payloads.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Holds everything in the container against the events up to this one: each has its line and its image, and nothing else is there.
fn check(fixture: &Fixture<'_>, last: u64) {
    let client = fixture.server.client();
    let mut names = client.list(&fixture.container);
    let described: Vec<String> = names.iter().filter(|name| name.ends_with(".manifest.json")).cloned().collect();
    names.retain(|name| !name.ends_with(".manifest.json"));
    let mut numbers = BTreeMap::new();
    for name in described {
        let manifest: Value = serde_json::from_slice(&client.get(&fixture.container, &name).unwrap()).unwrap();
        let object = manifest["file"].as_str().unwrap();
        names.retain(|name| name != object);
        let bytes = client.get(&fixture.container, object).unwrap();
        let events = lines::events(object, &bytes);
        assert_eq!(manifest["objects"], events.len());
        for (id, payload) in events {
            let shown: Value = serde_json::from_slice(&payload).unwrap();
            let (number, name) = (shown["n"].as_u64().unwrap(), shown["image"].as_str().unwrap());
            assert_eq!(payload, self::payload(number).replace(&STANDARD.encode(image(number)), name).into_bytes());
            assert!(
                name.starts_with(&format!("_parts/{}", object.split(".ndjson").next().unwrap()))
                    && name.ends_with(&id.to_string())
            );
            let path = format!("/{}/{name}", fixture.container);
            let said = client.ask("GET", &path, &[], b"");
            assert_eq!((said.status, said.header("Content-Type")), (200, Some(&*format!("image/x-{number}"))));
            assert_eq!(said.body, image(number));
            assert!(numbers.insert(number, ()).is_none(), "event {number} twice");
            names.retain(|other| other != name);
        }
    }
    assert!(numbers.keys().copied().eq(1..=last), "{numbers:?}");
    assert!(names.is_empty(), "more than the lines name: {names:?}");
}

#[tokio::test]
async fn parts_are_objects_whose_names_stand_in_the_lines() {
    let Some(server) = server() else { return };
    for protocol in BOTH {
        for codec in OF_LINES {
            let fixture = fixture(server, protocol, codec);
            deliver(&fixture.sink(), &shots(1, 20)).await;
            check(&fixture, 20);
            // The same once more, and by somebody else.
            deliver(&fixture.sink(), &shots(1, 20)).await;
            deliver(&fixture.past_the_proxy(), &shots(1, 20)).await;
            check(&fixture, 20);
            // All objects with the prefix of the data are events.
            let names = server.client().list(&fixture.container);
            let rows: Vec<&String> = names.iter().filter(|name| name.starts_with("of/")).collect();
            assert!(!rows.is_empty() && rows.iter().all(|name| name.ends_with(codec.ending())), "{names:?}");
        }
    }
}

#[tokio::test]
async fn an_object_that_is_made_again_has_the_same_names_in_it() {
    let Some(server) = server() else { return };
    let fixture = fixture(server, Protocol::Swift, Codec::None);
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
async fn cut_at_any_byte_of_an_answer_each_part_is_there_once() {
    let Some(server) = server() else { return };
    for protocol in BOTH {
        let fixture = fixture(server, protocol, Codec::None);
        let (mut first, mut cuts) = (1, 0);
        fixture.sink().connect().await.unwrap();
        let step = if std::env::var_os("FOREBAY_SWIFT_CUTS").is_some() { 1 } else { CUT_STEP };
        for at in (0..).step_by(step) {
            let sink = fixture.sink();
            let before = fixture.proxy.answered();
            let cut = fixture.proxy.cut_after(at);
            let batch = shots(first, 3);
            let answer = sink.write(&batch).await;
            let is_cut = fixture.proxy.answered() - before == at;
            drop(cut);
            assert!(!matches!(answer, Err(SinkError::Misconfigured(_))), "{answer:?} after {at} bytes");
            deliver(&sink, &batch).await;
            (first, cuts) = (first + 3, cuts + 1);
            if !is_cut {
                break;
            }
        }
        assert!(cuts > 10, "{cuts} cuts");
        check(&fixture, first - 1);
    }
}

#[tokio::test]
async fn a_part_that_no_listing_has_is_put_on_it() {
    let Some(server) = SwiftServer::start() else { return };
    let fixture = fixture(&server, Protocol::Swift, Codec::None);
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
async fn what_cannot_be_taken_apart_is_refused_alone() {
    let Some(server) = server() else { return };
    let fixture = fixture(server, Protocol::Swift, Codec::None);
    let (good, bad) = (payload(1), payload(2).replace("\t\"", "\t\"-"));
    let batch = batch(0, 1, &[&good, &bad]);
    let Ok(WriteOutcome::Rejected { refused }) = fixture.sink().write(&batch).await else {
        panic!("nothing was withheld")
    };
    let [RejectedRecord { index: 1, reason }] = &refused[..] else { panic!("{refused:?}") };
    assert!(reason.contains("/image") && reason.contains("isn't base64"), "{reason}");
    deliver(&fixture.sink(), &batch.without(&[1])).await;
    check(&fixture, 1);
}

#[tokio::test]
async fn a_part_whose_name_is_taken_is_left_alone_and_told() {
    let Some(server) = server() else { return };
    let fixture = fixture(server, Protocol::Swift, Codec::None);
    deliver(&fixture.sink(), &shots(1, 1)).await;
    let client = server.client();
    let part = client.list(&fixture.container).into_iter().find(|name| !name.contains(".ndjson")).unwrap();
    let path = format!("/{}/{part}", fixture.container);
    assert!(client.ask("PUT", &path, &[], b"changed").is_success());
    let Err(SinkError::Misconfigured(reason)) = fixture.sink().write(&shots(1, 1)).await else {
        panic!("it was taken")
    };
    assert!(reason.contains(&part), "{reason}");
    assert_eq!(client.get(&fixture.container, &part).unwrap(), b"changed");
    assert!(client.ask("DELETE", &path, &[], b"").is_success());
    deliver(&fixture.sink(), &shots(1, 1)).await;
    check(&fixture, 1);
}
