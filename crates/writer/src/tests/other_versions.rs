//! Requests of gateways with another version of the protocol. Those of version 1 are the bytes that a gateway of the last build without
//! versions sent to a writer with a SQLite file and a directory.

use super::*;

/// The requests of a gateway that names no version.
const OF_VERSION_1: [&[u8]; 7] = [
    include_bytes!("../../../writer_protocol/fixtures/version-1/requests/connect.http"),
    include_bytes!("../../../writer_protocol/fixtures/version-1/requests/cursor.http"),
    include_bytes!("../../../writer_protocol/fixtures/version-1/requests/claim.http"),
    include_bytes!("../../../writer_protocol/fixtures/version-1/requests/batch.http"),
    include_bytes!("../../../writer_protocol/fixtures/version-1/requests/read.http"),
    include_bytes!("../../../writer_protocol/fixtures/version-1/requests/upload.http"),
    include_bytes!("../../../writer_protocol/fixtures/version-1/requests/download.http"),
];

/// Sends the request to a writer with both sinks. Returns the response, after checking that no call reached a sink.
async fn rejected(request: &[u8]) -> String {
    let offered = ["local", "archive"];
    let offered = offered.map(|name| (name.to_owned(), Offered::new("null", BTreeMap::new(), Sink::new(Null))));
    let writer = Arc::new(Writer::new(offered.into(), Arc::default(), Demand::WithTokens, true, None));
    let mut gateway = connect(&writer);
    gateway.write_all(request).await.unwrap();
    let response = answer(&mut gateway).await;
    assert!(writer.offered.values().all(|sink| sink.last_call().is_none()), "{response}");
    assert_eq!((writer.counters.refused.get(), writer.counters.batches.get()), (1, 0), "{response}");
    response
}

/// A gateway of version 1 treats a 503 whose body has `detail` as: nothing was done, wait and retry. Other statuses have other effects.
fn assert_waits(response: &str, upgrade: &str) {
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n"),
        "{head}"
    );
    assert!(head.contains(&format!("\r\nforebay-protocol: {}", version::OWN)), "{head}");
    let problem: serde_json::Value = serde_json::from_str(body).unwrap();
    let detail = problem["detail"].as_str().unwrap();
    assert!(problem["code"] == "protocol" && detail.contains("protocol 2") && detail.contains(upgrade), "{detail}");
}

#[tokio::test]
async fn gateway_of_version_1_waits_after_every_request() {
    for request in OF_VERSION_1 {
        let response = rejected(request).await;
        assert_waits(&response, &format!("upgrade the gateway to {}", env!("CARGO_PKG_VERSION")));
        assert!(response.contains("protocol 1 (a pre-release build of 26 November 2026 or earlier)"), "{response}");
    }
}

#[tokio::test]
async fn gateway_of_later_version_waits_after_every_request() {
    for request in OF_VERSION_1 {
        let end = request.windows(2).position(|window| window == b"\r\n").unwrap();
        let (line, rest) = request.split_at(end);
        let request = [line, b"\r\nforebay-protocol: 3/0.2.0", rest].concat();
        assert_waits(&rejected(&request).await, "upgrade the writer to 0.2.0");
    }
}

#[tokio::test]
async fn payload_of_client_gets_advice_instead_of_versions() {
    let request = b"POST /ingest/data/local HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                    Content-Length: 2\r\n\r\n{}";
    let response = rejected(request).await;
    assert!(response.starts_with("HTTP/1.1 415 ") && response.contains("post payloads to a gateway"), "{response}");
}
