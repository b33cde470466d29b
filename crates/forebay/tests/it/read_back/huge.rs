//! A table with so many rows that no page may read all of them.

use super::{page, post};
use crate::support::{Folder, Server};

const ROWS: u64 = 1_000_000;
/// Rows that a page reads at most, with some room.
const ROWS_OF_A_PAGE: u64 = 100_000;

#[test]
fn pages_of_huge_table_are_bounded() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    post(&server, "/ingest/event/rare", "", "\"first\"");
    server.wait_delivered();
    let store = rusqlite::Connection::open(folder.data().join("events.db")).unwrap();
    let insert = format!(
        "with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < {ROWS})
         insert into events select cast(printf('%016d', n) as blob), 'common', '', n, '{{\"n\":' || n || '}}' from numbers"
    );
    store.execute_batch(&insert).unwrap();
    post(&server, "/ingest/event/rare", "", "\"last\"");
    server.wait_delivered();
    let (mut found, mut pages, mut query) = (Vec::new(), 0, "?type=rare".to_owned());
    loop {
        let page = page(&server, &query);
        found.extend(page.payloads().iter().map(|payload| (*payload).to_owned()));
        pages += 1;
        let Some(next) = page.next else { break };
        assert!(pages < ROWS, "it ends");
        query = format!("?type=rare&cursor={next}");
        post(&server, "/ingest/event/other", "", "1");
    }
    assert_eq!(found, ["\"first\"", "\"last\""]);
    assert!(pages >= ROWS / ROWS_OF_A_PAGE, "{pages} pages: one reads too many rows");
    server.wait_delivered();
    assert_eq!(page(&server, "?type=common&limit=2").payloads(), ["{\"n\":1}", "{\"n\":2}"]);
}
