//! Values from a table.

use std::sync::Arc;

use super::{Made, unfit};
use crate::tables::Table;
use json::text;

/// Replaces a value by its entry in a table.
#[derive(Clone, Debug)]
pub(crate) struct Lookup {
    pub(crate) table: Arc<Table>,
    /// The result if the table has no entry, as JSON.
    pub(crate) otherwise: Option<String>,
}

impl Lookup {
    pub(super) fn apply(&self, json: &str, out: &mut String) -> Result<Made, String> {
        let Some(key) = text::scalar(json) else { return unfit(json, "a string, a number or a boolean") };
        match self.table.get(&key).or(self.otherwise.as_deref()) {
            Some(found) => {
                out.push_str(found);
                Ok(Made::Value)
            }
            None => Ok(Made::Nothing),
        }
    }
}
