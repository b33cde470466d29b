//! Events that are deleted because of their age, while a reader has a cursor and clients post again.

use std::path::Path;

use rusqlite::Connection;

use super::{Page, field, get, page};
use crate::support::{Folder, Server, forebay, wait_until};

/// A server without a configuration, but for how long its store keeps events, and the store's file.
fn start(data: &Path, store: &Path) -> Server {
    let mut command = forebay();
    command.env("FOREBAY_SINKS_LOCAL_RETENTION", "1h").env("FOREBAY_SINKS_LOCAL_PATH", store);
    Server::start_by(command, data)
}

fn post(server: &Server, numbers: impl IntoIterator<Item = usize>) {
    for number in numbers {
        assert_eq!(server.post_with_key(&format!("k{number}"), &number.to_string()), 200);
    }
    server.wait_delivered();
}

fn stored(store: &Path) -> Vec<String> {
    let connection = Connection::open(store).unwrap();
    let mut select = connection.prepare("select payload from events order by rowid").unwrap();
    select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn retention_does_not_interrupt_readers() {
    let folder = Folder::new();
    let (data, store) = (folder.data(), folder.path("events.db"));
    let server = start(&data, &store);
    post(&server, 0..6);
    let Page { events, next } = page(&server, "?limit=2");
    server.stop("-KILL");
    // As if they had been accepted long ago.
    let age = "update events set received_at = received_at - 7200000000 where rowid <= 4";
    assert_eq!(Connection::open(&store).unwrap().execute(age, []), Ok(4));
    let server = start(&data, &store);
    assert!(wait_until(|| stored(&store) == ["4", "5"]), "{:?}", stored(&store));
    server.wait("forebay_retention_deleted_rows_total{sink=\"local\"}", |rows| rows == 4);
    assert_eq!(page(&server, &format!("?cursor={}", next.unwrap())).payloads(), ["4", "5"]);
    server.wait_delivered();
    let (status, body) = get(&server, &format!("/events/{}", events[0].id));
    assert_eq!((status, field(&body, "code")), (404, "unknown_event".to_owned()));

    // The deduplication window still has the ids, and the ledger counts the stored events.
    post(&server, [0, 4]);
    assert_eq!((stored(&store), server.metric("forebay_duplicates_total")), (vec!["4".to_owned(), "5".to_owned()], 2));
    assert_eq!(server.metric("forebay_events_stored_total{type=\"access\""), 6);
    server.stop("-TERM");
    // Without that window the store recognises only the events that it still has.
    let server = start(&folder.path("other"), &store);
    post(&server, [0, 4]);
    assert_eq!(stored(&store), ["4", "5", "0"]);
}
