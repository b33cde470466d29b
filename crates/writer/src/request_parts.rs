//! The parts that all requests share: the limits of a body, headers, and the count of failures.

use std::future::Future;
use std::str::FromStr;
use std::time::Duration;

use hyper::{HeaderMap, StatusCode};
use sink::SinkError;

use crate::Writer;
use crate::answer::Refused;
use crate::sink_health::LastCallCell;

/// The timeout between two pieces of a body.
pub(super) const BODY_SILENCE_MAX: Duration = Duration::from_secs(10);
/// How long a request waits for memory. It is less than a gateway waits for a sign of life.
pub(super) const ROOM_WAIT_MAX: Duration = Duration::from_secs(2);

pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The parsed header, if the request has it. A malformed one must not count as a missing one.
pub(super) fn parsed<T: FromStr>(headers: &HeaderMap, name: &'static str) -> Result<Option<T>, Refused> {
    let wrong = || bad_request(format!("the header {name} is malformed: check the proxies between gateway and writer"));
    headers.get(name).map(|value| value.to_str().ok().and_then(|text| text.parse().ok()).ok_or_else(wrong)).transpose()
}

pub(super) fn bad_request(detail: impl Into<std::borrow::Cow<'static, str>>) -> Refused {
    Refused::new(StatusCode::BAD_REQUEST, "bad_request", detail)
}

/// Awaits a call of a sink, counts it if it fails, and notes the result.
pub(super) async fn counted<T>(
    writer: &Writer,
    last: &LastCallCell,
    call: impl Future<Output = Result<T, SinkError>>,
) -> Result<T, SinkError> {
    let result = call.await;
    last.note(&result);
    if result.is_err() {
        writer.counters.failed.add(1);
    }
    result
}
