//! `/api/session`: the sender of a request as JSON, and what it may do.

use serde::Serialize;

/// The sender of a request.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SessionJson {
    /// The name of the token; `None` if none is needed.
    pub name: Option<String>,
    /// `read`, or `read` and `admin`.
    pub may: Vec<&'static str>,
    pub needs_token: bool,
    /// The half of a new session for the header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// When the session ends at the latest; `None` without a session.
    pub expires: Option<String>,
}
