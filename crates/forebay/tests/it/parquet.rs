//! Tables of Parquet from the request to DuckDB's results.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::duckdb;
use crate::fixture::Fixture;
use crate::support::exchange;

/// One shard gives one table.
fn config(settings: &str) -> String {
    format!(
        "[gateway]\nshards = 1\n[types.access]\ntime = \"/time\"\nroutes = [\"tables\"]\n[types.access.aggregate.hits]\n\
         window = \"1m\"\nlateness = \"1s\"\nmeasures = {{ requests = \"count\" }}\nroutes = [\"tables\"]\n\
         [sinks.tables]\nkind = \"directory\"\ncodec = \"parquet\"\npath = \"tables\"\nmax_age = \"1h\"\n{settings}"
    )
}

fn files(fixture: &Fixture, ending: &str) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(fixture.folder.data().join("tables")).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.to_str().unwrap().ends_with(ending)).collect()
}

fn columns(files: &[PathBuf]) -> Vec<(String, String)> {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let described = duckdb::rows(files, "select column_name, column_type from (describe events)");
    described.iter().map(|row| (text(row, "column_name"), text(row, "column_type"))).collect()
}

#[test]
fn table_has_envelopes_and_unchanged_payloads() {
    if !duckdb::is_there() {
        return;
    }
    let mut fixture = Fixture::new(&config("envelope = true\n"));
    let payloads = [
        "{\"time\":\"2026-11-21T13:00:10Z\",\"a\" :\t1.0e0}",
        "{\r\n  \"text\": \"naïve \\u0001 🜂\"\n}",
        "\"plain\"",
        "null",
        // It ends the first one's window.
        "{\"time\":\"2026-11-21T13:02:00.5Z\"}",
    ];
    let mut ids = Vec::new();
    for payload in payloads {
        let length = payload.len();
        let request = format!(
            "POST /ingest/event/access HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: application/json\r\n\
             Content-Length: {length}\r\n\r\n{payload}"
        );
        let (status, answer) = exchange(fixture.server().intake, &request);
        assert_eq!(status, 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        ids.push(answer["id"].clone());
    }
    fixture.server().wait("forebay_aggregate_results_total{", |results| results > 0);
    assert_eq!(fixture.server.take().unwrap().stop("-TERM"), Some(0));
    let tables = files(&fixture, ".parquet");
    assert_eq!(tables.len(), 1);
    let names_and_types = [
        ("id", "UUID"),
        ("type", "VARCHAR"),
        ("source", "VARCHAR"),
        ("received_at", "TIMESTAMP WITH TIME ZONE"),
        ("event_time", "TIMESTAMP WITH TIME ZONE"),
        ("revision", "BIGINT"),
        ("shard", "INTEGER"),
        ("sequence", "BIGINT"),
        ("payload", "JSON"),
    ];
    assert_eq!(columns(&tables), names_and_types.map(|(name, kind)| (name.to_owned(), kind.to_owned())));
    let query = "select id::text as id, type, source, epoch_us(event_time) as time, revision, shard, payload::text as payload \
                 from events where type = 'access' order by sequence";
    let times = [Some(1_795_266_010_000_000_i64), None, None, None, Some(1_795_266_120_500_000)];
    let expected: Vec<Value> = ids.iter().zip(payloads).zip(times).map(|((id, payload), time)| {
        json!({"id": id, "type": "access", "source": "", "time": time, "revision": null, "shard": 0, "payload": payload})
    }).collect();
    assert_eq!(duckdb::rows(&tables, query), expected);
    let results = duckdb::rows(
        &tables,
        "select revision, payload->>'/requests' as requests from events where type = 'access.hits'",
    );
    assert!(!results.is_empty() && results.iter().all(|row| row["revision"].is_u64()), "{results:?}");
    let stored = "select count(*) as rows, min(epoch_us(now() - received_at)) >= 0 as is_past from events";
    let manifest = std::fs::read_dir(fixture.folder.data().join("tables/_manifests")).unwrap().next();
    let manifest: Value = serde_json::from_slice(&std::fs::read(manifest.unwrap().unwrap().path()).unwrap()).unwrap();
    assert_eq!(duckdb::rows(&tables, stored), [json!({"rows": manifest["records"], "is_past": true})]);
    assert_eq!((&manifest["format"], &manifest["codec"]), (&json!(3), &json!("parquet")));
}

#[test]
fn readers_skip_row_groups_by_statistics() {
    if !duckdb::is_there() {
        return;
    }
    let mut fixture = Fixture::new(&config("envelope = true\n"));
    let filling = "x".repeat(400);
    for batch in 0..20 {
        let body: String =
            (0..1_000).map(|n| format!("{{\"n\":{},\"text\":\"{filling}\"}}\n", batch * 1_000 + n)).collect();
        assert_eq!(fixture.server().post("/ingest/batch/access", &body).0, 200);
    }
    assert_eq!(fixture.server.take().unwrap().stop("-TERM"), Some(0));
    let tables = files(&fixture, ".parquet");
    let sums = "select count(*) as rows, sum((payload->>'/n')::bigint) as sum, count(distinct id) as ids from events";
    assert_eq!(duckdb::rows(&tables, sums), [json!({"rows": 20_000, "sum": 199_990_000, "ids": 20_000})]);
    let groups = "select row_group_id as number, stats_min_value::bigint as least, stats_max_value::bigint as most, compression \
                  from parquet_metadata(FILES) where path_in_schema = 'sequence' order by 1";
    let groups = duckdb::rows(&tables, groups);
    assert!(groups.len() > 1, "{groups:?}");
    assert!(groups.iter().all(|group| group["compression"] == "ZSTD"), "{groups:?}");
    let ranges: Vec<_> =
        groups.iter().map(|group| (group["least"].as_u64().unwrap(), group["most"].as_u64().unwrap())).collect();
    assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{ranges:?}");
    let (first, last) = (ranges[0].0, ranges[ranges.len() - 1].1);
    let found = "select min(sequence) as first, max(sequence) as last from events";
    assert_eq!(duckdb::rows(&tables, found), [json!({"first": first, "last": last})]);
}

#[test]
fn table_of_payloads_has_one_column() {
    if !duckdb::is_there() {
        return;
    }
    let mut fixture = Fixture::new(&config(""));
    assert_eq!(fixture.server().post("/ingest/event/access", "[1,\r\n2]").0, 200);
    assert_eq!(fixture.server.take().unwrap().stop("-TERM"), Some(0));
    let tables = files(&fixture, ".parquet");
    assert_eq!(columns(&tables), [("payload".to_owned(), "JSON".to_owned())]);
    assert_eq!(duckdb::rows(&tables, "select payload::text as payload from events"), [json!({"payload": "[1,\r\n2]"})]);
}
