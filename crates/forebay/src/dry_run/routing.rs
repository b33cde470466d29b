//! The route of an event: which of its type's sinks would get it, by the conditions of its routes.

use std::fmt;

use config::Route;
use serde::Serialize;

/// An event's ways.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Routing<'c> {
    /// The sinks that get it.
    #[serde(rename = "routes")]
    taken: Vec<&'c str>,
    /// Those whose condition is false on it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<&'c str>,
    /// Those of which it becomes a dead letter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dead: Vec<DeadEnd<'c>>,
}

/// A sink whose condition is neither true nor false.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct DeadEnd<'c> {
    sink: &'c str,
    detail: String,
}

impl<'c> Routing<'c> {
    pub(super) fn of(routes: &'c [Route], payload: &str) -> Self {
        let mut ways = Self::default();
        for Route { to, when } in routes {
            let sink = &**to.as_arc();
            match when.as_ref().map_or(Ok(true), |when| when.holds(payload.as_bytes())) {
                Ok(true) => ways.taken.push(sink),
                Ok(false) => ways.skipped.push(sink),
                Err(detail) => ways.dead.push(DeadEnd { sink, detail }),
            }
        }
        ways
    }
}

impl fmt::Display for Routing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { taken, skipped, dead } = self;
        let sinks = if taken.is_empty() { "no sink".to_owned() } else { taken.join(", ") };
        f.write_str(&sinks)?;
        if !skipped.is_empty() {
            write!(f, "; not in {}, by the condition", skipped.join(", "))?;
        }
        dead.iter().try_for_each(|DeadEnd { sink, detail }| write!(f, "; a dead letter of {sink}: {detail}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::SinkName;

    #[test]
    fn routing_shows_the_outcome_for_each_route() {
        let route = |to: &str, when: Option<&str>| Route {
            to: SinkName::new(to).unwrap(),
            when: when.map(|when| when.parse().unwrap()),
        };
        let routes = [route("all", None), route("errors", Some("status >= 500")), route("fine", Some("status < 500"))];
        let said = |payload| Routing::of(&routes, payload).to_string();
        assert_eq!(said("{\"status\":503}"), "all, errors; not in fine, by the condition");
        let undecided = said("{}");
        assert!(undecided.starts_with("all; a dead letter of errors: the condition of its route"), "{undecided}");
        let json = serde_json::to_value(Routing::of(&routes[1..2], "{\"status\":1}")).unwrap();
        assert_eq!(json, serde_json::json!({"routes": [], "skipped": ["errors"]}));
        assert_eq!(
            Routing::of(&routes[1..2], "{\"status\":1}").to_string(),
            "no sink; not in errors, by the condition"
        );
    }
}
