//! Which clients may read, and which requests are rejected.

use super::{ask, field, get, page, post};
use crate::support::{Folder, Server, forebay, wait_until};

#[test]
fn invalid_parameters_are_rejected() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    for _ in 0..3 {
        post(&server, "/ingest/event/a", "", "1");
    }
    server.wait_delivered();
    let next = page(&server, "?limit=1").next.unwrap();
    let id = "00000000-0000-8000-8000-000000000000";
    let long_key = "k".repeat(257);
    for (target, code) in [
        ("?typ=a", "bad_request"),
        ("?type=a&type=a", "bad_request"),
        ("?type=", "bad_request"),
        ("?type=A%20b", "unknown_type"),
        ("?type=%ff", "bad_request"),
        ("?type=a'%20or%201=1--", "unknown_type"),
        ("?limit=0", "bad_request"),
        ("?limit=1001", "bad_request"),
        ("?limit=-1", "bad_request"),
        ("?limit=+1", "bad_request"),
        ("?limit=1e3", "bad_request"),
        ("?limit=99999999999999999999999", "bad_request"),
        ("?since=yesterday", "bad_request"),
        ("?until=2026-11-21", "bad_request"),
        ("?since=1M", "bad_request"),
        ("?since=-1h", "bad_request"),
        ("?since=1h&since=2026-11-21T00:00:00Z", "bad_request"),
        ("?until=1h", "bad_request"),
        ("?order=newest", "bad_request"),
        ("?order=desc&order=asc", "bad_request"),
        ("?key=k&order=desc", "bad_request"),
        ("?key=k&since=1h", "bad_request"),
        ("?key=", "bad_request"),
        (&format!("?key={long_key}"), "key"),
        ("?key=k&since=2026-11-21T00:00:00Z", "bad_request"),
        ("?key=k&until=2026-11-21T00:00:00Z", "bad_request"),
        ("?cursor=x", "cursor"),
        ("?cursor=%00", "cursor"),
        ("?cursor=0100", "cursor"),
        (&format!("?cursor={}", &next[2..]), "cursor"),
        (&format!("?cursor={next}00"), "cursor"),
        (&format!("?cursor={}", next.replacen(['1', '2', '3'], "4", 2)), "cursor"),
        (&format!("?type=a&cursor={next}"), "cursor"),
        (&format!("?key=k&cursor={next}"), "cursor"),
        (&format!("?since=2026-11-21T00:00:00Z&cursor={next}"), "cursor"),
        (&format!("?since=1h&cursor={next}"), "cursor"),
        (&format!("?order=desc&cursor={next}"), "cursor"),
        ("/x", "bad_request"),
        ("/00000000000080008000000000000000", "bad_request"),
        (&format!("/{id}/x"), "not_found"),
        (&format!("/%7B{id}%7D"), "bad_request"),
        (&format!("/{id}?position=1"), "bad_request"),
        (&format!("/{id}?position=0:0"), "bad_request"),
        (&format!("/{id}?position=0:18446744073709551616"), "bad_request"),
        (&format!("/{id}?limit=1"), "bad_request"),
        (&format!("/{id}?type=a"), "unknown_event"),
        (&format!("/{id}?position=65535:18446744073709551615"), "unknown_event"),
    ] {
        let (status, body) = get(&server, &format!("/events{target}"));
        assert!(status == 400 || status == 404, "{target}: {status} {body}");
        assert_eq!(field(&body, "code"), code, "{target}: {body}");
    }
    assert_eq!(ask(&server, "POST", "/events", "Content-Length: 0\r\n").0, 405);
    for query in ["", "&order=asc"] {
        assert_eq!(page(&server, &format!("?limit=1000&cursor={next}{query}")).events.len(), 2, "paging continues");
    }
    for name in 0..1_100 {
        assert_eq!(get(&server, &format!("/events?type=t{name}")).0, 200);
    }
    post(&server, "/ingest/event/one-more", "", "1");
}

#[test]
fn foreign_rows_spoil_no_page() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    assert_eq!(server.post("/ingest/event", "1").0, 200);
    server.wait_delivered();
    let store = rusqlite::Connection::open(folder.data().join("events.db")).unwrap();
    store
        .execute_batch(
            "insert into events values (x'00', 'event', '', 1, '2');
             insert into events values (randomblob(16), 'event', '', 1, '{');
             insert into events values (randomblob(16), 'event', '', 1, null);
             insert into events values (randomblob(16), 'event', '', 'x', '3');
             insert into events values (randomblob(16), 'event', '', 1, zeroblob(3000000));
             insert into events values ('text', 'event', '', 1, '4');
             insert into events values (randomblob(16), null, null, 9223372036854775807, '5');
             insert into events (rowid, id, type, source, received_at, payload)
                 values (9223372036854775807, randomblob(16), 'e', 's', -9223372036854775808, '6');
             insert into events (rowid, id, type, source, received_at, payload)
                 values (4611686018427387904, randomblob(16), 'e', 's', 0, '8');",
        )
        .unwrap();
    let all = page(&server, "");
    assert_eq!((all.payloads(), all.next.is_none()), (vec!["1", "null", "5", "8", "6"], true), "{all:?}");
    let first = page(&server, "?limit=3");
    let rest = page(&server, &format!("?cursor={}", first.next.as_ref().unwrap()));
    assert_eq!([first.payloads(), rest.payloads()].concat(), all.payloads());
    let first = page(&server, "?order=desc&limit=1");
    let rest = page(&server, &format!("?order=desc&cursor={}", first.next.as_ref().unwrap()));
    assert_eq!([first.payloads(), rest.payloads()].concat(), ["6", "8", "5", "null", "1"]);
}

#[test]
fn to_read_takes_a_token_that_allows_it() {
    let folder = Folder::new();
    let token = |name: &str, scope: &str| {
        let arguments = ["token", "new", name, "--scope", scope, "--source", "web", "--data"];
        let output = forebay().args(arguments).arg(folder.data()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    };
    let server = Server::start_open(&folder.data());
    assert_eq!(server.post("/ingest/event", "1").0, 200, "everybody may post");
    server.wait_delivered();
    assert_eq!(get(&server, "/events").0, 401, "but not read");
    let [poster, reader] = ["ingest", "read"].map(|scope| token(scope, scope));
    let asked =
        |method: &str, token: &str| ask(&server, method, "/events", &format!("Authorization: Bearer {token}\r\n")).0;
    assert!(wait_until(|| asked("GET", &reader) == 200), "the token is taken");
    assert_eq!(["fb_wrong", &poster].map(|token| asked("GET", token)), [401, 403]);
    assert_eq!([asked("HEAD", &reader), asked("OPTIONS", "fb_wrong")], [200, 204]);
    let headers = |token: &str| format!("Authorization: Bearer {token}\r\nIdempotency-Key: k\r\n");
    post(&server, "/ingest/event", &headers(&poster), "2");
    server.wait_delivered();
    let (status, body) = ask(&server, "GET", "/events?key=k", &headers(&reader));
    assert!(status == 200 && body.contains("\"source\":\"web\"") && body.contains("\"payload\":2"), "{body}");
    assert_eq!(server.stop("-TERM"), Some(0));
    let server = Server::start(&folder.data());
    assert_eq!(get(&server, "/events").0, 401, "on loopback, once there are tokens");
}
