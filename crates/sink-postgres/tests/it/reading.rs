//! Pages of tables: what a reader gets while others write, in tables that record the insertion order and in those that
//! don't.

use std::collections::HashSet;

use event::read::{Bookmark, Filter, Page, Payload, Query, ReadError, ReadOrder, Wanted};
use event::{EventId, TypeName};
use sink::{Sink, TableName};
use sink_postgres::{Column, Partition, PayloadKind, RowConflictPolicy, TableLayout};
use tokio_postgres::Client;

use crate::fixture::{Fixture, client, server};
use sink_testing::events::{batch, batch_of, deliver, id};
use testkit::postgres::PostgresServer;

const DAY: i64 = 86_400_000_000;

fn all(limit: usize) -> Query {
    Query { wanted: Wanted::Stored(Filter::default()), after: None, limit, bytes_max: 1 << 20, only_type: None }
}

fn newest(limit: usize) -> Query {
    let filter = Filter { order: ReadOrder::NewestFirst, ..Filter::default() };
    Query { wanted: Wanted::Stored(filter), ..all(limit) }
}

/// The last byte of each id on a page.
fn numbers(page: &Page) -> Vec<u8> {
    page.events.iter().map(|event| event.id.0[15]).collect()
}

/// All events from a bookmark on, in pages, and the last page's query.
async fn read_on(sink: &Sink, query: &mut Query) -> Vec<u8> {
    let mut read = Vec::new();
    loop {
        let page = sink.read(query.clone()).await.unwrap();
        read.extend(numbers(&page));
        match page.next {
            Some(next) => query.after = Some(next),
            None => return read,
        }
    }
}

/// Removes the insertion-order columns, as in a table that was created by hand.
fn forget_order(server: &PostgresServer, schema: &str) {
    server.psql(&format!("alter table {schema}.events drop column stored_in, drop column stored_number"));
}

/// A reader that keeps the last bookmark and polls, as docs/reference/http-read.md describes.
#[derive(Default)]
struct Follower {
    bookmark: Option<Bookmark>,
    seen: HashSet<EventId>,
    /// The events after the bookmark at the last poll.
    pending: HashSet<EventId>,
}

impl Follower {
    /// Reads to the end; a repeated event must have been after the bookmark.
    async fn read_on(&mut self, sink: &Sink, limit: usize) {
        let known = std::mem::take(&mut self.pending);
        loop {
            let page = sink.read(Query { after: self.bookmark.clone(), ..all(limit) }).await.unwrap();
            for event in &page.events {
                assert!(self.seen.insert(event.id) || known.contains(&event.id), "{} was repeated", event.id);
                self.pending.insert(event.id);
            }
            let Some(next) = page.next else { return };
            self.bookmark = Some(next);
            self.pending.clear();
        }
    }
}

/// The same numbers at each run: an xorshift generator (Marsaglia, 2003).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Another program that writes rows, in transactions of any length.
struct Writer {
    client: Client,
    open: Option<Vec<EventId>>,
}

impl Writer {
    /// Begins, writes, commits or rolls back, at random. Returns the committed rows.
    async fn step(&mut self, dice: &mut Dice, fixture: &Fixture, number: &mut u64) -> Vec<EventId> {
        let Some(rows) = &mut self.open else {
            self.client.batch_execute("begin; select txid_current()").await.unwrap();
            self.open = Some(Vec::new());
            return Vec::new();
        };
        match dice.below(6) {
            0 => {
                self.client.batch_execute("rollback").await.unwrap();
                self.open = None;
                Vec::new()
            }
            1 | 2 => {
                self.client.batch_execute("commit").await.unwrap();
                self.open.take().unwrap()
            }
            _ => {
                *number += 1;
                let (id, length, days) = (id(9, *number), dice.below(900), dice.below(3));
                let more = if fixture.config.partition == Partition::Day { ", event_time" } else { "" };
                let time = if more.is_empty() { String::new() } else { format!(", now() - interval '{days} days'") };
                let sql = format!(
                    "insert into {}.events (id, type, source, received_at, payload{more}) \
                     values ('{id}', 'access', '', now(), '\"{}\"'{time})",
                    fixture.schema,
                    "x".repeat(usize::try_from(length).unwrap())
                );
                self.client.batch_execute(&sql).await.unwrap();
                rows.push(id);
                Vec::new()
            }
        }
    }
}

#[tokio::test]
async fn follower_gets_each_row_once_despite_late_commits() {
    let Some(server) = server() else { return };
    for (partition, seed) in [(Partition::None, 1), (Partition::None, 2), (Partition::Day, 3)] {
        let mut fixture = Fixture::new(server, PayloadKind::Text).await;
        fixture.config.partition = partition;
        let (sink, mut dice) = (fixture.past_the_proxy(server), Dice(0x9e37_79b9_7f4a_7c15 ^ seed));
        sink.connect().await.unwrap();
        let forgotten = client(server).await;
        forgotten.batch_execute("begin; select txid_current()").await.unwrap();
        // The visible rows are the same, with less work for the disk.
        let quick = "set synchronous_commit = off";
        let mut writers = Vec::new();
        for _ in 0..4 {
            let client = client(server).await;
            client.batch_execute(quick).await.unwrap();
            writers.push(Writer { client, open: None });
        }
        let (mut follower, mut committed, mut number) = (Follower::default(), HashSet::new(), 0);
        for step in 0..600 {
            let writer = usize::try_from(dice.below(4)).unwrap();
            committed.extend(writers[writer].step(&mut dice, &fixture, &mut number).await);
            if step % 7 == 0 {
                follower.read_on(&sink, usize::try_from(dice.below(9)).unwrap() + 1).await;
                assert_eq!(follower.seen, committed, "committed rows are visible immediately");
            }
        }
        assert!(committed.len() > 80, "seed {seed}: {}", committed.len());
    }
}

#[tokio::test]
async fn newest_first_omits_rows_committed_later() {
    let Some(server) = server() else { return };
    for (partition, seed) in [(Partition::None, 4), (Partition::Day, 5)] {
        let mut fixture = Fixture::new(server, PayloadKind::Text).await;
        fixture.config.partition = partition;
        let (sink, mut dice) = (fixture.past_the_proxy(server), Dice(0x9e37_79b9_7f4a_7c15 ^ seed));
        sink.connect().await.unwrap();
        let mut writers = Vec::new();
        for _ in 0..4 {
            let client = client(server).await;
            client.batch_execute("set synchronous_commit = off").await.unwrap();
            writers.push(Writer { client, open: None });
        }
        let (mut committed, mut number) = (Vec::new(), 0);
        for _ in 0..8 {
            let (before, mut read, mut query) = (committed.len(), Vec::new(), newest(1 + committed.len() / 8));
            loop {
                let page = sink.read(query.clone()).await.unwrap();
                read.extend(page.events.iter().map(|event| event.id));
                assert!(read.len() <= before, "seed {seed}: {} of {before}", read.len());
                let Some(next) = page.next else { break };
                query.after = Some(next);
                for _ in 0..5 {
                    let writer = usize::try_from(dice.below(4)).unwrap();
                    committed.extend(writers[writer].step(&mut dice, &fixture, &mut number).await);
                }
            }
            read.sort_unstable();
            let mut expected = committed[..before].to_vec();
            expected.sort_unstable();
            assert_eq!(read, expected, "seed {seed}");
            for _ in 0..20 {
                let writer = usize::try_from(dice.below(4)).unwrap();
                committed.extend(writers[writer].step(&mut dice, &fixture, &mut number).await);
            }
        }
        assert!(committed.len() > 40, "seed {seed}: {}", committed.len());
    }
}

#[tokio::test]
async fn rows_of_a_transaction_are_read_by_number() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, PayloadKind::Text).await;
    let (sink, schema) = (fixture.sink(), &fixture.schema);
    deliver(&sink, &batch(0, 1, &["1"; 60])).await;
    deliver(&sink, &batch(0, 61, &["1"; 60])).await;
    assert_eq!(read_on(&sink, &mut all(7)).await, (1..=120).collect::<Vec<u8>>());
    // The server's place for a row is unpredictable, but the numbers can be changed.
    server.psql(&format!("update {schema}.events set stored_number = 1000000 - stored_number"));
    let expected: Vec<u8> = (1..=60).rev().chain((61..=120).rev()).collect();
    assert_eq!(read_on(&sink, &mut all(7)).await, expected);
    server.psql(&format!("vacuum full {schema}.events"));
    assert_eq!(read_on(&sink, &mut all(50)).await, expected);
    let back: Vec<u8> = expected.into_iter().rev().collect();
    assert_eq!(read_on(&sink, &mut newest(7)).await, back);
}

#[tokio::test]
async fn follower_reads_a_replaced_row_again() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server, PayloadKind::Text).await;
    fixture.config.conflict = RowConflictPolicy::Overwrite;
    let sink = fixture.sink();
    deliver(&sink, &batch(0, 1, &["1", "2", "3", "4"])).await;
    let mut query = all(3);
    assert_eq!(read_on(&sink, &mut query).await, [1, 2, 3, 4]);
    let again = batch_of(0, 5, &["5", "6"], |record| sink::Record { id: id(0, record.sequence - 3), ..record });
    deliver(&sink, &again).await;
    let page = sink.read(query.clone()).await.unwrap();
    let read: Vec<_> = page.events.iter().map(|event| (event.id.0[15], event.payload.text())).collect();
    assert_eq!(read, [(4, &b"4"[..]), (2, b"5"), (3, b"6")]);
}

#[tokio::test]
async fn bookmark_survives_dropped_partitions_but_not_another_table() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server, PayloadKind::Text).await;
    fixture.config.partition = Partition::Day;
    let (sink, schema) = (fixture.sink(), &fixture.schema);
    deliver(&sink, &days()).await;
    let mut query = all(2);
    let page = sink.read(query.clone()).await.unwrap();
    assert_eq!(numbers(&page), [1, 2], "in the order of storing, over all partitions");
    query.after = page.next;
    server.psql(&format!("vacuum full {schema}.events; drop table {schema}.events_20251008"));
    assert_eq!(read_on(&sink, &mut query.clone()).await, [3, 4, 5]);
    server.psql(&format!("drop table {schema}.events; delete from {schema}.forebay_cursors"));
    deliver(&fixture.sink(), &days()).await;
    assert_eq!(sink.read(query).await, Err(ReadError::Bookmark));
}

#[tokio::test]
async fn restored_rows_are_read_by_ctid() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, PayloadKind::Text).await;
    let (sink, schema) = (fixture.sink(), &fixture.schema);
    deliver(&sink, &batch(0, 1, &["1", "2", "3", "4"])).await;
    server.psql(&format!("update {schema}.events set stored_in = stored_in + 1000000000 where payload in ('1', '2')"));
    assert_eq!(read_on(&sink, &mut all(3)).await.len(), 4, "with numbers that this server hasn't assigned");
    server.psql(&format!("update {schema}.events set stored_in = 0 where payload in ('1', '2')"));
    assert_eq!(
        read_on(&sink, &mut all(3)).await,
        [1, 2, 3, 4],
        "and as docs/guides/stores/postgres.md describes the fix"
    );
}

/// Events of several days, by their places in a partitioned table: the fourth in the default partition, then the third,
/// and so on.
fn days() -> sink::Batch {
    let after = [0, -DAY, -2 * DAY, 900 * DAY, 0, -DAY];
    batch_of(0, 1, &["{}"; 6], |record| {
        let after = after[usize::try_from(record.sequence - 1).unwrap()];
        sink::Record { event_time: Some(record.received_at + after), ..record }
    })
}

#[tokio::test]
async fn unordered_partitions_are_read_one_after_another() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server, PayloadKind::Text).await;
    fixture.config.partition = Partition::Day;
    let schema = &fixture.schema;
    fixture.sink().connect().await.unwrap();
    forget_order(server, schema);
    let sink = fixture.sink();
    deliver(&sink, &days()).await;
    assert_eq!(read_on(&sink, &mut all(2)).await, [4, 3, 2, 6, 1, 5], "the default partition, then the days");
    let refused = sink.read(newest(2)).await;
    assert!(
        matches!(&refused, Err(ReadError::NewestFirst(why)) if why.contains("no insertion-order columns")),
        "{refused:?}"
    );
    let mut query = all(2);
    for expected in [[4, 3], [2, 6]] {
        let page = sink.read(query.clone()).await.unwrap();
        assert_eq!(numbers(&page), expected);
        query.after = page.next;
    }
    let mut pending = query.clone();
    server.psql(&format!("vacuum full {schema}.events"));
    assert_eq!(read_on(&sink, &mut pending).await, [1, 5], "rewritten");
    server.psql(&format!("drop table {schema}.events_20251008"));
    assert_eq!(read_on(&sink, &mut query).await, [1, 5], "and gone");
    let ids = Query { wanted: Wanted::Ids { first: id(0, 4), last: id(0, 5) }, ..all(2) };
    assert_eq!(read_on(&sink, &mut ids.clone()).await, [4, 5]);
    // As docs/guides/stores/postgres.md describes how to add the columns.
    server.psql(&format!(
        "alter table {schema}.events add stored_in bigint not null default 0, add stored_number bigserial;
         alter table {schema}.events alter stored_in set default txid_current();
         create index on {schema}.events (stored_in, stored_number)"
    ));
    deliver(&sink, &batch(0, 7, &["1", "2"])).await;
    let mut read = read_on(&sink, &mut all(2)).await;
    assert_eq!(read.split_off(4), [7, 8], "later events are read last, although their day is an early one");
    assert_eq!(read_on(&sink, &mut newest(2)).await[..2], [8, 7]);
}

fn only(number: u8) -> Query {
    let id = id(0, u64::from(number));
    Query { wanted: Wanted::Ids { first: id, last: id }, ..all(1) }
}

/// A list of so many equal numbers.
fn repeated(number: &str, count: usize) -> String {
    format!("[{}]", vec![number; count].join(","))
}

/// `jsonb` keeps numbers in few bytes and writes them with all digits. The text of the last payload would be 12 GB, which no server can write.
#[tokio::test]
async fn events_enlarged_by_jsonb_show_their_size() {
    let Some(server) = server() else { return };
    let payloads = [
        "{}".to_owned(),
        repeated("1", 450_000),
        repeated("1e131071", 200),
        repeated("0e-16000", 3_000),
        repeated("1e301", 1_500),
        repeated("1e131071", 7),
        repeated("1e131071", 90_000),
        "{}".to_owned(),
    ];
    for is_ordered in [true, false] {
        let fixture = Fixture::new(server, PayloadKind::Jsonb).await;
        let sink = fixture.past_the_proxy(server);
        deliver(&sink, &batch(0, 1, &payloads.each_ref().map(String::as_str))).await;
        if !is_ordered {
            forget_order(server, &fixture.schema);
        }
        assert_eq!(read_on(&sink, &mut all(3)).await, [1, 2, 3, 4, 5, 6, 7, 8]);
        if is_ordered {
            assert_eq!(read_on(&sink, &mut newest(3)).await, [8, 7, 6, 5, 4, 3, 2, 1]);
        }
        let mut sizes = Vec::new();
        for number in 1..=8 {
            let page = sink.read(only(number)).await.unwrap();
            sizes.push(match &page.events[0].payload {
                Payload::Whole(text) => (true, text.len() as u64),
                Payload::Omitted { bytes } => (false, *bytes),
            });
        }
        let exact = [(0, 2), (4, 1_500 * 304), (5, 7 * 131_074), (7, 2)];
        assert!(exact.iter().all(|(at, bytes)| sizes[*at] == (true, *bytes)), "{sizes:?}");
        assert_eq!(sizes[1], (false, 1_350_000), "counted by the server");
        let estimated = [(2, 200 * 131_074), (3, 3_000 * 16_004), (6, 90_000 * 131_074)];
        let is_close = |(at, bytes): &(usize, u64)| !sizes[*at].0 && sizes[*at].1.abs_diff(*bytes) < bytes / 10;
        assert!(estimated.iter().all(is_close), "{sizes:?}");
    }
}

#[tokio::test]
async fn large_text_of_other_programs_shows_its_size() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, PayloadKind::Text).await;
    let sink = fixture.past_the_proxy(server);
    deliver(&sink, &batch(0, 1, &["1", "2"])).await;
    server.psql(&format!(
        "update {}.events set payload = repeat('x', 50000000), type = repeat('t', 1000000) where payload = '1'",
        fixture.schema
    ));
    let page = sink.read(all(10)).await.unwrap();
    let large = page.events.iter().find(|event| event.id.0[15] == 1).unwrap();
    assert_eq!((&large.payload, large.type_name.len()), (&Payload::Omitted { bytes: 50_000_000 }, 256));
    assert_eq!(page.events.len(), 2);
}

#[tokio::test]
async fn table_with_columns_and_payloads_is_read() {
    let Some(server) = server() else { return };
    for is_ordered in [true, false] {
        let mut fixture = Fixture::new(server, PayloadKind::Jsonb).await;
        let column = Column { name: TableName::new("type").unwrap(), pointer: "/n".parse().unwrap(), kind: None };
        fixture.config.layout = TableLayout::Columns { columns: vec![column], payload: Some(PayloadKind::Text) };
        let sink = fixture.past_the_proxy(server);
        deliver(&sink, &batch(0, 1, &[r#"{"n" :1}"#, r#"{"n": "two"}"#, "3"])).await;
        if !is_ordered {
            forget_order(server, &fixture.schema);
        }
        let of = |name: &str| {
            let type_name = Some(TypeName::new(name).unwrap());
            let filter = Filter { type_name, ..Filter::default() };
            Query { wanted: Wanted::Stored(filter), only_type: TypeName::new("order").ok(), ..all(2) }
        };
        let page = sink.read(of("order")).await.unwrap();
        let shown: Vec<_> = page.events.iter().map(|event| (event.type_name.as_str(), event.payload.text())).collect();
        assert_eq!(shown, [("order", &br#"{"n" :1}"#[..]), ("order", br#"{"n": "two"}"#)]);
        assert_eq!(read_on(&sink, &mut of("order")).await, [1, 2, 3]);
        assert_eq!(read_on(&sink, &mut of("other")).await, [0_u8; 0]);
        let newest = Query { only_type: TypeName::new("order").ok(), ..newest(2) };
        assert_eq!(sink.read(newest).await.is_ok(), is_ordered);
        let refused = sink.read(all(2)).await;
        assert!(
            matches!(&refused, Err(ReadError::Untyped(why)) if why.contains("give each type a sink")),
            "{refused:?}"
        );
    }
}
