//! Dispatches a gateway's request to a call of a sink.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use event::Lane;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use limits::memory::batch_memory_bytes;
use net::lingering_close;
use net::newcomers::Place;
use sink::{Batch, Claim, Held, SinkError, Takeover, offer_stored};
use spans::{SpanQueue, WriteSpan};
use tap::Point;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout, timeout_at};
use writer_protocol::frame::{self, FRAME_BYTES_MAX};
use writer_protocol::object::PATH;
use writer_protocol::read::QueryJson;
use writer_protocol::version::{self, Peer};
use writer_protocol::{ClaimQuery, HeldAnswer, Outcome, wire};

use crate::answer::{self, Refused, RequestBody, Work};
use crate::auth::{self, Admitted};
use crate::frame_check;
use crate::objects::{self, Named};
use crate::request_parts::{BODY_SILENCE_MAX, ROOM_WAIT_MAX, bad_request, counted, parsed, text};
use crate::sink_health::LastCallCell;
use crate::target_check::{Check, Expected};
use crate::{Offered, UNIT, Writer};

/// The content types of a query or a claim.
const BODY_TYPES: [&str; 2] = [wire::CONTENT_TYPE, "application/json"];
/// The largest query, in bytes.
const QUERY_BYTES_MAX: usize = 64 * 1024;

/// Bytes a second: a slower body holds memory that others need.
const BODY_RATE_MIN: usize = 256 * 1024;

pub(super) async fn answer(
    request: Request<Incoming>,
    writer: Arc<Writer>,
    place: Arc<Place>,
) -> Response<RequestBody> {
    let is_large = lingering_close::is_large(request.body());
    let mut response = match route(request, &writer, &place).await {
        Ok(Routed::Health(status)) => answer::response(status, "text/plain", answer::whole(Bytes::new())),
        Ok(Routed::Work(work)) => answer::of_work(work).await,
        Ok(Routed::Object(response)) => response,
        Err(refused) => {
            writer.counters.refused.add(1);
            let mut response = refused.response();
            tracing::debug!(status = response.status().as_u16(), "request of a gateway was rejected");
            if is_large {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            response
        }
    };
    response.headers_mut().insert(wire::PROTOCOL, HeaderValue::from_static(version::OWN));
    if writer.is_draining() {
        response.headers_mut().insert(wire::DRAINING, HeaderValue::from_static("true"));
    }
    response
}

enum Routed {
    Health(StatusCode),
    Work(Work),
    /// An object, whose bytes are streamed.
    Object(Response<RequestBody>),
}

const NO_OBJECT: &str =
    "the path does not end with the name of an object of a gateway: check the proxies between gateway and writer";

async fn route(request: Request<Incoming>, writer: &Arc<Writer>, place: &Place) -> Result<Routed, Refused> {
    match request.uri().path() {
        "/healthz" => return Ok(Routed::Health(StatusCode::OK)),
        "/readyz" if writer.is_draining() => return Ok(Routed::Health(StatusCode::SERVICE_UNAVAILABLE)),
        "/readyz" => return Ok(Routed::Health(StatusCode::OK)),
        _ => {}
    }
    let admitted = auth::admit(writer, request.headers(), clock::unix_microseconds())?;
    place.admit();
    let (head, body) = request.into_parts();
    let rest = head.uri.path().strip_prefix(wire::PATH).ok_or_else(unknown_path)?;
    let rest = match (rest, &head.method) {
        ("" | "/", &Method::POST) => return Err(plain_payload()),
        _ => rest.strip_prefix('/').ok_or_else(unknown_path)?,
    };
    check_version(&head.method, &head.headers)?;
    let (name, call) = rest.split_once('/').unwrap_or((rest, ""));
    let offered = writer.offered.get(name).ok_or_else(|| unknown_sink(writer, name))?.clone();
    let (sink, expected) = (offered.sink.clone(), Expected::of(&head.headers)?);
    if let Some(object) = call.strip_prefix(PATH) {
        let object = Named::new(&offered, object)?;
        return match (&head.method, object) {
            (&Method::PUT, None) => Err(bad_request(NO_OBJECT)),
            (&Method::PUT, Some(object)) => {
                let lane = lane(&head.headers, admitted)?;
                let work = object.store(writer.clone(), &lane, &head.headers, body)?;
                Ok(Routed::Work(offered.verified(expected, Check::AsSeen, work)))
            }
            (&Method::GET, None) => Ok(Routed::Object(objects::empty(StatusCode::NOT_FOUND))),
            (&Method::GET, Some(object)) => object.give(&offered, &expected, &head.headers).await.map(Routed::Object),
            _ => Err(Refused::new(StatusCode::METHOD_NOT_ALLOWED, "method", "an object accepts GET and PUT")),
        };
    }
    let work = match (&head.method, call) {
        (&Method::GET, "") => info(writer.clone(), offered.clone()),
        (&Method::GET, "cursor") => {
            let lane = lane(&head.headers, admitted)?;
            held(writer.clone(), offered.last_call.clone(), async move { sink.held(&lane).await })
        }
        (&Method::POST, "claim") => {
            check_content_type(&head.headers, &BODY_TYPES)?;
            let (lane, (claim, takeover)) = (lane(&head.headers, admitted)?, claim_query(body).await?);
            held(writer.clone(), offered.last_call.clone(), async move { sink.claim(&lane, claim, takeover).await })
        }
        (&Method::POST, "") => {
            // Before the lane: a client's payload has no lane.
            check_content_type(&head.headers, &[wire::CONTENT_TYPE])?;
            let lane = lane(&head.headers, admitted)?;
            let (batch, permit) = batch(&offered, lane, &head.headers, body).await?;
            let work = store(writer.clone(), name.to_owned(), offered.clone(), batch.for_store(expected.mark), permit);
            return Ok(Routed::Work(offered.verified(expected, Check::AtWrite, work)));
        }
        (&Method::POST, "read") => {
            check_content_type(&head.headers, &BODY_TYPES)?;
            let length = length(&body, QUERY_BYTES_MAX)?;
            let query = serde_json::from_slice::<QueryJson>(&whole(body, length).await?).ok();
            let request = query
                .and_then(QueryJson::into_request)
                .ok_or_else(|| bad_request("the query is malformed: check the proxies between gateway and writer"))?;
            writer.reads.clone().read(sink, request)
        }
        (_, "" | "cursor" | "claim" | "read") => {
            let detail = "a sink accepts GET and POST, its cursor GET, its claim and read POST";
            return Err(Refused::new(StatusCode::METHOD_NOT_ALLOWED, "method", detail));
        }
        _ => return Err(unknown_path()),
    };
    let check = if call == "read" { Check::AsSeen } else { Check::First };
    Ok(Routed::Work(offered.verified(expected, check, work)))
}

/// Rejects a request of another version before it can have an effect. 503 is the status after which a gateway of any version waits, keeps the
/// events, and can't treat any of them as rejected.
fn check_version(method: &Method, headers: &HeaderMap) -> Result<(), Refused> {
    let gateway = Peer::new(text(headers, wire::PROTOCOL));
    if gateway.is_current() {
        return Ok(());
    }
    // A client that posts a payload here by mistake names no version either.
    if !gateway.is_named() && *method == Method::POST {
        check_content_type(headers, &[wire::CONTENT_TYPE])?;
    }
    Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, "protocol", version::gateway_differs(&gateway)))
}

fn unknown_path() -> Refused {
    let detail = "a writer has /ingest/data/SINK for gateways, /healthz and /readyz: post events to a gateway";
    Refused::new(StatusCode::NOT_FOUND, "path", detail)
}

fn plain_payload() -> Refused {
    let detail = "a writer accepts batches of gateways only: post payloads to a gateway's /ingest/event";
    Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_type", detail)
}

fn unknown_sink(writer: &Writer, name: &str) -> Refused {
    let known: Vec<&str> = writer.offered.keys().map(String::as_str).collect();
    let name: String = name.chars().take(64).filter(|char| !char.is_control()).collect();
    let detail = format!("this writer has no sink `{name}`; it has: {}", known.join(", "));
    Refused::new(StatusCode::NOT_FOUND, "sink", detail)
}

fn lane(headers: &HeaderMap, admitted: Admitted) -> Result<Lane, Refused> {
    let lane = text(headers, wire::LANE).and_then(wire::lane_of);
    let lane = lane.ok_or_else(|| {
        bad_request("the header Forebay-Lane is missing or malformed: check the proxies between gateway and writer")
    })?;
    admitted.check(&lane)?;
    Ok(lane)
}

fn info(writer: Arc<Writer>, offered: Offered) -> Work {
    Box::pin(async move {
        let connected = async {
            offered.sink.connect().await?;
            offered.mark().await
        };
        match counted(&writer, &offered.last_call, connected).await {
            Ok(mark) => answer::json(&offered.info(mark)),
            Err(error) => answer::json(&Outcome::from(error)),
        }
    })
}

fn held(
    writer: Arc<Writer>,
    last_call: LastCallCell,
    call: impl Future<Output = Result<Option<Held>, SinkError>> + Send + 'static,
) -> Work {
    Box::pin(async move {
        match counted(&writer, &last_call, call).await {
            Ok(held) => answer::json(&HeldAnswer::from(held)),
            Err(error) => answer::json(&Outcome::from(error)),
        }
    })
}

async fn claim_query(body: Incoming) -> Result<(Claim, Takeover), Refused> {
    let length = length(&body, QUERY_BYTES_MAX)?;
    let query = serde_json::from_slice::<ClaimQuery>(&whole(body, length).await?).ok();
    query.and_then(ClaimQuery::into_takeover).ok_or_else(|| {
        bad_request("the body is not a request for a claim: check the proxies between gateway and writer")
    })
}

fn store(writer: Arc<Writer>, name: String, offered: Offered, batch: Batch, permit: OwnedSemaphorePermit) -> Work {
    Box::pin(async move {
        let begun = Instant::now();
        let report = counted(&writer, &offered.last_call, offered.sink.write(&batch)).await;
        let took = begun.elapsed();
        offered.work.batch_time.record(took);
        offered.work.callers.note(batch.lane().origin, clock::unix_microseconds());
        offered.work.failed.add(u64::from(report.is_err()));
        if let Some(spans) = writer.spans
            && !batch.traces().is_empty()
        {
            add_span(spans, &name, &batch, took, report.is_ok());
        }
        tracing::debug!(
            lane = %batch.lane(), sink = &*batch.lane().sink, shard = batch.lane().shard, records = batch.len(),
            bytes = batch.payload_bytes(), milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            outcome = if report.is_ok() { "answered" } else { "failed" },
            "batch of a gateway"
        );
        if report.is_ok() {
            offered.work.records.add(batch.len() as u64);
            writer.counters.batches.add(1);
            writer.counters.records.add(batch.len() as u64);
        }
        if let Ok(outcome) = &report
            && writer.taps.want(Point::Stored)
        {
            offer_stored(writer.taps, &name, &batch, outcome);
        }
        drop((batch, permit));
        answer::json(&report.map_or_else(|error| offered.failed(error), |report| Ok(report).into()))
    })
}

/// Adds a span for each sampled record of a batch whose write has just ended.
fn add_span(spans: &SpanQueue, sink: &str, batch: &Batch, took: Duration, is_answered: bool) {
    let ended = clock::unix_microseconds();
    let began = ended.saturating_sub(i64::try_from(took.as_micros()).unwrap_or(i64::MAX));
    let outcome = if is_answered { "answered" } else { "failed" };
    let records = i64::try_from(batch.len()).unwrap_or(i64::MAX);
    let write = WriteSpan { sink, records, outcome, has_failed: !is_answered, time: (began, ended) };
    spans.add_writes(batch.traces(), (batch.first(), batch.last()), &write);
}

/// A web page can't send these types to another host's port without a CORS preflight.
fn check_content_type(headers: &HeaderMap, known: &[&str]) -> Result<(), Refused> {
    if headers.get(CONTENT_TYPE).is_some_and(|value| known.iter().any(|known| value == known)) {
        return Ok(());
    }
    let detail = format!(
        "a writer accepts requests of gateways only, with Content-Type: {}: post payloads to a gateway",
        known.join(" or ")
    );
    Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_type", detail))
}

/// Reads a batch, after reserving memory for its bytes.
async fn batch(
    offered: &Offered,
    lane: Lane,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<(Batch, OwnedSemaphorePermit), Refused> {
    let positions = text(headers, wire::POSITIONS).and_then(wire::positions_of);
    let (first, last) = positions.ok_or_else(|| {
        bad_request(
            "the header Forebay-Positions is missing or malformed: check the proxies between gateway and writer",
        )
    })?;
    let length = length(&body, FRAME_BYTES_MAX)?;
    let units = u32::try_from(batch_memory_bytes(length).div_ceil(UNIT)).unwrap_or(u32::MAX);
    let Ok(Ok(permit)) = timeout(ROOM_WAIT_MAX, offered.room.clone().acquire_many_owned(units)).await else {
        // If the connection closes with unread bytes, the gateway loses the answer.
        read(body, length, |_| {}).await?;
        let detail = "batches of this sink use all of its memory, because its store is slow: check the store; the \
            gateway retries";
        return Err(Refused::new(StatusCode::TOO_MANY_REQUESTS, "busy", detail));
    };
    let frame = whole(body, length).await?;
    let mut batch = frame::decode(&frame, lane, first, last).map_err(|error| bad_request(error.to_string()))?;
    for (sequence, trace) in text(headers, wire::TRACES).map(wire::traces_of).unwrap_or_default() {
        batch.trace(sequence, Some(trace));
    }
    // A replay of dead letters sends the highest number: each record may have been sent before.
    let batch = batch.sent_after(position(headers, wire::MIN_POSITION)?, position(headers, wire::RESENT_THROUGH)?);
    frame_check::check(&batch)?;
    let claim = parsed(headers, wire::CLAIM)?;
    let batch = match claim {
        Some(claim) => batch.claimed_by(claim),
        None => batch,
    };
    Ok((batch, permit))
}

fn position(headers: &HeaderMap, name: &'static str) -> Result<u64, Refused> {
    let wrong = || {
        bad_request(format!("the header {name} is missing or malformed: check the proxies between gateway and writer"))
    };
    text(headers, name).and_then(|text| text.parse().ok()).ok_or_else(wrong)
}

/// The length of a body of at most `bytes_max` bytes.
fn length(body: &Incoming, bytes_max: usize) -> Result<usize, Refused> {
    let length = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    let length = length.ok_or_else(|| {
        Refused::new(
            StatusCode::LENGTH_REQUIRED,
            "length",
            "the body needs a Content-Length: check the proxies between gateway and writer",
        )
    })?;
    if length > bytes_max {
        let detail = format!(
            "the body has {length} bytes, and at most {bytes_max} are allowed: run the same release of gateway and \
             writer"
        );
        return Err(Refused::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail));
    }
    Ok(length)
}

async fn whole(body: Incoming, length: usize) -> Result<Bytes, Refused> {
    let mut whole = BytesMut::with_capacity(length);
    read(body, length, |piece| whole.extend_from_slice(&piece)).await?;
    Ok(whole.freeze())
}

/// Reads a body of so many bytes to its end.
async fn read(mut body: Incoming, length: usize, mut take: impl FnMut(Bytes)) -> Result<(), Refused> {
    let late = || {
        Refused::new(
            StatusCode::REQUEST_TIMEOUT,
            "timeout",
            "the body arrived too slowly: check the network between gateway and writer",
        )
    };
    let seconds = u64::try_from(length / BODY_RATE_MIN).unwrap_or(u64::MAX);
    let deadline = Instant::now() + BODY_SILENCE_MAX + Duration::from_secs(seconds);
    loop {
        let piece_deadline = deadline.min(Instant::now() + BODY_SILENCE_MAX);
        match timeout_at(piece_deadline, body.frame()).await.map_err(|_| late())? {
            None => return Ok(()),
            Some(Ok(frame)) => frame.into_data().map_or_else(drop, &mut take),
            Some(Err(_)) => {
                return Err(bad_request(
                    "the connection closed within the body: check the proxies and the network between gateway and \
                     writer",
                ));
            }
        }
    }
}
