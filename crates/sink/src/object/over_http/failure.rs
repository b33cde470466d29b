//! What goes wrong with a store of objects over HTTP, in words for the person who must act.

use http::StatusCode;

use crate::http_client::HttpFailure;
use crate::{Reason, SinkError};

/// Why something wasn't done.
#[derive(Debug)]
pub(super) enum Failure {
    /// No answer came.
    Http(HttpFailure),
    /// The store answered with a refusal.
    Answered {
        /// What it was asked to do, as in "store object x".
        doing: String,
        status: StatusCode,
        /// The store's own words, cut short.
        said: String,
    },
    /// Its answer has not what the protocol says.
    Unclear { doing: String, missing: String },
    /// A name, key or URL has characters that a request can't have.
    Unsendable,
    /// Who asks isn't known there.
    Stranger { said: String },
    /// The object's name is taken by other bytes.
    Taken { object: String },
    /// What the store has isn't what was sent.
    Damaged { object: String },
    /// The object's name is taken and nothing stands under it.
    Unsettled { object: String },
    /// The events can't be read.
    Parts(Reason),
    /// A thread ended before it answered.
    Unanswered,
}

impl From<HttpFailure> for Failure {
    fn from(error: HttpFailure) -> Self {
        Self::Http(error)
    }
}

impl Failure {
    /// With the name of the store, and of what it keeps objects in.
    pub(super) fn into_sink_error(self, store: &str) -> SinkError {
        match self {
            Self::Http(failure) => http(&failure, store),
            Self::Answered { doing, status, said } => answered(store, &doing, status, &said),
            Self::Unclear { doing, missing } => misconfigured(format!(
                "{store}: what answered when asked to {doing} left out {missing}: look whether the URL is that of such a store"
            )),
            Self::Unsendable => misconfigured(format!(
                "{store} can't be asked: a name, key or URL of its configuration has characters that don't go in a request"
            )),
            Self::Stranger { said } => misconfigured(format!(
                "{store} doesn't accept who asks{}: look at the user and the key, and at the clock of this machine",
                said_in(&said)
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
            Self::Unanswered => unavailable(format!(
                "writing to {store} ended without an answer: Forebay is stopping, or has a bug, then please report it"
            )),
        }
    }
}

fn http(failure: &HttpFailure, store: &str) -> SinkError {
    let reason = format!("{store}: {failure}");
    if failure.is_misconfigured() { misconfigured(reason) } else { unavailable(reason) }
}

fn answered(store: &str, doing: &str, status: StatusCode, said: &str) -> SinkError {
    let advice = match status.as_u16() {
        403 => "its user may not do that: grant it, or configure another one",
        404 => "what objects are kept in is gone: it is made anew where that is allowed",
        301 | 302 | 307 | 308 => "it is in another place: configure the URL and region that the store has",
        408 | 409 | 422 | 425 | 429 | 498 | 499 | 503 => "it is tried again",
        413 => {
            "it is larger than the store takes, or over a quota: raise that, or set a lower max_bytes. It is tried again"
        }
        507 => "the store is full: make room",
        500..=599 => "look at its log. It is tried again",
        _ => "look whether the URL is that of such a store",
    };
    let words = format!("{store} answered {status} when asked to {doing}{}: {advice}", said_in(said));
    // A person ends these; everything else may pass.
    match status.as_u16() {
        408 | 404 | 409 | 412 | 413 | 422 | 425 | 429 | 498 | 499 | 500..=599 => unavailable(words),
        _ => misconfigured(words),
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
