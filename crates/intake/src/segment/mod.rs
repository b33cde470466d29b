//! The tracking API of Segment, which RudderStack and Jitsu have as well: SDKs of servers and of mobile apps, and analytics.js in pages.

mod message;
mod messages;
mod replies;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::{Intake, IntakeHead, IntakeKind, IntakePath, IntakeRoute, Problem, Reply};
use messages::Messages;

/// The kind of intake.
pub static KIND: IntakeKind = IntakeKind {
    name: "segment",
    path: IntakePath::Fixed("/segment"),
    sender: "host: \"{URL}\"",
    settings: &[],
    secrets: &[],
    may_lack_ids: true,
    read: |_, _| Some(Arc::new(Segment)),
};

/// The intake.
#[derive(Debug)]
pub struct Segment;

/// The paths of the SDKs, each before the name of a call: those of Segment, of RudderStack's beacons, and of Jitsu.
const ROOTS: [&str; 4] = ["/v1/", "/beacon/v1/", "/api/s/s2s/", "/api/s/"];
/// The names of the calls, and the one-letter names in analytics.js.
const CALLS: [(&str, &str); 6] =
    [("track", "t"), ("identify", "i"), ("page", "p"), ("screen", "s"), ("group", "g"), ("alias", "a")];

impl Intake for Segment {
    fn types(&self) -> &'static [&'static str] {
        &["segment.track", "segment.identify", "segment.page", "segment.screen", "segment.group", "segment.alias"]
    }

    fn route(&self, head: &IntakeHead<'_>) -> IntakeRoute {
        let path = head.path.strip_suffix('/').unwrap_or(head.path);
        let Some(name) = ROOTS.iter().find_map(|root| path.strip_prefix(root)) else { return IntakeRoute::Unknown };
        let call = CALLS.iter().find(|(call, letter)| name == *call || name == *letter).map(|(call, _)| *call);
        match (name, call) {
            ("m" | "metrics", _) if head.method == "POST" => IntakeRoute::Free(replies::success()),
            ("batch" | "b" | "import", _) | (_, Some(_)) if head.method == "POST" => {
                IntakeRoute::Ingest(Box::new(Messages::new(call, head)))
            }
            ("batch" | "b" | "import" | "m" | "metrics", _) | (_, Some(_)) => IntakeRoute::Methods("POST"),
            _ => IntakeRoute::Unknown,
        }
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        replies::refusal(problem)
    }
}
