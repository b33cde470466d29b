//! A mock of S3 that enforces AWS's documented rules, which compatible services don't: whole signatures, digests of
//! bodies, checksums in buckets with Object Lock, regions, clocks, lengths of keys, and encryption with keys of KMS. It
//! also tests the sink's message for each rejection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use objects::Codec;
use sha2::{Digest, Sha256};
use sink::{Sink, SinkError, WriteOutcome};
use sink_s3::S3Config;

use sink_testing::containers::rules;
use sink_testing::events::plain;
use testkit::mock_server::{MockRequest, MockResponse, MockServer};

use crate::fixture;

const ACCESS_KEY: &str = "AKIAIOSFODNN7EXAMPLE";
const SECRET_KEY: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const SKEW_MAX: u64 = 15 * 60;

/// A region with one bucket.
#[derive(Clone)]
struct Aws {
    region: &'static str,
    /// Whether requests for another region are redirected to its endpoint instead of being rejected.
    redirects: bool,
    has_object_lock: bool,
    encrypts_with_kms: bool,
    /// Seconds by which its clock is slower than this machine's.
    slow_by: u64,
    /// The first rejections: status and code.
    rejections: Vec<(u16, &'static str)>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    is_made: bool,
    objects: HashMap<String, (Vec<u8>, bool)>,
}

impl Aws {
    fn new(region: &'static str) -> Self {
        Self {
            region,
            redirects: false,
            has_object_lock: true,
            encrypts_with_kms: false,
            slow_by: 0,
            rejections: Vec::new(),
            state: Arc::default(),
        }
    }

    fn start(mut self) -> MockServer {
        MockServer::start(move |asked| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() - self.slow_by;
            let mut answer = match self.rejections.pop() {
                Some((status, code)) => error(status, code, ""),
                None => self.answer(asked, now).unwrap_or_else(|refusal| refusal),
            };
            answer.1.push(("Date", date(now)));
            answer
        })
    }

    fn answer(&self, asked: &MockRequest, now: u64) -> Result<MockResponse, MockResponse> {
        self.judge(asked, now)?;
        let key = asked.path.strip_prefix("/events").unwrap().trim_start_matches('/').to_owned();
        let mut state = self.state.lock().unwrap();
        if key.is_empty() {
            return self.of_bucket(asked, &mut state);
        }
        if !state.is_made {
            return Err(error(404, "NoSuchBucket", ""));
        }
        if asked.method != "PUT" {
            let (body, keeps_checksum) = state.objects.get(&key).ok_or_else(|| error(404, "NoSuchKey", ""))?;
            let is_wanted = asked.header("x-amz-checksum-mode") == Some("ENABLED");
            return Ok((200, self.of_object(body, is_wanted && *keeps_checksum), body.clone()));
        }
        if asked.header("If-None-Match") == Some("*") && state.objects.contains_key(&key) {
            return Err(error(412, "PreconditionFailed", ""));
        }
        let keeps_checksum = asked.header("x-amz-checksum-sha256").is_some();
        let headers = self.of_object(&asked.body, keeps_checksum);
        state.objects.insert(key, (asked.body.clone(), keeps_checksum));
        Ok((200, headers.into_iter().filter(|(name, _)| *name != "Content-Length").collect(), Vec::new()))
    }

    fn of_bucket(&self, asked: &MockRequest, state: &mut State) -> Result<MockResponse, MockResponse> {
        match asked.method.as_str() {
            "PUT" => {
                let body = String::from_utf8_lossy(&asked.body);
                let wanted = body.split_once("<LocationConstraint>").map(|(_, rest)| rest.split('<').next().unwrap());
                // The oldest region rejects a constraint, and each other one requires its own.
                if wanted != Some(self.region).filter(|region| *region != "us-east-1") {
                    return Err(error(400, "IllegalLocationConstraintException", ""));
                }
                state.is_made = true;
                Ok((200, Vec::new(), Vec::new()))
            }
            _ if state.is_made => Ok((200, Vec::new(), b"<ListBucketResult/>".to_vec())),
            _ => Err(error(404, "NoSuchBucket", "")),
        }
    }

    fn of_object(&self, body: &[u8], with_checksum: bool) -> Vec<(&'static str, String)> {
        let mut headers = vec![("Content-Length", body.len().to_string())];
        if self.encrypts_with_kms {
            headers.push(("ETag", format!("\"{}\"", "0f".repeat(16))));
            headers.push(("x-amz-server-side-encryption", "aws:kms".to_owned()));
        } else {
            headers.push(("ETag", format!("\"{}\"", hexadecimal(&Md5::digest(body)))));
        }
        if with_checksum {
            headers.push(("x-amz-checksum-sha256", STANDARD.encode(Sha256::digest(body))));
        }
        headers
    }

    /// The rules for all requests.
    fn judge(&self, asked: &MockRequest, now: u64) -> Result<(), MockResponse> {
        let header = |name| asked.header(name).ok_or_else(|| error(400, "MissingSecurityHeader", name));
        let signed = Signature::read(header("Authorization")?);
        if signed.region != self.region {
            return Err(self.elsewhere());
        }
        if signed.access_key != ACCESS_KEY {
            return Err(error(403, "InvalidAccessKeyId", ""));
        }
        let at = seconds(header("x-amz-date")?);
        if at.abs_diff(now) > SKEW_MAX {
            return Err(error(403, "RequestTimeTooSkewed", ""));
        }
        let must_be_signed =
            |name: &str| name.starts_with("x-amz-") || ["host", "content-type", "content-md5"].contains(&name);
        let names = asked.headers.iter().map(|(name, _)| name.to_ascii_lowercase());
        if let Some(name) = names.into_iter().find(|name| must_be_signed(name) && !signed.headers.contains(name)) {
            return Err(error(403, "AccessDenied", &format!("{name} is not signed")));
        }
        let digest = header("x-amz-content-sha256")?;
        if signed.expected(asked, digest) != signed.signature || encoded(&decoded(&asked.path)) != asked.path {
            return Err(error(403, "SignatureDoesNotMatch", ""));
        }
        if digest != hexadecimal(&Sha256::digest(&asked.body)) {
            return Err(error(400, "XAmzContentSHA256Mismatch", ""));
        }
        if asked.header("Transfer-Encoding").is_some() {
            return Err(error(501, "NotImplemented", "Transfer-Encoding"));
        }
        if asked.method != "PUT" {
            return Ok(());
        }
        header("Content-Length").map_err(|_| error(411, "MissingContentLength", ""))?;
        let is_object = asked.path.len() > "/events/".len();
        match asked.header("Content-MD5") {
            Some(digest) if digest != STANDARD.encode(Md5::digest(&asked.body)) => Err(error(400, "BadDigest", "")),
            None if is_object && self.has_object_lock => {
                Err(error(400, "InvalidRequest", "Content-MD5 OR x-amz-checksum- HTTP header is required"))
            }
            _ if decoded(&asked.path).len() > "/events/".len() + 1_024 => Err(error(400, "KeyTooLongError", "")),
            _ => Ok(()),
        }
    }

    fn elsewhere(&self) -> MockResponse {
        let region = self.region;
        if !self.redirects {
            return error(
                400,
                "AuthorizationHeaderMalformed",
                &format!("</Message><Region>{region}</Region><Message>"),
            );
        }
        let mut answer = error(
            301,
            "PermanentRedirect",
            &format!("</Message><Endpoint>events.s3.{region}.example.com</Endpoint><Message>"),
        );
        answer.1.push(("x-amz-bucket-region", region.to_owned()));
        answer
    }
}

fn error(status: u16, code: &str, why: &str) -> MockResponse {
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>It is so. {why}</Message>\
         <RequestId>656c76696e6727732072657175657374</RequestId></Error>"
    );
    (status, vec![("Content-Type", "application/xml".to_owned())], text.into_bytes())
}

/// The value of `Authorization`.
struct Signature {
    access_key: String,
    region: String,
    scope: String,
    headers: Vec<String>,
    signature: String,
}

impl Signature {
    fn read(authorization: &str) -> Self {
        let fields = authorization.strip_prefix("AWS4-HMAC-SHA256 ").unwrap();
        let field = |name: &str| {
            fields.split(',').find_map(|field| field.trim().strip_prefix(name)?.strip_prefix('=')).unwrap().to_owned()
        };
        let credential = field("Credential");
        let (access_key, scope) = credential.split_once('/').unwrap();
        Self {
            access_key: access_key.to_owned(),
            region: scope.split('/').nth(1).unwrap().to_owned(),
            scope: scope.to_owned(),
            headers: field("SignedHeaders").split(';').map(str::to_owned).collect(),
            signature: field("Signature"),
        }
    }

    /// The expected signature.
    fn expected(&self, asked: &MockRequest, digest: &str) -> String {
        let line = |name: &String| {
            let value: Vec<&str> =
                asked.header(name).unwrap_or_default().split(' ').filter(|word| !word.is_empty()).collect();
            format!("{name}:{}\n", value.join(" "))
        };
        let headers: String = self.headers.iter().map(line).collect();
        let canonical = format!("{}\n{}\n\n{headers}\n{}\n{digest}", asked.method, asked.path, self.headers.join(";"));
        let hash = hexadecimal(&Sha256::digest(canonical));
        let text = format!("AWS4-HMAC-SHA256\n{}\n{}\n{hash}", asked.header("x-amz-date").unwrap(), self.scope);
        let mut key = format!("AWS4{SECRET_KEY}").into_bytes();
        for part in self.scope.split('/').chain([text.as_str()]) {
            let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
            mac.update(part.as_bytes());
            key = mac.finalize().into_bytes().to_vec();
        }
        hexadecimal(&key)
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn decoded(path: &str) -> String {
    let mut parts = path.split('%');
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}

fn encoded(path: &str) -> String {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    path.bytes().map(encode).collect()
}

/// `20261121T130000Z` as seconds since 1970.
fn seconds(date: &str) -> u64 {
    let part = |range: std::ops::Range<usize>| &date[range];
    let text =
        format!("{}-{}-{}T{}:{}:{}Z", part(0..4), part(4..6), part(6..8), part(9..11), part(11..13), part(13..15));
    u64::try_from(text::rfc3339::parse(&text).unwrap()).unwrap() / 1_000_000
}

fn date(seconds: u64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
}

fn config(server: &MockServer, region: &str) -> S3Config {
    let (access_key, secret_key) = (ACCESS_KEY.to_owned(), SECRET_KEY.into());
    let config = fixture::config(server.address, "events", rules(Codec::None, "of=it/{day}/"));
    S3Config { region: region.to_owned(), access_key, secret_key, ..config }
}

fn sink(config: &S3Config) -> Sink {
    sink_s3::sink(config.clone())
}

#[tokio::test]
async fn bucket_with_object_lock_accepts_all_requests() {
    for region in ["us-east-1", "eu-central-1"] {
        let aws = Aws::new(region);
        let (state, server) = (aws.state.clone(), aws.start());
        let sink = sink(&config(&server, region));
        assert_eq!(sink.connect().await, Ok(()));
        for _ in 0..2 {
            assert_eq!(sink.write(&plain(0, 1, 5)).await, Ok(WriteOutcome::Committed));
        }
        assert_eq!(sink.write(&plain(0, 6, 5)).await, Ok(WriteOutcome::Committed));
        assert_eq!(state.lock().unwrap().objects.len(), 4, "two objects and their manifests");
        assert!(server.asked().iter().all(|asked| asked.header("Expect").is_none()));
        assert!(!server.methods().contains(&"GET".to_owned()), "entity tags are enough");
    }
}

#[tokio::test]
async fn each_cause_is_reported_with_advice() {
    let aws = Aws::new("eu-central-1");
    let (slow, server) = (Aws { slow_by: 20 * 60, ..aws.clone() }.start(), aws.clone().start());
    let redirecting = Aws { redirects: true, ..aws }.start();
    let right = config(&server, "eu-central-1");
    let at = |server: &MockServer, region: &str| config(server, region);
    let mut reasons = Vec::new();
    for (config, words) in [
        (
            S3Config { secret_key: "wrong".into(), ..right.clone() },
            ["SignatureDoesNotMatch", "`secret_key` doesn't belong"],
        ),
        (
            S3Config { access_key: "nobody".into(), ..right.clone() },
            ["InvalidAccessKeyId", "doesn't know `access_key`"],
        ),
        (
            at(&slow, "eu-central-1"),
            ["RequestTimeTooSkewed", "clock of this machine is wrong (the store's clock says "],
        ),
        (at(&server, "us-east-1"), ["AuthorizationHeaderMalformed", "set region = \"eu-central-1\""]),
        (at(&redirecting, "us-east-1"), ["PermanentRedirect", "names events.s3.eu-central-1.example.com"]),
    ] {
        for answer in [
            sink(&config).connect().await.map(|()| WriteOutcome::Committed),
            sink(&config).write(&plain(0, 1, 5)).await,
        ] {
            let Err(SinkError::Misconfigured(reason)) = answer else { panic!("{words:?}: {answer:?}") };
            assert!(words.iter().all(|word| reason.contains(word)), "{words:?}: {reason}");
            assert!(!reason.contains("lacks a permission") && !reason.contains("wJalr"), "{reason}");
            reasons.push(reason);
        }
    }
    reasons.sort();
    reasons.dedup();
    assert!(reasons.len() >= 5, "{reasons:?}");
}

#[tokio::test]
async fn temporary_error_is_retried() {
    for (status, code) in [
        (503, "SlowDown"),
        (400, "RequestTimeout"),
        (400, "XAmzContentSHA256Mismatch"),
        (500, "InternalError"),
        (409, "ConditionalRequestConflict"),
    ] {
        let aws = Aws { rejections: vec![(status, code)], ..Aws::new("us-east-1") };
        aws.state.lock().unwrap().is_made = true;
        let server = aws.start();
        let sink = sink(&config(&server, "us-east-1"));
        let answer = sink.write(&plain(0, 1, 5)).await;
        let Err(SinkError::Unavailable(reason)) = answer else { panic!("{code}: {answer:?}") };
        assert!(reason.contains(code) && reason.contains("retries"), "{reason}");
        assert_eq!(sink.write(&plain(0, 1, 5)).await, Ok(WriteOutcome::Committed));
    }
}

/// No entity tag is an MD5 there: an object is verified once by reading it, and then by the checksum that the store
/// keeps.
#[tokio::test]
async fn store_keeps_a_checksum_with_kms_keys() {
    let aws = Aws { encrypts_with_kms: true, ..Aws::new("us-east-1") };
    aws.state.lock().unwrap().is_made = true;
    let (state, server) = (aws.state.clone(), aws.start());
    let sink = sink(&config(&server, "us-east-1"));
    assert_eq!(sink.write(&plain(0, 1, 5)).await, Ok(WriteOutcome::Committed));
    let gets = || server.methods().iter().filter(|method| *method == "GET").count();
    assert_eq!(gets(), 1, "the first object");
    for first in [6, 11] {
        assert_eq!(sink.write(&plain(0, first, 5)).await, Ok(WriteOutcome::Committed));
    }
    // An existing object is recognised by its checksum too.
    assert_eq!(sink.write(&plain(0, 6, 5)).await, Ok(WriteOutcome::Committed));
    assert_eq!(gets(), 1);
    // And other bytes aren't accepted as the object.
    for (bytes, _) in state.lock().unwrap().objects.values_mut() {
        bytes[0] ^= 1;
    }
    assert!(matches!(sink.write(&plain(0, 6, 5)).await, Err(SinkError::Misconfigured(_))));
}
