//! The cursor that a client sends to get the next page: a store's bookmark, and a hash of the query that it belongs to. It is no secret:
//! it holds only a position, and a forged one gives nothing that a query wouldn't. A cursor of another query is rejected, because pages
//! would be skipped unnoticed.

use event::read::{Bookmark, ReadOrder, Wanted};
use text::hex;
use xxhash_rust::xxh3::Xxh3;

use crate::error_code::ErrorCode;
use crate::problem::{Problem, Refused};

/// How it is written: version, check, bookmark.
const VERSION: u8 = 1;
const CHECK_BYTES: usize = 8;
/// Bytes of a bookmark: more than any store needs.
const BOOKMARK_BYTES_MAX: usize = 1024;

/// What a cursor belongs to: a sink and a query. The limit may change from page to page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Belonging<'a> {
    pub(super) sink: &'a str,
    pub(super) wanted: &'a Wanted,
    /// How long before the first page the events begin, in microseconds, if `since` is an age: the cursor holds the resulting time.
    pub(super) age: Option<i64>,
    /// The source and the condition that narrow it down, if any.
    pub(super) filter: Option<(&'a str, &'a str)>,
}

impl Belonging<'_> {
    /// Every part follows its length, so no two cursors are hashed as the same bytes.
    fn check(&self, bookmark: &[u8]) -> [u8; CHECK_BYTES] {
        let mut hash = Xxh3::new();
        let mut part = |bytes: &[u8]| {
            hash.update(&(bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(&[VERSION]);
        part(self.sink.as_bytes());
        match self.wanted {
            Wanted::Ids { first, last } => [&first.0, &last.0].into_iter().for_each(|id| part(id)),
            Wanted::Stored(filter) => {
                part(filter.type_name.as_ref().map_or(&[][..], |name| name.as_str().as_bytes()));
                let since = self.age.map(|age| [b"ago", &age.to_le_bytes()[..]].concat());
                part(&since.unwrap_or_else(|| written(filter.since)));
                part(&written(filter.until));
                // Cursors of the other order were issued before this order existed, and stay valid.
                if filter.order == ReadOrder::NewestFirst {
                    part(b"newest first");
                }
            }
        }
        if let Some((source, condition)) = self.filter {
            part(source.as_bytes());
            part(condition.as_bytes());
        }
        part(bookmark);
        hash.digest().to_le_bytes()
    }

    /// The text for a bookmark: hexadecimal, so it needs no escapes in a URL.
    pub(super) fn write(&self, Bookmark(bookmark): &Bookmark) -> String {
        let check = self.check(bookmark);
        hex::encode(&[&[VERSION][..], &check, bookmark].concat())
    }

    /// # Errors
    /// The text is no cursor of this query.
    pub(super) fn read(&self, text: &str) -> Result<Bookmark, Refused> {
        let is_short = text.len() <= 2 * (1 + CHECK_BYTES + BOOKMARK_BYTES_MAX);
        let bytes = Some(text).filter(|_| is_short).and_then(hex::decode).ok_or_else(none_at_all)?;
        match bytes.split_first() {
            Some((&VERSION, rest)) => match rest.split_first_chunk::<CHECK_BYTES>() {
                Some((check, bookmark)) if *check == self.check(bookmark) => Ok(Bookmark(bookmark.to_vec())),
                Some(_) => Err(of_another_query()),
                None => Err(none_at_all()),
            },
            _ => Err(none_at_all()),
        }
    }
}

fn written(time: Option<i64>) -> Vec<u8> {
    time.map_or_else(Vec::new, |time| time.to_le_bytes().to_vec())
}

fn none_at_all() -> Refused {
    Problem::boxed(
        ErrorCode::Cursor,
        "invalid `cursor`: use the value of `next` from a previous page, or start again without a cursor",
    )
}

/// The problem of a cursor or a bookmark of another query.
pub(super) fn of_another_query() -> Refused {
    let detail =
        "`cursor` belongs to another query or sink: repeat the query that returned it, or start again without a cursor";
    Problem::boxed(ErrorCode::Cursor, detail)
}

#[cfg(test)]
mod tests {
    use event::read::Filter;
    use event::{EventId, TypeName};
    use proptest::prelude::*;

    use super::*;

    fn filter(name: &str, since: Option<i64>, until: Option<i64>) -> Wanted {
        Wanted::Stored(Filter { type_name: TypeName::new(name).ok(), since, until, ..Filter::default() })
    }

    #[test]
    fn cursor_of_an_earlier_release_stays_valid() {
        let belonging = Belonging { sink: "local", wanted: &filter("a", Some(1), None), age: None, filter: None };
        let bookmark = Bookmark(vec![1, 2, 3]);
        assert_eq!(belonging.write(&bookmark), "0148a93953bf4795db010203");
    }

    #[test]
    fn cursor_is_rejected_for_another_query() {
        let ids = |first, last| Wanted::Ids { first: EventId([first; 16]), last: EventId([last; 16]) };
        let queries = [
            filter("", None, None),
            filter("a", None, None),
            filter("a", Some(1), None),
            filter("a", None, Some(1)),
            filter("a", Some(0), Some(1)),
            ids(1, 2),
            ids(1, 3),
            Wanted::Stored(Filter { order: ReadOrder::NewestFirst, ..Filter::default() }),
        ];
        let bookmark = Bookmark(vec![1, 2, 3]);
        let belongings: Vec<_> = queries
            .iter()
            .flat_map(|wanted| ["s", "t"].map(|sink| Belonging { sink, wanted, age: None, filter: None }))
            .collect();
        let ages = [0, 1].map(|age| Belonging { age: Some(age), ..belongings[0] });
        let filters =
            [("a", ""), ("b", ""), ("", "a")].map(|filter| Belonging { filter: Some(filter), ..belongings[0] });
        let belongings = [belongings, ages.to_vec(), filters.to_vec()].concat();
        for (at, one) in belongings.iter().enumerate() {
            let text = one.write(&bookmark);
            for (other_at, other) in belongings.iter().enumerate() {
                assert_eq!(other.read(&text).ok(), (at == other_at).then(|| bookmark.clone()), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn altered_cursor_is_rejected() {
        let wanted = filter("a", None, None);
        let belonging = Belonging { sink: "s", wanted: &wanted, age: None, filter: None };
        let text = belonging.write(&Bookmark(vec![7; 24]));
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'0' { b'1' } else { b'0' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(belonging.read(&changed).unwrap_err().code, ErrorCode::Cursor, "{changed}");
            assert!(belonging.read(&text[..at]).is_err());
        }
        assert!(belonging.read(&"0".repeat(100_000)).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,80}") {
            let wanted = filter("a", None, None);
            let belonging = Belonging { sink: "s", wanted: &wanted, age: None, filter: None };
            prop_assert!(belonging.read(&text).is_err());
        }
    }
}
