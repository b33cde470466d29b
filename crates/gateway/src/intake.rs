//! One request: its route, its answer, and what is counted of it.

use std::convert::Infallible;
use std::rc::Rc;
use std::time::Instant;

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

/// Answers one request. Where the client leaves, this is dropped at any await: what was appended is committed all
/// the same, and what wasn't never will be.
pub(crate) async fn handle(
    worker: Rc<Worker>,
    connection: Rc<Connection>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let started = Instant::now();
    let (parts, incoming) = request.into_parts();
    let mut headers = parts.headers;
    let found = Headers::find(&headers);
    let (route, path_type) = route::find(parts.uri.path());
    let checked = route.check(&parts.method);
    let wishes = checked.and_then(|()| Wishes::of(&found, route, path_type, &mut worker.types()));
    let mut body = RequestBody::new(incoming, &connection, worker.now(), found.expects_continue);
    headers.clear();
    drop((parts.uri, parts.method, parts.extensions));
    let envelope = Envelope { received_at: worker.clock().microseconds(), client: connection.client };
    let answer = match (wishes, route) {
        (Err(refused), _) => Err(refused),
        (Ok(wishes), RouteName::Event) => event_request::take(&worker, wishes, &mut body, envelope).await,
        (Ok(wishes), RouteName::Batch) => Box::pin(batch::take(&worker, wishes, &mut body, envelope)).await,
        (Ok(_), RouteName::Ready) => ready(&worker),
        (Ok(_), RouteName::Health | RouteName::Other) => Ok(answer::of_event()),
    };
    let response = match answer {
        Ok(response) => with_room(response, headers),
        Err(problem) => Box::pin(refuse(&worker, &problem, &mut body)).await,
    };
    worker.answered(route, response.status(), body.received, started.elapsed());
    drop(body);
    connection.request_ended(worker.now());
    Ok(response)
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

async fn refuse(worker: &Worker, problem: &Problem, body: &mut RequestBody<'_>) -> Response<Full<Bytes>> {
    worker.cells().refused(problem.code);
    let mut response = problem.response();
    if !body.drain().await {
        body.leave();
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<A, B, C, F>(_: impl Fn(A, B, C) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn sizes() {
        println!("handle {}", size(handle));
        println!("request {} response {}", size_of::<Request<Incoming>>(), size_of::<Response<Full<Bytes>>>());
        println!("body {} wishes {} envelope {} headers {}", size_of::<RequestBody<'_>>(), size_of::<Wishes>(), size_of::<Envelope>(), size_of::<HeaderMap>());
        println!("socket {} connection {}", size_of::<crate::socket::Socket>(), size_of::<Connection>());
        println!("found {} ", size_of::<Headers<'_>>());
    }
}
