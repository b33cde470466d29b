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
    let parts: Vec<&str> = rest.split('/').skip(1).collect();
    match parts[..] {
        [] if is_read(method) => json(StatusCode::OK, &SinksJson { sinks: sinks.all() }),
        [name] if is_read(method) => {
            let name = decoded(name);
            let found = sinks.all().into_iter().find(|sink| sink.name() == name);
            found.map_or_else(|| unknown(&name), |sink| json(StatusCode::OK, &sink))
        }
        [] | [_] => not_allowed("GET, HEAD"),
        [name, "test"] if *method == Method::POST => {
            let name = decoded(name);
            match sinks.store(&name) {
                Some(store) => test::respond(&sinks.tests, store).await,
                None => unknown(&name),
            }
        }
        [_, "test"] => not_allowed("POST"),
        _ => {
            let paths = "the paths are /api/sinks, /api/sinks/NAME and /api/sinks/NAME/test";
            problem(StatusCode::NOT_FOUND, "path", paths.into())
        }
    }
}

fn decoded(name: &str) -> String {
    percent::decode(name).unwrap_or_else(|| name.to_owned())
}

fn unknown(name: &str) -> AdminResponse {
    problem(StatusCode::NOT_FOUND, "sink", format!("there is no sink {name}: GET /api/sinks lists all"))
}
