//! The admin port: metrics, dead letters, and whether the process is alive. It has a listener separate from the intake, so clients of the intake
//! can reach none of it.

mod auth;
mod body;
mod browser_rules;
mod dead;
mod dead_act;
mod dead_query;
mod dead_reads;
mod diagnostics;
mod dry_run;
mod entry;
mod event_type;
mod events;
mod fleet;
mod halves;
mod headers;
mod held;
mod jobs;
mod page;
mod payload;
mod response;
mod routes;
mod session;
mod status;
mod tls;
mod views;
mod write_timeout;

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use admin_api::paths;
use dead_letters::DeadLetterService;
use event::Origin;
use gateway::Readiness;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use net::connections::ConnectionLimiter;
use net::lingering_close::{self, DrainLimiter};
use net::tls::ServerTls;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

use crate::caller::Caller;
use crate::log::UNLIMITED;
use crate::metrics::collect::Metrics;
use crate::metrics::text_format;
use crate::reload_requests::{ReloadError, ReloadHandle};
use crate::type_info::TypeInfo;
pub(crate) use auth::{AccessSettings, AdminAuth};
pub(crate) use body::AdminBody;
pub(crate) use dead_reads::DeadReads;
pub(crate) use diagnostics::Diagnostics;
pub(crate) use dry_run::DryRuns;
pub(crate) use events::Events;
pub(crate) use fleet::Fleet;
pub(crate) use jobs::Jobs;
pub(crate) use payload::Payloads;
pub(crate) use response::{AdminResponse, json, not_allowed};
pub(crate) use routes::Routes;
pub(crate) use status::{ServerStatus, status};
pub(crate) use views::{Aggregates, Refusals, ServerSinks, Sinks, Views};
use write_timeout::WriteTimeout;

/// Open connections at most: a few scrapers and users. More wait.
const CONNECTIONS_MAX: usize = 128;
/// Open connections of one client at most. More are closed immediately, as on the intake port.
const CONNECTIONS_PER_CLIENT_MAX: usize = CONNECTIONS_MAX / 2;
/// A client gets this long for its request's head.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// A client that takes nothing of an answer for so long doesn't want it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait after the listener failed, for instance because there are no descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The services of the admin port.
pub(crate) struct Admin {
    pub(crate) metrics: Metrics,
    pub(crate) status: ServerStatus,
    pub(crate) dead_letters: DeadLetterService,
    pub(crate) dead_reads: DeadReads,
    pub(crate) jobs: Jobs,
    pub(crate) routes: Routes,
    pub(crate) types: TypeInfo,
    pub(crate) dry_runs: DryRuns,
    pub(crate) events: Events,
    pub(crate) payloads: Payloads,
    pub(crate) reload: ReloadHandle,
    pub(crate) origin: Origin,
    pub(crate) auth: AdminAuth,
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) diagnostics: Diagnostics,
}

/// Answers the requests to a port until the future is dropped.
pub(crate) async fn serve<F>(
    listener: TcpListener,
    tls: Option<Arc<ServerTls>>,
    drains: Arc<DrainLimiter>,
    answer: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = Response<AdminBody>> + Send + 'static,
{
    let places = ConnectionLimiter::new(CONNECTIONS_MAX, CONNECTIONS_PER_CLIENT_MAX);
    loop {
        let Some(free) = places.free().await else { return };
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(
                    reason = %error,
                    "the admin port can't accept a connection: if this lasts, raise the limit of open files (ulimit \
                     -n)"
                );
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let client = peer.ip().to_canonical();
        let Some(place) = places.take(free, client) else { continue };
        let (tls, drains, answer) = (tls.clone(), drains.clone(), answer.clone());
        tokio::spawn(async move {
            tls::serve(tls, stream, drains, client, answer).await;
            drop(place);
        });
    }
}

async fn serve_requests<F: Future<Output = Response<AdminBody>>>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: impl Fn(Request<Incoming>) -> F,
) {
    let answer = service_fn(|request: Request<Incoming>| {
        let is_large = lingering_close::is_large(request.body());
        let answered = answer(request);
        async move {
            let mut response = answered.await;
            if is_large && !response.status().is_success() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            headers::add(response.headers_mut());
            Ok::<_, Infallible>(response)
        }
    });
    let mut server = http1::Builder::new();
    // Its date panics if the clock is before 1970 or beyond 9999.
    server.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).auto_date_header(false);
    // A client may disconnect at any time.
    let _ = server.serve_connection(TokioIo::new(WriteTimeout::new(stream, WRITE_TIMEOUT)), answer).await;
}

/// Answers a request to the admin port of a server.
pub(crate) async fn respond_as_server(mut request: Request<Incoming>, admin: Arc<Admin>) -> Response<AdminBody> {
    match admin.auth.enter(&request) {
        Ok(entered) => {
            let answer = answer(&mut request, &admin, entered.caller()).await;
            entered.finish(answer)
        }
        Err(answer) => *answer,
    }
}

async fn answer(request: &mut Request<Incoming>, admin: &Admin, caller: Option<&Caller>) -> AdminResponse {
    if let Some(caller) = caller {
        if let Some(answer) = admin.diagnostics.respond(request, caller).await {
            return answer;
        }
        let path = request.uri().path();
        if path == API || path.starts_with("/api/") {
            return answer_api(request, admin, caller).await;
        }
    }
    match request.uri().path() {
        _ if !is_read(request.method()) => {
            let only = AdminResponse::text(StatusCode::METHOD_NOT_ALLOWED, "this path accepts only GET and HEAD\n");
            AdminResponse { allow: Some("GET, HEAD"), ..only }
        }
        paths::METRICS => metrics(admin.metrics.render()),
        paths::HEALTH => AdminResponse::text(StatusCode::OK, ALIVE),
        paths::READY => readiness(admin.readiness.reason()),
        _ => {
            let text = "not found: the admin port has /metrics, /healthz, /readyz, /api and /debug\n";
            AdminResponse::text(StatusCode::NOT_FOUND, text)
        }
    }
}

async fn answer_api(request: &mut Request<Incoming>, admin: &Admin, caller: &Caller) -> AdminResponse {
    if let Some(rest) = request.uri().path().strip_prefix(paths::TRY).filter(|rest| is_below(rest)) {
        let rest = rest.to_owned();
        return held::counted(admin.dry_runs.respond(&rest, request).await, &admin.events.stories.stored);
    }
    if let Some(rest) = request.uri().path().strip_prefix(paths::DEAD).filter(|rest| is_below(rest)) {
        let rest = rest.to_owned();
        return held::counted(dead::respond(&rest, request, admin, caller).await, &admin.events.stories.stored);
    }
    let (method, path, query) = (request.method(), request.uri().path(), request.uri().query());
    let below = |prefix| path.strip_prefix(prefix).filter(|rest| is_below(rest));
    if let Some(rest) = below(paths::JOBS) {
        return admin.jobs.respond(method, rest, (caller, &admin.diagnostics.actions));
    }
    if let Some(rest) = below(paths::ROUTES) {
        let actions = &admin.diagnostics.actions;
        return admin.routes.respond(method, rest, query, admin.origin, (caller, actions)).await;
    }
    if let Some(rest) = below(paths::EVENTS) {
        return admin.events.respond(method, rest, query).await;
    }
    if let Some(rest) = below(paths::EVENT_TYPES) {
        return event_type::respond(method, rest, &admin.types);
    }
    match path {
        paths::STATUS if !is_read(method) => response::not_allowed("GET, HEAD"),
        paths::STATUS => response::json(StatusCode::OK, &admin.status.now()),
        paths::RELOAD if *method != Method::POST => response::not_allowed("POST"),
        paths::RELOAD => reload(query.unwrap_or_default(), admin, caller).await,
        _ => response::problem(
            StatusCode::NOT_FOUND,
            "path",
            "this process has no such path: check the path, and whether its role and release have it".into(),
        ),
    }
}

async fn reload(query: &str, admin: &Admin, caller: &Caller) -> AdminResponse {
    let is_dry_run = match query {
        "" | "dry_run=false" => false,
        "dry_run=true" => true,
        _ => {
            return response::problem(
                StatusCode::BAD_REQUEST,
                "query",
                "unknown parameter: use dry_run=true or dry_run=false, or none".into(),
            );
        }
    };
    if !is_dry_run {
        tracing::info!(target: UNLIMITED, by = %caller, "reload requested");
    }
    match admin.reload.reload(caller.clone(), is_dry_run).await {
        Ok(reloaded) => response::json(StatusCode::OK, &reloaded),
        Err(ReloadError::Configuration(detail)) => {
            response::problem(StatusCode::UNPROCESSABLE_ENTITY, "configuration", detail)
        }
        Err(ReloadError::Failed(detail)) => response::problem(StatusCode::SERVICE_UNAVAILABLE, "reload", detail),
    }
}

/// Whether the rest of a path after a known prefix is empty or begins with `/`.
fn is_below(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('/')
}

pub(crate) fn is_read(method: &Method) -> bool {
    *method == Method::GET || *method == Method::HEAD
}

const API: &str = "/api";

/// The answer of [`HEALTH`](paths::HEALTH).
pub(crate) const ALIVE: &str = "alive\n";

/// The answer of [`READY`](paths::READY): 503 with the reason if the process can't accept events.
pub(crate) fn readiness(reason: Option<&str>) -> AdminResponse {
    reason.map_or_else(
        || AdminResponse::text(StatusCode::OK, "ready\n"),
        |reason| AdminResponse::text(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")),
    )
}

/// The answer with a text of metrics.
pub(crate) fn metrics(text: String) -> AdminResponse {
    AdminResponse { content_type: text_format::CONTENT_TYPE, ..AdminResponse::text(StatusCode::OK, text) }
}
