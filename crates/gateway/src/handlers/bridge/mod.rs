//! A request of HTTP as a message: its method, path and headers become headers of the message, its body the payload.

mod reply;

use std::io::Write;
use std::net::IpAddr;
use std::sync::Arc;

use event::EventId;
use http1::{Head, Method, Response};
use nats::{Bus, BusError, Outgoing};

use crate::admission::{AnswerSize, Body, ClientBucket, ExpectedAnswer, wait_queue};
use crate::bridge::{Bridge, BridgeRule};
use crate::error_code::ErrorCode;
use crate::problem::{Problem, Refused};
use crate::shard::ShardContext;

/// Bytes of a body, also if the servers accept more: one body must leave room for others in the connection's buffer.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of a message for its first line of headers and the end of their block.
const HEADER_FRAME_BYTES: usize = 64;
/// `traceparent` (W3C Trace Context) has this many bytes in version 00; later versions append to it.
const TRACEPARENT_BYTES: std::ops::RangeInclusive<usize> = 55..=128;

/// A request for a service.
pub(crate) struct BridgeRequest {
    bridge: Arc<Bridge>,
    /// The lines of the message's headers, each with its end.
    headers: Vec<u8>,
}

/// The sender of a request.
pub(crate) struct RequestSender<'a> {
    pub(crate) client: IpAddr,
    pub(crate) source: &'a str,
    /// A new id for the request.
    pub(crate) id: EventId,
}

impl BridgeRequest {
    /// # Errors
    /// A value has control characters.
    pub(crate) fn of(bridge: Arc<Bridge>, head: &Head<'_>, sender: &RequestSender<'_>) -> Result<Self, Refused> {
        let mut lines = Lines(Vec::with_capacity(256));
        lines.add("Forebay-Method", method_name(head.method).as_bytes())?;
        lines.add("Forebay-Path", head.target.path.as_bytes())?;
        if let Some(query) = head.target.query {
            lines.add("Forebay-Query", query.as_bytes())?;
        }
        for (name, value) in bridge.rule.path.parameters(head.target.path) {
            lines.add(&format!("Forebay-Param-{name}"), value.as_bytes())?;
        }
        lines.add("Forebay-Client", sender.client.to_string().as_bytes())?;
        lines.add("Forebay-Source", sender.source.as_bytes())?;
        lines.add("Forebay-Deadline", bridge.rule.timeout.as_millis().to_string().as_bytes())?;
        lines.add("Forebay-Request-Id", sender.id.to_string().as_bytes())?;
        if let Some(content_type) = head.fields.content_type {
            lines.add("Content-Type", content_type)?;
        }
        lines.add_passed(&bridge.rule.pass, head.bytes)?;
        Ok(Self { bridge, headers: lines.0 })
    }

    /// Sends the request and waits for its answer.
    ///
    /// # Errors
    /// The service couldn't be asked, or its answer isn't usable.
    pub(crate) async fn respond(
        &self,
        shard: &ShardContext,
        client: ClientBucket,
        body: &mut Body<'_>,
    ) -> Result<Response, Refused> {
        let begun = shard.clock.elapsed();
        let answered = self.ask(shard, client, body).await;
        let elapsed = shard.clock.elapsed().saturating_sub(begun);
        let counters = &self.bridge.counters;
        match &answered {
            Ok(response) => counters.answered(response.status, elapsed),
            Err(problem) => counters.failed(problem.code, elapsed),
        }
        answered
    }

    /// A failure before the request is sent says so, and may be retried. A later one never does.
    async fn ask(&self, shard: &ShardContext, client: ClientBucket, body: &mut Body<'_>) -> Result<Response, Refused> {
        let Bridge { rule, counters } = &*self.bridge;
        let bus = shard.bus.get().filter(|bus| bus.is_connected()).ok_or_else(|| self.unavailable())?;
        // A body isn't received in vain.
        if counters.waiting() >= rule.max_waiting {
            return Err(self.busy());
        }
        let bytes_max = bus.max_payload().saturating_sub(self.headers.len() + HEADER_FRAME_BYTES).min(BODY_BYTES_MAX);
        let mut permit = shard.permit(client);
        let payload = body.whole(bytes_max, &mut permit, <[u8]>::to_vec).await?;
        let waiting = counters.wait(rule.max_waiting).ok_or_else(|| self.busy())?;
        let expected = self.expect(shard, client, bus).await?;
        let outgoing = Outgoing { subject: &rule.subject, headers: &self.headers, payload: &payload };
        let answer = bus.request_with_room(&outgoing, rule.timeout, expected.room());
        // The message has a copy of the body.
        drop((payload, permit));
        let answer = answer.await;
        let bytes = match &answer {
            Ok(message) => message.size(),
            Err(BusError::NoRoom { bytes }) => *bytes,
            Err(_) => 0,
        };
        if bytes > 0 {
            counters.received(bytes);
        }
        let message = answer.map_err(|error| self.failed(error))?;
        let room = expected.received(bytes).map_err(|_| self.dropped(bytes))?;
        drop(waiting);
        reply::response(message, room)
    }

    /// Memory for the answer, immediately or when others have theirs. The first answer of a bridge may be as large as any.
    async fn expect(&self, shard: &ShardContext, client: ClientBucket, bus: &Bus) -> Result<ExpectedAnswer, Refused> {
        let (counters, budget) = (&self.bridge.counters, &shard.shared.read_budget);
        let size =
            || counters.expected_bytes().map_or_else(|| AnswerSize::AtMost(bus.max_payload()), AnswerSize::Usual);
        let take = || budget.expect(size(), client);
        let expected = wait_queue::wait(budget.waiting(), client, &shard.timer, take).await;
        // A service that has answered nothing until now has clients that wait for long: they aren't kept from waiting.
        expected.or_else(|_| {
            counters.assume_small();
            take()
        })
    }

    fn busy(&self) -> Refused {
        let BridgeRule { max_waiting, subject, .. } = &self.bridge.rule;
        Problem::boxed(ErrorCode::BridgeBusy, format!("{max_waiting} requests already wait for {subject}: retry later"))
    }

    fn dropped(&self, bytes: usize) -> Refused {
        let detail = format!(
            "the service at {} has answered with {bytes} bytes, for which there is no memory for reads now. It has done the \
             work: retry only what may be done twice",
            self.bridge.rule.subject
        );
        Problem::boxed(ErrorCode::ReplyDropped, detail)
    }

    fn unavailable(&self) -> Refused {
        let detail = format!("the bus to {} is away: retry later. Nothing was sent", self.bridge.rule.subject);
        Problem::boxed(ErrorCode::BusUnavailable, detail)
    }

    fn failed(&self, error: BusError) -> Refused {
        let subject = &self.bridge.rule.subject;
        match error {
            BusError::NoResponders => {
                Problem::boxed(ErrorCode::NoWorker, format!("no service listens to {subject}: start one, and retry"))
            }
            BusError::Unavailable(_) => self.unavailable(),
            BusError::TooLarge { max } => Problem::boxed(
                ErrorCode::TooLarge,
                format!("the servers of the bus accept messages of {max} bytes, headers included: send a smaller body"),
            ),
            BusError::NoRoom { bytes } => self.dropped(bytes),
            BusError::TimedOut => {
                let timeout = self.bridge.rule.timeout.as_millis();
                let detail =
                    format!("the service at {subject} gave no answer within {timeout} ms. It may still do the work");
                Problem::boxed(ErrorCode::BridgeTimeout, detail)
            }
            BusError::Lost => {
                let detail = "the connection to the bus was lost after the request was sent. The service may have done the \
                              work: retry only what may be done twice";
                Problem::boxed(ErrorCode::BusLost, detail)
            }
            BusError::Forbidden(text) => {
                let detail = format!(
                    "the bus rejects requests to {subject}: {text}. Allow the account of [bus] to publish to it"
                );
                Problem::boxed(ErrorCode::BusRefused, detail)
            }
        }
    }
}

const fn method_name(method: Method) -> &'static str {
    match method {
        Method::Delete => "DELETE",
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Patch => "PATCH",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Options | Method::Other => "OPTIONS",
    }
}

/// Lines of headers.
struct Lines(Vec<u8>);

impl Lines {
    /// # Errors
    /// The value has control characters other than tabs: they could begin another header.
    fn add(&mut self, name: &str, value: &[u8]) -> Result<(), Refused> {
        if value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
            let detail =
                format!("control characters can't be passed to a service, and {name} would have one: remove it");
            return Err(Problem::bad("Control character", detail));
        }
        // Writing to a vector can't fail.
        let _ = write!(self.0, "{name}: ");
        self.0.extend_from_slice(value);
        self.0.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// The headers of the head that are passed: each line of them, the codings of the body, and a valid `traceparent`.
    fn add_passed(&mut self, pass: &[Box<str>], head: &[u8]) -> Result<(), Refused> {
        for line in head.split(|byte| *byte == b'\n').skip(1) {
            let Some(colon) = memchr::memchr(b':', line) else { continue };
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"traceparent") && is_traceparent(value) {
                self.add("traceparent", value)?;
            } else if name.eq_ignore_ascii_case(b"content-encoding") {
                self.add("Content-Encoding", value)?;
            } else if let Some(passed) = pass.iter().find(|passed| name.eq_ignore_ascii_case(passed.as_bytes())) {
                self.add(passed, value)?;
            }
        }
        Ok(())
    }
}

fn is_traceparent(value: &[u8]) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte) || *byte == b'-';
    TRACEPARENT_BYTES.contains(&value.len()) && value.iter().all(is_digit)
}
