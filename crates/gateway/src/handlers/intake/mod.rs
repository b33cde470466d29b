//! Requests of intakes: the protocol's module maps the body to records, and the verdicts on these to the response. All else is as for a
//! batch.

mod decoding;
mod problem;

use std::cell::RefCell;
use std::sync::Arc;

use eventlog::AppendError;
use http::StatusCode;
use http1::{ConnectionPeer, Head, Response};
use intake::{IntakeCall, IntakeRoute, Reply, Verdicts};
use limits::BATCH_BYTES_MAX;

use super::batch;
use crate::admission::{Body, Permit};
use crate::auth::{Authenticated, RequiredAccess};
use crate::error_code::ErrorCode;
use crate::ingest::{AckMode, Envelope, IngestParams};
use crate::intakes::{IntakeEntry, IntakeTable};
use crate::problem::{Problem, Refused};
use crate::route;
use crate::shard::ShardContext;
use decoding::{BodyDigest, Decoding, stopping};

/// Bytes of a response that count as read memory: smaller ones are as those of other requests.
const COUNTED_REPLY_BYTES: usize = 64 * 1024;

/// A request of an intake.
pub(crate) struct IntakeRequest {
    entry: Arc<IntakeEntry>,
    /// The request's path and query as its sender wrote them.
    target: Box<str>,
    /// Empty while the call decodes on another thread.
    action: RefCell<Action>,
    /// Whether its token is in its body.
    needs_token: bool,
    /// Why the protocol rejects the request as a whole.
    rejection: RefCell<Option<intake::Problem>>,
}

/// How a request is answered.
enum Action {
    Ingest(Box<dyn IntakeCall>),
    Reply(Reply),
    None,
}

impl IntakeRequest {
    /// The intake's request, and the access that it needs; `None` if the path and the port are of no intake.
    pub(crate) fn find(
        intakes: &IntakeTable,
        shard: &ShardContext,
        (peer, head): (ConnectionPeer, &Head<'_>),
        received_at: i64,
    ) -> Option<(Self, RequiredAccess, Result<(), Refused>)> {
        let (entry, path) = match usize::from(peer.listener).checked_sub(1) {
            Some(own) => (intakes.of_name(shard.shared.ports.get(own)?)?, head.target.path),
            None => intakes.at_path(head.target.path)?,
        };
        let target = target_of(head);
        let of_protocol = intake::IntakeHead {
            method: head.method.as_str(),
            path,
            query: head.target.query.unwrap_or_default(),
            target,
            lines: head.bytes,
            has_tls: shard.transport.tls().is_some(),
            received_at,
        };
        let is_signed = entry.rule.intake.is_signed();
        let token = RequiredAccess::Scope(access::Scope::Ingest);
        let (action, access, found) = match entry.rule.intake.route(&of_protocol) {
            IntakeRoute::Ingest(call) if is_signed => (Action::Ingest(call), RequiredAccess::Free, Ok(())),
            IntakeRoute::Ingest(call) if call.may_have_token() => {
                (Action::Ingest(call), RequiredAccess::IngestByBody, Ok(()))
            }
            IntakeRoute::Ingest(call) => (Action::Ingest(call), token, Ok(())),
            IntakeRoute::Fixed(reply) => (Action::Reply(reply), token, Ok(())),
            IntakeRoute::Free(reply) => (Action::Reply(reply), RequiredAccess::Free, Ok(())),
            IntakeRoute::Methods(methods) => (Action::None, RequiredAccess::AnyToken, Err(route::not_allowed(methods))),
            IntakeRoute::Unknown => (Action::None, RequiredAccess::AnyToken, Err(unknown(entry))),
        };
        let request = Self {
            entry: entry.clone(),
            target: target.into(),
            action: RefCell::new(action),
            needs_token: false,
            rejection: RefCell::default(),
        };
        Some((request, access, found))
    }

    /// The source of its events, if signatures prove it.
    pub(crate) fn signed_source(&self) -> Option<Arc<str>> {
        self.entry.rule.intake.is_signed().then(|| self.entry.rule.name.clone())
    }

    /// Its token is in its body.
    pub(crate) const fn with_token_in_body(mut self) -> Self {
        self.needs_token = true;
        self
    }

    /// The parameters of the request, unless its response is fixed.
    ///
    /// # Errors
    /// It is rejected regardless of its body.
    pub(crate) fn params(&self, shard: &ShardContext, head: &Head<'_>) -> Result<Option<IngestParams>, Refused> {
        match &*self.action.borrow() {
            Action::Ingest(call) => {
                let name = self.entry.rule.type_name.as_ref();
                let coding = head.fields.content_encoding.and_then(|coding| str::from_utf8(coding).ok());
                let has_own_coding = coding.is_some_and(|coding| call.decodes(coding));
                let demands = (call.is_atomic(), has_own_coding);
                IngestParams::of_intake(&head.fields, name, demands, &mut shard.types()).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The fixed response, if it has one.
    pub(crate) fn fixed(&self) -> Response {
        match self.action.replace(Action::None) {
            Action::Reply(reply) => response(reply),
            _ => Response { status: StatusCode::SERVICE_UNAVAILABLE, ..Response::ok() },
        }
    }

    /// Accepts the records of the body. The response is ready when they are durable.
    ///
    /// # Errors
    /// The request as a whole is rejected, and nothing of it is stored.
    pub(crate) async fn respond(
        &self,
        shard: &ShardContext,
        params: &IngestParams,
        envelope: &Envelope,
        body: &mut Body<'_>,
    ) -> Result<Response, Refused> {
        let Action::Ingest(call) = self.action.replace(Action::None) else { return Err(stopping()) };
        let mut call = Some(call);
        let result = self.ingest(shard, params, envelope.clone(), body, &mut call).await;
        if let Some(call) = call {
            self.action.replace(Action::Ingest(call));
        }
        result
    }

    /// A rejected request's response in the form of its protocol.
    pub(crate) fn refusal(&self, refused: &Problem, counted: &Response) -> Response {
        if refused.code == ErrorCode::Signature {
            self.entry.counters.signature_failures.add(1);
        }
        let own = self.rejection.take();
        let problem = own.unwrap_or_else(|| problem::for_protocol(refused));
        let reply = match &*self.action.borrow() {
            Action::Ingest(call) => call.refusal(&problem),
            _ => self.entry.rule.intake.refusal(&problem),
        };
        Response { allow: counted.allow, lines: counted.lines, ..response(reply) }
    }

    /// It is answered.
    pub(crate) fn answered(&self, status: StatusCode) {
        self.entry.counters.answered(status);
    }

    async fn ingest(
        &self,
        shard: &ShardContext,
        params: &IngestParams,
        mut envelope: Envelope,
        body: &mut Body<'_>,
        call: &mut Option<Box<dyn IntakeCall>>,
    ) -> Result<Response, Refused> {
        if shard.log.is_short_of_space() {
            return Err(AppendError::NoSpace.into());
        }
        params.check_reading(&shard.types())?;
        body.check_announced(BATCH_BYTES_MAX.min(shard.batch_bytes_max()))?;
        let mut permit = shard.batch_permit(shard.client(&envelope), body.announced()).await?;
        let mut steps = shard.steps(&envelope);
        let bytes = read(shard, body, &mut permit).await?;
        permit.complete();
        if self.needs_token {
            let token = call.as_ref().and_then(|call| call.token(&bytes));
            let token = token.as_deref().unwrap_or_default();
            if let Some(authenticated) = shard.authenticator.authenticate_text(token, envelope.received_at)? {
                let Authenticated { source, partial, types, .. } = authenticated;
                envelope = Envelope { source, partial, types, ..envelope };
            }
        }
        let client = shard.client(&envelope);
        let mut builder = shard.new_builder(params, params.slot, &envelope, &shard.types());
        builder.batch.reuse_buffer(shard.spare_records());
        builder.keep_verdicts();
        let Some(own) = call.take() else { return Err(stopping()) };
        let digest = self.entry.rule.dedupes.then(|| BodyDigest::new(&self.entry.rule.name, &self.target, own.scope()));
        let mut decoding = Some(Decoding { call: own, body: bytes, builder, digest, rejection: None });
        let mut records = shard.further_permit(client)?;
        let decoded = Decoding::run(&mut decoding, shard, &mut records).await;
        let Some(Decoding { call: own, body, mut builder, rejection, .. }) = decoding else { return Err(stopping()) };
        let own = call.insert(own);
        self.rejection.replace(rejection);
        decoded?;
        // The records are apart from the body.
        drop(body);
        permit.shrink(0);
        if let Some(problem) = builder.problem_of_all() {
            return Err(problem);
        }
        if params.atomic && builder.refused_count() > 0 {
            builder.refuse_all();
        }
        batch::commit(shard, params, AckMode::Disk, &mut builder, &mut steps).await?;
        self.entry.counters.accepted.add(builder.accepted + builder.duplicates);
        self.entry.counters.rejected.add(builder.refused_count());
        let verdicts = builder.verdicts.take().unwrap_or_default();
        drop(builder);
        reply(shard, &**own, &verdicts, &records).await
    }
}

/// The response to records that are durable or rejected. A long one counts as long as its client reads it.
async fn reply(
    shard: &ShardContext,
    call: &dyn IntakeCall,
    verdicts: &Verdicts,
    permit: &Permit<'_>,
) -> Result<Response, Refused> {
    let response = response(call.response(verdicts));
    if response.body.len() < COUNTED_REPLY_BYTES {
        return Ok(response);
    }
    let reservation = shard.read_permit(response.body.len(), permit.client()).await?;
    Ok(Response { reservation: Some(Box::new(reservation)), ..response })
}

/// Reads the body, which is decoded if it is encoded.
async fn read(shard: &ShardContext, body: &mut Body<'_>, permit: &mut Permit<'_>) -> Result<Vec<u8>, Refused> {
    let mut bytes = Vec::new();
    let bytes_max = BATCH_BYTES_MAX.min(shard.batch_bytes_max());
    loop {
        let mut take = |chunk: &[u8]| {
            if bytes.len() + chunk.len() > bytes_max {
                let detail = format!("a request has at most {bytes_max} bytes: send the rest as further requests");
                return Err(Problem::boxed(ErrorCode::TooLarge, detail));
            }
            permit.admit(chunk.len())?;
            bytes.extend_from_slice(chunk);
            Ok(())
        };
        match body.next(&mut take).await? {
            Some(taken) => taken?,
            None => return Ok(bytes),
        }
    }
}

fn response(reply: Reply) -> Response {
    let Reply { status, content_type, lines, body } = reply;
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let fields = (!lines.is_empty()).then(|| lines.into());
    Response { status, content_type, fields, body, ..Response::ok() }
}

fn unknown(entry: &IntakeEntry) -> Refused {
    let detail = format!("the intake {} has no such path: see the configuration of its sender", entry.rule.name);
    Problem::boxed(ErrorCode::NotFound, detail)
}

/// The path and the query as the sender has written them.
fn target_of<'a>(head: &Head<'a>) -> &'a str {
    let line = head.bytes.split(|byte| *byte == b'\r' || *byte == b'\n').next().unwrap_or_default();
    let target = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    str::from_utf8(target).unwrap_or_default()
}
