//! An error as the store describes it.

use serde::Deserialize;

use net::http_client::shortened;

/// Errors with status 400 that speak of the store and not of the document: it may take the same document later.
pub(super) const OF_THE_STORE: [&str; 4] =
    ["index_closed_exception", "validation_exception", "invalid_index_name_exception", "cluster_block_exception"];
/// What such errors say where their type is one that documents have too.
pub(super) const WORDS_OF_THE_STORE: [&str; 4] = [
    "op_type of create are allowed in data streams",
    "no write index is defined",
    "pipeline with id",
    "this action would add",
];

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
        let mut words = format!("{}: {}", self.kind, self.reason.as_deref().unwrap_or_default());
        if let Some(cause) = &self.caused_by {
            words = format!("{words}; caused by {}", cause.words());
        }
        shortened(&words)
    }

    pub(super) fn is_of_the_store(&self) -> bool {
        let reason = self.reason.as_deref().unwrap_or_default();
        OF_THE_STORE.contains(&self.kind.as_str()) || WORDS_OF_THE_STORE.iter().any(|words| reason.contains(words))
    }
}
