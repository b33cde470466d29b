//! Puts an object and its description, and finds out what is there where the name is taken.

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
use super::request::{ContainerRequest, words};
use super::service::Service;
use super::upload::{DESCRIPTION, Upload, UploadTarget};
use net::http_client::HttpResponse;

/// A body of which a server that doesn't want it may not read all.
const LARGE_BYTES: u64 = 8 * 1024 * 1024;
/// Where S3 says the SHA-256 of an object, in base64.
pub const CHECKSUM: &str = "x-amz-checksum-sha256";

/// What stands under a name.
#[derive(Debug, PartialEq, Eq)]
enum There {
    Same,
    Other,
    Nothing,
}

/// A service's container.
pub(super) struct ContainerTarget<S> {
    pub(super) service: S,
    /// Whether it knows `If-None-Match: *`.
    keeps_names: AtomicBool,
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
        Self { service, keeps_names: AtomicBool::new(true) }
    }

    pub(super) fn name(&self) -> String {
        self.service.name()
    }

    /// It doesn't know `If-None-Match: *`, as it has said.
    pub(super) fn keeps_no_names(&self) {
        self.keeps_names.store(false, Ordering::Relaxed);
    }

    /// Makes what objects are kept in, if it is missing.
    pub(super) async fn prepare(&self) -> Result<(), ObjectStoreError> {
        let shown = self.service.send(|| ContainerRequest::of(Method::HEAD, None)).await?;
        if shown.status() != StatusCode::NOT_FOUND {
            return settle(shown, &Method::HEAD, None).await;
        }
        let made = self.service.send(|| self.service.create_container()).await?;
        // Somebody else was quicker.
        if made.status() == StatusCode::CONFLICT {
            return Ok(());
        }
        settle(made, &Method::PUT, None).await
    }

    pub(super) async fn put_new(
        &self,
        upload: &Upload<'_, impl Fn() -> UploadBody + Send + Sync>,
    ) -> Result<(), ObjectStoreError> {
        let Upload { name, digests, .. } = *upload;
        // A server that has the name may end the connection in the middle of a large body, and its answer with it.
        let is_large = upload.is_once || digests.bytes > LARGE_BYTES;
        if is_large || !self.keeps_names.load(Ordering::Relaxed) {
            match self.look(name, digests).await? {
                There::Same => return self.put_again(upload).await,
                There::Other => return Err(ObjectStoreError::Taken { object: name.to_owned() }),
                There::Nothing => {}
            }
        }
        let is_new = self.keeps_names.load(Ordering::Relaxed);
        let answer = self.send_object(upload, is_new).await?;
        match answer.status() {
            StatusCode::PRECONDITION_FAILED => {
                // With it goes what of the body wasn't sent.
                drop(answer);
                match self.look(name, digests).await? {
                    There::Same => self.put_again(upload).await,
                    There::Other => Err(ObjectStoreError::Taken { object: name.to_owned() }),
                    There::Nothing => Err(ObjectStoreError::Unsettled { object: name.to_owned() }),
                }
            }
            // Some services of the same protocol don't know the condition: then what is there is looked at before.
            StatusCode::NOT_IMPLEMENTED if is_new => {
                self.keeps_no_names();
                Box::pin(self.put_new(upload)).await
            }
            _ => self.confirm(answer, name, digests).await,
        }
    }

    /// Puts what is there once more, if it may be missing from the list of what is there.
    async fn put_again(
        &self,
        upload: &Upload<'_, impl Fn() -> UploadBody + Send + Sync>,
    ) -> Result<(), ObjectStoreError> {
        if self.service.lists_apart() { self.replace(upload).await } else { Ok(()) }
    }

    /// Puts it in the place of what may be there.
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

    /// Makes the container anew where somebody has removed it.
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

    /// Believes that something was stored only where the store names its digest, or gives the same bytes back.
    async fn confirm(&self, answer: HttpResponse, name: &str, digests: Digests) -> Result<(), ObjectStoreError> {
        let is_confirmed = has_digest(&answer, digests);
        settle(answer, &Method::PUT, Some(name)).await?;
        if is_confirmed {
            return Ok(());
        }
        let object = name.to_owned();
        match self.look(name, digests).await? {
            There::Same => Ok(()),
            There::Other => Err(ObjectStoreError::Damaged { object }),
            There::Nothing => Err(ObjectStoreError::Unsettled { object }),
        }
    }

    /// What stands under the name: by length and digest as the store names it, or else by what it gives.
    async fn look(&self, name: &str, digests: Digests) -> Result<There, ObjectStoreError> {
        let shown = self.service.send(|| ContainerRequest::of(Method::HEAD, Some(name))).await?;
        if shown.status() == StatusCode::NOT_FOUND {
            return Ok(There::Nothing);
        }
        let (bytes, is_same) = (length(&shown), has_digest(&shown, digests));
        settle(shown, &Method::HEAD, Some(name)).await?;
        if bytes.is_some_and(|bytes| bytes != digests.bytes) {
            return Ok(There::Other);
        }
        if is_same { Ok(There::Same) } else { self.read(name, digests).await }
    }

    async fn read(&self, name: &str, digests: Digests) -> Result<There, ObjectStoreError> {
        let given = self.service.send(|| ContainerRequest::of(Method::GET, Some(name))).await?;
        if given.status() == StatusCode::NOT_FOUND {
            return Ok(There::Nothing);
        }
        let mut given = expect_success(given, || words(&Method::GET, Some(name))).await?;
        let (mut sha256, mut bytes) = (Sha256::new(), 0);
        while let Some(piece) = given.chunk().await? {
            sha256.update(&piece);
            bytes += piece.len() as u64;
            if bytes > digests.bytes {
                return Ok(There::Other);
            }
        }
        let found: [u8; 32] = sha256.finalize().into();
        let is_same = bytes == digests.bytes && found == digests.sha256;
        Ok(if is_same { There::Same } else { There::Other })
    }
}

pub(super) fn length(answer: &HttpResponse) -> Option<u64> {
    answer.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Whether the answer names a digest of the bytes: the MD5 as its entity tag, as of every object that was stored as a whole and isn't
/// encrypted with keys of KMS, or the SHA-256 that S3 keeps.
fn has_digest(answer: &HttpResponse, digests: Digests) -> bool {
    let text = |name| answer.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let tag = text(header::ETAG.as_str());
    tag.is_some_and(|tag| tag.trim_matches('"').eq_ignore_ascii_case(&hex::encode(&digests.md5)))
        || text(CHECKSUM).is_some_and(|checksum| checksum == STANDARD.encode(digests.sha256))
}

/// Takes an answer that is of no use but for its status.
async fn settle(answer: HttpResponse, method: &Method, object: Option<&str>) -> Result<(), ObjectStoreError> {
    let answer = expect_success(answer, || words(method, object)).await?;
    drain(answer).await;
    Ok(())
}

/// Reads an answer to its end, so that its connection can be used again. Where that fails another one is made.
pub async fn drain(answer: HttpResponse) {
    let _ = answer.bytes(REFUSAL_BYTES_MAX).await;
}

/// An answer that means success.
///
/// # Errors
/// [`ObjectStoreError::Answered`] with the refusal; `doing` says what was asked for, as in "store object x".
pub async fn expect_success(
    answer: HttpResponse,
    doing: impl Fn() -> String,
) -> Result<HttpResponse, ObjectStoreError> {
    if answer.status().is_success() {
        return Ok(answer);
    }
    Err(ObjectStoreError::Answered { doing: doing(), refusal: Box::new(ServiceRefusal::of(answer).await) })
}
