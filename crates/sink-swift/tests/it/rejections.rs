//! Wrong credentials and addresses.

use objects::Codec;
use sink::SinkError;
use sink_swift::Auth;
use sink_testing::containers::rejections::misconfigured;
use sink_testing::containers::{ContainerFixture, rules};
use sink_testing::events::plain;
use testkit::ports::free_address;
use testkit::swift::SwiftServer;

use crate::fixture::{config, sink_of, tempauth};

#[tokio::test]
async fn rejected_credentials_are_reported_without_keys() {
    let Some(server) = SwiftServer::shared() else { return };
    let fixture = ContainerFixture::new(server, sink_of);
    let place = fixture.proxy.address();
    let sink = |auth| sink_swift::sink(config(auth, &fixture.container, fixture.rules.clone()));
    let wrong = Auth::TempAuth {
        url: format!("http://{place}/auth/v1.0").parse().unwrap(),
        user: "test:tester".to_owned(),
        key: "guessed".into(),
    };
    for (auth, words) in [(wrong, "rejected the credentials"), (tempauth(place, "test:reader"), "lacks a permission")] {
        let sink = sink(auth);
        let answer = sink.write(&plain(0, 1, 5)).await;
        let reason = misconfigured(&answer);
        assert!(reason.contains(words) && !reason.contains("guessed") && !reason.contains("testing"), "{reason}");
        assert!(sink.connect().await.is_err());
    }
    let nowhere = Auth::TempAuth {
        url: format!("http://{place}/nothing/v1.0").parse().unwrap(),
        user: "test:tester".to_owned(),
        key: "testing".into(),
    };
    let answer = sink(nowhere).write(&plain(0, 1, 5)).await;
    let reason = misconfigured(&answer);
    assert!(reason.contains("/nothing/v1.0") && reason.contains("set `auth`"), "{reason}");
    assert_eq!(fixture.events(), []);
}

#[tokio::test]
async fn unreachable_server_is_unavailable() {
    let closed = free_address();
    let answer = sink_of(closed, "events", rules(Codec::None, "")).write(&plain(0, 1, 5)).await;
    let Err(SinkError::Unavailable(reason)) = answer else { panic!("{answer:?}") };
    assert!(reason.contains(&closed.to_string()), "{reason}");
}
