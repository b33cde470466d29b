//! The content of a message at a receiver.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use sink::WriteOutcome;
use sink_webhook::{HookHeader, MessageShape};

use crate::{config, sink};
use sink_testing::events::{batch, id};
use testkit::mock_server::{MockRequest, MockServer};

/// Checks a signature like a receiver: by the received bytes, for one of the signatures.
fn is_signed_by(asked: &MockRequest, key: &[u8]) -> bool {
    let header = |name| asked.header(name).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(format!("{}.{}.", header("webhook-id"), header("webhook-timestamp")).as_bytes());
    mac.update(&asked.body);
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    header("webhook-signature").split(' ').any(|signature| signature == expected)
}

#[tokio::test]
async fn message_is_signed_with_each_secret() {
    let receiver = MockServer::start(|_| (200, Vec::new(), Vec::new()));
    let (new, old) = ([1; 32].to_vec(), [2; 24].to_vec());
    let mut config = config(&format!("http://{}/a/{{type}}?b=c", receiver.address));
    config.secrets = [&new, &old].map(|key| format!("whsec_{}", STANDARD.encode(key)).parse().unwrap()).into();
    config.headers = vec![HookHeader::new("Authorization", "Bearer x").unwrap()];
    assert_eq!(sink(config).write(&batch(0, 1, &["{\"a\":\n1}"])).await, Ok(WriteOutcome::Committed));
    let [asked] = &receiver.asked()[..] else { panic!("one event, one message") };
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/a/access?b=c"));
    assert_eq!(asked.body, b"{\"a\":\n1}", "byte for byte");
    assert!(is_signed_by(asked, &new) && is_signed_by(asked, &old) && !is_signed_by(asked, &[3; 32]));
    let event = id(0, 1).to_string();
    for (name, value) in [
        ("webhook-id", event.as_str()),
        ("idempotency-key", &event),
        ("authorization", "Bearer x"),
        ("content-type", "application/json"),
    ] {
        assert_eq!(asked.header(name), Some(value), "{name}");
    }
    assert!(asked.header("user-agent").unwrap().starts_with("Forebay/"));
}

#[tokio::test]
async fn message_may_have_an_envelope_and_no_signature() {
    let receiver = MockServer::start(|_| (200, Vec::new(), Vec::new()));
    let mut config = config(&format!("http://{}/", receiver.address));
    config.shape = MessageShape::Envelope;
    assert_eq!(sink(config).write(&batch(0, 1, &["[1]"])).await, Ok(WriteOutcome::Committed));
    let [asked] = &receiver.asked()[..] else { panic!("one event, one message") };
    assert_eq!(asked.header("webhook-signature"), None);
    let expected: &[u8] = br#"{"type":"access","timestamp":"2025-10-09T08:53:20.000001Z","data":[1]}"#;
    assert_eq!(asked.body, expected);
}
