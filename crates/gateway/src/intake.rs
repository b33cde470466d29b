//! One request: its route, its answer, and what is counted of it.

use std::net::IpAddr;
use std::time::Duration;

use event::limits::{BATCH_BYTES_MAX, EVENT_BYTES_MAX};
use http::StatusCode;

use crate::code::Code;
use crate::encoder::Envelope;
use crate::http1::body::Body;
use crate::http1::head::Head;
use crate::http1::response::Response;
use crate::problem::{Problem, Refused};
use crate::request::Wishes;
use crate::route::{self, RouteName};
use crate::worker::Worker;
use crate::{batch, event_request};

/// A request whose head was looked at. It is all that a request keeps of it while it waits: a connection has room
/// for one of these for as long as it is open.
pub(crate) struct Begun {
    /// When the turn began in which the head was looked at.
    started: Duration,
    route: RouteName,
    envelope: Envelope,
    /// What it asks for, unless it can't be taken whatever its body says.
    wishes: Result<Wishes, Refused>,
}

/// Looks at a request's head.
pub(crate) fn begin(worker: &Worker, client: IpAddr, head: &Head<'_>) -> Begun {
    let (route, path_type) = route::find(head.target.path);
    let checked = route.check(head.method);
    let wishes = checked.and_then(|()| Wishes::of(&head.fields, route, path_type, &mut worker.types()));
    let envelope = Envelope { received_at: worker.clock().microseconds(), client };
    Begun { started: worker.clock().elapsed(), route, envelope, wishes }
}

/// Answers a request. Where its connection is aborted, the rest is dropped at any await: what was appended is
/// committed all the same, and what wasn't never will be.
pub(crate) async fn answer<'a>(worker: &'a Worker, begun: &Begun, body: &mut Body<'a>) -> Response {
    if let Ok(Wishes { coding: Some(coding), .. }) = begun.wishes {
        let bytes_max = if begun.route == RouteName::Batch { BATCH_BYTES_MAX } else { EVENT_BYTES_MAX };
        body.decode(worker, coding, bytes_max);
    }
    let answer = match (&begun.wishes, begun.route) {
        (Err(refused), _) => return refuse(worker, refused),
        (Ok(wishes), RouteName::Event) => event_request::take(worker, wishes, begun.envelope, body).await,
        (Ok(wishes), RouteName::Batch) => Box::pin(batch::take(worker, wishes, begun.envelope, body)).await,
        (Ok(_), RouteName::Ready) => ready(worker),
        (Ok(_), RouteName::Health | RouteName::Other) => Ok(Response::ok()),
    };
    answer.unwrap_or_else(|refused| refuse(worker, &refused))
}

/// The answer to a request that isn't taken, counted.
pub(crate) fn refuse(worker: &Worker, refused: &Refused) -> Response {
    worker.cells().refused(refused.code);
    refused.response()
}

impl Begun {
    /// Counts the request when its answer is known and its body was read.
    pub(crate) fn answered(&self, worker: &Worker, status: StatusCode, body_bytes: usize) {
        worker.answered(self.route, status, body_bytes, self.started);
    }
}

fn ready(worker: &Worker) -> Result<Response, Refused> {
    match worker.readiness().reason() {
        None => Ok(Response::ok()),
        Some(reason) => Err(Problem::boxed(Code::NotReady, reason)),
    }
}
