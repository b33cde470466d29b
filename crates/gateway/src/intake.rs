//! One request: its route, its answer, and what is counted of it.

use std::convert::Infallible;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::{HeaderMap, Request, Response};

use crate::body::RequestBody;
use crate::code::Code;
use crate::connection::Connection;
use crate::encoder::Envelope;
use crate::problem::{Problem, Refused};
use crate::request::{Headers, Wishes};
use crate::route::{self, RouteName};
use crate::worker::Worker;
use crate::{answer, batch, event_request};

type Answer = Result<Response<Full<Bytes>>, Refused>;

/// A request whose head was looked at. It is all that a request keeps while it waits, besides its append: a
/// connection has room for one of these for as long as it is open.
pub(crate) struct Begun {
    /// When the turn began in which the head was looked at.
    started: Duration,
    route: RouteName,
    pub(crate) wishes: Wishes,
    pub(crate) envelope: Envelope,
    pub(crate) body: RequestBody,
    /// The request's headers, cleared.
    empty: HeaderMap,
    refused: Option<Refused>,
}

/// Answers one request. What its head says is looked at before the first await: so the head is not kept. Where the
/// client leaves, the rest is dropped at any await: what was appended is committed all the same, and what wasn't
/// never will be.
pub(crate) fn handle(
    worker: Rc<Worker>,
    connection: &Rc<Connection>,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response<Full<Bytes>>, Infallible>> + use<> {
    let mut begun = begin(&worker, connection, request);
    // A block and no async function, which would keep its arguments twice.
    async move {
        let answer = match (begun.refused.take(), begun.route) {
            (Some(refused), _) => Err(refused),
            (None, RouteName::Event) => event_request::take(&worker, &mut begun).await,
            (None, RouteName::Batch) => Box::pin(batch::take(&worker, &mut begun)).await,
            (None, RouteName::Ready) => ready(&worker),
            (None, RouteName::Health | RouteName::Other) => Ok(answer::of_event()),
        };
        let response = match answer {
            Ok(response) => with_room(response, std::mem::take(&mut begun.empty)),
            Err(problem) => Box::pin(refuse(&worker, problem, &mut begun.body)).await,
        };
        worker.answered(begun.route, response.status(), begun.body.received, begun.started);
        begun.body.request_ended(worker.now());
        Ok(response)
    }
}

fn begin(worker: &Worker, connection: &Rc<Connection>, request: Request<Incoming>) -> Begun {
    let started = worker.clock().elapsed();
    let (parts, incoming) = request.into_parts();
    let mut headers = parts.headers;
    let found = Headers::find(&headers);
    let (route, path_type) = route::find(parts.uri.path());
    let checked = route.check(&parts.method);
    let wishes = checked.and_then(|()| Wishes::of(&found, route, path_type, &mut worker.types()));
    let body = RequestBody::new(incoming, connection.clone(), worker.now(), found.expects_continue);
    headers.clear();
    let envelope = Envelope { received_at: worker.clock().microseconds(), client: connection.client };
    let (wishes, refused) = match wishes {
        Ok(wishes) => (wishes, None),
        Err(refused) => (Wishes::default(), Some(refused)),
    };
    Begun { started, route, wishes, envelope, body, empty: headers, refused }
}

fn ready(worker: &Worker) -> Answer {
    match worker.readiness().reason() {
        None => Ok(answer::of_event()),
        Some(reason) => Err(Problem::boxed(Code::NotReady, reason)),
    }
}

/// An answer without headers takes over the room of the request's: hyper gives it on to the next request.
fn with_room(mut response: Response<Full<Bytes>>, empty: HeaderMap) -> Response<Full<Bytes>> {
    if response.headers().is_empty() {
        *response.headers_mut() = empty;
    }
    response
}

async fn refuse(worker: &Worker, problem: Refused, body: &mut RequestBody) -> Response<Full<Bytes>> {
    worker.cells().refused(problem.code);
    let mut response = problem.response();
    if !body.drain().await {
        body.leave();
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
