//! Pages while events are added, over restarts, and while the configuration changes.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Page, ask, field, get, page, post};
use crate::support::{Folder, Server, exchange, wait_until};

/// The ids of the store, in its order.
fn stored_ids(folder: &Folder) -> Vec<String> {
    let connection = rusqlite::Connection::open(folder.data().join("events.db")).unwrap();
    let mut statement = connection.prepare("select lower(hex(id)) from events order by rowid").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// The ids of the next page; the query continues after it.
fn next_page(server: &Server, query: &mut Option<String>, ids: &mut Vec<String>) {
    let Page { events, next } = page(server, query.as_deref().unwrap_or("?limit=7"));
    ids.extend(events.iter().map(|event| event.id.replace('-', "")));
    *query = next.map(|next| format!("?limit=11&cursor={next}"));
}

#[test]
fn paging_continues_while_events_are_added() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    post(&server, "/ingest/event/a", "", "0");
    server.wait_delivered();
    let done = AtomicBool::new(false);
    let mut ids = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..300 {
                assert_eq!(server.post("/ingest/batch/a", "1\n2\n3\n").0, 200, "{number}");
            }
            done.store(true, Ordering::Relaxed);
        });
        let mut query = "?limit=7".to_owned();
        let caught_up = wait_until(|| {
            let is_last = done.load(Ordering::Relaxed);
            let Page { events, next } = page(&server, &query);
            // A page at the end is requested again until there is more after it.
            if next.is_some() || is_last {
                ids.extend(events.iter().map(|event| event.id.replace('-', "")));
            }
            query = next.map_or(query.clone(), |next| format!("?limit=11&cursor={next}"));
            is_last
        });
        assert!(caught_up, "{} events are read", ids.len());
    });
    server.wait_delivered();
    let stored = stored_ids(&folder);
    assert_eq!(stored.len(), 901);
    assert_eq!(ids, stored[..ids.len()], "in the store's order, none twice and none left out");
    let (mut query, mut all) = (None, Vec::new());
    while query.is_some() || all.is_empty() {
        next_page(&server, &mut query, &mut all);
    }
    assert_eq!(all, stored);
}

#[test]
fn newest_first_pages_exclude_later_events() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let add = |payload: &str| {
        post(&server, "/ingest/event/a", "", payload);
        server.wait_delivered();
    };
    (0..7).for_each(|number| add(&number.to_string()));
    let old = "update events set received_at = received_at - 7200000000 where payload in ('0', '1')";
    rusqlite::Connection::open(folder.data().join("events.db")).unwrap().execute_batch(old).unwrap();
    for (query, expected) in [
        ("?order=desc", vec!["6", "5", "4", "3", "2", "1", "0"]),
        ("?order=desc&since=1h", vec!["6", "5", "4", "3", "2"]),
        ("?since=1h", vec!["2", "3", "4", "5", "6"]),
        ("?since=1h%2030m&type=a&order=asc", vec!["2", "3", "4", "5", "6"]),
        ("?since=0s", vec![]),
        ("?since=300000w&order=desc", vec!["6", "5", "4", "3", "2", "1", "0"]),
    ] {
        assert_eq!(page(&server, query).payloads(), expected, "{query}");
    }
    let query = "?order=desc&since=1h&limit=2";
    let first = page(&server, query);
    add("7");
    let second = page(&server, &format!("{query}&cursor={}", first.next.as_ref().unwrap()));
    let third = page(&server, &format!("{query}&cursor={}", second.next.as_ref().unwrap()));
    let read = [first.payloads(), second.payloads(), third.payloads()].concat();
    assert_eq!((read, &third.next), (vec!["6", "5", "4", "3", "2"], &None));
    // After the version and the check comes the time an hour before the first page.
    let since = |page: &Page| page.next.as_ref().unwrap()[18..34].to_owned();
    assert_eq!(since(&first), since(&second), "later pages begin where the first did");
    let other = |query: &str| get(&server, &format!("/events{query}&cursor={}", second.next.as_ref().unwrap()));
    for query in ["?order=desc&since=2h", "?order=desc", "?order=asc&since=1h", "?since=1h"] {
        let (status, body) = other(query);
        assert_eq!((status, field(&body, "code")), (400, "cursor".to_owned()), "{query}");
    }
}

#[test]
fn page_cursor_is_valid_after_restart() {
    let folder = Folder::new();
    let mut server = Server::start(&folder.data());
    let (mut query, mut ids) = (None, Vec::new());
    for signal in ["-KILL", "-TERM", "-KILL", "-TERM"] {
        assert_eq!(server.post("/ingest/batch/a", &"1\n".repeat(50)).0, 200);
        server.wait_delivered();
        next_page(&server, &mut query, &mut ids);
        server.stop(signal);
        server = Server::start(&folder.data());
    }
    // The rows get other numbers if some were removed and the table was rewritten.
    let connection = rusqlite::Connection::open(folder.data().join("events.db")).unwrap();
    connection
        .execute_batch(
            "create table other as select * from events where rowid > 3 order by rowid;
             delete from events; insert into events select * from other order by rowid; drop table other",
        )
        .unwrap();
    drop(connection);
    while query.is_some() {
        next_page(&server, &mut query, &mut ids);
    }
    let stored = stored_ids(&folder);
    assert_eq!((ids.len(), stored.len()), (200, 197));
    assert_eq!(ids[3..], stored, "from the event of the cursor on");
}

#[test]
fn page_has_at_most_eight_mebibytes() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let payload = format!("\"{}\"", "x".repeat(1024 * 1024 - 2));
    for _ in 0..10 {
        assert_eq!(server.post("/ingest/event", &payload).0, 200);
    }
    server.wait_delivered();
    let first = page(&server, "?limit=1000");
    let rest = page(&server, &format!("?limit=1000&cursor={}", first.next.as_ref().unwrap()));
    assert_eq!((first.events.len(), rest.events.len(), &rest.next), (7, 3, &None));
    assert!(first.payloads().into_iter().chain(rest.payloads()).all(|read| read == payload));
}

#[test]
fn readers_follow_the_configuration() {
    let folder = Folder::new();
    let configure = |types: &str| {
        let sinks = "[sinks.one]\nkind = \"sqlite\"\npath = \"one.db\"\n[sinks.two]\nkind = \"sqlite\"\npath = \"two.db\"\n\
                     [sinks.none]\nkind = \"null\"\n";
        folder.write("forebay.toml", types.to_owned() + sinks)
    };
    let file = configure(
        "[types.a]\nroutes = [\"none\", \"one\"]\n[types.b]\nroutes = [\"two\"]\n[types.c]\nroutes = [\"none\"]\n",
    );
    let server = Server::start_configured(&folder.data(), file.as_ref(), &folder.path("log"));
    let id = field(&post(&server, "/ingest/event/a", "", "1"), "id");
    post(&server, "/ingest/event/b", "", "2");
    server.wait_delivered();
    assert_eq!((page(&server, "?type=a").payloads(), page(&server, "?type=b").payloads()), (vec!["1"], vec!["2"]));
    assert_eq!(get(&server, "/events").0, 400, "there are two sinks");
    assert_eq!(page(&server, "?type=a&limit=1").next, None);
    assert_eq!(get(&server, &format!("/events/{id}")).0, 200, "an id is looked for in all of them");
    assert_eq!(get(&server, &format!("/events/{id}?type=a")).0, 200);
    assert_eq!(get(&server, &format!("/events/{id}?type=b")).0, 404);
    for (target, status, code) in [("/events?type=c", 404, "not_readable"), ("/events?type=d", 404, "unknown_type")] {
        let (answered, body) = get(&server, target);
        assert_eq!((answered, field(&body, "code")), (status, code.to_owned()));
    }
    let detail = field(&get(&server, "/events?type=c").1, "detail");
    assert!(detail.contains("sink none: sinks of its kind can't be read: name another one"), "{detail}");

    let admin = server.admin;
    let reload =
        || exchange(admin, &format!("POST /api/reload HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n")).0;
    configure("[types.a]\nroutes = [\"one\", \"two\"]\nread = \"two\"\n[types.b]\nroutes = [\"two\"]\n");
    assert_eq!(reload(), 200);
    assert_eq!(page(&server, "").payloads(), ["2"], "there is one sink now");
    assert_eq!(page(&server, "?type=a").payloads(), [""; 0]);
    post(&server, "/ingest/event/a", "", "3");
    server.wait_delivered();
    assert_eq!(page(&server, "?type=a").payloads(), ["3"]);
    assert_eq!(get(&server, &format!("/events/{id}")).0, 404);
    configure("[types.a]\nroutes = [\"none\"]\n");
    assert_eq!(reload(), 200);
    assert_eq!(get(&server, "/events?type=b").0, 404);
    assert_eq!(ask(&server, "GET", "/events", "").0, 404);
    configure("[types.a]\nroutes = [\"one\", \"two\"]\nread = \"one\"\n");
    assert_eq!(reload(), 200);
    assert_eq!(page(&server, "").payloads(), ["1", "3"]);
    assert_eq!(get(&server, &format!("/events/{id}")).0, 200);
}
