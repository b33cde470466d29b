//! Properties of every schema and every document.

use proptest::prelude::*;
use serde_json::json;

use super::{compile, compile_with};
use crate::Documents;
use crate::testing::{schema, value};

proptest! {
    #[test]
    fn violation_points_into_the_document(schema in schema(), value in value()) {
        let (schema, text) = (compile(&schema.to_string()), value.to_string());
        if let Err(found) = schema.check(&text) {
            prop_assert!(!found.list.is_empty());
            for violation in found.list {
                prop_assert!(value.pointer(&violation.pointer).is_some(), "{violation:?} of {text}");
            }
        }
    }

    #[test]
    fn no_text_panics(schema in r#"[\[\]{}",:0-9a$e.#/ -]{0,30}"#, payload in r#"[\[\]{}",:0-9a\\ue.-]{0,30}"#) {
        let _ = compile_with(&schema, &Documents::new());
        // Not even a text that was never checked.
        let _ = compile(r#"{"properties": {"a": {"minimum": 1, "minLength": 1}}, "items": {"type": "integer"}, "uniqueItems": true}"#).check(&payload);
    }

    #[test]
    fn no_schema_panics(keyword in "(type|\\$ref|\\$id|properties|required|items|enum|pattern|minimum|multipleOf|allOf|if|contains|dependencies|\\$dynamicRef|\\$anchor)", value in value(), payload in value()) {
        if let Ok(schema) = compile_with(&json!({keyword: value}).to_string(), &Documents::new()) {
            let _ = schema.check(&payload.to_string());
        }
    }
}
