//! What goes wrong with a store of objects over HTTP, in words for the person who must act.

use http::StatusCode;

use super::refusal::{Consequence, ServiceRefusal};
use net::http_client::HttpFailure;
use sink::{Reason, SinkError};

/// Why something wasn't done.
#[derive(Debug)]
pub enum ObjectStoreError {
    /// No answer came.
    Http(HttpFailure),
    /// The store answered with a refusal.
    Answered {
        /// What it was asked to do, as in "store object x".
        doing: String,
        /// The refusal.
        refusal: Box<ServiceRefusal>,
    },
    /// The service that gives tokens gave none.
    NoToken {
        /// The URL that was asked.
        url: String,
        /// What went wrong there.
        why: Box<Self>,
    },
    /// Its answer has not what the protocol says.
    Unclear {
        /// What it was asked to do.
        doing: String,
        /// What is missing.
        missing: String,
    },
    /// A name, key or URL has characters that a request can't have.
    Unsendable,
    /// The object's name is taken by other bytes.
    Taken {
        /// Its name.
        object: String,
    },
    /// What the store has isn't what was sent.
    Damaged {
        /// Its name.
        object: String,
    },
    /// The object's name is taken and nothing stands under it.
    Unsettled {
        /// Its name.
        object: String,
    },
    /// The events can't be read.
    Parts(Reason),
    /// A thread ended before it answered.
    Unanswered,
    /// What a gateway sends was cut or damaged on its way.
    Cut {
        /// Its name.
        object: String,
    },
    /// The store wants bytes again that pass through only once.
    Once {
        /// Its name.
        object: String,
    },
    /// What a writer says.
    Writer(SinkError),
}

impl From<HttpFailure> for ObjectStoreError {
    fn from(error: HttpFailure) -> Self {
        Self::Http(error)
    }
}

impl ObjectStoreError {
    /// With the name of the store, and of what it keeps objects in.
    #[must_use]
    pub fn into_sink_error(self, store: &str) -> SinkError {
        match self {
            Self::Http(failure) => http(&failure, store),
            Self::Answered { doing, refusal } => answered(store, &doing, &refusal),
            Self::NoToken { url, why } => no_token(store, &url, *why),
            Self::Unclear { doing, missing } => misconfigured(format!(
                "{store}: what answered when asked to {doing} left out {missing}: look whether the URL is that of such a store"
            )),
            Self::Unsendable => misconfigured(format!(
                "{store} can't be asked: a name, key or URL of its configuration has characters that don't go in a request"
            )),
            Self::Taken { object } => misconfigured(format!(
                "{store} has an object {object} already, and it isn't what the journal gives: it was changed, or the data \
                 directory is an older copy. Compare it with a copy of your own, then move it away: it is written anew"
            )),
            Self::Damaged { object } => misconfigured(format!(
                "{store} took object {object}, and holds other bytes than were sent: something between changes them. Look at what \
                 it holds, then remove it: it is written anew"
            )),
            Self::Unsettled { object } => unavailable(format!(
                "{store} has object {object} and hasn't: it is being written, or its servers don't agree yet. It is tried again"
            )),
            Self::Parts(reason) => SinkError::Unavailable(reason),
            Self::Cut { object } => unavailable(format!(
                "object {object} was cut or damaged on its way from the gateway to {store}: nothing of it was stored, and the \
                 gateway sends it again"
            )),
            Self::Once { object } => unavailable(format!(
                "{store} wants the bytes of object {object} a second time, and a writer doesn't keep them: the gateway sends them again"
            )),
            Self::Writer(error) => error,
            Self::Unanswered => unavailable(format!(
                "writing to {store} ended without an answer: Forebay is stopping, or has a bug, then please report it"
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
            "{store} doesn't accept who asks{}: look at the user and the key, and at the clock of this machine",
            said_in(said)
        ));
    }
    let Consequence { advice, is_final } = refusal.consequence();
    let words = format!("{store} answered {status} when asked to {doing}{}: {advice}", said_in(said));
    if is_final { misconfigured(words) } else { unavailable(words) }
}

fn no_token(store: &str, url: &str, why: ObjectStoreError) -> SinkError {
    const ADVICE: &str =
        "set `auth` to the URL of the service that gives tokens: it ends with /auth/v1.0, or with /v3 for Keystone";
    match why {
        ObjectStoreError::Answered { refusal, .. } if refusal.status != StatusCode::UNAUTHORIZED => {
            let (status, said) = (refusal.status, said_in(&refusal.said));
            let words = format!("{store}: {url} answered {status} when asked to give a token{said}");
            match status {
                StatusCode::FORBIDDEN => misconfigured(format!("{words}: look at the user and the key")),
                StatusCode::NOT_FOUND => misconfigured(format!("{words}: {ADVICE}")),
                _ if refusal.may_pass() => unavailable(format!("{words}: it is tried again")),
                _ => misconfigured(format!("{words}: {ADVICE}")),
            }
        }
        ObjectStoreError::Unclear { missing, .. } => {
            misconfigured(format!("{store}: {url} was asked for a token, and its answer left out {missing}: {ADVICE}"))
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
