//! Rows that the server rejects, typed columns, and tables that don't fit.

use sink::{Sink, SinkError, TableName, WriteOutcome};
use sink_postgres::{Column, ColumnType, PayloadKind, RowConflictPolicy, TableLayout};

use crate::fixture::{Fixture, client, server};
use sink_testing::events::{batch, batch_named, id, plain};

/// Writes a batch of which some must be rejected, and then the rest. Returns the reasons of the rejections.
async fn refused(sink: &Sink, batch: &sink::Batch) -> Vec<(usize, String)> {
    let answer = sink.write(batch).await;
    let Ok(WriteOutcome::Rejected { refused }) = answer else { panic!("nothing was rejected: {answer:?}") };
    let indices: Vec<usize> = refused.iter().map(|refusal| refusal.index).collect();
    assert_eq!(sink.write(&batch.without(&indices)).await, Ok(WriteOutcome::Committed));
    refused.into_iter().map(|refusal| (refusal.index, refusal.reason.to_string())).collect()
}

#[tokio::test]
async fn invalid_jsonb_is_rejected_with_the_servers_message() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    let mut payloads = vec!["{\"a\": 1}"; 2_000];
    payloads[17] = r#"{"a": "\u0000"}"#;
    payloads[1_017] = r#"{"a": "\ud800"}"#;
    payloads[1_999] = "1e999999";
    let sink = fixture.sink();
    let refused = refused(&sink, &batch(0, 1, &payloads)).await;
    let indices: Vec<usize> = refused.iter().map(|(index, _)| *index).collect();
    assert_eq!(indices, [17, 1_017, 1_999]);
    assert!(refused[0].1.contains("\\u0000 cannot be converted to text"), "{}", refused[0].1);
    assert!(refused[1].1.contains("surrogate"), "{}", refused[1].1);
    assert!(refused[0].1.starts_with("unsupported Unicode escape"), "the cause comes first: {}", refused[0].1);
    assert_eq!(fixture.count(server).await, 1_997);
}

fn column(name: &str, kind: Option<ColumnType>) -> Column {
    Column { name: TableName::new(name).unwrap(), pointer: format!("/{name}").parse().unwrap(), kind }
}

#[tokio::test]
async fn columns_hold_values_of_each_type() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    let kinds = [
        ("b", ColumnType::Boolean),
        ("i2", ColumnType::Smallint),
        ("i4", ColumnType::Integer),
        ("i8", ColumnType::Bigint),
        ("f4", ColumnType::Real),
        ("f8", ColumnType::Double),
        ("n", ColumnType::Numeric),
        ("t", ColumnType::Text),
        ("v", ColumnType::Varchar),
        ("u", ColumnType::Uuid),
        ("at", ColumnType::Timestamptz),
        ("j", ColumnType::Json),
    ];
    let mut columns: Vec<Column> = kinds.iter().map(|(name, kind)| column(name, Some(*kind))).collect();
    columns.push(column("any", None));
    fixture.config.layout = TableLayout::Columns { columns, payload: None };
    let full = r#"{"b": true, "i2": -7.0, "i4": 7E+4, "i8": 90071992547409930e-1, "f4": 0.5, "f8": -1e-3, "n": -1234567890.00012e-2,
        "t": "na\u00efve", "v": {"x": [1]}, "u": "80808080-8080-8080-8080-808080808081", "at": "2026-11-22T10:00:00.5+01:00",
        "j": [1,  2], "any": {"k": "v"}}"#;
    let wrong = r#"{"i4": "many"}"#;
    let others = [r#"{"i2": 32768.0}"#, r#"{"i4": 1.5}"#, r#"{"i8": 9223372036854775808e0}"#, r#"{"i8": 1e400}"#];
    let numbers = ["0", "-0.0", "1e5", "0.00001", "99999999999999999999999999999999999999.5", "12340000", "1.5e-9"];
    let numbers: Vec<String> = numbers.iter().map(|number| format!("{{\"n\": {number}}}")).collect();
    let mut payloads = vec![full, "{}", r#"{"b": null}"#, wrong];
    payloads.extend(numbers.iter().map(String::as_str));
    payloads.extend(others);
    let refused = refused(&fixture.sink(), &batch(0, 1, &payloads)).await;
    let indices: Vec<usize> = refused.iter().map(|(index, _)| *index).collect();
    assert_eq!(indices, [3, 11, 12, 13, 14], "{refused:?}");
    assert!(refused[0].0 == 3 && refused[0].1.contains("column i4 is integer and can't hold \"many\""), "{refused:?}");
    let schema = &fixture.schema;
    let row = server.psql(&format!(
        "set timezone = 'UTC'; select b, i2, i4, i8, f4, f8, n, t, v, u, at, j, \"any\" from {schema}.events order by id limit 1"
    ));
    assert_eq!(
        row,
        "t|-7|70000|9007199254740993|0.5|-0.001|-12345678.9000012|naïve|{\"x\": [1]}|80808080-8080-8080-8080-808080808081|\
         2026-11-22 09:00:00.5+00|[1,  2]|{\"k\": \"v\"}"
    );
    assert_eq!(server.psql(&format!("select count(*) from {schema}.events where n is null")), "2");
    let stored = server.psql(&format!("select n from {schema}.events where n is not null order by id offset 1"));
    let expected = "0\n0.0\n100000\n0.00001\n99999999999999999999999999999999999999.5\n12340000\n0.0000000015";
    assert_eq!(stored, expected);
}

#[tokio::test]
async fn existing_table_keeps_types_and_constraints() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    fixture.config.layout =
        TableLayout::Columns { columns: vec![column("status", None)], payload: Some(PayloadKind::Jsonb) };
    let schema = fixture.schema.clone();
    let table = format!(
        "create table {schema}.events (note text default 'none', payload text, id uuid primary key, status integer
         check (status < 600), received_at timestamptz not null)"
    );
    client(server).await.batch_execute(&table).await.unwrap();
    let payloads = [r#"{"status": 200}"#, r#"{"status": 700}"#, r#"{"status": 1.5}"#, r#"{"status":  404}"#];
    let refused = refused(&fixture.sink(), &batch(0, 1, &payloads)).await;
    assert_eq!(refused.len(), 2);
    assert!(refused[0].1.contains("check constraint"), "{refused:?}");
    let rows = server.psql(&format!("select status, note, payload from {schema}.events order by id"));
    assert_eq!(rows, "200|none|{\"status\": 200}\n404|none|{\"status\":  404}");
}

#[tokio::test]
async fn row_failing_a_deferred_trigger_is_rejected() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    let sink = fixture.sink();
    sink.connect().await.unwrap();
    let trigger = format!(
        "create function {0}.late() returns trigger language plpgsql as $$ begin
         if new.payload->>'a' = 'late' then raise exception 'too late'; end if; return null; end $$;
         create constraint trigger late after insert on {0}.events deferrable initially deferred
         for each row execute function {0}.late()",
        fixture.schema
    );
    client(server).await.batch_execute(&trigger).await.unwrap();
    let refused = refused(&sink, &batch(0, 1, &["{}", r#"{"a": "late"}"#, "{}"])).await;
    assert!(refused.len() == 1 && refused[0].0 == 1 && refused[0].1.contains("too late"), "{refused:?}");
    assert_eq!(fixture.count(server).await, 2);
}

#[tokio::test]
async fn unfit_table_is_rejected_with_advice() {
    let Some(server) = server() else { return };
    for (columns, word) in [
        ("id uuid, type text, source text, received_at timestamptz, payload jsonb", "isn't unique"),
        ("id uuid primary key, type text, source text, received_at timestamptz", "column payload is missing"),
        (
            "id text primary key, type text, source text, received_at timestamptz, payload jsonb",
            "column id can't be text (it can be uuid)",
        ),
        (
            "id uuid primary key, type text, source integer, received_at timestamptz, payload jsonb",
            "column source can't be integer (it can be text or varchar)",
        ),
        (
            "id uuid primary key, type text, source text, received_at timestamp, payload bytea",
            "column received_at can't be timestamp without time zone (it can be timestamptz); column payload can't be bytea (it \
             can be text, json or jsonb)",
        ),
        (
            "id uuid primary key, type text, source text, received_at timestamptz, payload jsonb, x int not null",
            "column x",
        ),
    ] {
        let fixture = Fixture::new(server, PayloadKind::Jsonb).await;
        let table = format!("create table {}.events ({columns})", fixture.schema);
        client(server).await.batch_execute(&table).await.unwrap();
        let Err(SinkError::Misconfigured(reason)) = fixture.sink().connect().await else { panic!("{word}") };
        assert!(reason.contains(word), "{reason}");
    }
    let fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    let view = format!("create view {}.events as select 1", fixture.schema);
    client(server).await.batch_execute(&view).await.unwrap();
    let Err(SinkError::Misconfigured(reason)) = fixture.sink().write(&plain(0, 1, 1)).await else { panic!("a view") };
    assert!(reason.contains("plain table"), "{reason}");
}

#[tokio::test]
async fn user_without_create_right_writes_to_existing_tables() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    let schema = fixture.schema.clone();
    let role = format!("create role {schema} login; grant usage on schema {schema} to {schema}");
    client(server).await.batch_execute(&role).await.unwrap();
    let admin = fixture.sink();
    fixture.config.server = fixture.url.replace("postgres@", &format!("{schema}@")).parse().unwrap();
    let Err(SinkError::Misconfigured(reason)) = fixture.sink().connect().await else { panic!("it may not") };
    assert!(reason.contains("42501") && reason.contains("grant"), "{reason}");
    admin.connect().await.unwrap();
    let grant = format!("grant select, insert, update on all tables in schema {schema} to {schema}");
    client(server).await.batch_execute(&grant).await.unwrap();
    assert_eq!(fixture.sink().write(&plain(0, 1, 3)).await, Ok(WriteOutcome::Committed));
}

#[tokio::test]
async fn duplicate_is_recognised_although_columns_round() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    let columns = ["n", "at", "v", "f", "j"].map(|name| column(name, None));
    fixture.config.layout = TableLayout::Columns { columns: columns.into(), payload: None };
    let table = format!(
        "create table {}.events (id uuid primary key, received_at timestamptz(0), n numeric(10, 2), at timestamptz(0),
         v varchar(4), f real, j json)",
        fixture.schema
    );
    client(server).await.batch_execute(&table).await.unwrap();
    let full = r#"{"n": 1.23456, "at": "2026-11-22T10:00:00.6Z", "v": "abc    ", "f": 0.1, "j": [1,  2]}"#;
    let other = r#"{"n": 1.24456, "at": "2026-11-22T10:00:00.6Z", "v": "abc    ", "f": 0.1, "j": [1,  2]}"#;
    let sink = fixture.sink();
    assert_eq!(sink.write(&batch(0, 1, &[full])).await, Ok(WriteOutcome::Committed));
    // A duplicate arrives through another shard.
    let again = |first, payload| batch_named(1, first, &[payload], |_| id(0, 1));
    assert_eq!(sink.write(&again(1, full)).await, Ok(WriteOutcome::Committed));
    let refused = refused(&sink, &again(2, other)).await;
    assert!(refused.len() == 1 && refused[0].1.contains("its id exists"), "{refused:?}");
}

#[tokio::test]
async fn row_is_rejected_alone_with_a_custom_code() {
    let Some(server) = server() else { return };
    for code in ["ZZ001", "45000", "P0001", "38000"] {
        let fixture = Fixture::new(server, PayloadKind::Jsonb).await;
        let sink = fixture.sink();
        sink.connect().await.unwrap();
        let trigger = format!(
            "create function {0}.own() returns trigger language plpgsql as $$ begin
             if new.payload->>'a' = 'bad' then raise exception 'not this one' using errcode = '{code}'; end if; return new; end $$;
             create trigger own before insert on {0}.events for each row execute function {0}.own()",
            fixture.schema
        );
        client(server).await.batch_execute(&trigger).await.unwrap();
        let refused = refused(&sink, &batch(0, 1, &["{}", r#"{"a": "bad"}"#, "{}"])).await;
        assert!(
            refused.len() == 1 && refused[0].0 == 1 && refused[0].1.contains("not this one"),
            "{code}: {refused:?}"
        );
        assert_eq!(fixture.count(server).await, 2);
    }
}

#[tokio::test]
async fn broken_trigger_causes_no_dead_letters() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    let sink = fixture.sink();
    sink.connect().await.unwrap();
    let trigger = format!(
        "create function {0}.own() returns trigger language plpgsql as $$ begin
         insert into {0}.audit values (new.id); return new; end $$;
         create trigger own before insert on {0}.events for each row execute function {0}.own()",
        fixture.schema
    );
    client(server).await.batch_execute(&trigger).await.unwrap();
    let Err(SinkError::Misconfigured(reason)) = sink.write(&plain(0, 1, 3)).await else { panic!("no such table") };
    assert!(reason.contains("42P01"), "{reason}");
    let table = format!("create table {}.audit (id uuid)", fixture.schema);
    client(server).await.batch_execute(&table).await.unwrap();
    assert_eq!(sink.write(&plain(0, 1, 3)).await, Ok(WriteOutcome::Committed));
}

/// Writes payloads one batch after the other, all with one id and from different lanes, and returns the stored payload.
async fn stored_of(conflict: RowConflictPolicy, layout: TableLayout, batches: &[&[&str]]) -> Option<String> {
    let server = server()?;
    let mut fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    (fixture.config.conflict, fixture.config.layout) = (conflict, layout);
    let sink = fixture.sink();
    for (shard, payloads) in (0..).zip(batches) {
        let batch = batch_named(shard, 1, payloads, |_| id(0, 1));
        assert_eq!(sink.write(&batch).await, Ok(WriteOutcome::Committed), "{payloads:?}");
    }
    Some(server.psql(&format!("select payload from {}.events", fixture.schema)))
}

fn whole() -> TableLayout {
    TableLayout::Whole { payload: PayloadKind::Text }
}

#[tokio::test]
async fn ignore_keeps_and_overwrite_replaces_a_row() {
    let batches: [&[&str]; 3] = [&["1"], &["2", "3"], &["4", "5", "5"]];
    let Some(stored) = stored_of(RowConflictPolicy::Ignore, whole(), &batches).await else { return };
    assert_eq!(stored, "1");
    assert_eq!(stored_of(RowConflictPolicy::Overwrite, whole(), &batches).await.unwrap(), "5");
}

#[tokio::test]
async fn newest_rule_keeps_the_newest_row() {
    let newest = || RowConflictPolicy::Newest("/v".parse().unwrap());
    let batches: [&[&str]; 4] = [
        &[r#"{"v":null}"#],
        &[r#"{"v":9,"n":1}"#, r#"{"v":10,"n":2}"#, r#"{"v":10,"n":3}"#, r#"{"v":2}"#, r#"{}"#],
        &[r#"{"v":10,"n":4}"#, r#"{"v":9}"#],
        &[r#"{"n":5}"#, r#"{"v":null}"#],
    ];
    let Some(stored) = stored_of(newest(), whole(), &batches).await else { return };
    assert_eq!(stored, r#"{"v":10,"n":2}"#, "as numbers, and of equal ones the first");
    for kind in [Some(ColumnType::Integer), Some(ColumnType::Json), None] {
        let columns = || TableLayout::Columns { columns: vec![column("v", kind)], payload: Some(PayloadKind::Text) };
        assert_eq!(stored_of(newest(), columns(), &batches).await.unwrap(), stored, "{kind:?}");
    }
}

#[tokio::test]
async fn row_discarded_by_a_trigger_is_rejected() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    fixture.config.conflict = RowConflictPolicy::Overwrite;
    let sink = fixture.sink();
    sink.connect().await.unwrap();
    let trigger = format!(
        "create function {0}.out() returns trigger language plpgsql as $$ begin
         if new.payload->>'a' = 'out' then return null; end if; return new; end $$;
         create trigger out before insert on {0}.events for each row execute function {0}.out()",
        fixture.schema
    );
    client(server).await.batch_execute(&trigger).await.unwrap();
    let refused = refused(&sink, &batch(0, 1, &["{}", r#"{"a": "out"}"#])).await;
    assert!(
        refused.len() == 1
            && refused[0].1.contains("a trigger discarded the row: change the trigger, then replay the dead letter"),
        "{refused:?}"
    );
}
