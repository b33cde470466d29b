//! The query of a tap.

use admin_api::query::pairs;
use expression::Expression;
use tap::{Point, TapFilter};

/// Lines a second at most, and unless the query says otherwise.
const RATE_MAX: u32 = 2_000;
const RATE_USUAL: u32 = 50;

/// What a client wants to see.
#[derive(Debug)]
pub(crate) struct TapQuery {
    pub(super) filter: TapFilter,
    pub(super) condition: Option<Expression>,
    /// Lines a second.
    pub(super) rate: u32,
}

impl TapQuery {
    /// Parses the text after the question mark, or returns its error. Without `at` the point is the usual one.
    pub(crate) fn read(text: &str, usual: Point) -> Result<Self, String> {
        let filter = TapFilter { at: usual, type_name: None, source: None, sink: None };
        let mut query = Self { filter, condition: None, rate: RATE_USUAL };
        for pair in pairs(text) {
            let (key, value) = pair?;
            let wrong = |wanted: &str| format!("{key}={value}: {wanted}");
            let filter = &mut query.filter;
            match key {
                "at" => {
                    let named = Point::ALL.into_iter().find(|at| at.as_str() == value);
                    filter.at =
                        named.ok_or_else(|| wrong("use `received`, `accepted`, `refused`, `stored` or `dead`"))?;
                }
                "type" => filter.type_name = Some(value),
                "source" => filter.source = Some(value),
                "sink" => filter.sink = Some(value),
                "where" => query.condition = Some(value.parse().map_err(|error| wrong(&format!("{error}")))?),
                "rate" => {
                    let rate = value.parse().ok().filter(|rate| (1..=RATE_MAX).contains(rate));
                    query.rate = rate.ok_or_else(|| wrong(&format!("expected a number from 1 to {RATE_MAX}")))?;
                }
                _ => return Err(format!("unknown parameter {key}: use at, type, source, sink, where or rate")),
            }
        }
        query.check().map(|()| query)
    }

    fn check(&self) -> Result<(), String> {
        let at = self.filter.at;
        if self.condition.is_some() && at == Point::Refused {
            return Err("where needs payloads, and rejected events are shown without: leave one of both out".into());
        }
        if self.filter.sink.is_some() && !matches!(at, Point::Stored | Point::Dead) {
            return Err(format!("events have no sink at {}: use sink with at=stored or at=dead", at.as_str()));
        }
        Ok(())
    }

    /// The point.
    pub(crate) const fn at(&self) -> Point {
        self.filter.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_mistakes_are_named() {
        for (text, wanted) in [
            ("at=gone", "use `received`, `accepted`"),
            ("rate=0", "from 1 to 2000"),
            ("rate=2001", "from 1 to 2000"),
            ("where=status%20%3D", "status ="),
            ("where=a&at=refused", "without"),
            ("sink=local", "at=stored"),
            ("types=a", "unknown parameter types"),
            ("type=%ff", "percent"),
        ] {
            let wrong = TapQuery::read(text, Point::Accepted).unwrap_err();
            assert!(wrong.contains(wanted), "{text}: {wrong}");
        }
        let query = TapQuery::read("at=dead&sink=a&type=b&source=c&rate=7&where=n%20%3E%201", Point::Accepted).unwrap();
        assert!(query.filter.takes("b", "c", "a") && !query.filter.takes("b", "c", "x"));
        assert_eq!((query.at(), query.rate, query.condition.unwrap().to_string()), (Point::Dead, 7, "n > 1".into()));
    }
}
