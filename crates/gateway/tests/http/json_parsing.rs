//! The texts of JSONTestSuite, posted: valid texts are accepted, and invalid ones are rejected with an offset.

use testkit::records::records;

use crate::fixture::Fixture;

#[test]
fn json_suite_gets_expected_status() {
    let Some(folder) = records("json_parsing") else { return };
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
