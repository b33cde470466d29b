//! Errors of a store of objects over HTTP, with advice for the operator.

use http::StatusCode;

use super::refusal::{Consequence, ServiceRefusal};
use net::http_client::HttpFailure;
use sink::{Reason, SinkError};

/// Why a request failed.
#[derive(Debug)]
pub enum ObjectStoreError {
    /// There was no response.
    Http(HttpFailure),
    /// The store rejected the request.
    Answered {
        /// The request, as in "store object x".
        doing: String,
        /// The rejection.
        refusal: Box<ServiceRefusal>,
    },
    /// The token service returned no token.
    NoToken {
        /// The URL of the token service.
        url: String,
        /// What went wrong there.
        why: Box<Self>,
    },
    /// The response lacks something that the protocol requires.
    Unclear {
        /// The request.
        doing: String,
        /// What is missing.
        missing: String,
    },
    /// A name, key or URL has characters that a request can't have.
    Unsendable,
    /// An object with this name and other bytes exists.
    NameConflict {
        /// Its name.
        object: String,
    },
    /// The stored bytes differ from those that were sent.
    Damaged {
        /// Its name.
        object: String,
    },
    /// The object's name exists, but the store returns no object.
    Incomplete {
        /// Its name.
        object: String,
    },
    /// The events can't be read.
    Parts(Reason),
    /// A thread ended without a result.
    Unanswered,
    /// The gateway's upload was truncated or damaged in transit.
    Cut {
        /// Its name.
        object: String,
    },
    /// The store needs bytes again that can be sent only once.
    Once {
        /// Its name.
        object: String,
    },
    /// The error of a writer.
    Writer(SinkError),
}

impl From<HttpFailure> for ObjectStoreError {
    fn from(error: HttpFailure) -> Self {
        Self::Http(error)
    }
}

impl ObjectStoreError {
    /// The error for the sink, with the name of the store and the container.
    #[must_use]
    pub fn into_sink_error(self, store: &str) -> SinkError {
        match self {
            Self::Http(failure) => http(&failure, store),
            Self::Answered { doing, refusal } => answered(store, &doing, &refusal),
            Self::NoToken { url, why } => no_token(store, &url, *why),
            Self::Unclear { doing, missing } => misconfigured(format!(
                "{store}: the response to a request to {doing} lacks {missing}. Check that the URL is the one of this \
                 service"
            )),
            Self::Unsendable => misconfigured(format!(
                "{store}: a name, key or URL in the configuration has characters that HTTP requests can't contain. \
                 Remove them"
            )),
            Self::NameConflict { object } => misconfigured(format!(
                "{store} has another object {object}: it was changed, or the data directory is an older copy. Compare \
                 it with your copy, then move it away. Forebay writes it again"
            )),
            Self::Damaged { object } => misconfigured(format!(
                "{store} stored other bytes for object {object} than Forebay sent: a proxy may change them. Inspect \
                 the object, then remove it. Forebay writes it again"
            )),
            Self::Incomplete { object } => unavailable(format!(
                "{store} reports that object {object} exists, but doesn't return it: an upload is in progress, or its \
                 replicas disagree. Forebay retries"
            )),
            Self::Parts(reason) => SinkError::Unavailable(reason),
            Self::Cut { object } => unavailable(format!(
                "object {object} was truncated or damaged between the gateway and {store}. Nothing was stored, and the \
                 gateway resends it"
            )),
            Self::Once { object } => unavailable(format!(
                "{store} needs the bytes of object {object} a second time, and a writer doesn't keep them. The gateway \
                 resends them"
            )),
            Self::Writer(error) => error,
            Self::Unanswered => unavailable(format!(
                "the upload to {store} ended without a result. If Forebay isn't stopping, please report this as a bug"
            )),
        }
    }
}

fn http(failure: &HttpFailure, store: &str) -> SinkError {
    let reason = failure.at(store);
    if failure.is_misconfigured() { misconfigured(reason) } else { unavailable(reason) }
}

fn answered(store: &str, doing: &str, refusal: &ServiceRefusal) -> SinkError {
    let ServiceRefusal { status, said, .. } = refusal;
    if *status == StatusCode::UNAUTHORIZED {
        return misconfigured(format!(
            "{store} rejected the credentials{}: check the user, the key, and the clock of this machine",
            said_in(said)
        ));
    }
    let Consequence { advice, is_final } = refusal.consequence();
    let message = format!("{store} responded {status} to a request to {doing}{}: {advice}", said_in(said));
    if is_final { misconfigured(message) } else { unavailable(message) }
}

fn no_token(store: &str, url: &str, why: ObjectStoreError) -> SinkError {
    const ADVICE: &str =
        "set `auth` to the URL of the token service, which ends with /auth/v1.0, or with /v3 for Keystone";
    match why {
        ObjectStoreError::Answered { refusal, .. } if refusal.status != StatusCode::UNAUTHORIZED => {
            let (status, said) = (refusal.status, said_in(&refusal.said));
            let message = format!("{store}: {url} responded {status} to the request for a token{said}");
            match status {
                StatusCode::FORBIDDEN => misconfigured(format!("{message}: check the user and the key")),
                StatusCode::NOT_FOUND => misconfigured(format!("{message}: {ADVICE}")),
                _ if refusal.may_be_temporary() => unavailable(format!("{message}: Forebay retries")),
                _ => misconfigured(format!("{message}: {ADVICE}")),
            }
        }
        ObjectStoreError::Unclear { missing, .. } => {
            misconfigured(format!("{store}: the token response of {url} lacks {missing}: {ADVICE}"))
        }
        other => other.into_sink_error(store),
    }
}

fn said_in(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(" ({said})") }
}

fn misconfigured(reason: String) -> SinkError {
    SinkError::Misconfigured(reason.into())
}

fn unavailable(reason: String) -> SinkError {
    SinkError::Unavailable(reason.into())
}
