//! The root of an intake on the port of the gateway.

use ::gateway::{InvalidPath, PathPattern};
use ::intake::{IntakeKind, IntakePath};
use settings::InvalidValue;

const WRONG: &str = "isn't the path of an intake";

/// A root, by its segments.
pub(crate) struct Root<'p>(&'p str);

/// The root of an intake without the setting `path`.
pub(crate) fn of_kind(kind: &IntakeKind, name: &str) -> Box<str> {
    match kind.path {
        IntakePath::Fixed(path) => path.into(),
        IntakePath::Named(path) => format!("{path}/{name}").into(),
    }
}

/// Parses `path`.
pub(crate) fn parse(text: &str) -> Result<Box<str>, InvalidValue> {
    let wrong = |wanted: &str| Err(InvalidValue::new(WRONG, wanted.to_owned()));
    if text.contains(['{', '}']) {
        return wrong("a path of an intake has no parameters: write it without braces, as in /logs");
    }
    match text.parse::<PathPattern>() {
        Ok(_) => Ok(text.into()),
        Err(InvalidPath::Start) => wrong("expected a path that begins with `/`, as in /logs"),
        Err(InvalidPath::Served) => wrong("Forebay serves this path: choose another one"),
        Err(InvalidPath::Segment(_)) => wrong("use only A-Z, a-z, 0-9, `-`, `_`, `.` and `~` between the slashes"),
        Err(error) => wrong(&error.to_string()),
    }
}

impl<'p> Root<'p> {
    pub(crate) const fn new(path: &'p str) -> Self {
        Self(path)
    }

    fn segments(&self) -> impl Iterator<Item = &'p str> + use<'p> {
        self.0.split('/').skip(1)
    }

    /// Whether one of the two is at the other or below it.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.segments().zip(other.segments()).all(|(one, other)| one == other)
    }

    /// Whether a bridge's path matches requests of the intake.
    pub(crate) fn has(&self, bridge: &PathPattern) -> bool {
        let bridge = bridge.to_string();
        let mut parts = bridge.split('/').skip(1);
        self.segments().all(|own| parts.next().is_some_and(|part| part.starts_with('{') || part == own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_overlap_by_segments() {
        for (one, other, expected) in [
            ("/es", "/es", true),
            ("/es", "/es/a", true),
            ("/es/a", "/es", true),
            ("/es", "/esa", false),
            ("/hooks/a", "/hooks/b", false),
        ] {
            assert_eq!(Root::new(one).overlaps(&Root::new(other)), expected, "{one} {other}");
        }
    }

    #[test]
    fn root_has_bridges_below_it() {
        for (root, bridge, expected) in [
            ("/hooks/a", "/hooks/a", true),
            ("/hooks/a", "/hooks/{id}", true),
            ("/hooks/a", "/hooks/a/b", true),
            ("/hooks/a", "/hooks", false),
            ("/hooks/a", "/hooks/b", false),
            ("/hooks/a", "/hooks/{id}/c", true),
        ] {
            assert_eq!(Root::new(root).has(&bridge.parse().unwrap()), expected, "{root} {bridge}");
        }
    }

    #[test]
    fn wrong_paths_are_rejected() {
        for good in ["/es", "/a/b.c", "/_x"] {
            assert_eq!(parse(good).unwrap(), good.into());
        }
        for bad in
            ["", "/", "es", "/es/", "/a//b", "/ingest", "/events/x", "/objects", "/healthz", "/ip", "/{id}", "/a b"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
