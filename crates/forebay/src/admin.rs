//! The admin port: metrics, and whether the process lives. It is on another listener than the intake, so that
//! nothing of it can be reached from there.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::exposition;
use crate::log;
use crate::metrics::Metrics;

/// Connections at a time: a few scrapers and people. More wait.
const CONNECTIONS_MAX: usize = 64;
/// A client gets this long for its request's head.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait after the listener failed, for instance for want of a descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until the future is dropped.
pub(crate) async fn serve(listener: TcpListener, metrics: Arc<Metrics>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                log::warning(format_args!("the admin port can't take a connection: {error}"));
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let metrics = metrics.clone();
        tokio::spawn(async move {
            let answer = service_fn(|request| std::future::ready(Ok::<_, Infallible>(respond(&request, &metrics))));
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
            // A client that breaks off is its own business.
            let _ = server.serve_connection(TokioIo::new(stream), answer).await;
            drop(place);
        });
    }
}

fn respond(request: &Request<Incoming>, metrics: &Metrics) -> Response<Full<Bytes>> {
    let (status, content_type, body) = match request.uri().path() {
        _ if request.method() != Method::GET && request.method() != Method::HEAD => {
            return not_allowed();
        }
        "/metrics" => (StatusCode::OK, exposition::CONTENT_TYPE, metrics.render()),
        "/healthz" => (StatusCode::OK, TEXT, "alive\n".into()),
        _ => (StatusCode::NOT_FOUND, TEXT, "not found: the admin port has /metrics and /healthz\n".into()),
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    set(response.headers_mut(), content_type);
    response
}

const TEXT: &str = "text/plain; charset=utf-8";

fn set(headers: &mut HeaderMap, content_type: &'static str) {
    headers.insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(content_type));
}

fn not_allowed() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from("only GET and HEAD\n"));
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    set(response.headers_mut(), TEXT);
    response.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
    response
}
