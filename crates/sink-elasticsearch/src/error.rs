//! What failures mean for delivery, in words for the person who must act.

use http::StatusCode;
use serde::Deserialize;

use super::config::ElasticsearchConfig;
use super::store_error::StoreError;
use net::http_client::{HttpFailure, HttpFailureKind, shortened};
use sink::{Mark, SinkError};

/// Why a call failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// There is no answer.
    Http(HttpFailure),
    /// The store's answer to a request as a whole, with its words.
    Status(StatusCode, String),
    /// All documents that were sent are still to be taken, because the store has too much to do.
    Overloaded(String),
    /// The store isn't what it must be.
    Unfit(String),
    /// It is another store than the batch is for: the one with this mark.
    OtherStore(Mark),
    /// What the store answered makes no sense.
    Odd(String),
    /// The sink was closed meanwhile.
    Closed,
}

impl From<HttpFailure> for Failure {
    fn from(failure: HttpFailure) -> Self {
        Self::Http(failure)
    }
}

#[derive(Deserialize)]
struct Described {
    error: StoreError,
}

/// The store's words in the body of an answer.
pub(super) fn words(body: &[u8]) -> String {
    match serde_json::from_slice::<Described>(body) {
        Ok(described) => described.error.words(),
        Err(_) => shortened(&String::from_utf8_lossy(body)),
    }
}

impl Failure {
    /// Whether the store has more to do than it can, as far as can be told.
    pub(super) fn is_overload(&self) -> bool {
        match self {
            Self::Overloaded(_) => true,
            Self::Status(status, _) => matches!(status.as_u16(), 429 | 502 | 503 | 504),
            Self::Http(failure) => matches!(failure.kind, HttpFailureKind::Silent(_)),
            Self::Unfit(_) | Self::OtherStore(_) | Self::Odd(_) | Self::Closed => false,
        }
    }

    /// Whether the request was too large for the store, or for what stands before it.
    pub(super) fn is_too_large(&self) -> bool {
        matches!(self, Self::Status(StatusCode::PAYLOAD_TOO_LARGE, _))
    }

    /// Whether the answer was longer than its reader allows.
    pub(super) fn is_long_answer(&self) -> bool {
        matches!(self, Self::Http(HttpFailure { kind: HttpFailureKind::TooLong(_), .. }))
    }

    /// What happened, without the place.
    pub(super) fn what(&self) -> String {
        match self {
            Self::Http(failure) => failure.to_string(),
            Self::Status(status, words) if words.is_empty() => format!("it answered {status}"),
            Self::Status(status, words) => format!("it answered {status}: {words}"),
            Self::Overloaded(words) | Self::Unfit(words) | Self::Odd(words) => words.clone(),
            Self::OtherStore(mark) => SinkError::OtherStore(*mark).to_string(),
            Self::Closed => "the sink was closed here".to_owned(),
        }
    }

    /// What a person must do, if nothing passes by itself.
    fn advice(&self) -> Option<&'static str> {
        let Self::Status(status, _) = self else { return None };
        match status.as_u16() {
            401 => Some("see to it that the user of `url`, or the key in `api_key`, may log in"),
            403 => Some("grant the user or key what the manual names"),
            300..=399 => Some("name the place that it leads to in `url`"),
            404 | 405 => Some("is it an Elasticsearch or OpenSearch server, and is the path in `url` right?"),
            400 => Some("it doesn't take what Forebay asks: is its version one that the manual names?"),
            _ => None,
        }
    }

    pub(super) fn into_sink_error(self, config: &ElasticsearchConfig) -> SinkError {
        let place = format!("Elasticsearch {}, index {}", config.nodes, config.index);
        if let Self::OtherStore(mark) = self {
            return SinkError::OtherStore(mark);
        }
        if let Self::Http(failure) = &self {
            let reason = failure.at(&place).into();
            return if failure.is_misconfigured() {
                SinkError::Misconfigured(reason)
            } else {
                SinkError::Unavailable(reason)
            };
        }
        let what = self.what();
        match (self.advice(), &self) {
            (Some(advice), _) => SinkError::Misconfigured(format!("{place}: {what}; {advice}").into()),
            (None, Self::Unfit(_)) => SinkError::Misconfigured(format!("{place}: {what}").into()),
            _ => SinkError::Unavailable(format!("{place}: {what}").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_must_do_is_told_from_what_passes() {
        let config = super::super::tests::config();
        for (status, acts) in [
            (301, true),
            (400, true),
            (401, true),
            (403, true),
            (404, true),
            (429, false),
            (500, false),
            (502, false),
            (503, false),
        ] {
            let failure = Failure::Status(StatusCode::from_u16(status).unwrap(), "words".to_owned());
            let error = failure.into_sink_error(&config);
            assert_eq!(matches!(error, SinkError::Misconfigured(_)), acts, "{error}");
            assert!(error.to_string().contains("words"), "{error}");
        }
    }

    #[test]
    fn words_are_found_in_what_stores_and_proxies_answer() {
        let described = br#"{"error": {"root_cause": [], "type": "a", "reason": "b"}, "status": 429}"#;
        assert_eq!(words(described), "a: b");
        assert_eq!(words(b"<html>\n too much\n</html>"), "<html> too much </html>");
        assert_eq!(words(b""), "");
    }
}
