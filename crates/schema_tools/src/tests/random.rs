//! Properties of every two schemas and of every sample.

use proptest::prelude::*;
use schema::testing::{schema, value};

use super::compile;
use crate::{Samples, differences};

proptest! {
    #[test]
    fn schemas_without_differences_reject_nothing_new(old in schema(), new in schema(), values in prop::collection::vec(value(), 8)) {
        let (before, after) = (compile(&old.to_string()), compile(&new.to_string()));
        if !differences(&before, &after).is_empty() {
            return Ok(());
        }
        for value in values {
            let text = value.to_string();
            prop_assert!(before.check(&text).is_err() || after.check(&text).is_ok(), "{old} takes {text}, {new} doesn't");
        }
    }

    #[test]
    fn schema_has_no_difference_from_itself(schema in schema()) {
        let schema = compile(&schema.to_string());
        let found = differences(&schema, &schema);
        prop_assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn inferred_schema_accepts_all_samples(values in prop::collection::vec(value(), 1..30), ranges in any::<bool>()) {
        let mut samples = Samples::default();
        values.iter().for_each(|value| samples.add(&value.to_string()));
        let schema = samples.schema(ranges);
        let compiled = compile(&schema);
        for value in values {
            prop_assert!(compiled.check(&value.to_string()).is_ok(), "{value} by {schema}");
        }
    }
}
