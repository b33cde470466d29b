//! The store's description of an error.

use serde::Deserialize;

use net::http_client::shortened;

/// The store's description of an error.
#[derive(Debug, Deserialize)]
pub(super) struct StoreError {
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    reason: Option<String>,
    caused_by: Option<Box<StoreError>>,
}

impl StoreError {
    /// The store's message, with its causes.
    pub(super) fn message(&self) -> String {
        let mut message = format!("{}: {}", self.kind, self.reason());
        if let Some(cause) = &self.caused_by {
            message = format!("{message}; caused by {}", cause.message());
        }
        shortened(&message)
    }

    /// Why, without the causes.
    pub(super) fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or_default()
    }
}
