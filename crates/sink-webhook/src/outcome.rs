//! What a receiver's answer means, by the standard and by what servers do.

use std::time::Duration;

use http::{HeaderMap, StatusCode};

use super::config::HookUrl;
use super::fault::fault;
use net::http_client::{HttpFailure, retry_after};
use sink::{Fault, Reason, SinkError};

/// What became of one message.
#[derive(Debug)]
pub(super) enum Outcome {
    Taken,
    /// The receiver rejects the message, or all messages.
    Rejected(Reason),
    /// The receiver failed on it, and may take it another time.
    NotYet(Reason),
    /// Nothing is taken now, whatever is sent.
    Away(Failure),
    /// The status doesn't say which: it is about the message if the receiver takes others, else about the receiver.
    Unclear(Failure),
}

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

impl Outcome {
    /// What an answer means.
    pub(super) fn of(status: StatusCode, headers: &HeaderMap, words: String) -> Self {
        let reason = || -> Reason { answered("the receiver", status, &words).into() };
        match status.as_u16() {
            200..=299 => Self::Taken,
            other => match fault(other) {
                Some(Fault::Record | Fault::Unclear) => Self::Rejected(reason()),
                Some(Fault::Passing) => Self::NotYet(reason()),
                Some(Fault::Store) => Self::Away(Failure::Status(status, words, retry_after(headers))),
                // Whether the receiver is away is decided when the others have their answers: nothing is to be waited for yet.
                None => Self::Unclear(Failure::Status(status, words, None)),
            },
        }
    }
}

fn answered(who: &str, status: StatusCode, words: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16) -> Outcome {
        Outcome::of(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), "words".to_owned())
    }

    #[test]
    fn what_is_wrong_with_a_message_is_told_from_what_is_wrong_with_its_receiver() {
        assert!([200, 202, 204].into_iter().all(|status| matches!(of(status), Outcome::Taken)));
        assert!([400, 413, 415, 422].into_iter().all(|status| matches!(of(status), Outcome::Rejected(_))));
        assert!([408, 409, 500].into_iter().all(|status| matches!(of(status), Outcome::NotYet(_))));
        let url = "https://a/s3cret".parse().unwrap();
        for (status, acts) in
            [(301, true), (401, true), (404, true), (410, true), (429, false), (502, false), (503, false)]
        {
            let ((Outcome::Away(failure), false) | (Outcome::Unclear(failure), true)) = (of(status), acts) else {
                panic!("{status}")
            };
            let error = failure.into_sink_error(&url);
            assert_eq!(matches!(error, SinkError::Misconfigured(_)), acts, "{error}");
            assert!(error.to_string().contains("words") && !error.to_string().contains("s3cret"), "{error}");
        }
    }
}
