//! Responses that the real server doesn't give: a service without support for conditions, and the creation of a bucket
//! in its region.

use std::collections::HashMap;

use objects::Codec;
use sink::{Sink, WriteOutcome};
use sink_s3::S3Config;
use sink_testing::containers::rules;
use sink_testing::events::plain;
use testkit::mock_server::{MockRequest, MockResponse, MockServer};

use crate::fixture::config;

const DIGEST: &str = "ffffffffffffffffffffffffffffffff";

fn status(status: u16) -> MockResponse {
    (status, Vec::new(), Vec::new())
}

fn tagged(status: u16, digest: &str, body: &[u8]) -> MockResponse {
    (status, vec![("ETag", digest.to_owned())], body.to_vec())
}

fn s3(mock_server: &MockServer, region: &str) -> Sink {
    let config = config(mock_server.address, "events", rules(Codec::None, ""));
    sink_s3::sink(S3Config { region: region.to_owned(), ..config })
}

#[tokio::test]
async fn name_is_checked_first_without_conditions() {
    let mut stored: HashMap<String, Vec<u8>> = HashMap::new();
    let mock_server = MockServer::start(move |asked| match asked.method.as_str() {
        "PUT" if asked.header("If-None-Match").is_some() => status(501),
        "PUT" => {
            stored.insert(asked.path.clone(), asked.body.clone());
            tagged(200, DIGEST, b"")
        }
        _ => stored.get(&asked.path).map_or_else(|| status(404), |body| tagged(200, DIGEST, body)),
    });
    let sink = s3(&mock_server, "us-east-1");
    assert_eq!(sink.write(&plain(0, 1, 5)).await, Ok(WriteOutcome::Committed));
    let before = mock_server.asked().len();
    assert_eq!(sink.write(&plain(0, 1, 5)).await, Ok(WriteOutcome::Committed));
    let puts = mock_server.asked()[before..].iter().filter(|asked| asked.method == "PUT").count();
    assert_eq!(puts, 1, "only the description is put again");
}

#[tokio::test]
async fn bucket_is_created_in_its_region() {
    let answer = |asked: &MockRequest| status(if asked.method == "HEAD" { 404 } else { 200 });
    let mock_server = MockServer::start(answer);
    s3(&mock_server, "eu-central-1").connect().await.unwrap();
    let made = mock_server.asked().into_iter().find(|asked| asked.method == "PUT").unwrap();
    assert_eq!(made.path, "/events");
    assert!(String::from_utf8_lossy(&made.body).contains("<LocationConstraint>eu-central-1</LocationConstraint>"));
    let authorization = made.header("Authorization").unwrap();
    assert!(authorization.contains("/eu-central-1/s3/aws4_request") && !authorization.contains("secret"));
}
