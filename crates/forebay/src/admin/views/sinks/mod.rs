//! `GET /api/sinks`, `GET /api/sinks/NAME`, `POST /api/sinks/NAME/test`: the state of each sink, with its settings, lanes, failures and writers.

mod sink;
mod source;
mod test;

use hyper::{Method, StatusCode};
use serde::Serialize;
use text::percent;

use crate::admin::is_read;
use crate::admin::response::{AdminResponse, json, not_allowed, problem};
use sink::SinkJson;
pub(crate) use source::{ServerSinks, Sinks};

#[derive(Serialize)]
struct SinksJson {
    sinks: Vec<SinkJson>,
}

/// Answers a request whose path continues with `rest` after [`SINKS`](admin_api::paths::SINKS).
pub(super) async fn respond(sinks: &Sinks, method: &Method, rest: &str) -> AdminResponse {
    let rest = rest.strip_prefix('/').unwrap_or(rest);
    if let Some(name) = rest.strip_suffix("/test") {
        let name = decoded(name);
        return match sinks.store(&name) {
            _ if *method != Method::POST => not_allowed("POST"),
            Some(store) => test::respond(&sinks.tests, store).await,
            None => unknown(&name),
        };
    }
    match rest {
        _ if !is_read(method) => not_allowed("GET, HEAD"),
        "" => json(StatusCode::OK, &SinksJson { sinks: sinks.all() }),
        name => {
            let name = decoded(name);
            let found = sinks.all().into_iter().find(|sink| sink.name() == name);
            found.map_or_else(|| unknown(&name), |sink| json(StatusCode::OK, &sink))
        }
    }
}

fn decoded(name: &str) -> String {
    percent::decode(name).unwrap_or_else(|| name.to_owned())
}

fn unknown(name: &str) -> AdminResponse {
    problem(StatusCode::NOT_FOUND, "sink", format!("there is no sink {name}: GET /api/sinks lists all"))
}
