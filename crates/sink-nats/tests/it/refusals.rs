//! Events that a stream rejects, users that can't log in, and servers and streams that aren't suitable.

use sink::{SinkError, WriteOutcome};

use crate::fixture::{Fixture, server};
use sink_testing::events::{batch, deliver, plain};
use testkit::nats::{NatsServer, ROOMY};

/// A pair of keys in NATS' own documentation.
const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
const PUBLIC: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

async fn expect_misconfigured(fixture: &Fixture<'_>, text: &str) {
    match fixture.sink().write(&plain(0, 1, 5)).await {
        Err(SinkError::Misconfigured(reason)) => {
            assert!(reason.contains(text) && !reason.contains("s3cret"), "{text}: {reason}");
        }
        other => panic!("{text}: {other:?}"),
    }
}

#[tokio::test]
async fn too_large_event_is_rejected_alone() {
    let Some(server) = NatsServer::start_with("max_payload: 10KB\n") else { return };
    let fixture = Fixture::new(&server);
    let large = format!("\"{}\"", "x".repeat(10_000));
    let whole = batch(0, 1, &["1", &large, "3"]);
    let Ok(WriteOutcome::Rejected { refused }) = fixture.sink().write(&whole).await else {
        panic!("the second is too large")
    };
    assert_eq!((refused.len(), refused[0].index), (1, 1));
    assert!(
        refused[0].reason.contains("accepts 10240") && refused[0].reason.contains("max_payload"),
        "{:?}",
        refused[0]
    );
    assert_eq!(fixture.count(), 0, "nothing is stored until it is a dead letter");
    assert_eq!(fixture.sink().write(&whole.without(&[1])).await, Ok(WriteOutcome::Committed));
    assert_eq!(fixture.messages().len(), 2);
    // The server accepts a message that just fits.
    let fits = format!("\"{}\"", "x".repeat(9_000));
    let set = format!(",\"max_msg_size\":{}", 9_700);
    server.client().stream("UPDATE", &fixture.stream, &fixture.description(&set));
    for padding in 0..600 {
        let payload = format!("{fits}{}", " ".repeat(padding));
        match fixture.sink().write(&batch(0, 4 + padding as u64, &[&payload])).await {
            Ok(WriteOutcome::Committed) => {}
            Ok(WriteOutcome::Rejected { refused }) => {
                assert!(refused[0].reason.contains("accepts 9700") && padding > 100, "{padding} {refused:?}");
                return;
            }
            other => panic!("{padding}: {other:?}"),
        }
    }
    panic!("9,600 bytes and headers don't fit");
}

#[tokio::test]
async fn stream_without_subjects_rejects_no_event() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server);
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 3)).await;
    // The stream is changed during an open connection: the batch fails, and then the reason is known.
    let subjects = format!("[\"{}.orders\",\"forebay.cursors.{}.>\"]", fixture.stream, fixture.stream);
    let description = fixture.description("").replace(&fixture.subjects(), &subjects);
    let updated = server.client().stream("UPDATE", &fixture.stream, &description);
    assert!(updated.contains("orders"), "{updated}");
    let whole = batch(0, 4, &["1", "2"]);
    assert!(matches!(sink.write(&whole).await, Err(SinkError::Unavailable(_))));
    // It listens to none of their subjects: nothing shows that the events are at fault.
    let answer = sink.write(&whole).await;
    assert!(matches!(&answer, Err(SinkError::Misconfigured(why)) if why.contains("doesn't listen to")), "{answer:?}");
}

#[tokio::test]
async fn failed_login_is_explained() {
    let users = format!(
        "{ROOMY}authorization {{ users [ {{ user: ann, password: s3cret }}, {{ nkey: {PUBLIC} }},\n\
         {{ user: reader, password: s3cret, permissions: {{ publish: [\"$JS.API.>\"], subscribe: [\"_INBOX.>\"] }} }} ] }}\n"
    );
    let Some(server) = NatsServer::start_with(&users) else { return };
    let mut fixture = Fixture::new(&server);
    let address = fixture.proxy.address();
    let as_user = |fixture: &mut Fixture<'_>, user: &str| {
        fixture.config.servers = format!("nats://{user}{address}").parse().unwrap();
    };
    expect_misconfigured(&fixture, "`url` or `credentials`").await;
    as_user(&mut fixture, "ann:s3cret2@");
    expect_misconfigured(&fixture, "`url` or `credentials`").await;
    // It may create the stream, but publish to none of its subjects.
    as_user(&mut fixture, "reader:s3cret@");
    expect_misconfigured(&fixture, "grant its user").await;
    as_user(&mut fixture, "ann:s3cret@");
    assert_eq!(fixture.sink().write(&plain(0, 1, 5)).await, Ok(WriteOutcome::Committed));

    as_user(&mut fixture, "");
    let file = server.folder().join("user.nk");
    fixture.config.credentials = Some(file.clone());
    expect_misconfigured(&fixture, "user.nk").await;
    std::fs::write(&file, "nothing\n").unwrap();
    expect_misconfigured(&fixture, "no seed").await;
    std::fs::write(&file, format!("{SEED}\n")).unwrap();
    assert_eq!(fixture.sink().write(&plain(1, 1, 5)).await, Ok(WriteOutcome::Committed));
}

#[tokio::test]
async fn token_allows_the_login() {
    let Some(server) = NatsServer::start_with(&format!("{ROOMY}authorization {{ token: s3cret }}\n")) else { return };
    let mut fixture = Fixture::new(&server);
    expect_misconfigured(&fixture, "`url` or `credentials`").await;
    fixture.config.servers = format!("nats://s3cret@{}", fixture.proxy.address()).parse().unwrap();
    assert_eq!(fixture.sink().write(&plain(0, 1, 5)).await, Ok(WriteOutcome::Committed));
}

#[tokio::test]
async fn unsuitable_stream_gets_nothing() {
    let Some(server) = server() else { return };
    for (settings, text) in [
        (",\"retention\":\"workqueue\"", "workqueue"),
        (",\"retention\":\"interest\"", "retention limits"),
        (",\"discard\":\"old\",\"max_bytes\":1000000", "discard new"),
        (",\"allow_atomic\":false", "allow_atomic"),
        (",\"allow_rollup_hdrs\":false", "allow_rollup_hdrs"),
        (",\"max_age\":60000000000,\"allow_msg_ttl\":false", "allow_msg_ttl"),
    ] {
        let fixture = Fixture::new(server);
        let made = server.client().stream("CREATE", &fixture.stream, &fixture.description(settings));
        assert!(!made.contains("\"error\""), "{made}");
        expect_misconfigured(&fixture, text).await;
        assert_eq!(fixture.count(), 0, "{text}");
    }
    let mut fixture = Fixture::new(server);
    let description = fixture.description("").replace(&format!(",\"forebay.cursors.{}.>\"", fixture.stream), "");
    server.client().stream("CREATE", &fixture.stream, &description);
    expect_misconfigured(&fixture, "forebay.cursors.").await;
    fixture.config.stream = "NONE".parse().unwrap();
    fixture.config.creation = None;
    expect_misconfigured(&fixture, "create = false").await;
    // Another stream listens to its subjects already.
    let Some(creation) = Fixture::new(server).config.creation else { panic!("fixtures create streams") };
    fixture.config.creation = Some(creation);
    expect_misconfigured(&fixture, "another stream listens").await;
    // More copies than there are servers.
    let mut fixture = Fixture::new(server);
    fixture.config.creation = Some(sink_nats::Creation { replicas: 3, ..creation });
    expect_misconfigured(&fixture, "fewer servers").await;
}

#[tokio::test]
async fn other_servers_are_recognised() {
    let Some(server) = NatsServer::start_with("jetstream: false\n") else { return };
    let fixture = Fixture::new(&server);
    let answer = fixture.sink().write(&plain(0, 1, 1)).await;
    let Err(error) = answer else { panic!("nothing was stored") };
    assert!(error.to_string().contains("JetStream"), "{error}");

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut fixture = Fixture::new(&server);
    fixture.config.servers = format!("nats://{}", listener.local_addr().unwrap()).parse().unwrap();
    let greet = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut socket, b"SSH-2.0-OpenSSH_9.2\r\n").await.unwrap();
        socket
    };
    let sink = fixture.sink();
    let (answer, _socket) = tokio::join!(sink.connect(), greet);
    assert!(answer.clone().is_err_and(|error| error.to_string().contains("is the URL of a NATS server")), "{answer:?}");
}

#[tokio::test]
async fn too_old_server_gets_nothing() {
    let Some(server) = server() else { return };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut fixture = Fixture::new(server);
    fixture.config.servers = format!("nats://{}", listener.local_addr().unwrap()).parse().unwrap();
    let greet = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let info = b"INFO {\"version\":\"2.9.10\",\"headers\":true,\"max_payload\":1048576}\r\nPONG\r\n";
        tokio::io::AsyncWriteExt::write_all(&mut socket, info).await.unwrap();
        socket
    };
    let sink = fixture.sink();
    let (answer, _socket) = tokio::join!(sink.connect(), greet);
    let Err(SinkError::Misconfigured(reason)) = answer else { panic!("{answer:?}") };
    assert!(reason.contains("2.9.10") && reason.contains("2.12.1 or later"), "{reason}");
}
