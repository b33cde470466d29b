//! The mark of what objects are kept in: an object beside them.
//!
//! S3 decides between several writers that make it at once: one of them succeeds, the others get 412. Swift looks whether there is an object,
//! and then stores the new one: of two writers both may succeed, and the later mark stays. So a mark of Swift counts when it is older than
//! any request could still be under way to replace it.

use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::ask::{Ask, words};
use super::body::Body;
use super::coded::Digests;
use super::failure::Failure;
use super::put::{Store, drain, expect_success};
use crate::Mark;
use crate::object::Prefix;

const NAME: &str = "forebay-mark";
const TEXT: HeaderValue = HeaderValue::from_static("text/plain");
/// More bytes aren't a mark's.
const BYTES_MAX: usize = 1024;

/// The age from which nothing replaces a mark of Swift.
const SETTLED_AFTER: Duration = Duration::from_secs(2);
/// When Swift has stored an object, in seconds since 1970 with fractions.
const STORED_AT: &str = "x-timestamp";

/// Reads the mark, and makes it where there is none.
pub(super) async fn of(store: &Store, prefix: &Prefix) -> Result<Mark, Failure> {
    let name = format!("{}{NAME}", prefix.fixed());
    if let Some(mark) = settled(store, &name).await? {
        return Ok(mark);
    }
    let mark = Mark::random().map_err(|error| Failure::Parts(error.to_string().into()))?;
    let text = Bytes::from(mark.to_string());
    let digests = Digests::of(&text);
    // Of several writers that connect at once one finds nothing under the name.
    let ask = || Ask::put(&name, Body::Whole(text.clone()), digests, TEXT).with(header::IF_NONE_MATCH, "*");
    let mut answer = store.send_into_container(&ask).await?;
    if answer.status() == StatusCode::NOT_IMPLEMENTED {
        store.keeps_no_names();
        answer = store.send_into_container(&|| Ask::put(&name, Body::Whole(text.clone()), digests, TEXT)).await?;
    }
    if answer.status() != StatusCode::PRECONDITION_FAILED {
        drain(expect_success(answer, || words(&Method::PUT, Some(&name))).await?).await;
    }
    settled(store, &name).await?.ok_or(Failure::Unsettled { object: name })
}

/// The mark, when nothing replaces it any more.
async fn settled(store: &Store, name: &str) -> Result<Option<Mark>, Failure> {
    loop {
        let Some((mark, age)) = read(store, name).await? else { return Ok(None) };
        let missing = SETTLED_AFTER.saturating_sub(age.unwrap_or(SETTLED_AFTER));
        if missing.is_zero() {
            return Ok(Some(mark));
        }
        tokio::time::sleep(missing).await;
    }
}

/// The mark and its age, if the store says it.
async fn read(store: &Store, name: &str) -> Result<Option<(Mark, Option<Duration>)>, Failure> {
    let given = store.service.send(|| Ask::of(Method::GET, Some(name))).await?;
    if given.status() == StatusCode::NOT_FOUND {
        drain(given).await;
        return Ok(None);
    }
    let doing = || words(&Method::GET, Some(name));
    let answer = expect_success(given, doing).await?;
    let age = age(answer.headers());
    let body = answer.bytes(BYTES_MAX).await?;
    let mark = std::str::from_utf8(&body).ok().and_then(|text| text.parse().ok());
    mark.map(|mark| Some((mark, age)))
        .ok_or_else(|| Failure::Unclear { doing: doing(), missing: "a mark of 32 digits".to_owned() })
}

/// How long ago an object was stored, by the clocks of the store alone. Unknown where the answer names no time of either kind.
fn age(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let now = httpdate::parse_http_date(text(header::DATE.as_str())?).ok()?.duration_since(UNIX_EPOCH).ok()?;
    let stored_at = Duration::try_from_secs_f64(text(STORED_AT)?.parse().ok()?).ok()?;
    Some(now.saturating_sub(stored_at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_a_mark_is_told_by_the_clocks_of_the_store() {
        let answer = |date: &str, stored_at: &str| {
            let fields = [(header::DATE.as_str(), date), (STORED_AT, stored_at)];
            let field = |(name, value): (&str, &str)| Some((name.parse().ok()?, HeaderValue::from_str(value).ok()?));
            fields.into_iter().filter_map(field).collect::<HeaderMap>()
        };
        let date = "Thu, 01 Jan 1970 00:01:40 GMT";
        for (stored_at, seconds) in
            [("97.50000", Some(2.5)), ("99.99999", Some(0.00001)), ("100.5", Some(0.0)), ("x", None)]
        {
            let age = age(&answer(date, stored_at)).map(|age| age.as_secs_f64());
            assert_eq!(age.map(|age| (age * 1e5).round()), seconds.map(|age: f64| (age * 1e5).round()), "{stored_at}");
        }
        assert_eq!(age(&answer("yesterday", "97.5")), None);
    }
}
