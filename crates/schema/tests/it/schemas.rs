//! Runs the table of examples in `docs/reference/json-schema.md`, and compares `docs/internals/testing.md` with the
//! list of exceptions from the official suite.

use schema::{Documents, Schema, SchemaOptions};

const PAGE: &str = include_str!("../../../../docs/reference/json-schema.md");
const TESTING: &str = include_str!("../../../../docs/internals/testing.md");
const SUITE: &str = include_str!("schema_suite.rs");

fn code(cell: &str) -> &str {
    cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`')).unwrap_or(cell)
}

/// The rows below a head of a page, split at the bars.
fn rows(page: &str, head: &str) -> Vec<Vec<String>> {
    let start = page.find(head).expect("the table is there");
    let rows = page[start..].lines().skip(2).take_while(|row| row.starts_with('|'));
    rows.map(|row| row.split(" | ").map(|cell| cell.trim_matches(['|', ' ']).to_owned()).collect()).collect()
}

fn verdict(schema: &str, payload: &str) -> String {
    let documents = Documents::new();
    let schema = Schema::compile("schema.json", schema, &SchemaOptions { documents: &documents, formats: true });
    let payload = json::check(payload.as_bytes()).expect("the example is JSON");
    match schema.expect("the example is a schema").check(payload) {
        Ok(()) => "accepted".to_owned(),
        Err(violations) => {
            let all = violations.list.iter().map(|v| format!("at `{}` by `{}`: {v}", v.pointer, v.schema_pointer));
            all.collect::<Vec<_>>().join("; ")
        }
    }
}

#[test]
fn docs_examples_give_documented_results() {
    let rows = rows(PAGE, "| schema | payload | verdict |");
    assert!(rows.len() >= 20, "{} examples", rows.len());
    for row in rows {
        assert_eq!(verdict(code(&row[0]), code(&row[1])), row[2], "{} on {}", row[0], row[1]);
    }
}

#[test]
fn docs_list_every_suite_exception() {
    let rows = rows(TESTING, "| drafts | file | group | why not |");
    let listed = SUITE.lines().filter(|line| line.trim() == "\"vocabulary.json\",").count();
    assert_eq!(rows.len(), listed);
    for row in rows {
        assert!(SUITE.contains(&format!("\"{}\",", row[2])), "{}", row[2]);
    }
}
