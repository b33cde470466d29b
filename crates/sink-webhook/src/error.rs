//! What failures of a receiver mean for delivery, with advice for the operator.

use std::time::Duration;

use http::StatusCode;

use super::config::HookUrl;
use net::http_client::HttpFailure;
use sink::SinkError;

/// Why nothing is accepted.
#[derive(Debug)]
pub(super) enum Failure {
    /// There is no response.
    Http(HttpFailure),
    /// The response, with the receiver's message, and the pause that it requests.
    Status(StatusCode, String, Option<Duration>),
    /// A type's name, or an id, isn't allowed in a request.
    Url,
    /// The sink was closed during the call.
    Closed,
}

pub(super) fn answered(who: &str, status: StatusCode, message: &str) -> String {
    if message.is_empty() {
        format!("{who} responded {status}")
    } else {
        format!("{who} responded {status}: {message}")
    }
}

impl Failure {
    /// The pause that the receiver requests.
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
            Self::Status(status, message, _) => answered("it", *status, message),
            Self::Url => {
                "the type's name isn't allowed in a URL: remove {type} from `url`, or rename the type".to_owned()
            }
            Self::Closed => "Forebay cancelled the call, because the sink was closed".to_owned(),
        }
    }

    /// The advice for the operator, unless the error may be temporary.
    fn advice(&self) -> Option<&'static str> {
        let Self::Status(status, ..) = self else { return None };
        match status.as_u16() {
            410 => Some(
                "the receiver wants no further events: remove its routes from the configuration, or set \
                 another `url`",
            ),
            401 | 403 => Some("check that the receiver accepts `headers` and `secrets`"),
            300..=399 => Some("set `url` to the target of the redirection"),
            404 | 405 => Some("check `url`"),
            400..=499 if *status != StatusCode::TOO_MANY_REQUESTS => Some("check what the receiver requires"),
            _ => None,
        }
    }

    pub(super) fn into_sink_error(self, url: &HookUrl) -> SinkError {
        let place = format!("webhook {url}");
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
