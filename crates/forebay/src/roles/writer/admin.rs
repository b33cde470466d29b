//! The admin port of a writer: metrics, and whether the process lives.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use tokio::net::TcpListener;
use writer::Writer;

use crate::admin::{self, AdminAuth, AdminResponse};
use crate::metrics::retention;
use crate::metrics::text_format::Exposition;
use crate::retention::RetentionBoard;

/// The state that the admin port shows.
#[derive(Clone)]
pub(crate) struct Shown {
    pub(crate) writer: Arc<Writer>,
    pub(crate) retention: RetentionBoard,
    /// Whether the writer is registered in etcd, if it registers.
    pub(crate) is_registered: Option<Arc<AtomicBool>>,
}

/// Answers the requests to the admin port until the future is dropped.
pub(crate) async fn serve(listener: TcpListener, shown: Shown, auth: Arc<AdminAuth>) {
    let drains = shown.writer.drains().clone();
    admin::serve(listener, (None, drains), move |request| ready(respond(&request, &shown, &auth))).await;
}

fn respond(request: &Request<Incoming>, shown: &Shown, auth: &AdminAuth) -> Response<Full<Bytes>> {
    let path = request.uri().path();
    if !admin::is_public(path)
        && let Some(refused) = auth.refuse(request.headers(), admin::scopes(path))
    {
        return refused;
    }
    let answer = match path {
        admin::METRICS => admin::metrics(render(shown)),
        admin::HEALTH => AdminResponse::text(StatusCode::OK, admin::ALIVE),
        admin::READY => admin::readiness(shown.writer.is_draining().then_some("the writer is stopping")),
        _ => AdminResponse::text(StatusCode::NOT_FOUND, "not found: there are /metrics, /healthz and /readyz\n"),
    };
    answer.into_response()
}

fn render(shown: &Shown) -> String {
    let counters = shown.writer.counters();
    let mut text = Exposition::new();
    text.count("forebay_writer_batches_total", "Batches that a store has taken.", counters.batches.get());
    text.count("forebay_writer_records_total", "Records of these batches.", counters.records.get());
    let help = "Objects, and descriptions of objects, that a store has taken.";
    text.count("forebay_writer_objects_total", help, counters.objects.get());
    let help = "Requests of gateways that were refused: bad frames, unknown sinks, tokens.";
    text.count("forebay_writer_refused_total", help, counters.refused.get());
    text.count("forebay_writer_failed_total", "Calls of gateways that a store failed.", counters.failed.get());
    retention::add(&mut text, &shown.retention);
    if let Some(is_registered) = &shown.is_registered {
        let is_registered = is_registered.load(Ordering::Relaxed);
        text.level("forebay_writer_registered", "1 while the writer is registered in etcd.", is_registered.into());
    }
    text.finish()
}
