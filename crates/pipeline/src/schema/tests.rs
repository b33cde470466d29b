//! Schemas on documents.

use super::*;

fn compile(text: &str) -> Result<Schema, Vec<InvalidSchema>> {
    Schema::compile("schema.json", text, &Options { documents: &Documents::new(), formats: true })
}

fn errors(schema: &str, payload: &str) -> Vec<String> {
    let payload = crate::json::check(payload.as_bytes()).unwrap();
    let found = compile(schema).unwrap().check(payload);
    let list = found.map_or_else(|violations| violations.list, |()| Vec::new());
    list.iter().map(|v| format!("{} {}: {v}", v.pointer, v.schema_pointer)).collect()
}

#[test]
fn a_document_is_told_all_its_errors() {
    let schema = r#"{"type":"object","required":["a","b"],"properties":{"a":{"type":"integer","maximum":5}},"additionalProperties":false}"#;
    assert_eq!(errors(schema, r#"{"a":1,"b":2}"#), ["/b /additionalProperties: expected no member \"b\", found 2"]);
}
