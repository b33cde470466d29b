//! The values that the results of an aggregate can have, by the aggregate's settings.

use ::schema::{Documents, Schema, SchemaOptions};
use aggregate::{AggregateRules, result_schema};

/// The schema of an aggregate's results. Nothing is checked if it can't be compiled.
pub(crate) fn schema(rules: &AggregateRules) -> Option<Schema> {
    let options = SchemaOptions { documents: &Documents::default(), formats: false };
    Schema::compile(rules.name().as_str(), &result_schema(rules), &options).ok()
}
