//! The configuration of a sink of kind `s3`.

use std::path::PathBuf;
use std::time::Duration;

use net::http_client::Endpoint;
use objects::ObjectFormat;
use objects::over_http::Secret;

use crate::Bucket;

/// The bucket, and the key to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Config {
    /// The URL of the service.
    pub url: Endpoint,
    /// Whether the bucket is the first part of the host's name instead of the path.
    pub is_in_host: bool,
    /// The region that requests are signed for.
    pub region: String,
    /// The bucket. It is created if it is missing.
    pub bucket: Bucket,
    /// The id of the access key.
    pub access_key: String,
    /// Its secret.
    pub secret_key: Secret,
    /// The limits of objects, and the prefix of their names.
    pub rules: ObjectFormat,
    /// A PEM file with the trusted authorities; without one the machine's.
    pub ca: Option<PathBuf>,
    /// How long a connection may be silent.
    pub timeout: Duration,
}
