//! What failures of a receiver mean for delivery, with what the operator must do.

use std::time::Duration;

use http::StatusCode;

use super::config::HookUrl;
use net::http_client::HttpFailure;
use sink::SinkError;

/// Why nothing is taken.
#[derive(Debug)]
pub(super) enum Failure {
    /// There is no answer.
    Http(HttpFailure),
    /// The answer, with the receiver's words, and how long it wants to be left alone.
    Status(StatusCode, String, Option<Duration>),
    /// A type's name, or an id, can't stand in a request.
    Url,
    /// The sink was closed meanwhile.
    Closed,
}

pub(super) fn answered(who: &str, status: StatusCode, words: &str) -> String {
    if words.is_empty() { format!("{who} answered {status}") } else { format!("{who} answered {status}: {words}") }
}

impl Failure {
    /// How long the receiver wants to be left alone.
    pub(super) const fn pause(&self) -> Option<Duration> {
        match self {
            Self::Status(_, _, pause) => *pause,
            _ => None,
        }
    }

    /// What happened, without the place.
    pub(super) fn what(&self) -> String {
        match self {
            Self::Http(failure) => failure.to_string(),
            Self::Status(status, words, _) => answered("it", *status, words),
            Self::Url => "the type's name can't stand in its URL".to_owned(),
            Self::Closed => "the sink was closed here".to_owned(),
        }
    }

    /// What a person must do, if nothing passes by itself.
    fn advice(&self) -> Option<&'static str> {
        let Self::Status(status, ..) = self else { return None };
        match status.as_u16() {
            410 => Some("it wants no more events: take its routes out of the configuration, or name another `url`"),
            401 | 403 => Some("see to it that `headers` and `secret` are those that it wants"),
            300..=399 => Some("name the place that it leads to in `url`"),
            404 | 405 => Some("is `url` right?"),
            400..=499 if *status != StatusCode::TOO_MANY_REQUESTS => Some("see what it wants"),
            _ => None,
        }
    }

    pub(super) fn into_sink_error(self, url: &HookUrl) -> SinkError {
        let place = format!("web hook {url}");
        let what =
            if let Self::Http(failure) = &self { failure.at(&place) } else { format!("{place}: {}", self.what()) };
        match (self.advice(), &self) {
            (Some(advice), _) => SinkError::Misconfigured(format!("{what}; {advice}").into()),
            (None, Self::Http(failure)) if failure.is_misconfigured() => SinkError::Misconfigured(what.into()),
            (None, Self::Url) => SinkError::Misconfigured(what.into()),
            _ => SinkError::Unavailable(what.into()),
        }
    }
}
