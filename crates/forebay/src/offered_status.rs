//! The state of a sink that a writer offers to gateways.

use std::sync::atomic::{AtomicBool, Ordering};

use admin_api::status::SinkStatusJson;
use text::rfc3339;
use writer::{Offered, Writer};

use crate::problems::Problems;

/// The states of all sinks.
pub(crate) fn of_all(writer: &Writer) -> Vec<SinkStatusJson> {
    writer.offered().iter().map(|(name, offered)| of(name, offered)).collect()
}

/// Why the writer accepts no batches.
pub(crate) fn not_ready(writer: &Writer) -> Option<&'static str> {
    writer.is_draining().then_some("the writer is stopping")
}

/// What needs an operator. `is_registered` is none if the writer registers nowhere.
pub(crate) fn problems(writer: &Writer, is_registered: Option<&AtomicBool>) -> Problems {
    let problems = Problems::of_process(not_ready(writer), &of_all(writer));
    let is_unregistered = is_registered.is_some_and(|registered| !registered.load(Ordering::Relaxed));
    if is_unregistered { problems.with_unregistered() } else { problems }
}

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
