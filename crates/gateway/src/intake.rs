//! One request: its route, its answer, and what is counted of it.

use std::net::IpAddr;
use std::time::Duration;

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
    pub(crate) wishes: Wishes,
    pub(crate) envelope: Envelope,
    refused: Option<Refused>,
}

/// Looks at a request's head.
pub(crate) fn begin(worker: &Worker, client: IpAddr, head: &Head<'_>) -> Begun {
    let (route, path_type) = route::find(head.target.path);
    let checked = route.check(head.method);
    let wishes = checked.and_then(|()| Wishes::of(&head.fields, route, path_type, &mut worker.types()));
    let (wishes, refused) = match wishes {
        Ok(wishes) => (wishes, None),
        Err(refused) => (Wishes::default(), Some(refused)),
    };
    let envelope = Envelope { received_at: worker.clock().microseconds(), client };
    Begun { started: worker.clock().elapsed(), route, wishes, envelope, refused }
}

/// Answers a request. Where its connection is aborted, the rest is dropped at any await: what was appended is
/// committed all the same, and what wasn't never will be.
pub(crate) async fn answer(worker: &Worker, begun: &mut Begun, body: &mut Body<'_>) -> Response {
    let answer = match (begun.refused.take(), begun.route) {
        (Some(refused), _) => Err(refused),
        (None, RouteName::Event) => event_request::take(worker, begun, body).await,
        (None, RouteName::Batch) => Box::pin(batch::take(worker, begun, body)).await,
        (None, RouteName::Ready) => ready(worker),
        (None, RouteName::Health | RouteName::Other) => Ok(Response::ok()),
    };
    let response = answer.unwrap_or_else(|refused| {
        worker.cells().refused(refused.code);
        refused.response()
    });
    worker.answered(begun.route, response.status, body.received, begun.started);
    response
}

fn ready(worker: &Worker) -> Result<Response, Refused> {
    match worker.readiness().reason() {
        None => Ok(Response::ok()),
        Some(reason) => Err(Problem::boxed(Code::NotReady, reason)),
    }
}
