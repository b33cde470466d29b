//! Examples of problem documents on pages: each has the members that the server writes.

use serde_json::Value;

use crate::error_code::ErrorCode;

const TYPE: &str = "urn:forebay:problem:";

#[test]
fn docs_examples_match_problem_documents() {
    let mut examples = 0;
    let mut folders = vec![testkit::generated::page_file("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let page = std::fs::read_to_string(&path).unwrap();
                examples += page.matches(TYPE).count();
                assert_eq!(faults(&page), Vec::<String>::new(), "{}", path.display());
            }
        }
    }
    assert!(examples >= 2);
}

#[test]
fn wrong_docs_example_is_found() {
    let right = r#"{"type": "urn:forebay:problem:json", "title": "Invalid JSON", "status": 400, "code": "json", "detail": "x"}"#;
    let page = |problem: &str| format!("text\n```json\n{problem}\n```\n");
    assert_eq!(faults(&page(right)), Vec::<String>::new());
    for (from, to) in [
        (r#""title": "Invalid JSON", "#, ""),
        ("Invalid JSON", "No JSON"),
        ("400", "422"),
        (r#""code": "json""#, r#""code": "jsn""#),
        (":json\"", ":none\""),
        (r#", "detail": "x""#, ""),
        (r#""detail""#, r#""details""#),
    ] {
        assert_eq!(faults(&page(&right.replace(from, to))).len(), 1, "{from}");
    }
    assert_eq!(faults(&page(r#"{"type": "urn:forebay:problem:json""#)).len(), 1, "it is not JSON");
}

/// The faults in the examples of a page.
fn faults(page: &str) -> Vec<String> {
    let blocks = page.split("```").skip(1).step_by(2);
    let examples =
        blocks.filter(|block| block.contains(TYPE)).filter_map(|block| block.find('{').map(|at| &block[at..]));
    examples.filter_map(|example| fault(example).err()).collect()
}

fn fault(example: &str) -> Result<(), String> {
    const MEMBERS: &[&str] =
        &["type", "title", "status", "code", "detail", "offset", "pointer", "errors", "step", "operation"];
    let problem: Value = serde_json::from_str(example).map_err(|error| format!("{error}: {example}"))?;
    let member = |name: &str| problem.get(name).ok_or_else(|| format!("there is no `{name}`: {example}"));
    let name = member("type")?.as_str().and_then(|uri| uri.strip_prefix(TYPE)).unwrap_or_default();
    let Some(code) = ErrorCode::ALL.into_iter().find(|code| code.as_str() == name) else {
        return Err(format!("there is no code `{name}`"));
    };
    let is_right = member("title")? == code.title()
        && member("status")? == code.status().as_u16()
        && member("code")? == name
        && member("detail")?.is_string();
    let other =
        problem.as_object().into_iter().flat_map(|members| members.keys()).find(|key| !MEMBERS.contains(&key.as_str()));
    match other {
        Some(other) => Err(format!("the server writes no `{other}`: {example}")),
        None if !is_right => Err(format!("title, status or code is another: {example}")),
        None => Ok(()),
    }
}
