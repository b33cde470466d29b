//! Why there is no response, as messages for the operator. None of them shows a path, a query or a header.

use std::error::Error;
use std::io;
use std::time::Duration;

use http::StatusCode;

/// A request without a response.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {kind}")]
pub struct HttpFailure {
    /// The server.
    pub place: String,
    /// What happened.
    pub kind: HttpFailureKind,
}

/// What happened to a request.
#[derive(Debug, thiserror::Error)]
pub enum HttpFailureKind {
    /// The URL is invalid.
    #[error("invalid URL")]
    Url,
    /// The connection failed: nothing was sent.
    #[error("{}", plain_cause(.0))]
    Connect(io::Error),
    /// The server's certificate isn't trusted: nothing was sent.
    #[error("{}", crate::tls::in_configuration(.0))]
    Untrusted(io::Error),
    /// The server accepted no connection for so long: nothing was sent.
    #[error("no connection within {0:?}: check the server and the network")]
    ConnectTimeout(Duration),
    /// The connection was closed before anything was sent.
    #[error("the server closed the connection: check the server and the network")]
    Closed,
    /// The connection broke, or the response isn't HTTP: the outcome is unknown.
    #[error("the connection broke: {0}. Check the server and the network")]
    Broken(String),
    /// No response arrived for so long: the outcome is unknown.
    #[error("no response for {0:?}: check the server and the network; no data is lost")]
    Silent(Duration),
    /// The body of the response arrives too slowly.
    #[error("the response arrives too slowly: check the server and the network; no data is lost")]
    TooSlow,
    /// The server changed the protocol instead of answering: the outcome is unknown.
    #[error(
        "the server responded with {0}, which does not complete a request: check that the URL names an HTTP server"
    )]
    Interim(StatusCode),
    /// The response has more bytes than allowed.
    #[error("the response has more than {0} bytes: check that the URL names the right server")]
    TooLong(usize),
}

impl HttpFailure {
    /// Whether the server certainly got nothing of the request.
    #[must_use]
    pub const fn is_unsent(&self) -> bool {
        use HttpFailureKind::{Closed, Connect, ConnectTimeout, Untrusted, Url};
        matches!(self.kind, Url | Connect(_) | Untrusted(_) | ConnectTimeout(_) | Closed)
    }

    /// The failure at `place`, which may name the server already: its URL appears once.
    #[must_use]
    pub fn at(&self, place: &str) -> String {
        if place.contains(&self.place) { format!("{place}: {}", self.kind) } else { format!("{place}: {self}") }
    }

    /// Whether it needs an operator.
    #[must_use]
    pub const fn is_misconfigured(&self) -> bool {
        matches!(self.kind, HttpFailureKind::Url | HttpFailureKind::Untrusted(_))
    }
}

/// The system's error for a failed connection, without its number.
fn plain_cause(error: &io::Error) -> String {
    let text = error.to_string();
    let Some(number) = error.raw_os_error() else { return format!("cannot connect: {text}") };
    let text = text.strip_suffix(&format!(" (os error {number})")).unwrap_or(&text);
    let mut characters = text.chars();
    let first = characters.next().map(|character| character.to_lowercase().to_string()).unwrap_or_default();
    first + characters.as_str()
}

impl From<hyper::Error> for HttpFailureKind {
    fn from(error: hyper::Error) -> Self {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        Self::Broken(format!("{error}{cause}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_names_the_server_once_and_one_cause() {
        let kind = HttpFailureKind::Connect(io::Error::from_raw_os_error(111));
        let failure = HttpFailure { place: "http://127.0.0.1:1".to_owned(), kind };
        assert_eq!(failure.to_string(), "http://127.0.0.1:1: connection refused");
        for (place, expected) in [
            (
                "Elasticsearch http://127.0.0.1:1, index events",
                "Elasticsearch http://127.0.0.1:1, index events: connection refused",
            ),
            ("the cluster", "the cluster: http://127.0.0.1:1: connection refused"),
        ] {
            assert_eq!(failure.at(place), expected);
        }
    }
}
