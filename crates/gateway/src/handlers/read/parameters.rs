//! The query of a request: each parameter once, and none that is unknown, because a misspelt one would have no effect.

use std::fmt::Display;
use std::str::FromStr;

use text::percent;

use crate::problem::{Problem, Refused};

/// The parameters after the question mark.
#[derive(Debug)]
pub(super) struct Parameters {
    given: Vec<(&'static str, String)>,
}

impl Parameters {
    /// Reads a query that may have these parameters.
    ///
    /// # Errors
    /// It has another one, or one twice, or an invalid one.
    pub(super) fn read(query: Option<&str>, known: &[&'static str]) -> Result<Self, Refused> {
        let mut given: Vec<(&'static str, String)> = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let Some(name) = known.iter().find(|known| **known == name) else {
                return Err(bad(format!("unknown parameter `{}`: this path has {}", shown(name), known.join(", "))));
            };
            if given.iter().any(|(other, _)| other == name) {
                return Err(bad(format!("parameter `{name}` is given more than once: send it once")));
            }
            let value = percent::decode(value)
                .ok_or_else(|| bad(format!("parameter `{name}` must be percent-encoded UTF-8")))?;
            if value.is_empty() {
                return Err(bad(format!("parameter `{name}` is empty: give it a value, or leave it out")));
            }
            given.push((name, value));
        }
        Ok(Self { given })
    }

    /// The text of a parameter.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.given.iter().find(|(given, _)| *given == name).map(|(_, value)| value.as_str())
    }

    /// A parameter of some kind.
    ///
    /// # Errors
    /// It isn't of that kind.
    pub(super) fn value<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, Refused> {
        self.with(name, |text| text.parse().map_err(|error: T::Err| error.to_string()))
    }

    /// A parameter that a function parses which describes its errors.
    ///
    /// # Errors
    /// It can't be read.
    pub(super) fn with<T>(&self, name: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, Refused> {
        let read = |text| read(text).map_err(|why| bad(format!("`{name}`: {why}")));
        self.text(name).map(read).transpose()
    }

    /// # Errors
    /// One of these was given.
    pub(super) fn without(&self, names: &[&str], why: &str) -> Result<(), Refused> {
        match names.iter().find(|name| self.text(name).is_some()) {
            Some(name) => Err(bad(format!("`{name}` {why}"))),
            None => Ok(()),
        }
    }
}

/// The problem of an invalid query.
pub(super) fn bad(detail: String) -> Refused {
    Problem::of_query(detail)
}

/// The part of a name to show.
fn shown(name: &str) -> &str {
    const SHOWN_MAX: usize = 32;
    name.get(..SHOWN_MAX).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_code::ErrorCode;

    const KNOWN: [&str; 2] = ["a", "b"];

    #[test]
    fn parameters_are_decoded() {
        let parameters = Parameters::read(Some("&a=x%20+%c3%A9=1&&b=2"), &KNOWN).unwrap();
        assert_eq!((parameters.text("a"), parameters.value("b").unwrap()), (Some("x +é=1"), Some(2)));
        assert!(parameters.value::<u8>("a").is_err());
        assert!(parameters.without(&["c", "b"], "no").is_err() && parameters.without(&["c"], "no").is_ok());
        assert_eq!(Parameters::read(None, &KNOWN).unwrap().text("a"), None);
    }

    #[test]
    fn invalid_parameters_are_rejected_by_name() {
        for (query, wanted) in [
            ("c=1", "unknown parameter `c`: this path has a, b"),
            ("A=1", "unknown parameter `A`"),
            ("=1", "unknown parameter ``"),
            ("a=1&a=1", "parameter `a` is given more than once"),
            ("a=%ff", "parameter `a` must be percent-encoded UTF-8"),
            ("a=%f", "parameter `a` must be percent-encoded UTF-8"),
            ("a=", "parameter `a` is empty"),
            ("a", "parameter `a` is empty"),
        ] {
            let problem = Parameters::read(Some(query), &KNOWN).unwrap_err();
            assert!(
                problem.code == ErrorCode::BadRequest && problem.detail.contains(wanted),
                "{query}: {}",
                problem.detail
            );
        }
        let long = "é".repeat(10_000);
        assert!(Parameters::read(Some(&long), &KNOWN).is_err());
    }
}
