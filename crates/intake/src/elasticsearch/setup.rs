//! What senders create before they post: templates, policies, pipelines, indexes. Forebay acknowledges all of it and keeps none.
//!
//! Senders first ask whether a template or policy exists. The response is 404: they create it then, and continue.

use json::text::string;

use crate::{IntakeHead, IntakeRoute, Reply};

use super::error::{self, NOT_FOUND};
use super::media::{self, read_only};

const ACKNOWLEDGED: &str = r#"{"acknowledged":true}"#;
const SHARDS: &str = r#"{"_shards":{"total":1,"successful":1,"failed":0}}"#;
const METHODS: &str = "GET, HEAD, POST, PUT";

/// A request for the cluster. The first part of the path begins with `_`.
pub(super) fn of_cluster(parts: &[&str], head: &IntakeHead<'_>) -> IntakeRoute {
    match *parts {
        ["_template"] => named(None, "{}", head),
        ["_index_template"] => named(None, r#"{"index_templates":[]}"#, head),
        ["_component_template"] => named(None, r#"{"component_templates":[]}"#, head),
        ["_data_stream"] => named(None, r#"{"data_streams":[]}"#, head),
        ["_ilm", "policy"] | ["_ingest", "pipeline"] | ["_alias" | "_aliases"] => named(None, "{}", head),
        ["_ilm", "status"] => read_only(head, || media::json(200, media::of(head), r#"{"operation_mode":"RUNNING"}"#)),
        ["_template" | "_index_template" | "_component_template" | "_data_stream" | "_alias" | "_aliases", name]
        | ["_ilm", "policy", name]
        | ["_ingest", "pipeline", name] => named(Some(name), "", head),
        ["_refresh" | "_flush"] => shards(head),
        _ => IntakeRoute::Unknown,
    }
}

/// A request for an index.
pub(super) fn of_index(parts: &[&str], head: &IntakeHead<'_>) -> IntakeRoute {
    match *parts {
        [index] => self::index(index, head),
        [_, "_alias" | "_aliases"] => named(None, "{}", head),
        [_, "_alias" | "_aliases", name] => named(Some(name), "", head),
        [_, "_mapping" | "_mappings" | "_settings"] => named(None, "{}", head),
        [_, "_refresh" | "_flush"] => shards(head),
        _ => IntakeRoute::Unknown,
    }
}

/// Every index exists, and each can be created.
fn index(index: &str, head: &IntakeHead<'_>) -> IntakeRoute {
    let index = string(index);
    match head.method {
        "PUT" | "POST" => {
            let body = format!(r#"{{"acknowledged":true,"shards_acknowledged":true,"index":{index}}}"#);
            IntakeRoute::Fixed(media::json(200, media::of(head), body))
        }
        "GET" | "HEAD" => read_only(head, || {
            let body = format!(r#"{{{index}:{{"aliases":{{}},"mappings":{{}},"settings":{{}}}}}}"#);
            media::json(200, media::of(head), body)
        }),
        _ => IntakeRoute::Methods(METHODS),
    }
}

/// What has a name, or the list of all.
fn named(name: Option<&str>, list: &'static str, head: &IntakeHead<'_>) -> IntakeRoute {
    match (head.method, name) {
        ("PUT" | "POST", _) => IntakeRoute::Fixed(media::json(200, media::of(head), ACKNOWLEDGED)),
        ("GET" | "HEAD", None) => read_only(head, || media::json(200, media::of(head), list)),
        ("GET", Some(name)) => {
            let reason = format!("[{name}] doesn't exist: Forebay keeps no templates, policies or pipelines");
            IntakeRoute::Fixed(error::reply(404, media::of(head), NOT_FOUND, &reason))
        }
        ("HEAD", Some(_)) => IntakeRoute::Fixed(media::product(Reply::empty(404))),
        _ => IntakeRoute::Methods(METHODS),
    }
}

/// Some clients refresh an index after they have posted.
fn shards(head: &IntakeHead<'_>) -> IntakeRoute {
    match head.method {
        "GET" | "POST" => IntakeRoute::Fixed(media::json(200, media::of(head), SHARDS)),
        _ => IntakeRoute::Methods("GET, POST"),
    }
}
