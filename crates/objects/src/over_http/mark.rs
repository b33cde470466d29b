//! The store id (mark) of a container or bucket: an object in it.
//!
//! S3 itself resolves concurrent creation: one writer succeeds, the others get 412. Swift checks for an object and then
//! stores the new one, with its own API and with its S3 API. That isn't atomic: two writers may both succeed, and the
//! later store id wins. The same holds for stores that ignore conditions. So a store id is valid only when no request
//! that could replace it can still be in flight.

use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::body::UploadBody;
use super::container_target::{ContainerTarget, drain, expect_success};
use super::digests::Digests;
use super::error::ObjectStoreError;
use super::request::{ContainerRequest, describe_request};
use super::service::Service;
use crate::Prefix;
use sink::Mark;

/// Query engines ignore files whose names begin with `_`.
const NAME: &str = "_forebay-mark";
/// The name in older versions, after the fixed part of objects' names. An existing store id keeps this name.
const OLD_NAME: &str = "forebay-mark";
const TEXT: HeaderValue = HeaderValue::from_static("text/plain");
/// The largest body that is read.
const BYTES_MAX: usize = 1024;

/// The age at which a store id is valid.
const VALID_AFTER: Duration = Duration::from_secs(2);
/// The time at which Swift stored an object, in seconds since 1970 with a fraction. Other stores have `Last-Modified`, in whole seconds.
const STORED_AT: &str = "x-timestamp";

/// Reads the store id, and creates it if there is none.
pub(super) async fn of(store: &ContainerTarget<impl Service>, prefix: &Prefix) -> Result<Mark, ObjectStoreError> {
    if let Some(mark) = valid(store, &old_name(prefix)).await? {
        return Ok(mark);
    }
    let name = name(prefix);
    if let Some(mark) = valid(store, &name).await? {
        return Ok(mark);
    }
    let mark = Mark::random().map_err(|error| ObjectStoreError::Parts(error.to_string().into()))?;
    let text = Bytes::from(mark.to_string());
    let digests = Digests::of(&text);
    // Of several concurrent writers only one may create the object.
    let ask = || {
        ContainerRequest::put(&name, UploadBody::Whole(text.clone()), digests, TEXT).with(header::IF_NONE_MATCH, "*")
    };
    let mut answer = store.send_into_container(&ask).await?;
    if answer.status() == StatusCode::NOT_IMPLEMENTED {
        store.set_no_if_none_match();
        answer = store
            .send_into_container(&|| ContainerRequest::put(&name, UploadBody::Whole(text.clone()), digests, TEXT))
            .await?;
    }
    if answer.status() != StatusCode::PRECONDITION_FAILED {
        drain(expect_success(answer, || describe_request(&Method::PUT, Some(&name))).await?).await;
    }
    valid(store, &name).await?.ok_or(ObjectStoreError::Incomplete { object: name })
}

/// The name of the store id: in the folder of the fixed part of objects' names. Sinks with one folder share it.
fn name(prefix: &Prefix) -> String {
    let folder = prefix.fixed().rfind('/').map_or("", |end| &prefix.fixed()[..=end]);
    format!("{folder}{NAME}")
}

fn old_name(prefix: &Prefix) -> String {
    format!("{}{OLD_NAME}", prefix.fixed())
}

/// The store id, once it is valid.
async fn valid(store: &ContainerTarget<impl Service>, name: &str) -> Result<Option<Mark>, ObjectStoreError> {
    loop {
        let Some((mark, age)) = read(store, name).await? else { return Ok(None) };
        let missing = VALID_AFTER.saturating_sub(age.unwrap_or(VALID_AFTER));
        if missing.is_zero() {
            return Ok(Some(mark));
        }
        tokio::time::sleep(missing).await;
    }
}

/// The store id, and its age if the store reports one.
async fn read(
    store: &ContainerTarget<impl Service>,
    name: &str,
) -> Result<Option<(Mark, Option<Duration>)>, ObjectStoreError> {
    let given = store.service.send(|| ContainerRequest::of(Method::GET, Some(name))).await?;
    if given.status() == StatusCode::NOT_FOUND {
        drain(given).await;
        return Ok(None);
    }
    let doing = || describe_request(&Method::GET, Some(name));
    let answer = expect_success(given, doing).await?;
    let age = age(answer.headers());
    let body = answer.bytes(BYTES_MAX).await?;
    let mark = std::str::from_utf8(&body).ok().and_then(|text| text.parse().ok());
    mark.map(|mark| Some((mark, age)))
        .ok_or_else(|| ObjectStoreError::Unclear { doing: doing(), missing: "a store id of 32 digits".to_owned() })
}

/// The age of an object, by the store's own clock. `None` if the response lacks one of both times.
fn age(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let now = httpdate::parse_http_date(text(header::DATE.as_str())?).ok()?.duration_since(UNIX_EPOCH).ok()?;
    let stored_at = match text(STORED_AT) {
        Some(seconds) => Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?,
        None => {
            httpdate::parse_http_date(text(header::LAST_MODIFIED.as_str())?).ok()?.duration_since(UNIX_EPOCH).ok()?
        }
    };
    Some(now.saturating_sub(stored_at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_id_has_a_hidden_name_unless_old() {
        let names = |text: &str| text.parse().map(|prefix: Prefix| (name(&prefix), old_name(&prefix))).unwrap();
        for (prefix, new, old) in [
            ("", "_forebay-mark", "forebay-mark"),
            ("a/b/{day}/", "a/b/_forebay-mark", "a/b/forebay-mark"),
            ("a/day={day}/", "a/_forebay-mark", "a/day=forebay-mark"),
            ("a-{type}/", "_forebay-mark", "a-forebay-mark"),
        ] {
            assert_eq!(names(prefix), (new.to_owned(), old.to_owned()), "{prefix}");
        }
    }

    #[test]
    fn age_is_computed_from_the_stores_clock() {
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

        let both = [(header::DATE, date), (header::LAST_MODIFIED, "Thu, 01 Jan 1970 00:01:37 GMT")];
        let of_s3: HeaderMap = both.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))).collect();
        assert_eq!(age(&of_s3), Some(Duration::from_secs(3)), "a store without x-timestamp");
        assert_eq!(age(&HeaderMap::new()), None);
    }
}
