//! Connections through PgBouncer: a transaction pool is detected before anything is set, and a session pool is used.
#![allow(clippy::print_stderr, reason = "it says why it is skipped")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use event::read::Lookup;
use sink::{SinkError, WriteOutcome};
use sink_postgres::{PayloadKind, Pooler};

use crate::fixture::{Fixture, server};
use sink_testing::events::{id, plain};
use testkit::ports::free_port;
use testkit::postgres::PostgresServer;
use testkit::proxy::Proxy;

/// A PgBouncer in front of a server.
struct Pool {
    folder: PathBuf,
    port: u16,
    url: String,
    process: Child,
}

impl Pool {
    /// `None`, and a message, where PgBouncer isn't installed.
    fn start(server: &PostgresServer, mode: &str, size: usize) -> Option<Self> {
        let program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].into_iter().find(|path| fs::exists(path).unwrap());
        let Some(program) = program else {
            testkit::skipped::report("PgBouncer isn't installed (apt install pgbouncer)");
            return None;
        };
        let port = free_port();
        let folder = std::env::temp_dir().join(format!("forebay-pool-{}-{port}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        let settings = folder.join("ini");
        let text = format!(
            "[databases]\n* = host={} port=5432 user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             auth_type = any\npool_mode = {mode}\ndefault_pool_size = {size}\nunix_socket_dir =\n",
            server.folder().display()
        );
        fs::write(&settings, text).unwrap();
        let mut pool = Command::new(program);
        if let Some((user, group)) = testkit::postgres::account() {
            pool.uid(user).gid(group);
        }
        let process = pool.arg("-q").arg(settings).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let pool = Self { folder, port, url: server.url_at(format_args!("127.0.0.1:{port}")), process };
        let deadline = Instant::now() + Duration::from_secs(20);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "PgBouncer doesn't listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(pool)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

async fn fixture_behind(server: &PostgresServer, pool: &Pool) -> Fixture {
    let mut fixture = Fixture::new(server, PayloadKind::Jsonb).await;
    fixture.proxy = Proxy::to(([127, 0, 0, 1], pool.port).into());
    fixture.config.server = server.url_at(fixture.proxy.address()).parse().unwrap();
    fixture
}

/// The settings that another client of the pool sees.
async fn settings(pool: &Pool) -> Vec<String> {
    let (client, connection) = tokio_postgres::connect(&pool.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let mut found = Vec::new();
    for name in ["statement_timeout", "idle_session_timeout"] {
        let rows = client.simple_query(&format!("select current_setting('{name}')")).await.unwrap();
        found.extend(rows.iter().filter_map(|row| match row {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        }));
    }
    found
}

#[tokio::test]
async fn transaction_pool_is_rejected_without_changing_settings() {
    let Some(server) = server() else { return };
    for (mode, size) in [("transaction", 1), ("transaction", 3), ("statement", 2)] {
        let Some(pool) = Pool::start(server, mode, size) else { return };
        let before = settings(&pool).await;
        let fixture = fixture_behind(server, &pool).await;
        let sink = fixture.sink();
        for _ in 0..3 {
            let Err(SinkError::Misconfigured(reason)) = sink.write(&plain(0, 1, 3)).await else { panic!("{mode}") };
            assert!(mode == "statement" || reason.contains("pool_mode = session"), "{reason}");
        }
        assert_eq!(settings(&pool).await, before, "{mode}");
        assert_eq!(fixture.count(server).await, 0);
    }
}

#[tokio::test]
async fn busy_transaction_pool_is_rejected() {
    let Some(server) = server() else { return };
    let Some(pool) = Pool::start(server, "transaction", 4) else { return };
    let others: Vec<_> = (0..6)
        .map(|_| {
            let url = pool.url.clone();
            tokio::spawn(async move {
                let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
                tokio::spawn(connection);
                loop {
                    client.simple_query("select pg_sleep(0.001)").await.unwrap();
                }
            })
        })
        .collect();
    let fixture = fixture_behind(server, &pool).await;
    for _ in 0..10 {
        let Err(SinkError::Misconfigured(reason)) = fixture.sink().write(&plain(0, 1, 3)).await else {
            panic!("accepted")
        };
        // If other clients hide the change of processes, a missing prepared statement reveals it.
        assert!(reason.contains("pool_mode = session") || reason.contains("prepared statement"), "{reason}");
    }
    others.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn session_pool_is_used() {
    let Some(server) = server() else { return };
    let mut detected = 0;
    for (size, pooler) in [(5, Pooler::Detect), (1, Pooler::Detect), (1, Pooler::Session)] {
        let Some(pool) = Pool::start(server, "session", size) else { return };
        let mut fixture = fixture_behind(server, &pool).await;
        fixture.config.connections.pooler = pooler;
        let sink = fixture.sink();
        assert_eq!(sink.write(&plain(0, 1, 3)).await, Ok(WriteOutcome::Committed));
        let answered = fixture.proxy.answered();
        if pooler == Pooler::Detect {
            detected = answered;
        } else {
            assert!(answered < detected, "{answered} bytes were received, {detected} if the kind of pool is detected");
        }
        assert_eq!(sink.write(&plain(0, 4, 3)).await, Ok(WriteOutcome::Committed));
        if size > 1 {
            for (first, found) in [(1, 3), (5, 2)] {
                let ids = (first..first + 3).map(|sequence| id(0, sequence)).collect();
                let lookup = Lookup { ids, bytes_max: 1 << 20, only_type: None };
                assert_eq!(sink.get(lookup).await.unwrap().events.len(), found);
            }
        }
        sink.close().await.unwrap();
        assert_eq!(fixture.count(server).await, 6);
    }
}

#[tokio::test]
async fn wrong_session_setting_for_a_pooler_mixes_nothing() {
    let Some(server) = server() else { return };
    let Some(pool) = Pool::start(server, "transaction", 3) else { return };
    let mut fixture = fixture_behind(server, &pool).await;
    fixture.config.connections.pooler = Pooler::Session;
    let sink = fixture.sink();
    let (client, connection) = tokio_postgres::connect(&pool.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let mut stored = 0;
    for first in (0..20).map(|n| n * 3 + 1) {
        // Another client takes the process that was used last.
        client.simple_query(if first % 2 == 0 { "begin" } else { "rollback; begin" }).await.unwrap();
        match sink.write(&plain(0, first, 3)).await {
            Ok(WriteOutcome::Committed) => stored += 3,
            Err(_) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(fixture.count(server).await, stored);
}
