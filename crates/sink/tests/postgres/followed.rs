//! A reader that goes on where its last page ended, while others write.

use std::collections::HashSet;
use std::time::Duration;

use event::EventId;
use event::limits::READ_BYTES_MAX;
use event::read::{Filter, Query, Wanted};
use sink::Sink;
use sink::postgres::PayloadKind;

use crate::events::{deliver, plain};
use crate::stand::{Stand, client, server};

/// Rows of one transaction, some six to a block: more blocks than two steps of a page look at.
const ROWS: usize = 4_000;
/// A part of what the server answers to any one question of a page.
const STRIDE: usize = 100;

/// A reader and what it has seen.
struct Follower {
    sink: Sink,
    query: Query,
    seen: HashSet<EventId>,
}

impl Follower {
    fn new(sink: Sink) -> Self {
        let wanted = Wanted::Stored(Filter::default());
        let query = Query { wanted, after: None, limit: ROWS, bytes_max: READ_BYTES_MAX };
        Self { sink, query, seen: HashSet::new() }
    }

    /// Reads a page, and keeps its `next`; `false` where there was none.
    async fn page(&mut self) -> bool {
        let page = self.sink.read(self.query.clone()).await.unwrap();
        self.seen.extend(page.events.iter().map(|event| event.id));
        let has_next = page.next.is_some();
        self.query.after = page.next.or(self.query.after.take());
        has_next
    }
}

#[tokio::test]
async fn a_transaction_that_commits_while_a_page_is_read_is_seen_whole() {
    let Some(server) = server() else { return };
    let stand = Stand::new(server, PayloadKind::Text).await;
    deliver(&stand.sink(), &plain(0, 1, 5)).await;
    let (table, writer) = (format!("{}.events", stand.schema), client(server).await);
    // Few rows in each block, all of one length: what a page has to answer is short, and the server goes on behind the last one.
    writer
        .batch_execute(&format!("alter table {table} set (fillfactor = 10, autovacuum_enabled = off)"))
        .await
        .unwrap();
    let insert = format!(
        "insert into {table} select gen_random_uuid(), 'access', '', now(), '\"' || repeat('x', 60) || '\"' \
         from generate_series(1, {ROWS})"
    );
    writer.batch_execute(&insert).await.unwrap();
    let blocks = server.psql(&format!("select pg_relation_size('{table}') / 8192"));
    assert!(blocks.parse::<u32>().unwrap() > 512, "two steps: {blocks} blocks");
    let mut follower = Follower::new(stand.sink());
    while follower.page().await {}
    let (mut stored, mut at) = (5 + ROWS, 1);
    // The commit comes after ever more of the page's answers, until it comes behind all of them.
    loop {
        writer.batch_execute(&format!("begin; {insert}")).await.unwrap();
        let begun = stand.proxy.answered();
        let frozen = stand.proxy.freeze_after(at);
        let page = tokio::spawn(async move {
            follower.page().await;
            follower
        });
        while stand.proxy.answered() < begun + at && !page.is_finished() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let is_over = page.is_finished();
        writer.batch_execute("commit").await.unwrap();
        drop(frozen);
        follower = page.await.unwrap();
        while follower.page().await {}
        stored += ROWS;
        assert_eq!(follower.seen.len(), stored, "committed behind {at} bytes of answers");
        if is_over {
            break;
        }
        at += STRIDE;
    }
}
