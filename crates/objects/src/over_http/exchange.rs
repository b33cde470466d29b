//! Objects of gateways: a writer streams their bytes to the store and back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use futures_util::stream::try_unfold;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;

use super::body::UploadBody;
use super::container_target::ContainerTarget;
use super::digests::Digests;
use super::error::ObjectStoreError;
use super::service::Service;
use super::upload::Upload;
use crate::ObjectUpload;
use net::http_client::{BodyError, HttpResponse, empty};

/// Smaller objects are buffered before they are sent. Such an upload can be repeated, so the store needn't be checked
/// first.
const WHOLE_BYTES_MAX: u64 = 256 * 1024;

impl<S: Service> ContainerTarget<S> {
    /// Stores an object that a gateway sends.
    pub(super) async fn accept(&self, upload: ObjectUpload) -> Result<(), ObjectStoreError> {
        let ObjectUpload { name, content_type, bytes, md5, sha256, replaces, body } = upload;
        let digests = Digests { bytes, md5, sha256 };
        if bytes <= WHOLE_BYTES_MAX {
            let whole = whole(body, bytes).await.filter(|whole| Digests::of(whole) == digests);
            let Some(whole) = whole else { return Err(ObjectStoreError::Cut { object: name }) };
            let body = || UploadBody::Whole(whole.clone());
            let upload = Upload { name: &name, digests, content_type, is_once: false, body };
            return self.store(&upload, replaces).await;
        }
        let (body, is_wanted_again) = (Mutex::new(Some(body)), AtomicBool::new(false));
        let once = || {
            let from = body.lock().unwrap_or_else(PoisonError::into_inner).take();
            is_wanted_again.fetch_or(from.is_none(), Ordering::Relaxed);
            // The body was consumed by the first request: an empty one makes the second request fail by its length.
            UploadBody::Passed { from: from.unwrap_or_else(empty), left: bytes }
        };
        let upload = Upload { name: &name, digests, content_type, is_once: true, body: once };
        let stored = self.store(&upload, replaces).await;
        if stored.is_err() && is_wanted_again.into_inner() {
            return Err(ObjectStoreError::Once { object: name });
        }
        stored
    }

    async fn store(
        &self,
        upload: &Upload<'_, impl Fn() -> UploadBody + Send + Sync>,
        replaces: bool,
    ) -> Result<(), ObjectStoreError> {
        if replaces { self.replace(upload).await } else { self.put_new(upload).await }
    }
}

/// Buffers a body; `None` unless it has exactly this many bytes.
async fn whole(mut body: net::http_client::RequestBody, bytes: u64) -> Option<Bytes> {
    let bytes = usize::try_from(bytes).ok()?;
    let mut whole = BytesMut::with_capacity(bytes);
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.ok()?.into_data() else { continue };
        if piece.len() > bytes - whole.len() {
            return None;
        }
        whole.extend_from_slice(&piece);
    }
    (whole.len() == bytes).then(|| whole.freeze())
}

/// Streams a response's bytes as the body of another message.
pub(super) fn streamed(answer: HttpResponse) -> net::http_client::RequestBody {
    let pieces = try_unfold(answer, async |mut answer| {
        let piece = answer.chunk().await.map_err(BodyError::from)?;
        Ok::<_, BodyError>(piece.map(|piece| (Frame::data(piece), answer)))
    });
    BodyExt::boxed_unsync(StreamBody::new(pieces))
}
