//! Conditional and range requests for objects (RFC 9110 §13, §14).

use std::ops::Range;

use http1::{Fields, Method};

/// The conditions of a request. Invalid ones are ignored, as the RFC requires: the response is then the whole object.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    none_match: Option<Box<[u8]>>,
    range: Option<Box<[u8]>>,
    if_range: Option<Box<[u8]>>,
}

/// The response to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All of it.
    Whole,
    /// These bytes, of which there is at least one.
    Part(Range<u64>),
    /// Bytes that the object doesn't have.
    Nothing,
    /// The client already has it.
    Same,
}

impl Conditions {
    pub(super) fn of(fields: &Fields<'_>, method: Method) -> Self {
        // Only GET has ranges.
        let is_get = method == Method::Get;
        let [range, if_range] = [fields.range, fields.if_range].map(|value| value.filter(|_| is_get).map(Box::from));
        Self { none_match: fields.none_match.map(Box::from), range, if_range }
    }

    /// The response for an object with this tag and so many bytes.
    pub(super) fn wanted(&self, etag: &str, bytes: u64) -> Wanted {
        if self.none_match.as_deref().is_some_and(|tags| names(tags, etag)) {
            return Wanted::Same;
        }
        // The client would combine a part of another object with the bytes that it has. Forebay's tags are never times.
        let is_of_same = self.if_range.as_deref().is_none_or(|tag| tag == etag.as_bytes());
        match self.range.as_deref().filter(|_| is_of_same) {
            Some(range) => part(range, bytes),
            None => Wanted::Whole,
        }
    }
}

/// Whether a list of tags has this one, by the weak comparison.
fn names(tags: &[u8], etag: &str) -> bool {
    let of = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag) == etag.as_bytes();
    tags == b"*" || tags.split(|byte| *byte == b',').any(|tag| of(tag.trim_ascii()))
}

/// One range of bytes. Several ranges, and invalid ones, are ignored.
fn part(range: &[u8], bytes: u64) -> Wanted {
    let Some((first, last)) = bounds(range) else { return Wanted::Whole };
    match (first, last) {
        (Some(first), Some(last)) if last < first => Wanted::Whole,
        (Some(first), _) if first >= bytes => Wanted::Nothing,
        (Some(first), last) => Wanted::Part(first..last.map_or(bytes, |last| last.saturating_add(1).min(bytes))),
        (None, Some(0)) => Wanted::Nothing,
        // An empty object has no last byte and no part.
        (None, Some(_)) if bytes == 0 => Wanted::Whole,
        (None, Some(last)) => Wanted::Part(bytes.saturating_sub(last)..bytes),
        (None, None) => Wanted::Whole,
    }
}

/// `bytes=1-2`, `bytes=1-` or `bytes=-2`.
fn bounds(range: &[u8]) -> Option<(Option<u64>, Option<u64>)> {
    let (unit, range) = std::str::from_utf8(range).ok()?.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    unit.eq_ignore_ascii_case("bytes").then_some((bound(first)?, bound(last)?))
}

/// A number beyond any object counts as the largest.
fn bound(text: &str) -> Option<Option<u64>> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(if text.is_empty() { None } else { Some(text.parse().unwrap_or(u64::MAX)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_the_rfc() {
        for (range, bytes, wanted) in [
            ("bytes=0-0", 10, Wanted::Part(0..1)),
            ("bytes=2-5", 10, Wanted::Part(2..6)),
            ("Bytes=2-", 10, Wanted::Part(2..10)),
            ("bytes=2-99", 10, Wanted::Part(2..10)),
            ("bytes=2-99999999999999999999999", 10, Wanted::Part(2..10)),
            ("bytes=2-18446744073709551615", 10, Wanted::Part(2..10)),
            ("bytes=-3", 10, Wanted::Part(7..10)),
            ("bytes=-30", 10, Wanted::Part(0..10)),
            ("bytes=9-9", 10, Wanted::Part(9..10)),
            ("bytes=10-", 10, Wanted::Nothing),
            ("bytes=99999999999999999999999-", 10, Wanted::Nothing),
            ("bytes=-0", 10, Wanted::Nothing),
            ("bytes=0-", 0, Wanted::Nothing),
            ("bytes=-1", 0, Wanted::Whole),
            ("bytes=5-4", 10, Wanted::Whole),
            ("bytes=0-1,3-4", 10, Wanted::Whole),
            ("bytes=-", 10, Wanted::Whole),
            ("bytes=", 10, Wanted::Whole),
            ("bytes=a-b", 10, Wanted::Whole),
            ("bytes=+1-2", 10, Wanted::Whole),
            ("bytes=1 - 2", 10, Wanted::Whole),
            ("lines=1-2", 10, Wanted::Whole),
            ("", 10, Wanted::Whole),
            ("\u{e9}=1-2", 10, Wanted::Whole),
        ] {
            let conditions = Conditions { range: Some(range.as_bytes().into()), ..Conditions::default() };
            assert_eq!(conditions.wanted("\"a\"", bytes), wanted, "{range} of {bytes}");
        }
    }

    #[test]
    fn matching_etag_gets_304_and_others_get_200() {
        let wanted = |none_match: Option<&str>, if_range: Option<&str>| {
            let [none_match, if_range] = [none_match, if_range].map(|tag| tag.map(|tag| tag.as_bytes().into()));
            Conditions { none_match, range: Some(b"bytes=1-2"[..].into()), if_range }.wanted("\"a\"", 10)
        };
        for same in ["\"a\"", "*", "\"b\", \"a\"", "W/\"a\"", " \"b\" ,W/\"a\" "] {
            assert_eq!(wanted(Some(same), None), Wanted::Same, "{same}");
        }
        for other in ["\"b\"", "a", "", "\"a", "\"A\""] {
            assert_eq!(wanted(Some(other), Some("\"a\"")), Wanted::Part(1..3), "{other}");
        }
        for other in ["\"b\"", "W/\"a\"", "Sat, 21 Nov 2026 13:00:00 GMT", ""] {
            assert_eq!(wanted(None, Some(other)), Wanted::Whole, "{other}");
        }
    }
}
