//! Any expression, schema and steps on any JSON: nothing panics, and the result is JSON. An input is a line of rules
//! and a document.
#![allow(clippy::unwrap_used, reason = "a test fails loudly")]

use expression::Expression;
use json::ValueIndex;
use schema::{Documents, Schema, SchemaOptions, ValidationError};
use testkit::fuzz::{Corpus, run};
use transform::{Context, Scratch, StepSpec, Tables, Transform, TransformOutcome};

/// Pieces of JSON for documents, schemas and steps.
const JSON: &[&[u8]] = &[
    b"{\"a\":1,\"b\":[true,null]}",
    b"[]",
    b"{}",
    b"null",
    b"-0.0e-400",
    b"1e308",
    b"9223372036854775808",
    b"\"\\ud83d\\ude00\"",
    b"\"a\"",
    b"\"b\"",
    b"\"\"",
    b"\"2026-11-22T10:00:00Z\"",
    b",",
    b":",
    b"[",
    b"]",
    b"{",
    b"}",
    b"\n",
    b"\\u0000",
];

/// A check that takes more isn't compared.
const STEPS_MAX: usize = 1_000_000;

/// The rules and the document, if both are texts and the document is JSON.
fn parts(input: &[u8]) -> Option<(&str, &str)> {
    let split = input.iter().position(|byte| *byte == b'\n')?;
    let document = json::check(&input[split + 1..]).ok()?;
    Some((std::str::from_utf8(&input[..split]).ok()?, document))
}

#[test]
fn fuzz_expression() {
    let samples: &[&[u8]] = &[
        b"a == 1 && size(b) in [1, 2, 3] ? payload : {\"x\": b[0]}\n{\"a\":1,\"b\":[true,null]}",
        b"b.all(x, x > 2) || b.exists(x, has(x.c)) || !(a.startsWith(\"t\"))\n{\"a\":\"text\",\"b\":[{\"c\":1},4]}",
        b"b.map(x, x.filter(y, y != null)).size() % 2 - int(\"7\") * -1.5 / double(a)\n{\"a\":3,\"b\":[[1],[2,null]]}",
        b"a.matches(\"^[a-z]+$\") ? string(a) + \"x\" : \"\"\n{\"a\":\"abc\"}",
    ];
    let tokens: &[&[u8]] = &[
        b" && ",
        b" || ",
        b" == ",
        b" != ",
        b" in ",
        b" + ",
        b" - ",
        b" * ",
        b" / ",
        b" % ",
        b" ? ",
        b" : ",
        b"!",
        b"(",
        b")",
        b".all(x, ",
        b".exists_one(x, ",
        b".map(x, ",
        b".filter(x, ",
        b"size(",
        b"int(",
        b"double(",
        b"string(",
        b"bool(",
        b"has(",
        b"payload",
        b"a",
        b"b[",
        b".matches(\"",
        b"timestamp(",
        b"duration(\"1h\")",
        b"0x7fffffffffffffff",
        b"-9223372036854775808",
    ];
    let tokens = [tokens, JSON].concat();
    run("expression", Corpus { samples, tokens: &tokens }, |input| {
        let (rule, document) = parts(input)?;
        let expression: Expression = rule.parse().ok()?;
        let _ = expression.holds(document).map_err(|error| error.to_string());
        let outcome = expression.evaluate(document).map_err(|error| error.to_string());
        Some(outcome.map(|value| match value.to_json() {
            Ok(made) => {
                assert_eq!(json::check(made.as_bytes()), Ok(made.as_ref()), "{rule} on {document}");
                magnitude(&made)
            }
            Err(_) => u32::MAX,
        }))
    });
}

/// The magnitude of a length, which distinguishes outcomes well enough.
fn magnitude(text: &str) -> u32 {
    text.len().checked_ilog2().unwrap_or(0)
}

#[test]
fn fuzz_schema() {
    let samples: &[&[u8]] = &[
        b"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":0},\"b\":{\"items\":{\"enum\":[true,null]}}},\"required\":[\"a\"]}\n{\"a\":1,\"b\":[true,null]}",
        b"{\"$defs\":{\"n\":{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/n\"}]}},\"additionalProperties\":{\"$ref\":\"#/$defs/n\"}}\n{\"a\":null}",
        b"{\"allOf\":[{\"if\":{\"const\":1},\"then\":false},{\"not\":{\"pattern\":\"^a\"}}],\"unevaluatedProperties\":false}\n\"text\"",
        b"{\"patternProperties\":{\"^x\":{\"format\":\"date-time\"}},\"propertyNames\":{\"maxLength\":3},\"dependentRequired\":{\"a\":[\"b\"]}}\n{\"x\":\"2026-11-22T10:00:00Z\"}",
    ];
    let tokens: &[&[u8]] = &[
        b"\"type\":",
        b"\"$ref\":\"#\"",
        b"\"$ref\":\"#/$defs/n\"",
        b"\"anyOf\":[",
        b"\"oneOf\":[",
        b"\"not\":",
        b"\"items\":",
        b"\"prefixItems\":[",
        b"\"contains\":",
        b"\"uniqueItems\":true",
        b"\"multipleOf\":0.01",
        b"\"pattern\":\"(a|b)*$\"",
        b"\"format\":\"uuid\"",
        b"\"const\":",
        b"\"unevaluatedItems\":false",
        b"\"minContains\":2",
        b"\"dependentSchemas\":{",
        b"true",
        b"false",
        b"\"$anchor\":\"x\"",
        b"\"$id\":\"y\"",
    ];
    let tokens = [tokens, JSON].concat();
    let (documents, mut values) = (Documents::new(), ValueIndex::default());
    run("schema", Corpus { samples, tokens: &tokens }, |input| {
        let (text, document) = parts(input)?;
        let options = SchemaOptions { documents: &documents, formats: true };
        let schema = match Schema::compile("fuzz", text, &options) {
            Ok(schema) => schema,
            Err(mistakes) => return Some(Err(format!("{mistakes:?}"))),
        };
        let outcome = schema.check(document);
        let again = schema.check_within(values.read(document), &mut { STEPS_MAX });
        if !matches!(again, Err(ValidationError::OutOfSteps)) {
            assert_eq!(outcome.is_ok(), again.is_ok(), "{text} on {document}");
        }
        Some(Ok(outcome.map_err(|violations| (violations.list.len(), magnitude(&format!("{violations:?}"))))))
    });
}

#[test]
fn fuzz_steps() {
    let samples: &[&[u8]] = &[
        b"[{\"set\":\"/x\",\"to\":\"a == 1 ? b : null\"},{\"rename\":\"/a\",\"to\":\"c\"},{\"remove\":[\"/b/0\"]}]\n{\"a\":1,\"b\":[true,null]}",
        b"[{\"explode\":\"/b\"},{\"keep\":\"a != null\"},{\"set\":\"/n\",\"value\":{\"x\":[1.5,null]}}]\n{\"a\":1,\"b\":[{\"a\":2},{\"a\":3}]}",
        b"[{\"default\":\"/t\",\"value\":\"none\"},{\"flatten\":\"/b\"},{\"hash\":\"/a\"},{\"mask\":\"/t\"},{\"parse\":\"/t\",\"as\":\"json\"}]\n{\"a\":\"x\",\"b\":{\"c\":{\"d\":1}},\"t\":\"{}\"}",
    ];
    let tokens: &[&[u8]] = &[
        b"\"set\":\"/a\"",
        b"\"to\":\"payload\"",
        b"\"value\":",
        b"\"rename\":\"/a\"",
        b"\"move\":\"/a\"",
        b"\"remove\":\"/b\"",
        b"\"keep\":\"a\"",
        b"\"drop\":\"a == 1\"",
        b"\"explode\":\"/b\"",
        b"\"flatten\":\"/b\"",
        b"\"parse\":\"/a\"",
        b"\"as\":\"csv\"",
        b"\"as\":\"json\"",
        b"\"convert\":\"/a\"",
        b"\"hash\":\"/a\"",
        b"\"truncate\":\"/a\"",
        b"\"split\":\"/a\"",
        b"\"sample\":0.5",
        b"\"dedupe\":\"/a\"",
        b"\"/-\"",
        b"\"/b/0\"",
        b"\"\"",
        b"\"on_error\":\"skip\"",
    ];
    let tokens = [tokens, JSON].concat();
    let (tables, mut scratch) = (Tables::default(), Scratch::default());
    run("steps", Corpus { samples, tokens: &tokens }, |input| {
        let (text, document) = parts(input)?;
        let specs: Vec<StepSpec> = serde_json::from_str(text).ok()?;
        let transform = match Transform::compile(&specs, &tables) {
            Ok(transform) => transform,
            Err(mistakes) => return Some(Err(mistakes.iter().map(ToString::to_string).collect::<Vec<_>>())),
        };
        let mut windows = transform.windows(1);
        let is_json = |text: &str| assert_eq!(json::check(text.as_bytes()), Ok(text), "{input:?}");
        Some(match transform.run(document, &Context::UNKNOWN, &mut windows, &mut scratch) {
            Ok(TransformOutcome::Unchanged) => Ok(0),
            Ok(TransformOutcome::Changed(changed)) => {
                is_json(changed);
                Ok(magnitude(changed) + 1)
            }
            Ok(TransformOutcome::Filtered(_)) => Ok(100),
            Ok(TransformOutcome::Several(several)) => {
                several.events.iter().for_each(|part| is_json(&part.payload));
                Ok(101)
            }
            Err(error) => Err(vec![error.to_string()]),
        })
    });
}
