//! The service: its buckets, and signed requests.

use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, header};
use text::{hex, percent, rfc3339};

use net::http_client::{Endpoint, HttpClient, HttpResponse, RequestBody, host_of};
use objects::ObjectSink;
use objects::over_http::{
    CHECKSUM, ContainerRequest, Digests, ObjectStoreError, OverHttp, Service, Source, UploadBody as ContainerBody, Use,
    client,
};
use sink::Sink;

use crate::config::S3Config;
use crate::signature::{self, Signed, Signer};

/// The region whose buckets are created without naming it.
const USUAL_REGION: &str = "us-east-1";
const DATE: &str = "x-amz-date";
const CONTENT_SHA256: &str = "x-amz-content-sha256";
const CONTENT_MD5: &str = "content-md5";
const CHECKSUM_MODE: &str = "x-amz-checksum-mode";
const ENCRYPTION: &str = "x-amz-server-side-encryption";

/// A sink that isn't connected yet. Nothing is requested before the first call.
#[must_use]
pub fn sink(config: S3Config) -> Sink {
    let rules = config.rules.clone();
    Sink::new(ObjectSink::new(OverHttp::new(move |use_of| S3::new(config.clone(), use_of), rules)))
}

/// The service.
struct S3 {
    config: S3Config,
    client: HttpClient,
    /// Whether the bucket encrypts with keys of KMS, so no entity tag is an MD5. Then requests ask the store to keep a
    /// checksum, which avoids reading objects back. Other stores with this protocol may reject the headers, so they
    /// don't get them.
    hides_md5: AtomicBool,
}

impl S3 {
    fn new(config: S3Config, use_of: Use) -> Self {
        let client = client(config.ca.clone(), config.timeout, use_of);
        Self { config, client, hides_md5: AtomicBool::new(false) }
    }

    async fn send_once(&self, ask: ContainerRequest<'_>) -> Result<HttpResponse, ObjectStoreError> {
        let now = rfc3339::format(clock::unix_microseconds());
        let answer = self.client.send(self.request(ask, &now)?).await?;
        let encryption = answer.headers().get(ENCRYPTION).and_then(|value| value.to_str().ok());
        if encryption.is_some_and(|encryption| encryption.starts_with("aws:kms")) {
            self.hides_md5.store(true, Ordering::Relaxed);
        }
        Ok(answer)
    }

    /// The request, signed at a time of RFC 3339.
    fn request(&self, ask: ContainerRequest<'_>, now: &str) -> Result<Request<RequestBody>, ObjectStoreError> {
        let config = &self.config;
        let object = ask.object.map(percent::encode_path);
        let path = match (config.is_in_host, object) {
            (true, None) => "/".to_owned(),
            (true, Some(object)) => format!("/{object}"),
            (false, None) => format!("/{}", config.bucket.as_str()),
            (false, Some(object)) => format!("/{}/{object}", config.bucket.as_str()),
        };
        let digests = ask.digests;
        let mut request = Request::new(ask.body.into_client());
        *request.uri_mut() = self.base()?.url(&path)?;
        *request.method_mut() = ask.method;
        *request.headers_mut() = ask.headers;
        let (digest, date) = (hex::encode(&digests.sha256), signature::date(now));
        let mut added = vec![(CONTENT_SHA256, digest.clone()), (DATE, date.clone())];
        if request.method() == Method::PUT {
            // AWS rejects objects without a checksum header for a bucket with Object Lock. All stores support this one.
            added.push((CONTENT_MD5, STANDARD.encode(digests.md5)));
            if digests.bytes == 0 {
                // AWS requires it (411); the client omits it if there is no body.
                request.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
            }
        }
        if self.hides_md5.load(Ordering::Relaxed) {
            match *request.method() {
                Method::PUT => added.push((CHECKSUM, STANDARD.encode(digests.sha256))),
                Method::HEAD => added.push((CHECKSUM_MODE, "ENABLED".to_owned())),
                _ => {}
            }
        }
        for (name, value) in added {
            let value = HeaderValue::try_from(value).map_err(|_| ObjectStoreError::Unsendable)?;
            request.headers_mut().insert(HeaderName::from_static(name), value);
        }
        let authorization = self.authorization(&request, &digest, &date)?;
        request.headers_mut().insert(header::AUTHORIZATION, authorization);
        Ok(request)
    }

    /// Signs the host, and all headers that AWS requires: those with a meaning for the store, and those that describe
    /// the body.
    fn authorization(
        &self,
        request: &Request<RequestBody>,
        digest: &str,
        date: &str,
    ) -> Result<HeaderValue, ObjectStoreError> {
        let host = host_of(request.uri())?;
        let mut headers = vec![("host", host.as_str())];
        for (name, value) in request.headers() {
            let name = name.as_str();
            if name.starts_with("x-amz-") || name == CONTENT_MD5 || name == header::CONTENT_TYPE.as_str() {
                headers.push((name, value.to_str().map_err(|_| ObjectStoreError::Unsendable)?));
            }
        }
        headers.sort_unstable();
        let S3Config { access_key, secret_key, region, .. } = &self.config;
        let signed =
            Signed { method: request.method().as_str(), path: request.uri().path(), headers: &headers, sha256: digest };
        let authorization = Signer { access_key, secret_key, region }.authorization(date, &signed);
        HeaderValue::try_from(authorization).map_err(|_| ObjectStoreError::Unsendable)
    }

    fn base(&self) -> Result<Endpoint, ObjectStoreError> {
        let url = &self.config.url;
        if !self.config.is_in_host {
            return Ok(url.clone());
        }
        let shown = url.to_string().replacen("://", &format!("://{}.", self.config.bucket), 1);
        shown.parse().map_err(|_| ObjectStoreError::Unsendable)
    }
}

/// Whether a status is clear without a message. An overloaded store isn't sent another request.
fn is_explained(status: StatusCode) -> bool {
    use StatusCode as Of;
    let says_enough = [Of::NOT_FOUND, Of::NOT_MODIFIED, Of::PRECONDITION_FAILED, Of::TOO_MANY_REQUESTS];
    status.is_success() || status.is_server_error() || says_enough.contains(&status)
}

impl Source for S3 {
    fn name(&self) -> String {
        format!("bucket {} of S3 ({})", self.config.bucket, self.config.url)
    }

    /// Sends a request. The response to `HEAD` has no body, in which S3 names the cause of a rejection: then a `GET`
    /// requests it.
    async fn send<'a>(
        &self,
        request: impl Fn() -> ContainerRequest<'a> + Send + Sync,
    ) -> Result<HttpResponse, ObjectStoreError> {
        let ask = request();
        let (is_head, object) = (ask.method == Method::HEAD, ask.object);
        let answer = self.send_once(ask).await?;
        if !is_head || is_explained(answer.status()) {
            return Ok(answer);
        }
        let explained = self.send_once(ContainerRequest::of(Method::GET, object)).await?;
        Ok(if explained.status().is_success() { answer } else { explained })
    }
}

impl Service for S3 {
    fn create_container(&self) -> ContainerRequest<'static> {
        let region = &self.config.region;
        let mut ask = ContainerRequest::of(Method::PUT, None);
        if region != USUAL_REGION {
            let text = format!(
                "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                 <LocationConstraint>{region}</LocationConstraint></CreateBucketConfiguration>"
            );
            ask.digests = Digests::of(text.as_bytes());
            ask.body = ContainerBody::Whole(text.into());
        }
        ask
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use objects::{Codec, Line, ObjectFormat, Prefix, SideFolder};

    use super::*;

    #[test]
    fn bucket_is_in_the_path_or_host() {
        let second = Duration::from_secs(1);
        let rules = ObjectFormat {
            line: Line::Payload,
            codec: Codec::None,
            bytes_max: 1,
            records_max: 1,
            age_max: second,
            prefix: Prefix::NONE,
            apart: None,
            manifests: SideFolder::manifests(),
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
            let s3 = S3::new(S3Config { is_in_host, ..config.clone() }, Use::Storing);
            let request = s3.request(ContainerRequest::of(Method::GET, object), "2026-11-21T13:00:00.000000Z").unwrap();
            assert_eq!(request.uri().to_string(), url);
            assert_eq!(request.headers()[DATE], "20261121T130000Z");
            assert!(request.headers()[header::AUTHORIZATION].to_str().unwrap().contains("/20261121/eu-central-1/s3/"));
        }
    }
}
