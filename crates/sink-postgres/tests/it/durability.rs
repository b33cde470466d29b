//! Tables and servers that lose rows in a crash and keep the cursor: they are rejected unless the configuration allows them by name.

use sink::{AllowedRisks, SinkError, WriteOutcome};
use sink_postgres::{Partition, PayloadKind};

use crate::fixture::{Fixture, server};
use sink_testing::events::{deliver, plain};
use testkit::postgres::PostgresServer;

async fn expect_rejected(fixture: &Fixture, first: u64, name: &str) {
    let answer = fixture.sink().write(&plain(0, first, 2)).await;
    let wanted = format!("allow_unsafe = [\"{name}\"]");
    assert!(matches!(&answer, Err(SinkError::Misconfigured(reason)) if reason.contains(&wanted)), "{answer:?}");
}

#[tokio::test]
async fn unlogged_table_is_rejected_unless_allowed() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 2)).await;
    for table in ["events", "forebay_cursors", "forebay_revisions"] {
        server.psql(&format!("alter table {}.{table} set unlogged", fixture.schema));
        expect_rejected(&fixture, 3, "unlogged").await;
        server.psql(&format!("alter table {}.{table} set logged", fixture.schema));
    }
    deliver(&fixture.sink(), &plain(0, 3, 2)).await;
    server.psql(&format!("alter table {}.events set unlogged", fixture.schema));
    fixture.config.allowed = AllowedRisks::new(vec!["unlogged"]);
    let allowed = fixture.sink();
    assert_eq!(allowed.connect().await, Ok(()));
    let warning = allowed.warning().unwrap();
    assert!(warning.contains("UNLOGGED") && warning.contains("events"), "{warning}");
    assert_eq!(allowed.write(&plain(0, 5, 2)).await, Ok(WriteOutcome::Committed));
}

#[tokio::test]
async fn table_altered_to_unlogged_gets_no_rows() {
    let Some(server) = server() else { return };
    let fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 2)).await;
    server.psql(&format!("alter table {}.events set unlogged", fixture.schema));
    // Over the open connection.
    let answer = sink.write(&plain(0, 3, 2)).await;
    assert!(matches!(&answer, Err(SinkError::Misconfigured(reason)) if reason.contains("UNLOGGED")), "{answer:?}");
    assert_eq!(fixture.count(server).await, 2);
    server.psql(&format!("alter table {}.events set logged", fixture.schema));
    deliver(&sink, &plain(0, 3, 2)).await;
}

#[tokio::test]
async fn unlogged_partition_is_rejected() {
    let Some(server) = server() else { return };
    let mut fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    fixture.config.partition = Partition::Day;
    deliver(&fixture.sink(), &plain(0, 1, 2)).await;
    let schema = &fixture.schema;
    server.psql(&format!(
        "create unlogged table {schema}.old partition of {schema}.events for values from ('2001-01-01') to ('2001-02-01')"
    ));
    expect_rejected(&fixture, 3, "unlogged").await;
}

#[tokio::test]
async fn server_without_fsync_is_rejected_unless_allowed() {
    for (setting, name) in [("fsync=off", "fsync"), ("full_page_writes=off", "full_page_writes")] {
        let Some(server) = PostgresServer::start_with(&[setting, "shared_buffers=32MB"]) else { return };
        let mut fixture = Fixture::new(&server, PayloadKind::Jsonb).await;
        expect_rejected(&fixture, 1, name).await;
        fixture.config.allowed = AllowedRisks::new(vec![name]);
        deliver(&fixture.sink(), &plain(0, 1, 2)).await;
    }
    let Some(server) = PostgresServer::start_with(&["synchronous_commit=off", "shared_buffers=32MB"]) else { return };
    let fixture = Fixture::new(&server, PayloadKind::Jsonb).await;
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 2)).await;
    assert_eq!(sink.connect().await, Ok(()));
    assert!(sink.warning().unwrap().contains("synchronous_commit"));
}
