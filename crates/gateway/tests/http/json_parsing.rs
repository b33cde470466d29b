//! The texts of JSONTestSuite, posted: those that every reader must take are taken, those that it must refuse are
//! refused with the place.

use std::path::{Path, PathBuf};

use crate::fixture::Fixture;

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The folder of the texts, or `None` where it is not there.
fn folder() -> Option<PathBuf> {
    let data = std::env::var_os("FOREBAY_DATA");
    let data = data.map_or_else(|| Path::new(WORKSPACE).join("../shared/data"), PathBuf::from);
    let folder = data.join("json_parsing");
    if folder.is_dir() {
        return Some(folder);
    }
    testkit::skipped::report(&format!(
        "{} is not there; FOREBAY_DATA names the folder of the records",
        folder.display()
    ));
    None
}

#[test]
fn each_text_gets_the_answer_of_its_name() {
    let Some(folder) = folder() else { return };
    let fixture = Fixture::open();
    let (mut accepted, mut refused) = (0, 0);
    let mut client = fixture.connect();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read(&path).unwrap();
        client.post("/ingest/event", "", &text);
        let answer = client.answer();
        match &name[..2] {
            "y_" => {
                assert_eq!(answer.status, 200, "{name}");
                accepted += 1;
            }
            "n_" => {
                assert_eq!(answer.status, 400, "{name}");
                let offset = answer.json()["offset"].as_u64().unwrap();
                assert!(offset <= text.len() as u64, "{name}: {offset}");
                refused += 1;
            }
            _ => assert!(answer.status == 200 || answer.status == 400, "{name}"),
        }
    }
    assert_eq!((accepted, refused), (95, 188));
}
