//! The parameters of a request's query.

use std::collections::BTreeMap;

use admin_api::query::known_pairs;
use hyper::StatusCode;

use crate::admin::response::{AdminResponse, problem};

/// The parameters by name.
pub(super) struct Parameters<'q>(BTreeMap<&'q str, String>);

impl<'q> Parameters<'q> {
    /// Reads a query that may have parameters of these names.
    ///
    /// # Errors
    /// The answer to a query with others, or with one that isn't percent-encoded UTF-8.
    pub(super) fn read(query: Option<&'q str>, known: &[&str]) -> Result<Self, AdminResponse> {
        let mut read = BTreeMap::new();
        for pair in known_pairs(query.unwrap_or_default(), known) {
            let (name, value) = pair.map_err(wrong)?;
            read.insert(name, value);
        }
        Ok(Self(read))
    }

    /// A parameter that isn't empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

/// The answer to a query that can't be read.
pub(super) fn wrong(detail: String) -> AdminResponse {
    problem(StatusCode::BAD_REQUEST, "query", detail)
}
