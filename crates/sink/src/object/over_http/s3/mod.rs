//! S3, and what else speaks it: each request is signed with a secret that isn't sent.

mod signature;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use event::rfc3339;
use http::{HeaderName, HeaderValue, Method, Request, header};

use super::ask::Ask;
use super::body::Body as AskBody;
use super::coded::Digests;
use super::escaped::escaped;
use super::failure::Failure;
use super::{Container, Secret, client};
use crate::http_client::{Answer, Body, Endpoint, HttpClient, host_of};
use crate::object::ObjectRules;
use crate::object::description::hexadecimal;
use signature::{Signed, Signer};

/// The region whose buckets are made without naming one.
const USUAL_REGION: &str = "us-east-1";
const DATE: &str = "x-amz-date";
const CONTENT_SHA256: &str = "x-amz-content-sha256";

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
    pub bucket: Container,
    /// The id of the access key.
    pub access_key: String,
    /// Its secret.
    pub secret_key: Secret,
    /// How large objects are, and what their names begin with.
    pub rules: ObjectRules,
    /// A PEM file with the authorities that are trusted; without one those that the machine trusts.
    pub ca: Option<PathBuf>,
    /// How long nothing may come or go.
    pub timeout: Duration,
}

/// The service.
pub(super) struct S3 {
    config: S3Config,
    client: HttpClient,
}

impl S3 {
    pub(super) fn new(config: S3Config) -> Self {
        let client = client(config.ca.clone(), config.timeout);
        Self { config, client }
    }

    pub(super) fn name(&self) -> String {
        format!("bucket {} of S3 ({})", self.config.bucket, self.config.url)
    }

    pub(super) async fn send(&self, ask: Ask<'_>) -> Result<Answer, Failure> {
        let now = rfc3339::format(clock::unix_microseconds());
        Ok(self.client.send(self.request(ask, &now)?).await?)
    }

    /// To make the bucket.
    pub(super) fn make_bucket(&self) -> Ask<'static> {
        let region = &self.config.region;
        let mut ask = Ask::of(Method::PUT, None);
        if region != USUAL_REGION {
            let text = format!(
                "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                 <LocationConstraint>{region}</LocationConstraint></CreateBucketConfiguration>"
            );
            ask.digests = Digests::of(text.as_bytes());
            ask.body = AskBody::Whole(text.into());
        }
        ask
    }

    /// The request, signed at a time of RFC 3339.
    fn request(&self, ask: Ask<'_>, now: &str) -> Result<Request<Body>, Failure> {
        let config = &self.config;
        let object = ask.object.map(escaped);
        let path = match (config.is_in_host, object) {
            (true, None) => "/".to_owned(),
            (true, Some(object)) => format!("/{object}"),
            (false, None) => format!("/{}", config.bucket.as_str()),
            (false, Some(object)) => format!("/{}/{object}", config.bucket.as_str()),
        };
        let mut request = Request::new(ask.body.into_client());
        *request.uri_mut() = self.base()?.url(&path)?;
        *request.method_mut() = ask.method;
        *request.headers_mut() = ask.headers;
        let host = host_of(request.uri())?;
        let (digest, date) = (hexadecimal(&ask.digests.sha256), signature::date(now));
        let signed = Signed {
            method: request.method().as_str(),
            path: request.uri().path(),
            headers: &[("host", &host), (CONTENT_SHA256, &digest), (DATE, &date)],
            sha256: &digest,
        };
        let signer = Signer { access_key: &config.access_key, secret_key: &config.secret_key, region: &config.region };
        let authorization = signer.authorization(&date, &signed);
        for (name, value) in [(CONTENT_SHA256, digest), (DATE, date), (header::AUTHORIZATION.as_str(), authorization)] {
            let value = HeaderValue::try_from(value).map_err(|_| Failure::Unsendable)?;
            request.headers_mut().insert(HeaderName::from_static(name), value);
        }
        Ok(request)
    }

    fn base(&self) -> Result<Endpoint, Failure> {
        let url = &self.config.url;
        if !self.config.is_in_host {
            return Ok(url.clone());
        }
        let shown = url.to_string().replacen("://", &format!("://{}.", self.config.bucket), 1);
        shown.parse().map_err(|_| Failure::Unsendable)
    }
}

impl fmt::Debug for S3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3").field("config", &self.config).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Codec, Line, Prefix};

    #[test]
    fn a_bucket_is_a_part_of_the_path_or_of_the_host() {
        let second = Duration::from_secs(1);
        let rules = ObjectRules {
            line: Line::Payload,
            codec: Codec::None,
            bytes_max: 1,
            records_max: 1,
            age_max: second,
            prefix: Prefix::NONE,
            apart: None,
        };
        let config = S3Config {
            url: "https://s3.example.org:9000".parse().unwrap(),
            is_in_host: false,
            region: "eu-central-1".to_owned(),
            bucket: "events".parse().unwrap(),
            access_key: "AKIA".to_owned(),
            secret_key: "secret".into(),
            rules,
            ca: None,
            timeout: second,
        };
        for (is_in_host, object, url) in [
            (false, None, "https://s3.example.org:9000/events"),
            (false, Some("a/b=c"), "https://s3.example.org:9000/events/a/b%3Dc"),
            (true, None, "https://events.s3.example.org:9000/"),
            (true, Some("a/b=c"), "https://events.s3.example.org:9000/a/b%3Dc"),
        ] {
            let s3 = S3::new(S3Config { is_in_host, ..config.clone() });
            let request = s3.request(Ask::of(Method::GET, object), "2026-11-21T13:00:00.000000Z").unwrap();
            assert_eq!(request.uri().to_string(), url);
            assert_eq!(request.headers()[DATE], "20261121T130000Z");
            assert!(request.headers()[header::AUTHORIZATION].to_str().unwrap().contains("/20261121/eu-central-1/s3/"));
        }
    }
}
