//! The configuration of a sink of kind `s3`.

use std::path::PathBuf;
use std::time::Duration;

use net::http_client::Endpoint;
use objects::ObjectFormat;
use objects::over_http::Secret;

use crate::Bucket;

/// Which bucket, and who asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Config {
    /// Where the service answers.
    pub url: Endpoint,
    /// Whether the bucket is the first part of the host's name instead of the path's.
    pub is_in_host: bool,
    /// The region that requests are signed for.
    pub region: String,
    /// The bucket. It is made if it is missing.
    pub bucket: Bucket,
    /// The id of the access key.
    pub access_key: String,
    /// Its secret.
    pub secret_key: Secret,
    /// How large objects are, and what their names begin with.
    pub rules: ObjectFormat,
    /// A PEM file with the authorities that are trusted; without one those that the machine trusts.
    pub ca: Option<PathBuf>,
    /// How long nothing may come or go.
    pub timeout: Duration,
}
