//! One event that the server rejects with any error code, and a table that accepts none: the event is rejected alone,
//! and the table causes no dead letters.

use sink::{Batch, RejectedRecord, Sink, SinkError, WriteOutcome};
use sink_postgres::PayloadKind;

use crate::fixture::{Fixture, client, server};
use sink_testing::events::{batch, plain};
use testkit::postgres::PostgresServer;

const BAD: &str = r#"{"a": "bad"}"#;

/// A fixture with an existing table, and a trigger with this body for each row; `bad` is whether its event is [`BAD`].
async fn triggered(server: &PostgresServer, body: &str) -> (Fixture, Sink) {
    let fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    let sink = fixture.sink();
    sink.connect().await.unwrap();
    let trigger = format!(
        "create function {0}.own() returns trigger language plpgsql as $$
         declare bad boolean := new.payload->>'a' = 'bad'; begin {body} return new; end $$;
         create trigger own before insert on {0}.events for each row execute function {0}.own()",
        fixture.schema
    );
    client(server).await.batch_execute(&trigger.replace("{schema}", &fixture.schema)).await.unwrap();
    (fixture, sink)
}

fn raise(code: &str) -> String {
    format!("if bad then raise exception 'not this one' using errcode = '{code}', hint = 'try another'; end if;")
}

async fn rejected(sink: &Sink, batch: &Batch) -> Vec<RejectedRecord> {
    match sink.write(batch).await {
        Ok(WriteOutcome::Rejected { refused }) => refused,
        other => panic!("nothing was rejected: {other:?}"),
    }
}

async fn misconfigured(sink: &Sink, batch: &Batch) -> String {
    match sink.write(batch).await {
        Err(SinkError::Misconfigured(reason)) => reason.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn row_is_rejected_alone_with_any_error_code() {
    let Some(server) = server() else { return };
    for code in ["0A000", "XX000", "42501", "42P01", "42703", "F0000", "HV000", "26000", "3D000", "72000", "28000"] {
        let (fixture, sink) = triggered(server, &raise(code)).await;
        let whole = batch(0, 1, &["{}", BAD, "{}"]);
        let refused = rejected(&sink, &whole).await;
        assert_eq!(refused.iter().map(|refusal| refusal.index).collect::<Vec<_>>(), [1], "{code}: {refused:?}");
        let reason = &refused[0].reason;
        assert!(reason.contains("not this one") && reason.contains(code), "{reason}");
        assert!(reason.contains("hint: try another"), "{reason}");
        assert_eq!(sink.write(&whole.without(&[1])).await, Ok(WriteOutcome::Committed));
        assert_eq!(fixture.count(server).await, 2);
    }
}

#[tokio::test]
async fn temporary_error_rejects_no_row() {
    let Some(server) = server() else { return };
    for code in ["08006", "25006", "40001", "40P01", "53100", "55P03", "57014", "58030"] {
        let (fixture, sink) = triggered(server, &raise(code)).await;
        let whole = batch(0, 1, &["{}", BAD, "{}"]);
        for _ in 0..3 {
            assert!(sink.write(&whole).await.is_err(), "{code}");
        }
        client(server).await.batch_execute(&format!("drop trigger own on {}.events", fixture.schema)).await.unwrap();
        assert_eq!(sink.write(&whole).await, Ok(WriteOutcome::Committed), "{code}");
    }
}

#[tokio::test]
async fn lone_failing_row_is_judged_by_later_rows() {
    let Some(server) = server() else { return };
    for code in ["XX000", "P0001"] {
        let (fixture, sink) = triggered(server, &raise(code)).await;
        let reason = misconfigured(&sink, &batch(0, 1, &[BAD])).await;
        assert!(reason.contains("the only event") && reason.contains("hint: try another"), "{reason}");
        let reason = misconfigured(&sink, &batch(0, 1, &[BAD, BAD])).await;
        assert!(reason.contains("each of 2 events"), "{reason}");
        let more = batch(0, 1, &[BAD, BAD, "{}"]);
        let refused = rejected(&sink, &more).await;
        assert_eq!(refused.iter().map(|refusal| refusal.index).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(fixture.count(server).await, 0, "nothing is stored");
        assert_eq!(sink.write(&more.without(&[0, 1])).await, Ok(WriteOutcome::Committed));
    }
}

#[tokio::test]
async fn data_exception_rejects_a_lone_row() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    assert_eq!(rejected(&fixture.sink(), &batch(0, 1, &[r#"{"a": "\u0000"}"#])).await.len(), 1);
}

#[tokio::test]
async fn closed_table_causes_no_dead_letters() {
    let Some(server) = server() else { return };
    let everything = "perform nextval('{schema}.asked'); raise exception 'closed';";
    let (fixture, sink) = triggered(server, everything).await;
    let schema = &fixture.schema;
    server.psql(&format!("create sequence {schema}.asked"));
    for _ in 0..3 {
        let reason = misconfigured(&sink, &plain(0, 1, 1_000)).await;
        assert!(reason.contains("closed"), "{reason}");
    }
    let asked: u64 = server.psql(&format!("select last_value from {schema}.asked")).parse().unwrap();
    // Three times: a COPY, a statement with all rows, and 2, 4 and 8 probes.
    assert!(asked <= 3 * 2 + 14, "{asked} rows were tried");
    server.psql(&format!("drop trigger own on {schema}.events"));
    assert_eq!(sink.write(&plain(0, 1, 1_000)).await, Ok(WriteOutcome::Committed));
}

#[tokio::test]
async fn missing_privilege_causes_no_dead_letters() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    fixture.sink().connect().await.unwrap();
    let schema = fixture.schema.clone();
    server.psql(&format!(
        "create role {schema} login; grant usage on schema {schema} to {schema};
         grant select, insert, update on all tables in schema {schema} to {schema}"
    ));
    fixture.config.server = fixture.url.replace("postgres@", &format!("{schema}@")).parse().unwrap();
    let sink = fixture.sink();
    assert_eq!(sink.write(&plain(0, 1, 3)).await, Ok(WriteOutcome::Committed));
    server.psql(&format!("revoke insert on {schema}.events from {schema}"));
    let next = plain(0, 4, 20);
    for _ in 0..3 {
        let reason = misconfigured(&sink, &next).await;
        assert!(reason.contains("42501") && reason.contains("grant"), "{reason}");
    }
    server.psql(&format!("grant insert on {schema}.events to {schema}"));
    assert_eq!(sink.write(&next).await, Ok(WriteOutcome::Committed));
    // A policy that checks rows has the same code.
    server.psql(&format!(
        "alter table {schema}.events enable row level security;
         create policy p on {schema}.events to {schema} using (true) with check (payload->>'a' is distinct from 'bad')"
    ));
    let mixed = batch(0, 24, &["{}", BAD, "{}"]);
    let refused = rejected(&sink, &mixed).await;
    assert!(refused.len() == 1 && refused[0].index == 1 && refused[0].reason.contains("42501"), "{refused:?}");
    assert_eq!(sink.write(&mixed.without(&[1])).await, Ok(WriteOutcome::Committed));
}

#[tokio::test]
async fn mostly_bad_backlog_is_delivered() {
    let Some(server) = server() else { return };
    let (_fixture, sink) = triggered(server, &raise("XX000")).await;
    let mut payloads = vec![BAD; 1_000];
    (0..50).for_each(|at| payloads[at * 20 + 7] = "{}");
    let whole = batch(0, 1, &payloads);
    let refused = loop {
        match sink.write(&whole).await {
            Ok(WriteOutcome::Rejected { refused }) => break refused,
            Err(SinkError::Misconfigured(_)) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused.len(), 950);
}

#[tokio::test]
async fn row_referring_to_a_later_row_is_stored() {
    let Some(server) = server() else { return };
    let child =
        "if new.payload ? 'of' and not exists (select from {schema}.events e where e.payload->'n' = new.payload->'of')
        then raise exception 'no parent'; end if;";
    let (fixture, sink) = triggered(server, &format!("{} {child}", raise("XX000"))).await;
    let whole = batch(0, 1, &[r#"{"of": 3}"#, BAD, r#"{"n": 3}"#, "{}"]);
    let refused = rejected(&sink, &whole).await;
    assert_eq!(refused.iter().map(|refusal| refusal.index).collect::<Vec<_>>(), [1], "{refused:?}");
    let _ = fixture;
}

#[tokio::test]
async fn row_that_succeeds_on_retry_is_stored() {
    let Some(server) = server() else { return };
    // How often the row is tried in one attempt: by COPY, with all, in two or three halves, and once more after its
    // neighbours.
    for times in 1..12 {
        let body = format!("if bad and nextval('{{schema}}.tried') <= {times} then raise exception 'not yet'; end if;");
        let (fixture, sink) = triggered(server, &body).await;
        server.psql(&format!("create sequence {}.tried", fixture.schema));
        let whole = batch(0, 1, &["{}", "{}", BAD, "{}"]);
        let mut answers = Vec::new();
        while answers.len() < 10 && answers.last() != Some(&Ok(WriteOutcome::Committed)) {
            let answer = sink.write(&whole).await;
            // A trigger that rejects a row six times or more in one attempt can't be distinguished from one that always
            // does.
            if matches!(answer, Ok(WriteOutcome::Rejected { .. })) {
                assert!(times >= 5, "{times}: {answer:?}");
                break;
            }
            answers.push(answer);
        }
        if answers.last() == Some(&Ok(WriteOutcome::Committed)) {
            assert_eq!(fixture.count(server).await, 4);
        }
    }
}

#[tokio::test]
async fn table_with_a_row_limit_gets_small_transactions() {
    let Some(server) = server() else { return };
    let few = "if (select count(*) from {schema}.events e where e.stored_in = txid_current()) >= 20
        then raise exception 'too many at a time'; end if;";
    let (fixture, sink) = triggered(server, few).await;
    let whole = plain(0, 1, 100);
    for _ in 0..50 {
        match sink.write(&whole).await {
            Ok(WriteOutcome::Committed) => break,
            Err(SinkError::Unavailable(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(fixture.count(server).await, 100);
}

#[tokio::test]
async fn one_bad_event_among_ten_thousand_is_found() {
    let Some(server) = server() else { return };
    // A sequence counts the rows that were tried: a transaction that is rolled back doesn't take it back.
    let counted = format!("perform nextval('{{schema}}.tried'); {}", raise("XX000"));
    let (fixture, sink) = triggered(server, &counted).await;
    client(server).await.batch_execute(&format!("create sequence {}.tried", fixture.schema)).await.unwrap();
    let mut payloads = vec!["{}"; 10_000];
    payloads[6_789] = BAD;
    let whole = batch(0, 1, &payloads);
    let refused = rejected(&sink, &whole).await;
    assert_eq!(refused.iter().map(|refusal| refusal.index).collect::<Vec<_>>(), [6_789]);
    assert_eq!(sink.write(&whole.without(&[6_789])).await, Ok(WriteOutcome::Committed));
    let tried = format!("select last_value from {}.tried", fixture.schema);
    let tried: i64 = client(server).await.query_one(&tried, &[]).await.unwrap().get(0);
    assert!(tried < 60_000, "{tried} rows were tried for a batch of 10,000");
    assert_eq!(fixture.count(server).await, 9_999);
}
