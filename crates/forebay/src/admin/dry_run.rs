//! `/api/try`: runs one payload through the schema and the steps of its type, as `forebay try` does. Nothing of it is kept or counted.
//!
//! | request | answer |
//! |---|---|
//! | `POST /api/try/TYPE?client=&source=&received=&key=`, without `/TYPE` if the configuration is to find it | what each stage does, how long it takes, and what would be stored or rejected |

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use eventlog::unix_microseconds;
use gateway::RequestContext;
use hyper::body::Incoming;
use hyper::{HeaderMap, Method, Request, StatusCode};
use text::{percent, rfc3339};
use tokio::sync::Semaphore;

use super::payload::Payloads;
use super::response::{AdminResponse, json, not_allowed, problem, stopping};
use crate::dry_run::{DryRunJson, DryRunReport, DryRunner};
use crate::type_info::TypeInfo;
use admin_api::query::pairs;

/// Runs dry runs on another thread than that of the admin port, one after the other, so neither other requests nor
/// the shards wait for them.
pub(crate) struct DryRuns {
    types: TypeInfo,
    permits: Arc<Semaphore>,
    /// Their own places: a client that may only look doesn't keep others from acting.
    payloads: Payloads,
}

impl DryRuns {
    pub(crate) fn new(types: TypeInfo) -> Self {
        Self { types, permits: Arc::new(Semaphore::new(1)), payloads: Payloads::new() }
    }

    /// Answers a request whose path continues with `rest` after [`TRY`](admin_api::paths::TRY).
    pub(super) async fn respond(&self, rest: &str, request: &mut Request<Incoming>) -> AdminResponse {
        if *request.method() != Method::POST {
            return not_allowed("POST");
        }
        self.answer(rest, request).await.unwrap_or_else(|refused| refused)
    }

    async fn answer(&self, rest: &str, request: &mut Request<Incoming>) -> Result<AdminResponse, AdminResponse> {
        let around = around(request.uri().query().unwrap_or_default(), request.headers())
            .map_err(|detail| problem(StatusCode::BAD_REQUEST, "query", detail))?;
        let unknown = |detail: &str| problem(StatusCode::NOT_FOUND, "unknown_type", detail.to_owned());
        let finder = self.types.finder();
        let name = rest.strip_prefix('/').filter(|name| !name.is_empty());
        let name = name.map(|name| percent::decode(name).unwrap_or_else(|| name.to_owned()));
        let named =
            name.map(|name| finder.named(&name)).transpose().map_err(|rejection| unknown(rejection.detail()))?;
        let (bytes, _place) = self.payloads.read(request).await?;
        let permit = self.permits.clone().acquire_owned().await.map_err(|_| stopping())?;
        let types = self.types.clone();
        let work = move || {
            // Held until it is done, though its client may have left.
            let _permit = permit;
            let name = match named.map_or_else(|| finder.of_payload(&bytes, &around), Ok) {
                Ok(name) => name,
                Err(rejection) => return json(StatusCode::OK, &DryRunJson::of(&DryRunReport::without_type(rejection))),
            };
            let Some(config) = types.config_of(&name) else {
                let detail =
                    format!("the configuration was reloaded and no longer has [types.{name}]: use another type");
                return problem(StatusCode::NOT_FOUND, "unknown_type", detail);
            };
            let report = DryRunner::new(name, &config).run(&bytes, &around);
            json(StatusCode::OK, &DryRunJson::of(&report))
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| stopping())
    }
}

/// The context of the event: from the query and the headers of this request.
fn around(query: &str, headers: &HeaderMap) -> Result<RequestContext, String> {
    let client = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let received_at = unix_microseconds();
    let mut around = RequestContext { received_at, client, headers: texts(headers), ..RequestContext::default() };
    for pair in pairs(query) {
        let (key, value) = pair?;
        match key {
            "client" => {
                around.client = Some(value.parse().map_err(|_| format!("client={value}: must be an IP address"))?)
            }
            "source" => around.source = value,
            "received" => {
                around.received_at = rfc3339::parse(&value).map_err(|why| format!("received={value}: {why}"))?;
            }
            "key" => around.key = value,
            _ => return Err(format!("unknown parameter {key}: use client, source, received and key")),
        }
    }
    Ok(around)
}

/// Headers as steps see them: several of a name are one with commas. Steps may not read the headers that authenticate a sender.
fn texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let joined = |name| {
        let values = headers.get_all(name).iter().filter_map(|value| str::from_utf8(value.as_bytes()).ok());
        values.collect::<Vec<_>>().join(", ")
    };
    headers.keys().map(|name| (name.as_str().to_owned(), joined(name))).collect()
}
