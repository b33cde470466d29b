//! What failures mean for delivery, with advice for the operator.

use http::StatusCode;
use serde::Deserialize;

use super::config::ElasticsearchConfig;
use super::store_error::StoreError;
use net::http_client::{HttpFailure, HttpFailureKind, shortened};
use sink::{Mark, SinkError};

/// Why a call failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// There is no response.
    Http(HttpFailure),
    /// The store's error for a request as a whole, with its message.
    Status(StatusCode, String),
    /// None of the documents was accepted, because the store is overloaded.
    Overloaded(String),
    /// The store doesn't have the required form or settings.
    Misfit(String),
    /// It is another store than the batch's: the one with this store id.
    OtherStore(Mark),
    /// The store's response is invalid.
    Unexpected(String),
    /// The sink was closed during the call.
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

/// The store's message in the body of a response.
pub(super) fn message(body: &[u8]) -> String {
    match serde_json::from_slice::<Described>(body) {
        Ok(described) => described.error.message(),
        Err(_) => shortened(&String::from_utf8_lossy(body)),
    }
}

impl Failure {
    /// Whether the store is probably overloaded.
    pub(super) fn is_overload(&self) -> bool {
        match self {
            Self::Overloaded(_) => true,
            Self::Status(status, _) => matches!(status.as_u16(), 429 | 502 | 503 | 504),
            Self::Http(failure) => matches!(failure.kind, HttpFailureKind::Silent(_)),
            Self::Misfit(_) | Self::OtherStore(_) | Self::Unexpected(_) | Self::Closed => false,
        }
    }

    /// Whether the request was too large for the store, or for a proxy in front of it.
    pub(super) fn is_too_large(&self) -> bool {
        matches!(self, Self::Status(StatusCode::PAYLOAD_TOO_LARGE, _))
    }

    /// Whether the response was longer than its reader allows.
    pub(super) fn is_long_answer(&self) -> bool {
        matches!(self, Self::Http(HttpFailure { kind: HttpFailureKind::TooLong(_), .. }))
    }

    /// What happened, without the place.
    pub(super) fn what(&self) -> String {
        match self {
            Self::Http(failure) => failure.to_string(),
            Self::Status(status, message) if message.is_empty() => format!("it responded {status}"),
            Self::Status(status, message) => format!("it responded {status}: {message}"),
            Self::Overloaded(message) | Self::Misfit(message) | Self::Unexpected(message) => message.clone(),
            Self::OtherStore(mark) => SinkError::OtherStore(*mark).to_string(),
            Self::Closed => "Forebay cancelled the call, because the sink was closed".to_owned(),
        }
    }

    /// The advice for the operator, unless the error may be temporary.
    fn advice(&self) -> Option<&'static str> {
        let Self::Status(status, _) = self else { return None };
        match status.as_u16() {
            401 => Some("check that the user of `url`, or the key in `api_key`, may log in"),
            403 => Some("grant the user or key the privileges in docs/guides/stores/elasticsearch.md"),
            300..=399 => Some("set `url` to the target of the redirection"),
            404 | 405 => Some("check that it is an Elasticsearch or OpenSearch server, and the path in `url`"),
            400 => {
                Some("it rejects Forebay's request: check that docs/guides/stores/elasticsearch.md lists its version")
            }
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
            (None, Self::Misfit(_)) => SinkError::Misconfigured(format!("{place}: {what}").into()),
            _ => SinkError::Unavailable(format!("{place}: {what}").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_for_the_operator_differ_from_temporary_ones() {
        let config = super::super::tests::config();
        for (status, is_misconfigured) in [
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
            let failure = Failure::Status(StatusCode::from_u16(status).unwrap(), "message".to_owned());
            let error = failure.into_sink_error(&config);
            assert_eq!(matches!(error, SinkError::Misconfigured(_)), is_misconfigured, "{error}");
            assert!(error.to_string().contains("message"), "{error}");
        }
    }

    #[test]
    fn message_is_found_in_responses() {
        let described = br#"{"error": {"root_cause": [], "type": "a", "reason": "b"}, "status": 429}"#;
        assert_eq!(message(described), "a: b");
        assert_eq!(message(b"<html>\n too much\n</html>"), "<html> too much </html>");
        assert_eq!(message(b""), "");
    }
}
