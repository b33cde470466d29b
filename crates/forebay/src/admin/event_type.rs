//! `/api/types`: the types that the gateway accepts, and the rules for their payloads.
//!
//! | request | answer |
//! |---|---|
//! | `GET /api/types` | `{"types": [{"type", "aliases", "lowercase", "id", "time", "ack", "ack_memory", "routes", "unstorable", "aggregates", "read", "refused_to", "schema": {"path", "formats"}, "transform"}]}` |
//! | `GET /api/types/{type}/schema` | the schema as configured, 404 if there is none |

use hyper::{Method, StatusCode};
use serde::Serialize;
use text::percent;

use super::response::{AdminResponse, json, not_allowed, problem};
use crate::type_info::{TypeInfo, TypeJson};

#[derive(Serialize)]
struct TypesJson {
    types: Vec<TypeJson>,
}

/// Answers a request whose path continues with `rest` after [`EVENT_TYPES`](admin_api::paths::EVENT_TYPES).
pub(super) fn respond(method: &Method, rest: &str, types: &TypeInfo) -> AdminResponse {
    if *method != Method::GET && *method != Method::HEAD {
        return not_allowed("GET, HEAD");
    }
    if rest.is_empty() {
        return json(StatusCode::OK, &TypesJson { types: types.list() });
    }
    let unknown = |detail: String| problem(StatusCode::NOT_FOUND, "path", detail);
    let Some(name) = rest.strip_prefix('/').and_then(|rest| rest.strip_suffix("/schema")) else {
        return unknown("the paths are /api/types and /api/types/{type}/schema".into());
    };
    let name = percent::decode(name).unwrap_or_else(|| name.to_owned());
    match types.schema(&name) {
        None => unknown(format!("the configuration has no [types.{name}]")),
        Some(None) => unknown(format!("type {name} has no schema: any JSON is accepted")),
        Some(Some(schema)) => AdminResponse { body: schema.text().to_owned().into(), ..json(StatusCode::OK, &()) },
    }
}
