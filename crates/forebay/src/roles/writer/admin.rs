//! The admin port of a writer: metrics, and whether the process lives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use config::Role;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use tokio::net::TcpListener;
use writer::Writer;

use crate::admin::{self, AdminAuth, AdminBody, AdminResponse, Diagnostics};
use crate::caller::Caller;
use crate::metrics::bus_events;
use crate::metrics::exposition::Exposition;
use crate::metrics::findings;
use crate::metrics::host::HostMetrics;
use crate::metrics::push::PushCounters;
use crate::metrics::retention;
use crate::metrics::text_format::text_of;
use crate::offered_status;
use crate::retention::RetentionBoard;
use admin_api::paths;
use admin_api::status::StatusJson;

/// The state that the admin port shows.
#[derive(Clone)]
pub(crate) struct Shown {
    pub(crate) writer: Arc<Writer>,
    pub(crate) retention: RetentionBoard,
    /// Whether the writer is registered in etcd, if it registers.
    pub(crate) is_registered: Option<Arc<AtomicBool>>,
    /// When the process started, in microseconds since 1970.
    pub(crate) started: i64,
    pub(crate) host: Arc<HostMetrics>,
    pub(crate) push: Arc<PushCounters>,
    pub(crate) diagnostics: Diagnostics,
}

/// Answers the requests to the admin port until the future is dropped.
pub(crate) async fn serve(listener: TcpListener, shown: Shown, auth: AdminAuth) {
    let drains = shown.writer.drains().clone();
    admin::serve(listener, None, drains, move |mut request| {
        let (shown, auth) = (shown.clone(), auth.clone());
        async move { respond(&mut request, &shown, &auth).await }
    })
    .await;
}

async fn respond(request: &mut Request<Incoming>, shown: &Shown, auth: &AdminAuth) -> Response<AdminBody> {
    match auth.enter(request) {
        Ok(entered) => {
            let answer = answer(request, shown, entered.caller()).await;
            entered.finish(answer)
        }
        Err(answer) => *answer,
    }
}

async fn answer(request: &mut Request<Incoming>, shown: &Shown, caller: Option<&Caller>) -> AdminResponse {
    if let Some(caller) = caller
        && let Some(answer) = shown.diagnostics.respond(request, caller).await
    {
        return answer;
    }
    match request.uri().path() {
        paths::METRICS => admin::metrics(text_of(|text| shown.collect(text))),
        paths::HEALTH => AdminResponse::text(StatusCode::OK, admin::ALIVE),
        paths::READY => admin::readiness(shown.not_ready()),
        paths::STATUS if !admin::is_read(request.method()) => admin::not_allowed("GET, HEAD"),
        paths::STATUS => admin::json(StatusCode::OK, &shown.status()),
        _ => AdminResponse::text(
            StatusCode::NOT_FOUND,
            "not found: there are /metrics, /healthz, /readyz, /api/status and /api/health\n",
        ),
    }
}

impl Shown {
    fn not_ready(&self) -> Option<&'static str> {
        offered_status::not_ready(&self.writer)
    }

    fn status(&self) -> StatusJson {
        let problems = offered_status::problems(&self.writer, self.is_registered.as_deref());
        let sinks = offered_status::of_all(&self.writer);
        let (counters, now) = (self.writer.counters(), clock::unix_microseconds());
        StatusJson {
            events: counters.records.get(),
            refused: counters.refused.get(),
            findings: self.diagnostics.findings.now(),
            ..admin::status(Role::Writer, self.started, now, self.not_ready(), &problems, sinks)
        }
    }

    /// Collects the metrics of this moment.
    pub(crate) fn collect(&self, text: &mut Exposition) {
        let counters = self.writer.counters();
        text.count("forebay_writer_batches_total", "Batches that a store has committed.", counters.batches.get());
        text.count(
            "forebay_writer_records_total",
            "Records of batches that a store has committed.",
            counters.records.get(),
        );
        let help = "Objects, and descriptions of objects, that a store has written.";
        text.count("forebay_writer_objects_total", help, counters.objects.get());
        let help = "Requests of gateways that were rejected: bad frames, unknown sinks, tokens.";
        text.count("forebay_writer_refused_total", help, counters.refused.get());
        text.count(
            "forebay_writer_failed_total",
            "Requests of gateways that failed in a store.",
            counters.failed.get(),
        );
        let help = "Connections closed before a valid request, because other connections needed their slots.";
        text.count("forebay_writer_connections_closed_total", help, counters.connections_closed.get());
        retention::add(text, &self.retention);
        if let Some(is_registered) = &self.is_registered {
            let is_registered = is_registered.load(Ordering::Relaxed);
            text.level(
                "forebay_writer_registered",
                "Whether the writer is registered in etcd: 1 or 0.",
                is_registered.into(),
            );
        }
        bus_events::add(text);
        findings::add(text, &self.diagnostics.findings);
        self.host.add(text);
        self.push.add(text);
    }
}
