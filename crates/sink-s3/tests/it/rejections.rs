//! Wrong credentials, regions and addresses.

use objects::Codec;
use sink::SinkError;
use sink_s3::S3Config;
use sink_testing::containers::rejections::misconfigured;
use sink_testing::containers::{ContainerFixture, rules};
use sink_testing::events::plain;
use testkit::ports::free_address;
use testkit::swift::SwiftServer;

use crate::fixture::{config, sink_of};

#[tokio::test]
async fn rejected_credentials_are_reported_without_keys() {
    let Some(server) = SwiftServer::shared() else { return };
    let fixture = ContainerFixture::new(server, sink_of);
    let config = config(fixture.proxy.address(), &fixture.container, fixture.rules.clone());
    let unknown = S3Config { access_key: "unknown".into(), ..config.clone() };
    let elsewhere = S3Config { region: "eu-x".into(), ..config.clone() };
    for (config, word) in [(unknown, "`access_key`"), (elsewhere, "set region = \"us-east-1\"")] {
        let answer = sink_s3::sink(config).write(&plain(0, 1, 5)).await;
        assert!(misconfigured(&answer).contains(word), "{answer:?}");
    }
    let wrong = S3Config { secret_key: "guessed".into(), ..config };
    let answer = sink_s3::sink(wrong.clone()).write(&plain(0, 1, 5)).await;
    let reason = misconfigured(&answer);
    assert!(reason.contains("`secret_key` doesn't belong") && !reason.contains("guessed"), "{reason}");
    assert!(!format!("{wrong:?}").contains("guessed"));
    assert_eq!(fixture.events(), []);
}

#[tokio::test]
async fn unreachable_server_is_unavailable() {
    let closed = free_address();
    let answer = sink_of(closed, "events", rules(Codec::None, "")).write(&plain(0, 1, 5)).await;
    let Err(SinkError::Unavailable(reason)) = answer else { panic!("{answer:?}") };
    assert!(reason.contains(&closed.to_string()), "{reason}");
}
