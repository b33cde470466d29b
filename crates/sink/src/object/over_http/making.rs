//! Makes an object, its description and its attachments, and lets a target store them in order.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use event::Lane;
use futures_util::TryStreamExt;
use http::HeaderValue;

use super::apart::{self, Part, Parting};
use super::body::Body;
use super::coded::{Coded, Digests};
use super::digesting::Digesting;
use super::failure::Failure;
use super::put::Upload;
use crate::Reason;
use crate::object::description;
use crate::object::room::Room;
use crate::object::{Manifest, ObjectRules, Parts};

/// Attachments that are sent concurrently.
const PARTS_IN_FLIGHT: usize = 4;

/// The destination of objects.
pub(super) trait Target: Sync {
    /// Stores bytes under a unique name. If an object exists there, its bytes are compared.
    fn put_object(
        &self,
        lane: &Lane,
        upload: &Upload<'_, impl Fn() -> Body + Send + Sync>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Stores a description, and replaces an older one.
    fn describe(&self, lane: &Lane, name: &str, text: Bytes) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// The rules of objects, and their memory budget.
pub(super) struct Making {
    pub(super) rules: ObjectRules,
    parting: Option<Parting>,
    pub(super) room: Room,
    digesting: Digesting,
}

impl Making {
    pub(super) fn new(rules: ObjectRules) -> Self {
        let parting = Parting::of(rules.apart.as_ref());
        Self { rules, parting, room: Room::new(), digesting: Digesting::default() }
    }

    /// Why an event with this payload can't be stored; `None` if it can.
    pub(super) fn refusal(&self, payload: &[u8]) -> Option<Reason> {
        self.parting.as_ref()?.refusal(payload)
    }

    /// Stores the attachments, then the object, then its description. Each of them may exist already.
    pub(super) async fn put<P: Parts>(
        &self,
        target: &impl Target,
        manifest: &Manifest,
        parts: P,
    ) -> Result<P, Failure> {
        let apart = put_apart(target, manifest, &parts).await?;
        let coded = Coded::make(manifest, parts, (&self.room, &self.digesting), self.rules.bytes_max).await?;
        let content_type = HeaderValue::from_static(manifest.codec.content_type());
        let put = target.put_object(&manifest.lane, &coded.upload(&manifest.name, content_type)).await;
        put.map_err(|failure| coded.trouble().unwrap_or(failure))?;
        let (sealed, parts) = coded.into_stored();
        let text = description::text(manifest, &sealed, apart);
        target.describe(&manifest.lane, &description::name(&manifest.name), text.into()).await?;
        Ok(parts)
    }
}

/// Stores the parts of payloads that become objects of their own. Returns their number.
async fn put_apart<P: Parts>(target: &impl Target, manifest: &Manifest, parts: &P) -> Result<Option<u64>, Failure> {
    let Some(parting) = Parting::of(manifest.apart.as_ref()) else { return Ok(None) };
    let count = AtomicU64::new(0);
    let put = async |part: Part| {
        count.fetch_add(1, Ordering::Relaxed);
        let Part { name, bytes, content_type } = part;
        let bytes = Bytes::from(bytes);
        let (digests, body) = (Digests::of(&bytes), || Body::Whole(bytes.clone()));
        let upload = Upload { name: &name, digests, content_type, is_new: false, is_once: false, body };
        target.put_object(&manifest.lane, &upload).await
    };
    let (found, reading) = apart::read(parting, manifest.clone(), parts.again());
    found.try_for_each_concurrent(PARTS_IN_FLIGHT, put).await?;
    reading.await.map_err(|_| Failure::Unanswered)?;
    Ok(Some(count.into_inner()))
}
