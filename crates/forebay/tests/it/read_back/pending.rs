//! Events that are known before their store has them.

use super::{field, get, page, post};
use crate::support::{Folder, Server, wait_until};

const KEYED: &str = "Idempotency-Key: k\r\n";

#[test]
fn pending_event_is_readable_once_stored() {
    let folder = Folder::new();
    // The store can't be opened if a directory has its name.
    std::fs::create_dir_all(folder.path("data/events.db")).unwrap();
    let log = folder.path("log");
    let mut server = Server::start_with(&folder.data(), &[], &log);
    let keyed = field(&post(&server, "/ingest/event", KEYED, "1"), "id");
    let assigned = post(&server, "/ingest/event", "", "2");
    let (assigned, position) = (field(&assigned, "id"), field(&assigned, "position"));
    post(&server, "/ingest/batch", "Idempotency-Key: b\r\n", "3\n4\n");
    let expect_pending = |server: &Server| {
        for target in [format!("/events/{keyed}"), format!("/events/{assigned}?position={position}")] {
            let (status, body) = get(server, &target);
            assert_eq!((status, &*field(&body, "pending")), (202, "[\"local\"]"), "{body}");
        }
        for key in ["k", "b"] {
            let (status, body) = get(server, &format!("/events?key={key}"));
            assert_eq!((status, &*body), (202, "{\"events\":[],\"pending\":[\"local\"]}"));
        }
        let far = format!("/events/{assigned}?position=0:99999");
        for target in [&format!("/events/{assigned}"), &far, &far.replace("0:", "9:"), "/events", "/events?key=other"] {
            let (status, body) = get(server, target);
            assert_eq!((status, &*field(&body, "code")), (503, "store_unavailable"), "{target}");
        }
    };
    expect_pending(&server);
    server.stop("-KILL");
    server = Server::start_with(&folder.data(), &[], &log);
    expect_pending(&server);
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(
        text.contains(
            "clients can't read events: correct the reason, or check the store  sink=local reason=\"SQLite file"
        ),
        "the operator gets the reason: {text}"
    );

    std::fs::remove_dir(folder.path("data/events.db")).unwrap();
    assert!(wait_until(|| get(&server, &format!("/events/{keyed}")).0 == 200), "the store is back");
    server.wait_delivered();
    assert_eq!(get(&server, &format!("/events/{assigned}?position={position}")).0, 200);
    assert_eq!(get(&server, &format!("/events/{assigned}")).0, 200);
    assert_eq!((page(&server, "?key=k").payloads(), page(&server, "?key=b").payloads()), (vec!["1"], vec!["3", "4"]));
    assert_eq!(page(&server, "?key=other").payloads(), [""; 0]);
    let unknown = "/events/00000000-0000-8000-8000-000000000000";
    let (status, body) = get(&server, unknown);
    assert_eq!((status, &*field(&body, "code")), (404, "unknown_event"));
    assert!(!body.contains("dead letter"), "{body}");
}

#[test]
fn dead_letter_is_reported_to_readers() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    assert_eq!(server.post("/ingest/event", "0").0, 200);
    server.wait_delivered();
    let store = rusqlite::Connection::open(folder.data().join("events.db")).unwrap();
    let refuse = "create trigger refuse before insert on events when new.payload <> '3' \
                  begin select raise(abort, 'no such ones'); end";
    store.execute_batch(refuse).unwrap();
    let keyed = field(&post(&server, "/ingest/event", KEYED, "1"), "id");
    let assigned = post(&server, "/ingest/event", "", "2");
    let (assigned, position) = (field(&assigned, "id"), field(&assigned, "position"));
    post(&server, "/ingest/batch", "Idempotency-Key: b\r\n", "3\n4\n");
    server.wait_delivered();
    let at = format!("{assigned}?position={position}");
    for target in [&keyed, &assigned, &at].map(|id| format!("/events/{id}")) {
        let (status, body) = get(&server, &target);
        assert_eq!((status, &*field(&body, "code")), (424, "dead_letter"), "{target}: {body}");
        assert!(body.contains("rejected_by_store") && field(&body, "dead").contains("\"sink\":\"local\""), "{body}");
        assert!(body.contains(if target.contains(&assigned) { &assigned } else { &keyed }), "{target}: {body}");
    }
    for (key, payloads) in [("k", vec![]), ("b", vec!["3"])] {
        let query = format!("?key={key}");
        assert_eq!(page(&server, &query).payloads(), payloads);
        let (_, body) = get(&server, &format!("/events{query}"));
        assert_eq!(field(&body, "dead").matches("rejected_by_store").count(), 1, "{body}");
    }
    assert!(!get(&server, "/events?key=other").1.contains("dead"));
    assert_eq!(get(&server, "/events/00000000-0000-8000-8000-000000000000").0, 404);
    store.execute_batch("drop trigger refuse").unwrap();
    let kept = field(&post(&server, "/ingest/event", "Idempotency-Key: l\r\n", "2"), "id");
    server.wait_delivered();
    store.execute("delete from events where payload = '2'", []).unwrap();
    let (status, body) = get(&server, &format!("/events/{kept}"));
    assert!(status == 404 && body.contains("deleted from the store"), "{status} {body}");
}
