//! One request: its route, its answer, and what is counted of it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ::event::limits::{BATCH_BYTES_MAX, EVENT_BYTES_MAX};
use http::StatusCode;

use super::read::{ObjectRequest, ReadRequest};
use super::{batch, event, event_ack};
use crate::auth::RequiredAccess;
use crate::error_code::ErrorCode;
use crate::handlers::client_ip::AddressForm;
use crate::http1::body::Body;
use crate::http1::head::{Head, Method};
use crate::http1::response::Response;
use crate::ingest::ack_mode::AckMode;
use crate::ingest::headers::Headers;
use crate::ingest::params::IngestParams;
use crate::ingest::record_builder::Envelope;
use crate::problem::{Problem, Refused};
use crate::route::{self, RouteName};
use crate::shard::ShardContext;

/// A request whose head was looked at. It is all that a request keeps of it while it waits: a connection has room
/// for one of these for as long as it is open.
pub(crate) struct PendingRequest {
    /// When the turn began in which the head was looked at.
    started: Duration,
    route: RouteName,
    envelope: Envelope,
    /// What it asks for, unless it can't be taken whatever its body says.
    asked: Result<Asked, Refused>,
    /// Whether its answer depends on its `Origin`.
    varies: bool,
    /// What its answer says to a browser.
    cors: Option<Arc<str>>,
}

/// What a request asks for.
enum Asked {
    /// To take events, or how things stand.
    IngestParams(IngestParams),
    /// To read events or an object back.
    Read(Box<ReadRequest>),
    /// What its address is.
    Address(AddressForm),
    /// Which of these methods there are.
    Methods(&'static str),
}

/// Looks at the head of a request that came from `peer`.
pub(crate) fn begin(worker: &ShardContext, peer: IpAddr, head: &Head<'_>) -> PendingRequest {
    let (route, named) = route::find(head.target.path);
    let received_at = worker.clock().microseconds();
    let (rules, entrance) = (worker.rules(), route.entrance(head.method));
    let admitted = worker.gatekeeper().admit(entrance, head.fields.authorization, received_at);
    // No page of a stranger has a token, and with one the port may be called by any name.
    let is_checked = entrance != RequiredAccess::Free && matches!(admitted, Ok(None));
    let source = admitted.and_then(|source| {
        if is_checked {
            rules.hosts.check(head, rules.cors.as_ref(), worker.tls().is_some())?;
        }
        Ok(source.unwrap_or_else(|| worker.gatekeeper().nobody()))
    });
    let (source, asked) = match source {
        Ok(source) => {
            let asked = asked(worker, head, (route, named), &source);
            (source, asked)
        }
        Err(refused) => (worker.gatekeeper().nobody(), Err(refused)),
    };
    let is_preflight = head.method == Method::Options && head.fields.method_wished.is_some();
    let varies = is_checked || rules.cors.is_some();
    let cors = head.fields.origin.and_then(|origin| rules.cors.as_ref()?.lines(origin, is_preflight.then_some(route)));
    let client = rules.proxies.client(peer, head.bytes);
    let headers = Headers::of(&rules.types.headers, head.bytes);
    let envelope = Envelope { received_at, client, source, headers };
    PendingRequest { started: worker.clock().elapsed(), route, envelope, asked, varies, cors }
}

fn asked(
    worker: &ShardContext,
    head: &Head<'_>,
    (route, named): (RouteName, Option<&str>),
    source: &str,
) -> Result<Asked, Refused> {
    match head.method {
        Method::Options if head.target.path == "*" => Ok(Asked::Methods(route::ALL_METHODS)),
        Method::Options => route.check(head.method).map(|()| Asked::Methods(route.methods())),
        _ if route == RouteName::Ip => {
            route.check(head.method)?;
            AddressForm::of_query(head.target.query).map(Asked::Address)
        }
        _ if route == RouteName::Events => {
            route.check(head.method)?;
            let request = ReadRequest::of(worker.types().table(), named, head.target.query, source)?;
            Ok(Asked::Read(Box::new(request)))
        }
        _ if route == RouteName::Objects => {
            route.check(head.method)?;
            let request = ObjectRequest::of(&worker.rules().objects, named, &head.fields, head.method)?;
            Ok(Asked::Read(Box::new(ReadRequest::Object(request))))
        }
        _ => route
            .check(head.method)
            .and_then(|()| IngestParams::of(&head.fields, route, named, &mut worker.types()))
            .map(Asked::IngestParams),
    }
}

/// Answers a request. Where its connection is aborted, the rest is dropped at any await: what was appended is
/// committed all the same, and what wasn't never will be.
pub(crate) async fn answer<'a>(worker: &'a ShardContext, begun: &PendingRequest, body: &mut Body<'a>) -> Response {
    let answer = match &begun.asked {
        Ok(Asked::IngestParams(wishes)) => follow(worker, wishes, begun, body).await,
        Ok(Asked::Read(request)) => Box::pin(request.answer(worker, worker.sender(&begun.envelope))).await,
        Ok(Asked::Address(form)) => Ok(form.response(begun.envelope.client)),
        Ok(Asked::Methods(methods)) => Ok(Response::with_methods(methods)),
        Err(refused) => Ok(refuse(worker, refused)),
    };
    let response = answer.unwrap_or_else(|refused| refuse(worker, &refused));
    Response { varies: begun.varies, cors: begun.cors.clone(), ..response }
}

async fn follow<'a>(
    worker: &'a ShardContext,
    wishes: &IngestParams,
    begun: &PendingRequest,
    body: &mut Body<'a>,
) -> Result<Response, Refused> {
    if let Some(coding) = wishes.coding {
        let bytes_max = if begun.route == RouteName::Batch { BATCH_BYTES_MAX } else { EVENT_BYTES_MAX };
        body.decode(worker, worker.sender(&begun.envelope), coding, bytes_max);
    }
    match begun.route {
        RouteName::Event if wishes.ack == AckMode::Disk => event::take(worker, wishes, &begun.envelope, body).await,
        RouteName::Event => Box::pin(event_ack::take(worker, wishes, &begun.envelope, body)).await,
        RouteName::Batch => Box::pin(batch::take(worker, wishes, begun.envelope.clone(), body)).await,
        RouteName::Ready => ready(worker),
        RouteName::Events | RouteName::Objects | RouteName::Health | RouteName::Ip | RouteName::Other => {
            Ok(Response::ok())
        }
    }
}

/// The answer to a request that isn't taken, counted.
pub(crate) fn refuse(worker: &ShardContext, refused: &Refused) -> Response {
    worker.cells().refused(refused.code);
    refused.response()
}

impl PendingRequest {
    /// Counts the request when its answer is known and its body was read.
    pub(crate) fn answered(&self, worker: &ShardContext, status: StatusCode, body_bytes: usize) {
        worker.answered(self.route, status, body_bytes, self.started);
    }
}

fn ready(worker: &ShardContext) -> Result<Response, Refused> {
    worker
        .readiness()
        .reason()
        .map_or_else(|| Ok(Response::ok()), |reason| Err(Problem::boxed(ErrorCode::NotReady, reason)))
}
