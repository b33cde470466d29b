//! Sinks in buckets of the server.

use std::net::SocketAddr;
use std::time::Duration;

use objects::ObjectFormat;
use sink::Sink;
use sink_s3::S3Config;
use testkit::swift::{KEY, USER};

/// The configuration of a bucket of the server at this address.
pub(crate) fn config(place: SocketAddr, bucket: &str, rules: ObjectFormat) -> S3Config {
    S3Config {
        url: format!("http://{place}").parse().unwrap(),
        is_in_host: false,
        region: "us-east-1".to_owned(),
        bucket: bucket.parse().unwrap(),
        access_key: USER.to_owned(),
        secret_key: KEY.into(),
        rules,
        ca: None,
        timeout: Duration::from_secs(20),
    }
}

/// A sink on such a bucket.
pub(crate) fn sink_of(place: SocketAddr, bucket: &str, rules: ObjectFormat) -> Sink {
    sink_s3::sink(config(place, bucket, rules))
}
