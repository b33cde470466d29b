//! Objects of gateways: their bytes are streamed to the store and back. Memory holds a bounded part of each.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use event::Lane;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH, RANGE};
use hyper::{HeaderMap, Response, StatusCode};
use net::http_client::BodyError;
use objects::ObjectSink;
use objects::{ObjectDownload, ObjectQuery, ObjectUpload};
use sink::{SinkError, WriteOutcome};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Sleep, sleep, timeout};
use writer_protocol::Outcome;
use writer_protocol::object::{DIGEST, digests_of};

use crate::answer::{self, Refused, RequestBody, Work};
use crate::request_parts::{BODY_SILENCE_MAX, ROOM_WAIT_MAX, bad_request, counted, text};
use crate::sink_health::LastCallCell;
use crate::target_check::{Check, Expected};
use crate::{Offered, UNIT, Writer};

/// Bytes of an object in memory, at most: the memory reserved for an upload.
const PASSING_BYTES_MAX: u64 = 512 * 1024;

/// A sink's store of objects, and the object's name in a request.
pub(super) struct Named {
    store: ObjectSink,
    name: String,
    room: Arc<Semaphore>,
    last_call: LastCallCell,
}

impl Named {
    /// None for names that no gateway gives to objects: they could address something else.
    pub(super) fn new(offered: &Offered, name: &str) -> Result<Option<Self>, Refused> {
        let Some(store) = ObjectSink::of(&offered.sink) else {
            let detail = format!(
                "the sink is of kind {}, which does not store objects: configure the same sink in gateway and writer",
                offered.kind
            );
            return Err(Refused::new(StatusCode::NOT_FOUND, "objects", detail));
        };
        let named = || Self {
            store: store.clone(),
            name: name.to_owned(),
            room: offered.room.clone(),
            last_call: offered.last_call.clone(),
        };
        Ok(store.place(name).map(|_| named()))
    }

    /// Prepares to store the object of a request.
    pub(super) fn store(
        self,
        writer: Arc<Writer>,
        lane: &Lane,
        headers: &HeaderMap,
        body: Incoming,
    ) -> Result<Work, Refused> {
        self.check_lane(lane)?;
        let bytes = HttpBody::size_hint(&body).exact();
        let bytes = bytes.ok_or_else(|| {
            Refused::new(
                StatusCode::LENGTH_REQUIRED,
                "length",
                "the object needs a Content-Length: check the proxies between gateway and writer",
            )
        })?;
        let digests = text(headers, DIGEST).and_then(digests_of);
        let (md5, sha256) = digests.ok_or_else(|| {
            bad_request(
                "the header Content-Digest has no md5 or no sha-256: check the proxies between gateway and writer",
            )
        })?;
        let content_type = headers.get(CONTENT_TYPE).ok_or_else(|| {
            bad_request("the object has no Content-Type: check the proxies between gateway and writer")
        })?;
        let (body, rest) = Passing::new(body);
        let Self { store, name, room, last_call } = self;
        let upload = ObjectUpload {
            name,
            content_type: content_type.clone(),
            bytes,
            md5,
            sha256,
            replaces: !headers.contains_key(IF_NONE_MATCH),
            body: body.boxed_unsync(),
        };
        Ok(Box::pin(async move {
            let stored = counted(&writer, &last_call, accept(&room, &store, upload)).await;
            if stored.is_ok() {
                writer.counters.objects.add(1);
            }
            // Closing a connection with unread bytes could discard the response.
            if let Ok(body) = rest.await {
                drain(body).await;
            }
            answer::json(&Outcome::from(stored.map(|()| WriteOutcome::Committed)))
        }))
    }

    /// Accepts only names of the lane's own objects, so a gateway can't replace another's by mistake.
    fn check_lane(&self, lane: &Lane) -> Result<(), Refused> {
        let place = self.store.place(&self.name);
        if place.is_some_and(|place| place.origin == lane.origin && place.position.shard == lane.shard) {
            return Ok(());
        }
        Err(bad_request(
            "the lane of the object's name differs from Forebay-Lane: check the proxies between gateway and writer",
        ))
    }

    /// Returns the object, or a part of it.
    pub(super) async fn give(
        self,
        offered: &Offered,
        expected: &Expected,
        headers: &HeaderMap,
    ) -> Result<Response<RequestBody>, Refused> {
        let query = query(headers)?;
        // If the store doesn't answer, `fetch` reports it.
        if let Ok(Some(_)) = offered.differing(expected, Check::AsSeen).await {
            let detail =
                "this writer has another store or another sink than the gateway is bound to: see the gateway's log";
            return Err(Refused::new(StatusCode::CONFLICT, "differs", detail));
        }
        let units = u32::try_from(PASSING_BYTES_MAX.div_ceil(UNIT as u64)).unwrap_or(u32::MAX);
        let Ok(Ok(permit)) = timeout(ROOM_WAIT_MAX, self.room.clone().acquire_many_owned(units)).await else {
            let detail = "batches and objects of this sink use all of its memory, because its store is slow: check \
                the store; the gateway retries";
            return Err(Refused::new(StatusCode::TOO_MANY_REQUESTS, "busy", detail));
        };
        let fetched = self.store.fetch(&self.name, &query).await;
        Ok(match fetched {
            Ok(ObjectDownload::Missing) => empty(StatusCode::NOT_FOUND),
            Ok(ObjectDownload::Same) => empty(StatusCode::NOT_MODIFIED),
            Ok(ObjectDownload::Found(found, body)) => {
                let (status, bytes) = match query {
                    ObjectQuery::Part(_, range) => (StatusCode::PARTIAL_CONTENT, range.end - range.start),
                    ObjectQuery::Unless(_) => (StatusCode::OK, found.bytes),
                };
                // The memory is free again when the gateway has the object.
                let body = body.map_frame(move |frame| {
                    let _ = &permit;
                    frame
                });
                let mut response = Response::new(body.boxed_unsync());
                *response.status_mut() = status;
                let headers = response.headers_mut();
                headers.insert(CONTENT_LENGTH, bytes.into());
                insert(headers, ETAG, &found.etag);
                insert(headers, CONTENT_TYPE, &found.content_type);
                response
            }
            Err(error) => {
                let body = answer::whole(Bytes::from(error.to_string()));
                answer::response(StatusCode::BAD_GATEWAY, "text/plain; charset=utf-8", body)
            }
        })
    }
}

async fn accept(room: &Semaphore, store: &ObjectSink, upload: ObjectUpload) -> Result<(), SinkError> {
    let units = u32::try_from(upload.bytes.min(PASSING_BYTES_MAX).div_ceil(UNIT as u64)).unwrap_or(u32::MAX);
    let Ok(Ok(_permit)) = timeout(ROOM_WAIT_MAX, room.acquire_many(units)).await else {
        let reason = "objects of this sink use all of its memory, because its store is slow: check the store; the \
            gateway retries";
        return Err(SinkError::Unavailable(reason.into()));
    };
    store.accept(upload).await
}

async fn drain(mut body: Passing) {
    while let Some(Ok(_)) = body.frame().await {}
}

fn query(headers: &HeaderMap) -> Result<ObjectQuery, Refused> {
    let Some(tag) = text(headers, IF_MATCH.as_str()) else {
        return Ok(ObjectQuery::Unless(text(headers, IF_NONE_MATCH.as_str()).map(str::to_owned)));
    };
    let range = text(headers, RANGE.as_str()).and_then(range);
    let range = range.ok_or_else(|| bad_request("If-Match needs a Range of one part, as in bytes=0-99"))?;
    Ok(ObjectQuery::Part(tag.to_owned(), range))
}

/// `bytes=FIRST-LAST`.
fn range(text: &str) -> Option<Range<u64>> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse::<u64>().ok()?);
    (first <= last).then_some(first..last.checked_add(1)?)
}

pub(super) fn empty(status: StatusCode) -> Response<RequestBody> {
    answer::response(status, "text/plain", answer::whole(Bytes::new()))
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

/// A request's body while it is streamed to the store. It fails if the gateway sends nothing for too long. On drop, it returns the part
/// that the store didn't read.
#[derive(Debug)]
struct Passing {
    from: Option<Incoming>,
    /// The timeout while it waits for the gateway.
    silence: Option<Pin<Box<Sleep>>>,
    rest: Option<oneshot::Sender<Self>>,
}

impl Passing {
    fn new(from: Incoming) -> (Self, oneshot::Receiver<Self>) {
        let (rest, unread) = oneshot::channel();
        (Self { from: Some(from), silence: None, rest: Some(rest) }, unread)
    }
}

impl HttpBody for Passing {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(from) = &mut self.from else { return Poll::Ready(None) };
        let failed = match Pin::new(from).poll_frame(cx) {
            Poll::Ready(Some(Err(error))) => error.into(),
            Poll::Ready(frame) => {
                self.silence = None;
                return Poll::Ready(frame.map(|frame| frame.map_err(BodyError::from)));
            }
            Poll::Pending => {
                let silence = self.silence.get_or_insert_with(|| Box::pin(sleep(BODY_SILENCE_MAX)));
                std::task::ready!(silence.as_mut().poll(cx));
                "the gateway stopped sending the object: check the network between gateway and writer".into()
            }
        };
        self.from = None;
        Poll::Ready(Some(Err(failed)))
    }

    fn size_hint(&self) -> SizeHint {
        self.from.as_ref().map(HttpBody::size_hint).unwrap_or_default()
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        if let (Some(from), Some(rest)) = (self.from.take(), self.rest.take()) {
            // The receiver may be dropped too.
            let _ = rest.send(Self { from: Some(from), silence: None, rest: None });
        }
    }
}
