//! Puts an object and its description, and checks the existing object if the name exists.

use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use event::Lane;
use http::{HeaderValue, Method, StatusCode, header};
use sha2::{Digest, Sha256};
use text::hex;

use super::body::UploadBody;
use super::digests::Digests;
use super::error::ObjectStoreError;
use super::refusal::{REFUSAL_BYTES_MAX, ServiceRefusal};
use super::request::{ContainerRequest, describe_request};
use super::service::Service;
use super::upload::{DESCRIPTION, Upload, UploadTarget};
use net::http_client::HttpResponse;

/// A server that rejects a body of this size may not read all of it.
const LARGE_BYTES: u64 = 8 * 1024 * 1024;
/// The header in which S3 returns the SHA-256 of an object, in base64.
pub const CHECKSUM: &str = "x-amz-checksum-sha256";

/// The object that exists under a name.
#[derive(Debug, PartialEq, Eq)]
enum Existing {
    Same,
    Other,
    Nothing,
}

/// A service's container.
pub(super) struct ContainerTarget<S> {
    pub(super) service: S,
    /// Whether it supports `If-None-Match: *`.
    has_if_none_match: AtomicBool,
}

impl<S: Service> UploadTarget for ContainerTarget<S> {
    async fn put_object(
        &self,
        _: &Lane,
        upload: &Upload<'_, impl Fn() -> UploadBody + Send + Sync>,
    ) -> Result<(), ObjectStoreError> {
        self.put_new(upload).await
    }

    async fn describe(&self, _: &Lane, name: &str, text: Bytes) -> Result<(), ObjectStoreError> {
        let (digests, body) = (Digests::of(&text), || UploadBody::Whole(text.clone()));
        let upload = Upload { name, digests, content_type: DESCRIPTION, is_once: false, body };
        self.replace(&upload).await
    }
}

impl<S: Service> ContainerTarget<S> {
    pub(super) const fn new(service: S) -> Self {
        Self { service, has_if_none_match: AtomicBool::new(true) }
    }

    pub(super) fn name(&self) -> String {
        self.service.name()
    }

    /// Notes that the service has reported no support for `If-None-Match: *`.
    pub(super) fn set_no_if_none_match(&self) {
        self.has_if_none_match.store(false, Ordering::Relaxed);
    }

    /// Creates the container if it is missing.
    pub(super) async fn prepare(&self) -> Result<(), ObjectStoreError> {
        let shown = self.service.send(|| ContainerRequest::of(Method::HEAD, None)).await?;
        if shown.status() != StatusCode::NOT_FOUND {
            return check_success(shown, &Method::HEAD, None).await;
        }
        let created = self.service.send(|| self.service.create_container()).await?;
        // Another process has created it.
        if created.status() == StatusCode::CONFLICT {
            return Ok(());
        }
        check_success(created, &Method::PUT, None).await
    }

    pub(super) async fn put_new(
        &self,
        upload: &Upload<'_, impl Fn() -> UploadBody + Send + Sync>,
    ) -> Result<(), ObjectStoreError> {
        let Upload { name, digests, .. } = *upload;
        // A server on which the name exists may close the connection during a large body, and its response is lost.
        let is_large = upload.is_once || digests.bytes > LARGE_BYTES;
        if is_large || !self.has_if_none_match.load(Ordering::Relaxed) {
            match self.compare(name, digests).await? {
                Existing::Same => return self.put_again(upload).await,
                Existing::Other => return Err(ObjectStoreError::NameConflict { object: name.to_owned() }),
                Existing::Nothing => {}
            }
        }
        let is_new = self.has_if_none_match.load(Ordering::Relaxed);
        let answer = self.send_object(upload, is_new).await?;
        match answer.status() {
            StatusCode::PRECONDITION_FAILED => {
                // Dropping it discards the rest of the body.
                drop(answer);
                match self.compare(name, digests).await? {
                    Existing::Same => self.put_again(upload).await,
                    Existing::Other => Err(ObjectStoreError::NameConflict { object: name.to_owned() }),
                    Existing::Nothing => Err(ObjectStoreError::Incomplete { object: name.to_owned() }),
                }
            }
            // Some services of the same protocol don't support the condition: then the name is checked first.
            StatusCode::NOT_IMPLEMENTED if is_new => {
                self.set_no_if_none_match();
                Box::pin(self.put_new(upload)).await
            }
            _ => self.confirm(answer, name, digests).await,
        }
    }

    /// Puts the existing object once more, if it may be missing from the container's list.
    async fn put_again(
        &self,
        upload: &Upload<'_, impl Fn() -> UploadBody + Send + Sync>,
    ) -> Result<(), ObjectStoreError> {
        if self.service.lists_apart() { self.replace(upload).await } else { Ok(()) }
    }

    /// Puts it, and replaces an existing object.
    pub(super) async fn replace(
        &self,
        upload: &Upload<'_, impl Fn() -> UploadBody + Send + Sync>,
    ) -> Result<(), ObjectStoreError> {
        let answer = self.send_object(upload, false).await?;
        self.confirm(answer, upload.name, upload.digests).await
    }

    async fn send_object(
        &self,
        upload: &Upload<'_, impl Fn() -> UploadBody + Send + Sync>,
        is_new: bool,
    ) -> Result<HttpResponse, ObjectStoreError> {
        let ask = || {
            let ask = ContainerRequest::put(upload.name, (upload.body)(), upload.digests, upload.content_type.clone());
            if is_new { ask.with(header::IF_NONE_MATCH, "*") } else { ask }
        };
        self.send_into_container(&ask).await
    }

    /// Sends a request, and creates the container again if it was removed.
    pub(super) async fn send_into_container<'a>(
        &self,
        ask: &(impl Fn() -> ContainerRequest<'a> + Send + Sync),
    ) -> Result<HttpResponse, ObjectStoreError> {
        let answer = self.service.send(ask).await?;
        if answer.status() != StatusCode::NOT_FOUND {
            return Ok(answer);
        }
        self.prepare().await?;
        self.service.send(ask).await
    }

    /// Counts an object as stored only if the store returns its digest, or the same bytes.
    async fn confirm(&self, answer: HttpResponse, name: &str, digests: Digests) -> Result<(), ObjectStoreError> {
        let is_confirmed = has_digest(&answer, digests);
        check_success(answer, &Method::PUT, Some(name)).await?;
        if is_confirmed {
            return Ok(());
        }
        let object = name.to_owned();
        match self.compare(name, digests).await? {
            Existing::Same => Ok(()),
            Existing::Other => Err(ObjectStoreError::Damaged { object }),
            Existing::Nothing => Err(ObjectStoreError::Incomplete { object }),
        }
    }

    /// Compares the object under the name by length and digest if the store returns these, or else by its bytes.
    async fn compare(&self, name: &str, digests: Digests) -> Result<Existing, ObjectStoreError> {
        let shown = self.service.send(|| ContainerRequest::of(Method::HEAD, Some(name))).await?;
        if shown.status() == StatusCode::NOT_FOUND {
            return Ok(Existing::Nothing);
        }
        let (bytes, is_same) = (length(&shown), has_digest(&shown, digests));
        check_success(shown, &Method::HEAD, Some(name)).await?;
        if bytes.is_some_and(|bytes| bytes != digests.bytes) {
            return Ok(Existing::Other);
        }
        if is_same { Ok(Existing::Same) } else { self.read(name, digests).await }
    }

    async fn read(&self, name: &str, digests: Digests) -> Result<Existing, ObjectStoreError> {
        let given = self.service.send(|| ContainerRequest::of(Method::GET, Some(name))).await?;
        if given.status() == StatusCode::NOT_FOUND {
            return Ok(Existing::Nothing);
        }
        let mut given = expect_success(given, || describe_request(&Method::GET, Some(name))).await?;
        let (mut sha256, mut bytes) = (Sha256::new(), 0);
        while let Some(piece) = given.chunk().await? {
            sha256.update(&piece);
            bytes += piece.len() as u64;
            if bytes > digests.bytes {
                return Ok(Existing::Other);
            }
        }
        let found: [u8; 32] = sha256.finalize().into();
        let is_same = bytes == digests.bytes && found == digests.sha256;
        Ok(if is_same { Existing::Same } else { Existing::Other })
    }
}

pub(super) fn length(answer: &HttpResponse) -> Option<u64> {
    answer.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Whether the response has a digest of the bytes: the MD5 as its entity tag, as for every object that was stored as a
/// whole and isn't encrypted with keys of KMS, or the SHA-256 that S3 keeps.
fn has_digest(answer: &HttpResponse, digests: Digests) -> bool {
    let text = |name| answer.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let tag = text(header::ETAG.as_str());
    tag.is_some_and(|tag| tag.trim_matches('"').eq_ignore_ascii_case(&hex::encode(&digests.md5)))
        || text(CHECKSUM).is_some_and(|checksum| checksum == STANDARD.encode(digests.sha256))
}

/// Checks the status of a response, and discards its body.
async fn check_success(answer: HttpResponse, method: &Method, object: Option<&str>) -> Result<(), ObjectStoreError> {
    let answer = expect_success(answer, || describe_request(method, object)).await?;
    drain(answer).await;
    Ok(())
}

/// Reads a response to its end, so its connection can be reused. If that fails, a new connection is opened.
pub async fn drain(answer: HttpResponse) {
    let _ = answer.bytes(REFUSAL_BYTES_MAX).await;
}

/// Returns a successful response.
///
/// # Errors
/// [`ObjectStoreError::Answered`] with the rejection; `doing` is the request, as in "store object x".
pub async fn expect_success(
    answer: HttpResponse,
    doing: impl Fn() -> String,
) -> Result<HttpResponse, ObjectStoreError> {
    if answer.status().is_success() {
        return Ok(answer);
    }
    Err(ObjectStoreError::Answered { doing: doing(), refusal: Box::new(ServiceRefusal::of(answer).await) })
}
