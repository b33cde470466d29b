//! Web hooks of the real program: from one Forebay to another, with both killed.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::{Folder, Server, forebay, payloads};

/// The secret of the standard's own examples.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn start(folder: &Folder, url: &str) -> Server {
    let configuration = format!(
        "[types.\"*\"]\nroutes = [\"hook\"]\n[sinks.hook]\nkind = \"webhook\"\nurl = \"{url}\"\nsecrets = [\"{SECRET}\"]\n"
    );
    let configuration = folder.write("forebay.toml", configuration);
    Server::start_configured(&folder.data(), Path::new(&configuration), &folder.path("log"))
}

/// Posts an event whose key is its number.
fn post(server: &Server, number: usize) -> u16 {
    server.post_with_key(&format!("k{number}"), &format!("{{\"number\":\n{number}}}"))
}

#[test]
fn another_forebay_has_each_acknowledged_event_once_though_both_are_killed() {
    let (folder, other) = (Folder::new(), Folder::new());
    let mut receiver = Server::start_to_come_back(&other.data());
    let address = receiver.intake.to_string();
    let url = format!("http://{address}/ingest/event/{{type}}");
    let mut server = start(&folder, &url);
    let mut number = 0;
    for round in 0..3 {
        for _ in 0..100 {
            assert_eq!(post(&server, number), 200);
            number += 1;
        }
        // Whatever is on its way now is stored or not: nobody knows.
        drop(receiver);
        if round == 1 {
            drop(server);
            server = start(&folder, &url);
        }
        assert_eq!(post(&server, number), 200, "a receiver that is down keeps nobody from posting");
        number += 1;
        receiver = Server::start_on(&other.data(), &address);
        for again in (0..number).step_by(7) {
            assert_eq!(post(&server, again), 200);
        }
    }
    server.wait_delivered();
    receiver.wait_delivered();
    assert_eq!(server.metric("forebay_events_dead_total{"), 0);
    drop(receiver);
    let stored = payloads(&other.data());
    let expected: BTreeSet<String> = (0..number).map(|number| format!("{{\"number\":\n{number}}}")).collect();
    assert_eq!(stored.len(), number, "none is there twice");
    assert!(stored.into_iter().collect::<BTreeSet<_>>() == expected, "byte for byte");
    let log = std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(!log.contains("panicked") && !log.contains(SECRET), "{log}");
}

#[test]
fn what_the_receiver_refuses_is_a_dead_letter_in_its_words() {
    let (folder, other) = (Folder::new(), Folder::new());
    other.write("schema.json", r#"{"properties": {"number": {"type": "integer"}}}"#);
    let configuration =
        "[types.access]\nschema = \"schema.json\"\nroutes = [\"local\"]\n[sinks.local]\nkind = \"sqlite\"\n";
    let configuration = other.write("forebay.toml", configuration);
    let receiver = Server::start_configured(&other.data(), Path::new(&configuration), &other.path("log"));
    let server = start(&folder, &format!("http://{}/ingest/event/{{type}}", receiver.intake));
    for body in ["{\"number\": 1}", "{\"number\": \"one\"}", "{\"number\": 2}"] {
        assert_eq!(server.post("/ingest/event/access", body).0, 200);
    }
    server.wait_delivered();
    assert_eq!(server.metric("forebay_events_dead_total{"), 1);
    let mut list = forebay();
    let list = list.args(["dead", "list", "--admin", &server.admin.to_string(), "--data"]).arg(folder.data());
    let listed = String::from_utf8(list.output().unwrap().stdout).unwrap();
    assert!(listed.contains("422") && listed.contains("schema"), "{listed}");
    receiver.wait_delivered();
    assert_eq!(receiver.metric("forebay_events_stored_total{"), 2);
}
