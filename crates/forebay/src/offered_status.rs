//! The state of a sink that a writer offers to gateways.

use admin_api::status::SinkStatusJson;
use text::rfc3339;
use writer::Offered;

/// Whether the last call of the sink's store succeeded. A writer keeps nothing else.
pub(crate) fn of(name: &str, offered: &Offered) -> SinkStatusJson {
    let last = offered.last_call();
    let failed = last.as_ref().and_then(|last| Some((last.failure.clone()?, last.since)));
    let state = match (&last, &failed) {
        (None, _) => "unused",
        (_, None) => "active",
        (_, Some(_)) => "failing",
    };
    let (reason, since) = failed.map(|(reason, since)| (reason, rfc3339::format(since))).unzip();
    SinkStatusJson { sink: name.to_owned(), state: state.to_owned(), reason, since, backlog: None }
}
