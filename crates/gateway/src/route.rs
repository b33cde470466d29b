//! The route of a method and a path.

use access::Scope;

use crate::auth::RequiredAccess;
use crate::error_code::ErrorCode;
use crate::problem::{Problem, Refused};
use http1::Method;

/// The methods of all routes.
pub(crate) const ALL_METHODS: &str = "GET, HEAD, OPTIONS, POST";

/// The routes, as metrics name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteName {
    /// `/ingest/event` and the types below it; `/ingest/data` is the same.
    Event,
    /// `/ingest/batch` and the types below it.
    Batch,
    /// `/events` and the ids below it.
    Events,
    /// The objects below `/objects`.
    Objects,
    /// `/healthz`.
    Health,
    /// `/readyz`.
    Ready,
    /// `/ip`.
    Ip,
    /// The paths of bridges.
    Bridge,
    /// The paths and ports of intakes.
    Intake,
    /// Every other path.
    Other,
}

impl RouteName {
    /// Every route.
    pub const ALL: [Self; 10] = [
        Self::Event,
        Self::Batch,
        Self::Events,
        Self::Objects,
        Self::Health,
        Self::Ready,
        Self::Ip,
        Self::Bridge,
        Self::Intake,
        Self::Other,
    ];

    /// The route as a label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Batch => "batch",
            Self::Events => "events",
            Self::Objects => "objects",
            Self::Health => "healthz",
            Self::Ready => "readyz",
            Self::Ip => "ip",
            Self::Bridge => "bridge",
            Self::Intake => "intake",
            Self::Other => "other",
        }
    }

    pub(crate) const fn methods(self) -> &'static str {
        match self {
            Self::Event | Self::Batch => "OPTIONS, POST",
            _ => "GET, HEAD, OPTIONS",
        }
    }

    /// The access that it needs. Monitors have no tokens; neither has a browser's preflight, whose response reveals nothing.
    pub(crate) const fn access(self, method: Method) -> RequiredAccess {
        match (self, method) {
            (Self::Health | Self::Ready, _) | (_, Method::Options) => RequiredAccess::Free,
            (Self::Event | Self::Batch, _) => RequiredAccess::Scope(Scope::Ingest),
            (Self::Events | Self::Objects, _) => RequiredAccess::Scope(Scope::Read),
            // The rule of a bridge has its access.
            (Self::Ip | Self::Bridge | Self::Intake | Self::Other, _) => RequiredAccess::AnyToken,
        }
    }

    fn takes(self, method: Method) -> bool {
        match self {
            _ if method == Method::Options => true,
            Self::Event | Self::Batch => method == Method::Post,
            _ => matches!(method, Method::Get | Method::Head),
        }
    }

    /// Whether this is a route with such a method.
    pub(crate) fn check(self, method: Method) -> Result<(), Refused> {
        if self == Self::Other {
            return Err(Problem::boxed(
                ErrorCode::NotFound,
                "post events to /ingest/event or /ingest/batch, and read them at /events",
            ));
        }
        if self.takes(method) {
            return Ok(());
        }
        Err(not_allowed(self.methods()))
    }
}

/// The path accepts other methods, which are these.
pub(crate) fn not_allowed(methods: &'static str) -> Refused {
    let problem = Problem::new(ErrorCode::MethodNotAllowed, format!("this path accepts only {methods}"));
    Box::new(Problem { allow: Some(methods), ..problem })
}

/// The route of a path, and the type, the id or the object that it names.
pub(crate) fn find(path: &str) -> (RouteName, Option<&str>) {
    let below = |prefix: &str| match path.strip_prefix(prefix)? {
        "" => Some(None),
        rest => rest.strip_prefix('/').filter(|name| !name.is_empty() && !name.contains('/')).map(Some),
    };
    if let Some(type_name) = below("/ingest/event").or_else(|| below("/ingest/data")) {
        (RouteName::Event, type_name)
    } else if let Some(type_name) = below("/ingest/batch") {
        (RouteName::Batch, type_name)
    } else if let Some(id) = below("/events") {
        (RouteName::Events, id)
    } else if let Some(named) = path.strip_prefix("/objects/") {
        (RouteName::Objects, Some(named))
    } else {
        match path {
            "/healthz" => (RouteName::Health, None),
            "/readyz" => (RouteName::Ready, None),
            "/ip" => (RouteName::Ip, None),
            _ => (RouteName::Other, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_resolve_to_routes() {
        for (path, expected) in [
            ("/ingest/event", (RouteName::Event, None)),
            ("/ingest/event/access", (RouteName::Event, Some("access"))),
            ("/ingest/data", (RouteName::Event, None)),
            ("/ingest/data/access", (RouteName::Event, Some("access"))),
            ("/ingest/data/a/b", (RouteName::Other, None)),
            ("/ingest/batch", (RouteName::Batch, None)),
            ("/ingest/batch/a.b", (RouteName::Batch, Some("a.b"))),
            ("/ingest/event/", (RouteName::Other, None)),
            ("/ingest/event/a/b", (RouteName::Other, None)),
            ("/ingest/events", (RouteName::Other, None)),
            ("/events", (RouteName::Events, None)),
            ("/events/x", (RouteName::Events, Some("x"))),
            ("/events/", (RouteName::Other, None)),
            ("/events/x/y", (RouteName::Other, None)),
            ("/objects/a/b/c", (RouteName::Objects, Some("a/b/c"))),
            ("/objects/", (RouteName::Objects, Some(""))),
            ("/objects", (RouteName::Other, None)),
            ("/healthz", (RouteName::Health, None)),
            ("/readyz", (RouteName::Ready, None)),
            ("/ip", (RouteName::Ip, None)),
            ("/ip/", (RouteName::Other, None)),
            ("/", (RouteName::Other, None)),
        ] {
            assert_eq!(find(path), expected, "{path}");
        }
    }
}
