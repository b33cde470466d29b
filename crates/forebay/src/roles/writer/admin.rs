//! The admin port of a writer: metrics, and whether the process lives.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use writer::Writer;

use crate::admin::{self, AdminAuth};
use crate::metrics::text_format;

/// Connections at a time: a few scrapers. More wait.
const CONNECTIONS_MAX: usize = 16;
/// A connection gets this long altogether: a scrape takes milliseconds.
const CONNECTION_MAX: Duration = Duration::from_secs(60);
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The state that the admin port shows.
#[derive(Clone)]
pub(crate) struct Shown {
    pub(crate) writer: Arc<Writer>,
    /// Whether the writer is registered in etcd, if it registers.
    pub(crate) is_registered: Option<Arc<AtomicBool>>,
}

/// Serves until the future is dropped.
pub(crate) async fn serve(listener: TcpListener, shown: Shown, auth: Arc<AdminAuth>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (shown, auth) = (shown.clone(), auth.clone());
        tokio::spawn(async move {
            let answer = service_fn(|request| {
                let response = respond(&request, &shown, &auth);
                async move { Ok::<_, Infallible>(response) }
            });
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
            let served = server.serve_connection(TokioIo::new(stream), answer);
            let _ = tokio::time::timeout(CONNECTION_MAX, served).await;
            drop(place);
        });
    }
}

fn respond(request: &Request<Incoming>, shown: &Shown, auth: &AdminAuth) -> Response<Full<Bytes>> {
    let path = request.uri().path();
    if !admin::is_public(path)
        && let Some(refused) = auth.refuse(request.headers(), admin::scopes(path))
    {
        return refused;
    }
    let (status, content_type, body) = match path {
        admin::METRICS => (StatusCode::OK, text_format::CONTENT_TYPE, render(shown)),
        admin::HEALTH => (StatusCode::OK, admin::TEXT, admin::ALIVE.into()),
        admin::READY => admin::readiness(shown.writer.is_draining().then_some("the writer is stopping")),
        _ => (StatusCode::NOT_FOUND, admin::TEXT, "not found: there are /metrics, /healthz and /readyz\n".into()),
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn render(shown: &Shown) -> String {
    let counters = shown.writer.counters();
    let mut text = String::new();
    for (name, help, value) in [
        ("batches", "Batches that a store has taken.", counters.batches.get()),
        ("records", "Records of these batches.", counters.records.get()),
        ("objects", "Objects, and descriptions of objects, that a store has taken.", counters.objects.get()),
        (
            "refused",
            "Requests of gateways that were refused: bad frames, unknown sinks, tokens.",
            counters.refused.get(),
        ),
        ("failed", "Calls of gateways that a store failed.", counters.failed.get()),
    ] {
        let name = format!("forebay_writer_{name}_total");
        // A text takes whatever is written.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}");
    }
    if let Some(is_registered) = &shown.is_registered {
        let (name, value) = ("forebay_writer_registered", u8::from(is_registered.load(Ordering::Relaxed)));
        let help = "1 while the writer is registered in etcd.";
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
    }
    text
}
