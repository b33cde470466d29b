//! The paths of a bridge: literal segments, and parameters that are one whole segment each.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::route::{self, RouteName};

/// Segments of a path. Real ones have up to six.
const SEGMENTS_MAX: usize = 16;
/// First segments whose paths all belong to Forebay.
const OWN: [&str; 3] = ["events", "ingest", "objects"];

/// A path with parameters, as `/orders/{id}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    text: Box<str>,
    segments: Box<[Segment]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Literal(Box<str>),
    /// The name of a parameter.
    Parameter(Box<str>),
}

/// Why a text isn't the path of a bridge.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPath {
    /// It doesn't begin with a slash.
    #[error("expected a path that begins with `/`, as in /orders/{{id}}")]
    Start,
    /// Two slashes in a row, or one at the end.
    #[error("a segment of it is empty: remove the additional `/`")]
    EmptySegment,
    /// It has too many segments.
    #[error("it has more than {SEGMENTS_MAX} segments")]
    Long,
    /// A segment that HTTP clients can't send, or send differently.
    #[error("the segment `{0}` isn't allowed: use A-Z, a-z, 0-9, `-`, `_`, `.` and `~`, or a parameter such as {{id}}")]
    Segment(Box<str>),
    /// The name of a parameter can't be the name of a header.
    #[error("the parameter `{{{0}}}` isn't allowed: its name must have 1 to 32 of A-Z, a-z, 0-9 and `-`")]
    Parameter(Box<str>),
    /// Two parameters have one name. Headers don't distinguish case.
    #[error("two parameters are named `{0}`")]
    Repeated(Box<str>),
    /// Forebay serves it.
    #[error("Forebay serves this path, or one that the parameters match: choose another one")]
    Served,
}

impl PathPattern {
    /// The values of the parameters, if the path matches.
    pub(crate) fn matches(&self, path: &str) -> bool {
        let mut parts = path.strip_prefix('/').unwrap_or_default().split('/');
        let all = self.segments.iter().all(|segment| {
            parts.next().is_some_and(|part| match segment {
                Segment::Literal(text) => **text == *part,
                Segment::Parameter(_) => !part.is_empty(),
            })
        });
        all && parts.next().is_none()
    }

    /// The name and the value of each parameter in a path that matches. The values are encoded as in the path.
    pub(crate) fn parameters<'p>(&'p self, path: &'p str) -> impl Iterator<Item = (&'p str, &'p str)> {
        let parts = path.strip_prefix('/').unwrap_or_default().split('/');
        self.segments.iter().zip(parts).filter_map(|(segment, part)| match segment {
            Segment::Literal(_) => None,
            Segment::Parameter(name) => Some((&**name, part)),
        })
    }

    /// The order in which paths are compared with a request: at the first difference, a literal segment precedes a parameter. Equal ones
    /// match the same paths.
    #[must_use]
    pub fn precedence(&self, other: &Self) -> Ordering {
        let rank = |segment: &Segment| match segment {
            Segment::Literal(text) => (false, text.clone()),
            Segment::Parameter(_) => (true, Box::default()),
        };
        self.segments.iter().map(rank).cmp(other.segments.iter().map(rank))
    }

    /// Whether Forebay serves such a path, or others next to it.
    fn is_served(&self) -> bool {
        match &self.segments[0] {
            Segment::Parameter(_) => true,
            Segment::Literal(first) => OWN.contains(&&**first) || route::find(&self.text).0 != RouteName::Other,
        }
    }
}

impl FromStr for PathPattern {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        let path = text.strip_prefix('/').ok_or(InvalidPath::Start)?;
        let segments: Box<[Segment]> = path.split('/').map(segment).collect::<Result<_, _>>()?;
        if segments.len() > SEGMENTS_MAX {
            return Err(InvalidPath::Long);
        }
        let name = |segment: &'_ Segment| match segment {
            Segment::Parameter(name) => Some(name.clone()),
            Segment::Literal(_) => None,
        };
        let named: Vec<Box<str>> = segments.iter().filter_map(name).collect();
        for (index, name) in named.iter().enumerate() {
            if named[..index].iter().any(|other| other.eq_ignore_ascii_case(name)) {
                return Err(InvalidPath::Repeated(name.clone()));
            }
        }
        let pattern = Self { text: text.into(), segments };
        if pattern.is_served() { Err(InvalidPath::Served) } else { Ok(pattern) }
    }
}

fn segment(text: &str) -> Result<Segment, InvalidPath> {
    if text.is_empty() {
        return Err(InvalidPath::EmptySegment);
    }
    if let Some(name) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        let is_name =
            (1..=32).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        return if is_name { Ok(Segment::Parameter(name.into())) } else { Err(InvalidPath::Parameter(name.into())) };
    }
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte));
    // Clients and proxies remove segments of dots.
    if is_plain && !matches!(text, "." | "..") {
        Ok(Segment::Literal(text.into()))
    } else {
        Err(InvalidPath::Segment(text.into()))
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> PathPattern {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn parameters_are_whole_segments() {
        let orders = pattern("/orders/{id}/lines/{line-number}");
        let path = "/orders/a%2Fb/lines/7";
        assert!(orders.matches(path));
        assert_eq!(orders.parameters(path).collect::<Vec<_>>(), [("id", "a%2Fb"), ("line-number", "7")]);
        for other in
            ["/orders/a/lines/", "/orders//lines/7", "/orders/a/lines/7/", "/orders/a/lines", "/Orders/a/lines/7", "*"]
        {
            assert!(!orders.matches(other), "{other}");
        }
        assert_eq!(orders.to_string(), "/orders/{id}/lines/{line-number}");
    }

    #[test]
    fn literal_segment_precedes_parameter() {
        let ordered = ["/a/b/c", "/a/b/{x}", "/a/{x}", "/a/{x}/c", "/b"];
        for (index, first) in ordered.iter().enumerate() {
            for later in &ordered[index + 1..] {
                assert_eq!(pattern(first).precedence(&pattern(later)), Ordering::Less, "{first} {later}");
            }
        }
        assert_eq!(pattern("/a/{x}").precedence(&pattern("/a/{y}")), Ordering::Equal);
    }

    #[test]
    fn invalid_paths_are_explained() {
        for (text, error) in [
            ("orders", InvalidPath::Start),
            ("/", InvalidPath::EmptySegment),
            ("/orders/", InvalidPath::EmptySegment),
            ("//orders", InvalidPath::EmptySegment),
            ("/a/../b", InvalidPath::Segment("..".into())),
            ("/a%20b", InvalidPath::Segment("a%20b".into())),
            ("/a/b{id}", InvalidPath::Segment("b{id}".into())),
            ("/a?b", InvalidPath::Segment("a?b".into())),
            ("/a/{}", InvalidPath::Parameter("".into())),
            ("/a/{i:d}", InvalidPath::Parameter("i:d".into())),
            ("/a/{id}/{ID}", InvalidPath::Repeated("ID".into())),
            ("/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a", InvalidPath::Long),
            ("/ingest/event", InvalidPath::Served),
            ("/ingest/other", InvalidPath::Served),
            ("/events/{id}", InvalidPath::Served),
            ("/objects/a/b", InvalidPath::Served),
            ("/{any}", InvalidPath::Served),
            ("/{any}/b", InvalidPath::Served),
            ("/ip", InvalidPath::Served),
            ("/healthz", InvalidPath::Served),
            ("/readyz", InvalidPath::Served),
        ] {
            assert_eq!(text.parse::<PathPattern>(), Err(error), "{text}");
        }
        for text in ["/ip/{a}", "/event", "/healthz/x", "/v1.2/a_b~c", "/orders"] {
            pattern(text);
        }
    }
}
