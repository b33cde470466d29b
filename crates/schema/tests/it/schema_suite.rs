//! Runs the required part of the official JSON-Schema-Test-Suite, in five drafts. `cargo xtask services` fetches it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use schema::{Documents, Schema, SchemaOptions};
use serde_json::Value;
use serde_json::value::RawValue;

const DRAFTS: [(&str, &str); 5] = [
    ("draft4", "http://json-schema.org/draft-04/schema#"),
    ("draft6", "http://json-schema.org/draft-06/schema#"),
    ("draft7", "http://json-schema.org/draft-07/schema#"),
    ("draft2019-09", "https://json-schema.org/draft/2019-09/schema"),
    ("draft2020-12", "https://json-schema.org/draft/2020-12/schema"),
];

/// The base URL of the suite's remote documents.
const REMOTE: &str = "http://localhost:1234/";

/// Groups of tests that don't pass, each with its reason. `docs/internals/testing.md` lists them too.
const EXCEPTIONS: [(&str, &str, &str); 2] = [
    (
        "vocabulary.json",
        "schema that uses custom metaschema with with no validation vocabulary",
        "a custom `$schema` is rejected: which keywords count would depend on a further document",
    ),
    (
        "vocabulary.json",
        "ignore unrecognized optional vocabulary",
        "a custom `$schema` is rejected: which keywords count would depend on a further document",
    ),
];

#[derive(serde::Deserialize)]
struct Group {
    description: String,
    schema: Box<RawValue>,
    tests: Vec<Test>,
}

#[derive(serde::Deserialize)]
struct Test {
    description: String,
    data: Box<RawValue>,
    valid: bool,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target has a folder for it").join("json-schema-test-suite")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { files.extend(self::files(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

/// The suite's remote documents by the names that it gives them.
fn remotes(folder: &Path) -> Documents {
    let remotes = folder.join("remotes");
    let named = |path: PathBuf| {
        let name = path.strip_prefix(&remotes).ok()?.to_str()?.to_owned();
        Some((format!("{REMOTE}{name}"), fs::read_to_string(&path).ok()?))
    };
    let mut documents: Documents = files(&remotes).into_iter().filter_map(named).collect();
    for path in files(&folder.join("metaschemas")) {
        let text = fs::read_to_string(path).unwrap_or_default();
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        if let Some(id) = value.get("$id").or(value.get("id")).and_then(Value::as_str) {
            documents.insert(id.trim_end_matches('#').to_owned(), text);
        }
    }
    documents
}

/// The schemas of older drafts don't name their draft.
fn with_draft(schema: &str, draft: &str) -> String {
    if schema.contains("\"$schema\"") || !schema.trim_start().starts_with('{') {
        return schema.to_owned();
    }
    let rest = &schema.trim_start()[1..];
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    format!("{{\"$schema\":\"{draft}\"{comma}{rest}")
}

#[derive(Default)]
struct Tally {
    right: usize,
    wrong: Vec<(String, String, String)>,
}

fn run(path: &Path, draft: &str, documents: &Documents, tally: &mut Tally) {
    let file = path.file_name().expect("it was listed").to_string_lossy().into_owned();
    let text = fs::read_to_string(path).expect("the suite can be read");
    let groups: Vec<Group> = serde_json::from_str(&text).expect("it is a list of groups");
    for group in groups {
        let schema = with_draft(group.schema.get(), draft);
        let compiled = Schema::compile("", &schema, &SchemaOptions { documents, formats: false });
        for test in group.tests {
            let verdict = match &compiled {
                Ok(schema) => schema.check(test.data.get()).map_err(|violations| format!("{violations:?}")),
                Err(mistakes) => Err(format!("not compiled: {}", mistakes[0])),
            };
            if verdict.is_ok() == test.valid && compiled.is_ok() {
                tally.right += 1;
            } else {
                let what = format!("{}: {:?}", test.description, verdict.err());
                tally.wrong.push((file.clone(), group.description.clone(), what));
            }
        }
    }
}

#[test]
fn official_suite_passes() {
    let folder = folder();
    if !folder.join("tests").is_dir() {
        testkit::skipped::report(&format!(
            "the suite isn't in {}; `cargo xtask services` fetches it",
            folder.display()
        ));
        return;
    }
    let documents = remotes(&folder);
    let mut failures = BTreeMap::new();
    for (name, draft) in DRAFTS {
        let mut tally = Tally::default();
        let required = fs::read_dir(folder.join("tests").join(name)).expect("the draft is there");
        let mut required: Vec<_> = required.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
        required.sort();
        required.iter().for_each(|path| run(path, draft, &documents, &mut tally));
        let all = tally.right + tally.wrong.len();
        println!("{name}: {} of {all}", tally.right);
        assert!(tally.right * 100 >= all * 99 && all > 500, "{name}: {:#?}", tally.wrong);
        failures.insert(name, tally.wrong);
    }
    let is_known = |file: &str, group: &str| EXCEPTIONS.iter().any(|(known, of, _)| *known == file && *of == group);
    for (name, wrong) in &failures {
        let unknown: Vec<_> = wrong.iter().filter(|(file, group, _)| !is_known(file, group)).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:#?}");
    }
}
