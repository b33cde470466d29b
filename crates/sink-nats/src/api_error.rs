//! An error of JetStream's API.

use serde::Deserialize;

/// What JetStream says went wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct ApiError {
    /// Which of its errors it is.
    pub(super) err_code: u32,
    pub(super) description: String,
}
