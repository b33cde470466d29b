//! Values from a table.

use std::sync::Arc;

use super::{ChangeResult, unfit};
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
    pub(super) fn apply(&self, json: &str, out: &mut String) -> Result<ChangeResult, String> {
        let Some(key) = text::scalar(json) else { return unfit(json, "a string, a number or a boolean") };
        match self.table.get(&key).or(self.otherwise.as_deref()) {
            Some(found) => {
                out.push_str(found);
                Ok(ChangeResult::Value)
            }
            None => Ok(ChangeResult::Nothing),
        }
    }
}
