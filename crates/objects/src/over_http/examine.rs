//! Examines a container or bucket: whether it exists, its server's clock, and whether objects can be stored.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode};
use sink::Examination;

use super::body::UploadBody;
use super::container_target::{ContainerTarget, drain, expect_success};
use super::digests::Digests;
use super::error::ObjectStoreError;
use super::request::{ContainerRequest, describe_request};
use super::service::Service;
use crate::Prefix;

/// Query engines ignore files whose names begin with `_`.
const NAME: &str = "_forebay-doctor";
const TEXT: HeaderValue = HeaderValue::from_static("text/plain");

/// Examines the container. With the prefix of the sink's objects it also stores an object in their folder and removes it.
pub(super) async fn examine(
    store: &ContainerTarget<impl Service>,
    trial: Option<&Prefix>,
) -> Result<Examination, ObjectStoreError> {
    let mut found = Examination::default();
    found.begin_clock();
    let shown = store.service.send(|| ContainerRequest::of(Method::HEAD, None)).await?;
    if let Some(date) = shown.date() {
        found.compare_clock(date, Duration::from_secs(1));
    }
    if shown.status() == StatusCode::NOT_FOUND {
        drain(shown).await;
        found.see(format!("{} doesn't exist yet: Forebay creates it at the first connection", store.name()));
        return Ok(found);
    }
    drain(expect_success(shown, || describe_request(&Method::HEAD, None)).await?).await;
    found.see(format!("{} exists", store.name()));
    match trial {
        Some(prefix) => try_to_store(store, prefix, &mut found).await?,
        None => found.skip("whether objects can be stored: --write stores a small object and removes it"),
    }
    Ok(found)
}

async fn try_to_store(
    store: &ContainerTarget<impl Service>,
    prefix: &Prefix,
    found: &mut Examination,
) -> Result<(), ObjectStoreError> {
    let folder = prefix.fixed().rfind('/').map_or("", |end| &prefix.fixed()[..=end]);
    let name = format!("{folder}{NAME}");
    let text = Bytes::from_static(b"forebay doctor --write\n");
    let digests = Digests::of(&text);
    let put = || ContainerRequest::put(&name, UploadBody::Whole(text.clone()), digests, TEXT);
    let stored = store.service.send(put).await?;
    drain(expect_success(stored, || describe_request(&Method::PUT, Some(&name))).await?).await;
    found.see("an object was stored");
    let removed = store.service.send(|| ContainerRequest::of(Method::DELETE, Some(&name))).await?;
    let status = removed.status();
    drain(removed).await;
    if !status.is_success() {
        // Forebay itself removes no object, so it doesn't need the right.
        found.skip(format!("the object {name} can't be removed ({status}), and stays: remove it"));
    }
    Ok(())
}
