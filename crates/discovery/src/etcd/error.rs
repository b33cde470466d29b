//! The errors of requests to etcd.

use http_client::HttpFailure;
use hyper::StatusCode;
use net::http_client::{self, Endpoint, shortened};
use serde_json::Value;

/// gRPC's code of "permission denied".
const PERMISSION_DENIED: i64 = 7;
/// gRPC's code of "failed precondition".
const FAILED_PRECONDITION: i64 = 9;

/// Why a request to etcd failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EtcdError {
    /// No complete answer. Another member may answer.
    #[error("{0}")]
    NoAnswer(String),
    /// A member rejected the request, as every other member would.
    #[error("{member} responded with {status}: {message}")]
    Refused {
        /// The member's URL.
        member: String,
        /// The answer's status.
        status: StatusCode,
        /// gRPC's code.
        code: Option<i64>,
        /// etcd's message.
        message: String,
    },
    /// The answer is not one of etcd's.
    #[error("{0} does not respond like etcd: correct the address, or run etcd 3.4 or later")]
    NotEtcd(String),
}

impl EtcdError {
    /// The error of an answer with a status other than 200.
    pub(super) fn of_answer(member: &Endpoint, status: StatusCode, body: &[u8]) -> Self {
        let json: Value = serde_json::from_slice(body).unwrap_or_default();
        // The error of a stream is nested in an object.
        let error = if json["error"].is_object() { &json["error"] } else { &json };
        let Some(message) = error["message"].as_str().map(shortened) else { return Self::NotEtcd(member.to_string()) };
        if status.is_server_error() {
            return Self::NoAnswer(format!("{member} responded with {status}: {message}"));
        }
        Self::Refused { member: member.to_string(), status, code: error["code"].as_i64(), message }
    }

    /// Whether a member rejected the request.
    pub(crate) const fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }

    /// Whether a new token may help. Checking a password is expensive for etcd, so a user without permission requests no new token.
    pub(super) fn may_be_of_token(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if *code != Some(PERMISSION_DENIED))
    }

    /// Whether etcd issues no token because authentication is disabled.
    pub(super) fn says_authentication_is_disabled(&self) -> bool {
        matches!(self, Self::Refused { code: Some(FAILED_PRECONDITION), .. })
    }
}

impl From<HttpFailure> for EtcdError {
    fn from(failure: HttpFailure) -> Self {
        Self::NoAnswer(failure.to_string())
    }
}
