//! Holds the check to JSONTestSuite, and to the table of `docs/reference/json.md` for the texts that the suite leaves open.

#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::collections::BTreeMap;
use std::path::Path;

use testkit::records::records;

use json::{RecordRejection, RejectionCode, check};

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const ACCEPTED: &str = "accepted";

/// `accepted`, or the code of the refusal.
fn verdict(text: &[u8]) -> &'static str {
    check(text).map_or_else(|error| RecordRejection::of_json(0, error).code.as_str(), |_| ACCEPTED)
}

/// The verdicts of the document: rows whose first cell is the name of a text.
fn documented() -> BTreeMap<String, String> {
    let document =
        std::fs::read_to_string(Path::new(WORKSPACE).join("docs/reference/json.md")).expect("the document is there");
    let cells = |row: &str| row.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect::<Vec<_>>();
    let rows = document.lines().map(cells).filter(|cells| cells.len() == 5 && cells[1].starts_with("i_"));
    rows.map(|cells| (cells[1].clone(), cells[2].clone())).collect()
}

/// The texts by name, or `None` if the data is not there.
fn texts() -> Option<BTreeMap<String, Vec<u8>>> {
    let folder = records("json_parsing")?;
    let text = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok((name, std::fs::read(path)?))
    };
    let texts: std::io::Result<_> = std::fs::read_dir(folder).and_then(|entries| entries.map(text).collect());
    Some(texts.expect("the texts can be read"))
}

#[test]
fn the_document_names_verdicts_that_exist() {
    let documented = documented();
    assert_eq!(documented.len(), 35);
    for (name, verdict) in documented {
        let known = RejectionCode::ALL.iter().any(|code| code.as_str() == verdict);
        assert!(known || verdict == ACCEPTED, "{name}: {verdict}");
    }
}

#[test]
fn each_text_gets_the_verdict_of_its_name() {
    let Some(texts) = texts() else { return };
    let mut counts = BTreeMap::new();
    for (name, text) in &texts {
        let result = check(text);
        match &name[..2] {
            "y_" => assert!(result.is_ok(), "{name}: {result:?}"),
            "n_" => assert!(result.as_ref().is_err_and(|error| error.offset <= text.len()), "{name}: {result:?}"),
            _ => {}
        }
        *counts.entry(name[..2].to_owned()).or_insert(0) += 1;
    }
    let expected = [("i_", 35), ("n_", 188), ("y_", 95)].map(|(kind, count)| (kind.to_owned(), count));
    assert_eq!(counts, BTreeMap::from(expected));
}

#[test]
fn each_open_text_gets_the_documented_verdict() {
    let Some(texts) = texts() else { return };
    let open = texts.iter().filter(|(name, _)| name.starts_with("i_"));
    let ours: BTreeMap<_, _> = open.map(|(name, text)| (name.clone(), verdict(text).to_owned())).collect();
    assert_eq!(ours, documented());
}

#[test]
fn texts_like_those_of_the_table_are_checked() {
    for (text, expected) in [
        (b"[1e9999]".as_slice(), ACCEPTED),
        (b"[-1e-9999]", ACCEPTED),
        (b"[123456789012345678901234567890123456789012]", ACCEPTED),
        (br#"{"a":1,"a":2}"#, ACCEPTED),
        (br#"["\u0000"]"#, ACCEPTED),
        (br#"{"\uDFAB":0}"#, "surrogate"),
        (br#"["\uDADB\u1233"]"#, "surrogate"),
        (b"\xff\xfe[\0]\0", "utf8"),
        (b"[\"\xe9\"]", "utf8"),
        (b"[\"\xc0\xae\"]", "utf8"),
        (b"\xef\xbb\xbf[]", "json"),
        (b"[1,]", "json"),
    ] {
        assert_eq!(verdict(text), expected, "{}", text.escape_ascii());
    }
    assert_eq!(verdict(("[".repeat(200) + &"]".repeat(200)).as_bytes()), "depth");
}
