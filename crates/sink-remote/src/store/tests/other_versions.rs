//! Writers with another version of the protocol. The fixtures are the bytes that a writer of the last build without versions sent.

use event::read::{Filter, Wanted};

use super::*;

/// The response of a writer of version 1 to this request line.
pub(super) fn of_version_1(line: &str) -> &'static str {
    let path = line.split(' ').nth(1).unwrap();
    match (line.starts_with("GET"), path.strip_prefix("/ingest/data/store").unwrap()) {
        (true, "") => include_str!("../../../../writer_protocol/fixtures/version-1/responses/connect.http"),
        (true, "/cursor") => include_str!("../../../../writer_protocol/fixtures/version-1/responses/cursor.http"),
        (true, _) => include_str!("../../../../writer_protocol/fixtures/version-1/responses/download.http"),
        (false, "/claim") => include_str!("../../../../writer_protocol/fixtures/version-1/responses/claim.http"),
        (false, "/read") => include_str!("../../../../writer_protocol/fixtures/version-1/responses/read.http"),
        // It does not know the header fields of this release.
        (false, "") => include_str!("../../../../writer_protocol/fixtures/version-1/responses/batch.http"),
        (false, _) => include_str!("../../../../writer_protocol/fixtures/version-1/responses/upload.http"),
    }
}

/// The response of a writer of a later version to every request.
pub(super) const OF_VERSION_3: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
    content-length: 45\r\nforebay-protocol: 3/0.2.0\r\n\r\n{\"status\":503,\"code\":\"protocol\",\"detail\":\"x\"}";

fn sqlite_of(upstream: &Upstream) -> RemoteConfig {
    RemoteConfig {
        upstream: upstream.clone(),
        server: None,
        sink: "store".into(),
        store: "sqlite",
        is_fenced: true,
        recognises_ids: false,
        parts: BTreeMap::new(),
        reads: true,
    }
}

/// The failure of every call of a sink at this writer.
async fn failures(answers: Answers) -> Vec<SinkError> {
    let stub = Stub::start(answers).await;
    let upstream = upstream(&[&stub]);
    let sink = Remote::new(sqlite_of(&upstream));
    let (lane, claim) = (batch(0).lane().clone(), Claim([1; 16]));
    let mut failures = vec![
        sink.connect().await.unwrap_err(),
        sink.held(&lane).await.unwrap_err(),
        sink.claim(&lane, claim, &Takeover::Known([claim].into())).await.unwrap_err(),
        sink.write(&batch(0)).await.unwrap_err(),
    ];
    let wanted = Wanted::Stored(Filter::default());
    let query = Query { wanted, only_type: None, after: None, limit: 100, bytes_max: 1024 };
    let ReadError::Unavailable(reason) = sink.read(query).await.unwrap_err() else { panic!("another error") };
    failures.push(SinkError::Unavailable(reason));
    let caller = Caller::new(sqlite_of(&upstream));
    let download = Call::new(Method::GET, "/objects/one");
    failures.push(caller.download(&download).await.err().unwrap());
    let body = || net::http_client::full(Bytes::from_static(b"{\"a\":1}\n"));
    let content = Content::Object(8, &body);
    let upload = Call { lane: Some(&lane), content, ..Call::new(Method::PUT, "/objects/one") };
    failures.push(caller.call::<Outcome>(&upload).await.err().unwrap());
    assert!(upstream.servers()[0].state() == ServerState::Ejected);
    failures
}

fn assert_waits(failures: &[SinkError], words: [&str; 2]) {
    assert_eq!(failures.len(), 7);
    for failure in failures {
        let SinkError::Unavailable(reason) = failure else { panic!("{failure} is no reason to wait") };
        let own = format!("protocol 2 (Forebay {})", env!("CARGO_PKG_VERSION"));
        assert!(reason.contains(&own) && words.iter().all(|words| reason.contains(words)), "{reason}");
    }
}

#[tokio::test]
async fn every_call_waits_at_writer_of_version_1() {
    let upgrade = format!("upgrade the writer to {}", env!("CARGO_PKG_VERSION"));
    let build = "protocol 1 (a pre-release build of 26 November 2026 or earlier)";
    assert_waits(&failures(Answers::AsVersion1).await, [build, &upgrade]);
}

#[tokio::test]
async fn every_call_waits_at_writer_of_later_version() {
    let words = ["protocol 3 (Forebay 0.2.0)", "upgrade the gateway to 0.2.0"];
    assert_waits(&failures(Answers::AsVersion3).await, words);
}

#[tokio::test]
async fn writers_of_this_version_get_all_batches_during_upgrade() {
    let (new, old) = (Stub::start(Answers::Well).await, Stub::start(Answers::AsVersion1).await);
    let upstream = upstream(&[&old, &new]);
    let prober = tokio::spawn(probe(upstream.clone()));
    let sink = sink_of(&upstream);
    sink.connect().await.unwrap();
    for shard in 0..16 {
        assert_eq!(sink.write(&batch(shard)).await, Ok(WriteOutcome::Committed));
    }
    assert_eq!((new.got("POST"), old.got("POST")), (16, 0));
    prober.abort();
}
