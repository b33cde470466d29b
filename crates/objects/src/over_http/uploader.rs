//! Encodes an object, its description and its attachments, and sends them to a target in order.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::TryStreamExt;
use http::HeaderValue;

use super::attachments::{self, Attachment, Attachments};
use super::body::UploadBody;
use super::digests::Digests;
use super::error::ObjectStoreError;
use super::upload::{Upload, UploadTarget};
use super::upload_body::EncodedObject;
use crate::description;
use crate::memory_budget::MemoryBudget;
use crate::{Manifest, ObjectFormat, Parts};
use sink::Reason;

/// Attachments that are sent concurrently.
const PARTS_IN_FLIGHT: usize = 4;

/// The rules of objects, and their memory budget.
pub struct Uploader {
    /// The rules of objects.
    pub rules: ObjectFormat,
    attachments: Option<Attachments>,
    /// The memory that objects may use while they are written.
    pub memory: MemoryBudget,
}

impl Uploader {
    /// An uploader of objects with these rules.
    #[must_use]
    pub fn new(rules: ObjectFormat) -> Self {
        let attachments = Attachments::of(rules.apart.as_ref());
        Self { rules, attachments, memory: MemoryBudget::new() }
    }

    /// Why an event with this payload can't be stored; `None` if it can.
    #[must_use]
    pub fn refusal(&self, payload: &[u8]) -> Option<Reason> {
        self.attachments.as_ref()?.refusal(payload)
    }

    /// Stores the attachments, then the object, then its description. Each of them may exist already.
    ///
    /// # Errors
    /// [`ObjectStoreError`] if one of them may not be stored.
    pub async fn put(
        &self,
        target: &impl UploadTarget,
        manifest: &Manifest,
        parts: Box<dyn Parts>,
    ) -> Result<Box<dyn Parts>, ObjectStoreError> {
        let attachments = match Attachments::of(manifest.apart.as_ref()) {
            Some(attachments) => Some(put_attachments(target, manifest, attachments, parts.again()).await?),
            None => None,
        };
        let encoded = EncodedObject::make(manifest, parts, &self.memory, self.rules.bytes_max).await?;
        let content_type = HeaderValue::from_static(manifest.codec.content_type());
        let put = target.put_object(&manifest.lane, &encoded.upload(&manifest.name, content_type)).await;
        put.map_err(|failure| encoded.read_error().unwrap_or(failure))?;
        let (sealed, parts) = encoded.into_stored();
        let text = description::text(manifest, &sealed, attachments);
        target.describe(&manifest.lane, &manifest.description, text.into()).await?;
        Ok(parts)
    }
}

/// Stores the attachments. Returns their number.
async fn put_attachments(
    target: &impl UploadTarget,
    manifest: &Manifest,
    attachments: Attachments,
    events: Box<dyn Parts>,
) -> Result<u64, ObjectStoreError> {
    let count = AtomicU64::new(0);
    let put = async |part: Attachment| {
        count.fetch_add(1, Ordering::Relaxed);
        let Attachment { name, bytes, content_type } = part;
        let bytes = Bytes::from(bytes);
        let (digests, body) = (Digests::of(&bytes), || UploadBody::Whole(bytes.clone()));
        let upload = Upload { name: &name, digests, content_type, is_once: false, body };
        target.put_object(&manifest.lane, &upload).await
    };
    let (found, reading) = attachments::read(attachments, manifest.clone(), events);
    found.try_for_each_concurrent(PARTS_IN_FLIGHT, put).await?;
    reading.await.map_err(|_| ObjectStoreError::Unanswered)?;
    Ok(count.into_inner())
}
