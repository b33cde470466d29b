//! A token for a limited time, and the URL of the objects.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use tokio::time::Instant;

use net::http_client::Endpoint;

/// The header field of a token.
pub(super) const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
/// A token is renewed when this part of its lifetime is left, so none expires during a request.
const LEFT_PART: u32 = 10;

/// A token.
pub(super) struct Session {
    pub(super) token: HeaderValue,
    /// The account's URL.
    pub(super) storage: Endpoint,
    /// `None` if its issuer doesn't state its expiry.
    renew_at: Option<Instant>,
}

impl Session {
    /// A token that is valid for a time from its request on.
    pub(super) fn new(
        mut token: HeaderValue,
        storage: Endpoint,
        asked_at: Instant,
        good_for: Option<Duration>,
    ) -> Self {
        token.set_sensitive(true);
        let renew_at = good_for.and_then(|time| asked_at.checked_add(time - time / LEFT_PART));
        Self { token, storage, renew_at }
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.renew_at.is_none_or(|renew_at| Instant::now() < renew_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn token_is_renewed_before_it_expires() {
        let session = |good_for| {
            let storage = "http://one/v1/AUTH_test".parse().unwrap();
            Session::new(HeaderValue::from_static("t"), storage, Instant::now(), good_for)
        };
        let (hour, endless) = (session(Some(Duration::from_hours(1))), session(None));
        tokio::time::advance(Duration::from_mins(53)).await;
        assert!(hour.is_fresh());
        tokio::time::advance(Duration::from_mins(2)).await;
        assert!(!hour.is_fresh() && endless.is_fresh());
        assert!(!session(Some(Duration::ZERO)).is_fresh());
        assert!(!format!("{:?}", endless.token).contains('t') || endless.token.is_sensitive());
    }
}
