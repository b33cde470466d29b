//! The router: sends each request to its handler, and counts it.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ::event::TraceParent;
use http::StatusCode;
use limits::{BATCH_BYTES_MAX, EVENT_BYTES_MAX};

use super::bridge::{BridgeRequest, RequestSender};
use super::client_ip::AddressForm;
use super::intake::IntakeRequest;
use super::read::{ObjectRequest, ReadRequest};
use super::rejection::{Origin, reject};
use super::{batch, event, event_ack};
use crate::admission::{Body, Permit};
use crate::auth::{Authenticated, Credential, PageRules, Preflight, RequiredAccess, check_origin};
use crate::bridge::BridgedPath;
use crate::error_code::ErrorCode;
use crate::ingest::{AckMode, Envelope, Headers, IngestParams};
use crate::problem::{Problem, Refused};
use crate::route::{self, RouteName};
use crate::shard::ShardContext;
use crate::shard::commit_trigger::CommitTrigger;
use crate::shard::rules::Rules;
use http1::{ConnectionPeer, Handler, Head, Method, RequestError, Response, Transport};
use spans::{SampledRequest, Span, SpanKind, SpanValue};

/// Routes the requests of a shard.
pub(crate) struct Router {
    shard: ShardContext,
    commit: CommitTrigger,
}

/// A request whose head was parsed. It is all that a request keeps of its head while it waits: a connection has room for one of these for as
/// long as it is open.
pub(crate) struct PendingRequest {
    /// When the tick began in which the head was parsed.
    started: Duration,
    method: Method,
    route: RouteName,
    envelope: Envelope,
    /// What it asks for, unless it is rejected regardless of its body.
    operation: Result<Operation, Refused>,
    /// Whether its response depends on its `Origin`.
    varies: bool,
    /// The CORS headers of its response.
    cors: Option<Arc<str>>,
    /// The spans of the request, if it is sampled.
    sampled: Option<Box<SampledRequest>>,
    /// The request of an intake, also if it is rejected.
    intake: Option<Box<IntakeRequest>>,
}

/// What a request asks for.
enum Operation {
    Ingest(IngestParams),
    /// The state of the server.
    Health,
    /// To read events or an object back.
    Read(Box<ReadRequest>),
    ClientIp(AddressForm),
    /// To ask a service over the bus.
    Bridge(Box<BridgeRequest>),
    /// The fixed response of an intake.
    IntakeReply,
    /// The methods of a path.
    Methods(&'static str),
}

impl PendingRequest {
    fn origin(&self) -> Origin<'_> {
        let named = match &self.operation {
            Ok(Operation::Ingest(params)) => params.slot,
            _ => None,
        };
        Origin { route: self.route, source: &self.envelope.source, client: Some(self.envelope.client), named }
    }

    /// The response if it is rejected.
    fn reject(&self, shard: &ShardContext, refused: &Refused) -> Response {
        let response = reject(shard, refused, &self.origin());
        match &self.intake {
            Some(intake) => intake.refusal(refused, &response),
            None => response,
        }
    }
}

impl Router {
    pub(crate) const fn new(shard: ShardContext, commit: CommitTrigger) -> Self {
        Self { shard, commit }
    }

    pub(crate) const fn shard(&self) -> &ShardContext {
        &self.shard
    }

    /// Adds the span of a sampled request that is answered.
    fn add_span(&self, request: &PendingRequest, sampled: &SampledRequest, status: StatusCode) {
        let Some(spans) = self.shard.shared.spans else { return };
        spans.add(Span {
            context: sampled.context,
            parent: sampled.parent,
            name: format!("POST /ingest/{}", request.route.as_str()),
            kind: SpanKind::Server,
            began: request.envelope.received_at,
            ended: clock::unix_microseconds(),
            attributes: vec![
                ("http.route", SpanValue::Text(format!("/ingest/{}", request.route.as_str()))),
                ("http.response.status_code", SpanValue::Number(status.as_u16().into())),
            ],
            has_failed: status.is_server_error(),
        });
    }
}

impl Handler for Router {
    type Request = PendingRequest;
    type Budget<'a> = Permit<'a>;

    fn transport(&self) -> &Rc<Transport> {
        &self.shard.transport
    }

    fn begin(&self, peer: ConnectionPeer, head: &Head<'_>) -> PendingRequest {
        begin(&self.shard, peer, head)
    }

    /// What was appended is committed even if the connection is aborted, and what wasn't never will be.
    async fn respond<'a>(&'a self, request: &PendingRequest, body: &mut Body<'a>) -> Response {
        let shard = &self.shard;
        let response = match &request.operation {
            Ok(Operation::Ingest(params)) => dispatch(shard, params, request, body).await,
            Ok(Operation::Health) => health(shard, request.route),
            Ok(Operation::Read(read)) => Box::pin(read.respond(shard, shard.client(&request.envelope))).await,
            Ok(Operation::Bridge(bridge)) => {
                Box::pin(bridge.respond(shard, shard.client(&request.envelope), body)).await
            }
            Ok(Operation::ClientIp(form)) => Ok(form.response(request.envelope.client)),
            Ok(Operation::Methods(methods)) => Ok(Response::with_methods(methods)),
            Ok(Operation::IntakeReply) => {
                Ok(request.intake.as_ref().map_or_else(Response::ok, |intake| intake.fixed()))
            }
            Err(refused) => Ok(request.reject(shard, refused)),
        };
        let response = response.unwrap_or_else(|refused| request.reject(shard, &refused));
        Response { varies: request.varies, cors: request.cors.clone(), ..response }
    }

    fn responded(&self, request: &PendingRequest, status: StatusCode, body_bytes: usize) {
        self.shard.count(request.route, status, body_bytes, request.started);
        if let Some(intake) = &request.intake {
            intake.answered(status);
        }
        // One load, unless the log has the level `debug`. The path may contain anything, so its route is shown.
        tracing::debug!(
            method = request.method.as_str(),
            route = request.route.as_str(),
            status = status.as_u16(),
            milliseconds = u64::try_from(self.shard.clock.elapsed().saturating_sub(request.started).as_millis())
                .unwrap_or(u64::MAX),
            bytes = body_bytes,
            source = (!request.envelope.source.is_empty()).then_some(&*request.envelope.source),
            "request"
        );
        if let Some(sampled) = &request.sampled {
            self.add_span(request, sampled, status);
        }
    }

    fn reject(&self, error: Box<RequestError>) -> Response {
        let source = self.shard.authenticator.anonymous();
        let origin = Origin { route: RouteName::Other, source: &source, client: None, named: None };
        let response = reject(&self.shard, &error.into(), &origin);
        self.shard.count(RouteName::Other, response.status, 0, self.shard.clock.elapsed());
        tracing::debug!(
            route = RouteName::Other.as_str(),
            status = response.status.as_u16(),
            "request without a valid head"
        );
        response
    }

    fn count_handshake(&self, is_secure: bool) {
        let cells = self.shard.cells();
        if is_secure { cells.tls_handshakes.add(1) } else { cells.tls_failures.add(1) }
    }

    fn is_stopping(&self) -> bool {
        self.shard.shared.readiness.is_stopping() || self.shard.log.has_failed()
    }

    fn before_poll(&self) {
        self.commit.before_poll();
    }

    fn before_pipelined(&self) {
        self.commit.before_pipelined();
    }
}

/// How a request of a foreign web page is recognised.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PageCheck {
    None,
    Origin,
    HostAndOrigin,
}

fn begin(shard: &ShardContext, peer: ConnectionPeer, head: &Head<'_>) -> PendingRequest {
    let received_at = shard.clock.microseconds();
    let rules = shard.rules();
    let mut found = Found::of(&rules, shard, (peer, head), received_at);
    let access = found.access(head.method);
    let authenticated = shard.authenticator.authenticate(access, &head.fields, received_at);
    let check = match &authenticated {
        // A bridge without a scope is for everyone, but not for the scripts of foreign web pages.
        _ if access == RequiredAccess::Free && found.bridged.is_none() => PageCheck::None,
        // A foreign web page has no token. With a token the port may be called by any name.
        Ok(Credential::Token(Authenticated { is_basic: false, .. }) | Credential::InBody) | Err(_) => PageCheck::None,
        // A browser adds a password that it remembers to requests of foreign pages as well, but never for a foreign name.
        Ok(Credential::Token(_)) => PageCheck::Origin,
        Ok(Credential::None) => PageCheck::HostAndOrigin,
    };
    let is_preflight = head.method == Method::Options && head.fields.method_wished.is_some();
    let sender = authenticated.and_then(|authenticated| {
        let (cors, has_tls) = (rules.cors.as_ref(), shard.transport.tls().is_some());
        let pages = PageRules { cors, has_tls, takes_tokens: access != RequiredAccess::Free };
        match check {
            // The response to a preflight reveals nothing.
            _ if head.method == Method::Options => {}
            PageCheck::None => {}
            PageCheck::Origin => check_origin(head, pages)?,
            PageCheck::HostAndOrigin => rules.hosts.check(head, pages)?,
        }
        Ok(match authenticated {
            Credential::Token(Authenticated { source, partial, types, .. }) => (source, partial, types),
            Credential::InBody => {
                found.intake = found.intake.take().map(|(intake, access)| (intake.with_token_in_body(), access));
                (shard.authenticator.anonymous(), None, None)
            }
            Credential::None => (found.signed_source().unwrap_or_else(|| shard.authenticator.anonymous()), None, None),
        })
    });
    let client = rules.proxies.client(peer.client, head.bytes);
    let (source, partial, types, operation) = match sender {
        Ok((source, partial, types)) => {
            let operation = operation(shard, head, &mut found, (client, &source), received_at);
            (source, partial, types, operation)
        }
        Err(refused) => (shard.authenticator.anonymous(), None, None, Err(refused)),
    };
    let varies = check != PageCheck::None || rules.cors.is_some();
    let preflight =
        is_preflight.then(|| Preflight { methods: found.methods(), headers: rules.bridges.passed(head.target.path) });
    let cors = head.fields.origin.and_then(|origin| rules.cors.as_ref()?.lines(origin, preflight.as_ref()));
    let headers = Headers::of(&rules.types.headers, head.bytes);
    let sender = head.fields.trace_parent.and_then(TraceParent::parse);
    let sampled = match shard.shared.spans {
        Some(spans) if matches!(found.route, RouteName::Event | RouteName::Batch | RouteName::Intake) => {
            spans.sample(sender).map(Box::new)
        }
        _ => None,
    };
    let trace = sampled.as_ref().map(|sampled| sampled.context).or(sender);
    let envelope = Envelope { received_at, client, source, partial, types, headers, trace };
    PendingRequest {
        started: shard.clock.elapsed(),
        method: head.method,
        route: found.route,
        envelope,
        operation,
        varies,
        cors,
        sampled,
        intake: found.intake.map(|(intake, _)| Box::new(intake)),
    }
}

/// What serves a path.
struct Found<'h> {
    route: RouteName,
    /// The type, the id or the object that the path names.
    named: Option<&'h str>,
    /// The bridges of the path, if it isn't one of Forebay's own.
    bridged: Option<BridgedPath>,
    /// The request of an intake, and the access that it needs.
    intake: Option<(IntakeRequest, RequiredAccess)>,
    /// Why the intake doesn't accept the path or the method.
    unknown: Option<Refused>,
}

impl<'h> Found<'h> {
    fn of(rules: &Rules, shard: &ShardContext, (peer, head): (ConnectionPeer, &Head<'h>), received_at: i64) -> Self {
        let (route, named) = if peer.listener == 0 { route::find(head.target.path) } else { (RouteName::Other, None) };
        if route == RouteName::Other
            && let Some((intake, access, found)) = IntakeRequest::find(&rules.intakes, shard, (peer, head), received_at)
        {
            let (intake, unknown) = (Some((intake, access)), found.err());
            return Self { route: RouteName::Intake, named: None, bridged: None, intake, unknown };
        }
        let is_bridged = route == RouteName::Other && peer.listener == 0;
        let bridged = is_bridged.then(|| rules.bridges.find(head.target.path, head.method)).flatten();
        let route = if bridged.is_some() { RouteName::Bridge } else { route };
        Self { route, named, bridged, intake: None, unknown: None }
    }

    /// The source of the request's events, if signatures prove it.
    fn signed_source(&self) -> Option<Arc<str>> {
        self.intake.as_ref().and_then(|(intake, _)| intake.signed_source())
    }

    fn access(&self, method: Method) -> RequiredAccess {
        if let Some((_, access)) = &self.intake {
            return if method == Method::Options { RequiredAccess::Free } else { *access };
        }
        match &self.bridged {
            Some(bridged) if method != Method::Options => bridged.bridge.access(),
            _ => self.route.access(method),
        }
    }

    fn methods(&self) -> &'static str {
        self.bridged.as_ref().map_or_else(|| self.route.methods(), |bridged| bridged.methods.allow())
    }

    /// Whether the path accepts the method.
    fn check(&self, method: Method) -> Result<(), Refused> {
        match &self.bridged {
            Some(bridged) if !bridged.methods.has(method) => Err(route::not_allowed(bridged.methods.allow())),
            Some(_) => Ok(()),
            None => self.route.check(method),
        }
    }
}

fn operation(
    shard: &ShardContext,
    head: &Head<'_>,
    found: &mut Found<'_>,
    (client, source): (IpAddr, &str),
    received_at: i64,
) -> Result<Operation, Refused> {
    let (route, named) = (found.route, found.named);
    if head.method == Method::Options && head.target.path == "*" {
        return Ok(Operation::Methods(route::ALL_METHODS));
    }
    if let Some((intake, _)) = &found.intake {
        return intake_operation(shard, head, intake, found.unknown.take());
    }
    found.check(head.method)?;
    Ok(match route {
        _ if head.method == Method::Options => Operation::Methods(found.methods()),
        RouteName::Ip => Operation::ClientIp(AddressForm::of_query(head.target.query)?),
        RouteName::Events => {
            let request = ReadRequest::of(shard.types().table(), named, head.target.query, source)?;
            Operation::Read(Box::new(request))
        }
        RouteName::Objects => {
            let request = ObjectRequest::of(&shard.rules().objects, named, &head.fields, head.method)?;
            Operation::Read(Box::new(ReadRequest::Object(request)))
        }
        RouteName::Event | RouteName::Batch => {
            let is_batch = route == RouteName::Batch;
            Operation::Ingest(IngestParams::of(&head.fields, is_batch, named, &mut shard.types())?)
        }
        RouteName::Bridge | RouteName::Intake | RouteName::Health | RouteName::Ready | RouteName::Other => {
            match &found.bridged {
                Some(bridged) => {
                    let sender = RequestSender { client, source, id: shard.new_id(received_at) };
                    Operation::Bridge(Box::new(BridgeRequest::of(bridged.bridge.clone(), head, &sender)?))
                }
                None => Operation::Health,
            }
        }
    })
}

async fn dispatch<'a>(
    shard: &'a ShardContext,
    params: &IngestParams,
    request: &PendingRequest,
    body: &mut Body<'a>,
) -> Result<Response, Refused> {
    let PendingRequest { route, envelope, intake, .. } = request;
    if let Some(coding) = params.coding {
        let bytes_max = if *route == RouteName::Event { EVENT_BYTES_MAX } else { BATCH_BYTES_MAX };
        body.decode(shard.permit(shard.client(envelope)), coding, bytes_max);
    }
    if let Some(intake) = intake {
        return Box::pin(intake.respond(shard, params, envelope, body)).await;
    }
    match route {
        RouteName::Batch => Box::pin(batch::handle(shard, params, envelope.clone(), body)).await,
        _ if params.ack == AckMode::Disk => event::handle(shard, params, envelope, body).await,
        _ => Box::pin(event_ack::handle(shard, params, envelope, body)).await,
    }
}

/// `unknown` says why the intake doesn't accept the path or the method.
fn intake_operation(
    shard: &ShardContext,
    head: &Head<'_>,
    intake: &IntakeRequest,
    unknown: Option<Refused>,
) -> Result<Operation, Refused> {
    let is_preflight = head.fields.method_wished.is_some();
    if head.method == Method::Options && (is_preflight || unknown.is_some()) {
        return Ok(Operation::Methods(route::ALL_METHODS));
    }
    if let Some(refused) = unknown {
        return Err(refused);
    }
    Ok(intake.params(shard, head)?.map_or(Operation::IntakeReply, Operation::Ingest))
}

fn health(shard: &ShardContext, route: RouteName) -> Result<Response, Refused> {
    match shard.shared.readiness.reason() {
        Some(reason) if route == RouteName::Ready => Err(Problem::boxed(ErrorCode::NotReady, reason)),
        _ => Ok(Response::ok()),
    }
}
