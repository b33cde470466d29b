//! `Retry-After` (RFC 9110 §10.2.3): for how long a server asks for a pause, and the wait for it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, StatusCode};
use tokio::time::{Instant, sleep_until};

use super::origin::HttpOrigin;

/// The longest pause: after it a server that asks for more gets a request again.
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// The pause in `Retry-After`, as seconds or as a date. A date is compared with the server's own clock if the response has `Date`.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| Some(headers.get(name)?.to_str().ok()?.trim());
    let value = text(RETRY_AFTER)?;
    let pause = match value.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => PAUSE_MAX,
        Err(_) => {
            let until = httpdate::parse_http_date(value).ok()?;
            let now = text(DATE).and_then(|date| httpdate::parse_http_date(date).ok());
            until.duration_since(now.unwrap_or_else(clock::now)).ok()?
        }
    };
    Some(pause.min(PAUSE_MAX))
}

/// Until when servers asked for a pause.
#[derive(Default)]
pub(super) struct Pauses(Mutex<HashMap<HttpOrigin, Instant>>);

impl Pauses {
    fn held(&self) -> MutexGuard<'_, HashMap<HttpOrigin, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the pause that a response asks for. Other statuses than these two are about one request, not about the server.
    pub(super) fn note(&self, origin: &HttpOrigin, status: StatusCode, headers: &HeaderMap) {
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
            && let Some(pause) = retry_after(headers)
        {
            let until = Instant::now() + pause;
            let mut held = self.held();
            let noted = held.entry(origin.clone()).or_insert(until);
            *noted = until.max(*noted);
        }
    }

    /// Waits until the server may be sent a request again.
    pub(super) async fn wait(&self, origin: &HttpOrigin) {
        let until = self.held().get(origin).copied();
        if let Some(until) = until {
            sleep_until(until).await;
            let now = Instant::now();
            self.held().retain(|_, until| *until > now);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn asked(value: &'static str, date: Option<&'static str>) -> Option<Duration> {
        let mut headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(value))]);
        headers.extend(date.map(|date| (DATE, HeaderValue::from_static(date))));
        retry_after(&headers)
    }

    #[test]
    fn retry_after_parses_seconds_and_dates_bounded() {
        let seconds = |count| Some(Duration::from_secs(count));
        assert_eq!([asked("7", None), asked(" 0 ", None)], [seconds(7), seconds(0)]);
        assert_eq!([asked("86400", None), asked("99999999999999999999999", None)], [Some(PAUSE_MAX); 2]);
        let date = Some("Wed, 21 Oct 2015 07:28:00 GMT");
        for at in ["Wed, 21 Oct 2015 07:28:20 GMT", "Wednesday, 21-Oct-15 07:28:20 GMT", "Wed Oct 21 07:28:20 2015"] {
            assert_eq!(asked(at, date), seconds(20), "{at}");
        }
        assert_eq!(asked("Thu, 22 Oct 2015 07:28:00 GMT", date), Some(PAUSE_MAX));
        for none in ["Wed, 21 Oct 2015 07:27:59 GMT", "soon", "", "-1", "1.5"] {
            assert_eq!(asked(none, date), None, "{none}");
        }
        // Without the server's clock this machine's counts.
        assert_eq!(asked("Wed, 21 Oct 2015 07:28:00 GMT", None), None);
        let soon = httpdate::fmt_http_date(clock::now() + Duration::from_secs(60));
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::try_from(soon).unwrap())]);
        assert!(retry_after(&headers).is_some_and(|pause| pause > Duration::from_secs(50)));
    }

    #[tokio::test(start_paused = true)]
    async fn retry_after_pauses_only_its_server() {
        let origin = |url: &str| HttpOrigin::of(&url.parse().unwrap()).unwrap();
        let (one, other) = (origin("http://one"), origin("http://other"));
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("20"))]);
        let (pauses, begun) = (Pauses::default(), Instant::now());
        pauses.note(&one, StatusCode::INTERNAL_SERVER_ERROR, &headers);
        pauses.wait(&one).await;
        pauses.note(&one, StatusCode::SERVICE_UNAVAILABLE, &headers);
        pauses.wait(&other).await;
        assert!(begun.elapsed().is_zero());
        pauses.wait(&one).await;
        assert_eq!(begun.elapsed().as_secs(), 20);
        pauses.wait(&one).await;
        assert_eq!(begun.elapsed().as_secs(), 20);
    }
}
