//! Measures in their textual form: `count`, `sum:/bytes`, `p99:/took`, `top(10):/path`.

use did_you_mean::nearest;
use limits::AGGREGATE_TOP_MAX;

use super::accumulator::Kind;
use super::sample::Side;
use json::JsonPointer;

/// The names that a measure can begin with, for suggestions.
const NAMES: [&str; 12] =
    ["count", "sum", "min", "max", "mean", "first", "last", "distinct", "quantile", "p50", "top", "rate"];
/// A `top` keeps exact counts of at least this many times the values that it lists.
const TOP_SPARE: usize = 10;
const TOP_CAPACITY_MIN: usize = 100;

/// A parsed measure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measure {
    pub(super) read: Read,
    /// The pointer to its values; `None` if it counts events.
    pub(super) pointer: Option<JsonPointer>,
}

/// How the result is read from the accumulator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Read {
    Count,
    Rate,
    Sum,
    Mean,
    Least,
    Greatest,
    Sample(Side),
    Distinct,
    Quantile(f64),
    Top(usize),
}

impl Measure {
    /// Parses a measure, or says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (head, pointer) = match text.split_once(':') {
            Some((head, pointer)) => (head, Some(pointer)),
            None => (text, None),
        };
        let read = parse_head(head)?;
        let pointer = match pointer {
            None if matches!(read, Read::Count | Read::Rate) => None,
            None => return Err(format!("`{head}` needs a JSON pointer after a colon: `{head}:/…`")),
            Some(pointer) => Some(pointer.parse().map_err(|error| format!("`{pointer}`: {error}"))?),
        };
        Ok(Self { read, pointer })
    }

    /// The accumulator that it needs; `None` if the group's count is enough.
    pub(super) fn kind(&self) -> Option<Kind> {
        let has_pointer = self.pointer.is_some();
        match self.read {
            Read::Count => has_pointer.then_some(Kind::Present),
            Read::Rate => has_pointer.then_some(Kind::Sum),
            Read::Sum | Read::Mean => Some(Kind::Sum),
            Read::Least => Some(Kind::Least),
            Read::Greatest => Some(Kind::Greatest),
            Read::Sample(side) => Some(Kind::Sample(side)),
            Read::Distinct => Some(Kind::Distinct),
            Read::Quantile(_) => Some(Kind::Quantiles),
            Read::Top(most) => Some(Kind::Top(capacity(most))),
        }
    }
}

fn capacity(most: usize) -> usize {
    (most * TOP_SPARE).max(TOP_CAPACITY_MIN)
}

fn parse_head(head: &str) -> Result<Read, String> {
    let (name, argument) = match head.split_once('(') {
        Some((name, rest)) => {
            let argument =
                rest.strip_suffix(')').ok_or_else(|| format!("`{head}` has no closing parenthesis: add `)`"))?;
            (name, Some(argument))
        }
        None => (head, None),
    };
    let read = match (name, argument) {
        ("quantile", Some(argument)) => quantile(argument, "", "quantile(0.99)", 1)?,
        ("quantile", None) => return Err("`quantile` needs a number from 0 to 1: `quantile(0.99):/…`".to_owned()),
        ("top", Some(argument)) => top(argument)?,
        ("top", None) => return Err("`top` needs a number of values: `top(10):/…`".to_owned()),
        (_, None) => match percentile(name) {
            Some(read) => read?,
            None => plain(name).ok_or_else(|| unknown(name))?,
        },
        (_, Some(_)) if plain(name).is_some() => {
            return Err(format!("`{name}` takes no parameter: remove the parentheses"));
        }
        _ => return Err(unknown(name)),
    };
    Ok(read)
}

fn plain(name: &str) -> Option<Read> {
    Some(match name {
        "count" => Read::Count,
        "rate" => Read::Rate,
        "sum" => Read::Sum,
        "mean" => Read::Mean,
        "min" => Read::Least,
        "max" => Read::Greatest,
        "first" => Read::Sample(Side::First),
        "last" => Read::Sample(Side::Last),
        "distinct" => Read::Distinct,
        _ => return None,
    })
}

/// `p99.9`, if the name has this form.
fn percentile(name: &str) -> Option<Result<Read, String>> {
    let number = name.strip_prefix('p').filter(|number| number.starts_with(|first: char| first.is_ascii_digit()))?;
    Some(quantile(number, "e-2", "p99", 100))
}

/// The exponent makes a fraction from the text of the number: divided by 100, 99.9 would not be 0.999.
fn quantile(number: &str, exponent: &str, example: &str, all: u8) -> Result<Read, String> {
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match format!("{number}{exponent}").parse::<f64>() {
        Ok(of_one) if is_plain && of_one <= 1.0 => Ok(Read::Quantile(of_one)),
        _ => Err(format!("`{number}` is not a number from 0 to {all}, as in `{example}:/…`")),
    }
}

fn top(number: &str) -> Result<Read, String> {
    let most = number.parse().ok().filter(|most| (1..=AGGREGATE_TOP_MAX).contains(most));
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
    most.filter(|_| is_plain)
        .map(Read::Top)
        .ok_or_else(|| format!("`{number}` is not a number from 1 to {AGGREGATE_TOP_MAX}, as in `top(10):/…`"))
}

fn unknown(name: &str) -> String {
    match nearest(name, NAMES.iter().copied()) {
        Some(known) => format!("there is no measure `{name}`; did you mean `{known}`?"),
        None => format!("there is no measure `{name}`; known are {}", NAMES.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_read() {
        for (text, read, pointer) in [
            ("count", Read::Count, None),
            ("count:/a", Read::Count, Some("/a")),
            ("rate", Read::Rate, None),
            ("sum:/a/b", Read::Sum, Some("/a/b")),
            ("first:", Read::Sample(Side::First), Some("")),
            ("p50:/a:b", Read::Quantile(0.5), Some("/a:b")),
            ("p99.9:/a", Read::Quantile(0.999), Some("/a")),
            ("quantile(0.25):/a", Read::Quantile(0.25), Some("/a")),
            ("top(100):/a", Read::Top(100), Some("/a")),
        ] {
            let pointer = pointer.map(|pointer| pointer.parse().unwrap());
            assert_eq!(Measure::parse(text), Ok(Measure { read, pointer }), "{text}");
        }
    }

    #[test]
    fn mistakes_are_reported() {
        for (text, said) in [
            ("cuont", "did you mean `count`?"),
            ("average:/a", "known are count, sum"),
            ("distnct:/a", "did you mean `distinct`?"),
            ("sum", "`sum:/…`"),
            ("sum:a", "begins with `/`"),
            ("quantile:/a", "needs a number from 0 to 1"),
            ("quantile(99):/a", "from 0 to 1"),
            ("p101:/a", "from 0 to 100"),
            ("p1e1:/a", "from 0 to 100"),
            ("top:/a", "needs a number of values"),
            ("top(0):/a", "from 1 to 100"),
            ("top(101):/a", "from 1 to 100"),
            ("top(+5):/a", "from 1 to 100"),
            ("top(5:/a", "closing parenthesis"),
            ("sum(5):/a", "takes no parameter"),
            ("", "known are count"),
        ] {
            let error = Measure::parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
