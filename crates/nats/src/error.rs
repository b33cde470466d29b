//! Why a connection or a call failed.

use std::io;
use std::time::Duration;

/// Why a connection or a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server's error.
    #[error("{0}")]
    Server(String),
    /// There is no responder for the request.
    #[error("no client responds to the request's subject")]
    NoResponders,
    /// The connection couldn't be opened, or broke.
    #[error("{0}")]
    Connection(#[from] io::Error),
    /// No response for this long.
    #[error("no response within {0:?}")]
    NoResponse(Duration),
    /// The server or the credentials don't have the required form.
    #[error("{0}")]
    Misfit(String),
    /// The server's response is invalid.
    #[error("{0}")]
    Unexpected(&'static str),
}

/// The advice for a server's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// It may be temporary, or an operator may help.
    Wait(Option<&'static str>),
    /// The operator must fix it.
    Fix(&'static str),
}

impl Advice {
    /// The advice for an error that a server sends before it closes a connection, or instead of a response.
    pub fn of(said: &str) -> Self {
        let lower = said.to_lowercase();
        let has = |text: &str| lower.contains(text);
        if has("expired") || has("revoked") {
            Self::Fix("give its user new credentials")
        } else if has("authorization") || has("authentication") {
            Self::Fix("check that `url` or `credentials` has the account that the server requires")
        } else if has("tls required") {
            Self::Fix("begin `url` with tls://")
        } else if has("maximum payload") {
            Self::Wait(Some("the server's `max_payload` was lowered: Forebay reads it again"))
        } else {
            Self::Wait(None)
        }
    }
}
