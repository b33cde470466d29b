//! What the real server refuses, and what is under a name already.

use sink::{SinkError, WriteOutcome};
use sink_swift::Auth;

use crate::fixture::{BOTH, Fixture, Protocol, server, tempauth};
use sink_testing::events::{deliver, plain};
use testkit::ports::free_address;

fn misconfigured(answer: &Result<WriteOutcome, SinkError>) -> &str {
    let Err(SinkError::Misconfigured(reason)) = answer else { panic!("{answer:?}") };
    reason
}

#[tokio::test]
async fn what_has_an_objects_name_already_is_left_alone() {
    let Some(server) = server() else { return };
    for protocol in BOTH {
        let fixture = Fixture::new(server, protocol);
        let (sink, client) = (fixture.sink(), server.client());
        deliver(&sink, &plain(0, 1, 5)).await;
        let name = fixture.only_object();
        let path = format!("/{}/{name}", fixture.container);
        let good = client.get(&fixture.container, &name).unwrap();
        let changed: Vec<u8> = good.iter().map(|byte| byte.to_ascii_uppercase()).collect();
        for other in [&b"shorter"[..], b"", &changed] {
            assert!(client.ask("PUT", &path, &[], other).is_success());
            let answer = sink.write(&plain(0, 1, 5)).await;
            let reason = misconfigured(&answer);
            assert!(reason.contains(&name) && reason.contains("move it away"), "{reason}");
            assert_eq!(client.get(&fixture.container, &name).unwrap(), other);
        }
        assert!(client.ask("DELETE", &path, &[], b"").is_success());
        deliver(&sink, &plain(0, 1, 5)).await;
        assert_eq!(client.get(&fixture.container, &name).unwrap(), good);
    }
}

#[tokio::test]
async fn a_container_that_is_removed_is_made_anew() {
    let Some(server) = server() else { return };
    for protocol in BOTH {
        let fixture = Fixture::new(server, protocol);
        let (sink, client) = (fixture.sink(), server.client());
        assert_eq!(sink.connect().await, Ok(()));
        assert_eq!(client.ask("DELETE", &format!("/{}", fixture.container), &[], b"").status, 204);
        deliver(&sink, &plain(0, 1, 5)).await;
        assert_eq!(fixture.count(), 5);
    }
}

#[tokio::test]
async fn who_may_not_write_is_told_so_and_keys_are_not_shown() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, Protocol::Swift);
    let place = fixture.proxy.address();
    let wrong = Auth::TempAuth {
        url: format!("http://{place}/auth/v1.0").parse().unwrap(),
        user: "test:tester".to_owned(),
        key: "guessed".into(),
    };
    for (auth, words) in [(wrong, "doesn't accept who asks"), (tempauth(place, "test:reader"), "may not")] {
        let sink = sink_swift::sink(fixture.swift(auth));
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
    let answer = sink_swift::sink(fixture.swift(nowhere)).write(&plain(0, 1, 5)).await;
    let reason = misconfigured(&answer);
    assert!(reason.contains("/nothing/v1.0") && reason.contains("set `auth`"), "{reason}");
    let config = fixture.s3(format!("http://{place}").parse().unwrap());
    let unknown = sink_s3::S3Config { access_key: "nobody".into(), ..config.clone() };
    let elsewhere = sink_s3::S3Config { region: "eu-x".into(), ..config.clone() };
    for (config, word) in [(unknown, "`access_key`"), (elsewhere, "set region = \"us-east-1\"")] {
        let answer = sink_s3::sink(config).write(&plain(0, 1, 5)).await;
        assert!(misconfigured(&answer).contains(word), "{answer:?}");
    }
    let wrong = sink_s3::S3Config { secret_key: "guessed".into(), ..config };
    let answer = sink_s3::sink(wrong.clone()).write(&plain(0, 1, 5)).await;
    let reason = misconfigured(&answer);
    assert!(reason.contains("`secret_key` isn't the secret") && !reason.contains("guessed"), "{reason}");
    assert!(!format!("{wrong:?}").contains("guessed"));
    assert_eq!(fixture.events(), []);
}

#[tokio::test]
async fn a_server_that_is_away_is_waited_for() {
    let Some(server) = server() else { return };
    let nobody = free_address();
    let fixture = Fixture::new(server, Protocol::Swift);
    for sink in [
        sink_swift::sink(fixture.swift(tempauth(nobody, "test:tester"))),
        sink_s3::sink(fixture.s3(format!("http://{nobody}").parse().unwrap())),
    ] {
        let answer = sink.write(&plain(0, 1, 5)).await;
        let Err(SinkError::Unavailable(reason)) = answer else { panic!("{answer:?}") };
        assert!(reason.contains(&nobody.to_string()), "{reason}");
    }
}
