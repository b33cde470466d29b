//! An error of JetStream's API.

use serde::Deserialize;

/// JetStream's error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct ApiError {
    /// The number of the error.
    pub(super) err_code: u32,
    pub(super) description: String,
}
