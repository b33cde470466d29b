//! Paths and methods.

use limits::BATCH_RECORDS_MAX;
use text::percent::decode_lossy;

use crate::{IntakeHead, IntakeRoute};

use super::bulk::Bulk;
use super::document::Document;
use super::error;
use super::filter::Shown;
use super::fixed;
use super::media;
use super::setup;
use super::version::Version;

/// Bytes of an index's name, as with Elasticsearch. Each item of a response has the name of the path.
const INDEX_BYTES_MAX: usize = 255;
const POST_OR_PUT: &str = "POST, PUT";

/// What serves a request.
pub(super) fn of(version: &Version, head: &IntakeHead<'_>) -> IntakeRoute {
    // A proxy may add a slash to the root, and Fluent Bit ends paths with one.
    let parts: Vec<String> = head.path.split('/').filter(|part| !part.is_empty()).take(6).map(decode_lossy).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["_bulk"] => bulk(None, head),
        [index, "_bulk"] | [index, "_doc", "_bulk"] => bulk(Some(index), head),
        [index, "_doc"] => document(index, None, head),
        [index, "_doc" | "_create", id] => document(index, Some(id), head),
        [] => media::read_only(head, || fixed::root(version, media::of(head))),
        ["_license"] => media::read_only(head, || fixed::license(media::of(head))),
        ["_xpack"] => media::read_only(head, || fixed::features(media::of(head))),
        ["_cluster", "health", ..] => media::read_only(head, || fixed::health(media::of(head))),
        ["_cat", "health", ..] => media::read_only(head, || fixed::health_line(head)),
        ["_nodes", ..] => media::read_only(head, || fixed::nodes(version, head)),
        [first, ..] if first.starts_with('_') => setup::of_cluster(&parts, head),
        _ => setup::of_index(&parts, head),
    }
}

fn bulk(index: Option<&str>, head: &IntakeHead<'_>) -> IntakeRoute {
    posting(index.unwrap_or_default(), head, || {
        let shown = Shown::of(head.parameter("filter_path").as_deref());
        IntakeRoute::Ingest(Box::new(Bulk::new(index.map(str::to_owned), shown, media::of(head))))
    })
}

fn document(index: &str, id: Option<&str>, head: &IntakeHead<'_>) -> IntakeRoute {
    posting(index, head, || {
        let (media, index, id) = (media::of(head), index.to_owned(), id.map(str::to_owned));
        IntakeRoute::Ingest(Box::new(Document { media, index, id, shown_id: String::new() }))
    })
}

fn posting(index: &str, head: &IntakeHead<'_>, call: impl FnOnce() -> IntakeRoute) -> IntakeRoute {
    if !matches!(head.method, "POST" | "PUT") {
        return IntakeRoute::Methods(POST_OR_PUT);
    }
    match index.len() {
        ..=INDEX_BYTES_MAX => call(),
        length => {
            let reason =
                format!("the index has {length} bytes; at most {INDEX_BYTES_MAX} are allowed: send a shorter name");
            IntakeRoute::Fixed(error::reply(400, media::of(head), "invalid_index_name_exception", &reason))
        }
    }
}

// The names of a path, once for each record, are a bounded part of the memory.
const _: () = assert!(INDEX_BYTES_MAX * BATCH_RECORDS_MAX <= 32 * 1024 * 1024);
