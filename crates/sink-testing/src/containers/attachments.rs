//! Parts of payloads as separate objects: their bytes, their names in the lines, and that each exists once after any
//! fault.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use objects::{AttachmentRule, Codec, SideFolder};
use serde_json::Value;
use sink::SinkError;
use testkit::swift::SwiftServer;

use super::{ContainerFixture, MakeSink, OF_LINES, lines};
use crate::events::{batch, deliver};

/// The bytes of the server's answers between two cuts.
const CUT_STEP: usize = 97;

/// A container for objects with attachments: the member `image` of payloads.
#[must_use]
pub fn fixture(server: &SwiftServer, make_sink: MakeSink, codec: Codec) -> ContainerFixture<'_> {
    let mut fixture = ContainerFixture::with(server, make_sink, codec);
    fixture.rules.apart =
        Some(AttachmentRule { data: "/image".into(), content_type: Some("/type".into()), folder: SideFolder::parts() });
    fixture
}

/// The bytes of an image: all values, and another length for each.
fn image(number: u64) -> Vec<u8> {
    (0..2_000 + number * 7).map(|at| (at * 31 + number).to_le_bytes()[0]).collect()
}

/// An event with an image.
#[must_use]
pub fn payload(number: u64) -> String {
    format!("{{\"n\": {number},\"image\":\t\"{}\", \"type\" : \"image/x-{number}\"}}", STANDARD.encode(image(number)))
}

/// A batch of events with images.
#[must_use]
pub fn shots(first: u64, count: u64) -> sink::Batch {
    let payloads: Vec<String> = (first..first + count).map(payload).collect();
    batch(0, first, &payloads.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Compares the container with the events up to this one: each has its line and its image, and there is nothing else.
///
/// # Panics
/// If anything is missing, or is there twice.
pub fn check(fixture: &ContainerFixture<'_>, last: u64) {
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

/// Attachments of each codec, written three times.
///
/// # Panics
/// If one isn't stored once, under the name that is in its line.
pub async fn stored_once(make_sink: MakeSink) {
    let Some(server) = SwiftServer::shared() else { return };
    for codec in OF_LINES {
        let fixture = fixture(server, make_sink, codec);
        deliver(&fixture.sink(), &shots(1, 20)).await;
        check(&fixture, 20);
        // The same again, also from another sink.
        deliver(&fixture.sink(), &shots(1, 20)).await;
        deliver(&fixture.past_the_proxy(), &shots(1, 20)).await;
        check(&fixture, 20);
        // All objects with the prefix of the data are events.
        let names = server.client().list(&fixture.container);
        let rows: Vec<&String> = names.iter().filter(|name| name.starts_with("of/")).collect();
        assert!(!rows.is_empty() && rows.iter().all(|name| name.ends_with(codec.ending())), "{names:?}");
    }
}

/// Connections that are cut after more and more bytes of the answers: every `step`, or else every 97.
///
/// # Panics
/// If an attachment isn't stored once.
pub async fn cut_at_any_byte(make_sink: MakeSink, step: Option<usize>) {
    let Some(server) = SwiftServer::shared() else { return };
    let fixture = fixture(server, make_sink, Codec::None);
    let (mut first, mut cuts) = (1, 0);
    fixture.sink().connect().await.unwrap();
    for at in (0..).step_by(step.unwrap_or(CUT_STEP)) {
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
