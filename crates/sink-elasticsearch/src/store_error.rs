//! An error as the store describes it.

use serde::Deserialize;

use net::http_client::shortened;

/// An error as the store describes it.
#[derive(Debug, Deserialize)]
pub(super) struct StoreError {
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    reason: Option<String>,
    caused_by: Option<Box<StoreError>>,
}

impl StoreError {
    /// The store's words, the causes behind.
    pub(super) fn words(&self) -> String {
        let mut words = format!("{}: {}", self.kind, self.reason());
        if let Some(cause) = &self.caused_by {
            words = format!("{words}; caused by {}", cause.words());
        }
        shortened(&words)
    }

    /// Why, without the causes.
    pub(super) fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or_default()
    }
}
