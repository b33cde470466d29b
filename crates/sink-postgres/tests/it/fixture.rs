//! A database for all tests of this process, and schemas on it, each with a separate table.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use event::EventId;
use sink::{AllowedRisks, Sink};
use sink_postgres::{Partition, PayloadKind, PoolLimits, Postgres, PostgresConfig, RowConflictPolicy, TableLayout};
use tokio_postgres::{Client, NoTls};

use testkit::postgres::PostgresServer;
use testkit::proxy::Proxy;

/// The server, if PostgreSQL is installed.
pub(crate) fn server() -> Option<&'static PostgresServer> {
    static SERVER: OnceLock<Option<PostgresServer>> = OnceLock::new();
    SERVER.get_or_init(PostgresServer::shared).as_ref()
}

/// A schema with a proxy before it.
pub(crate) struct Fixture {
    pub(crate) proxy: Proxy,
    /// The database through the proxy.
    pub(crate) url: String,
    pub(crate) schema: String,
    pub(crate) config: PostgresConfig,
}

impl Fixture {
    /// A separate schema, without any table.
    pub(crate) async fn new(server: &PostgresServer, payload: PayloadKind) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let schema = format!("s{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        client(server).await.batch_execute(&format!("create schema {schema}")).await.unwrap();
        let proxy = Proxy::start(&server.socket());
        let url = server.url_at(proxy.address());
        let config = PostgresConfig {
            server: url.parse().unwrap(),
            ca: None,
            table: format!("{schema}.events").parse().unwrap(),
            layout: TableLayout::Whole { payload },
            partition: Partition::None,
            conflict: RowConflictPolicy::Reject,
            timeout: Duration::from_secs(20),
            connections: PoolLimits::default(),
            allowed: AllowedRisks::default(),
        };
        Self { proxy, url, schema, config }
    }

    pub(crate) fn sink(&self) -> Sink {
        Sink::new(Postgres::new(self.config.clone()))
    }

    /// The same table without the proxy.
    pub(crate) fn past_the_proxy(&self, server: &PostgresServer) -> Sink {
        let server = server.url().parse().unwrap();
        Sink::new(Postgres::new(PostgresConfig { server, ..self.config.clone() }))
    }

    /// How many rows there are.
    pub(crate) async fn count(&self, server: &PostgresServer) -> u64 {
        let sql = format!("select to_regclass('{0}.events') is not null", self.schema);
        let client = client(server).await;
        if !client.query_one(&sql, &[]).await.unwrap().get::<_, bool>(0) {
            return 0;
        }
        let sql = format!("select count(*) from {}.events", self.schema);
        client.query_one(&sql, &[]).await.unwrap().get::<_, i64>(0).cast_unsigned()
    }

    /// Ids and payloads, as they are in the table.
    pub(crate) async fn rows(&self, server: &PostgresServer) -> Vec<(EventId, Vec<u8>)> {
        let sql = format!("select id::text, payload::text from {}.events", self.schema);
        let rows = client(server).await.query(&sql, &[]).await.unwrap();
        let row = |row: &tokio_postgres::Row| {
            (row.get::<_, &str>(0).parse().unwrap(), row.get::<_, &str>(1).as_bytes().to_vec())
        };
        rows.iter().map(row).collect()
    }
}

/// A connection past sink and proxy.
pub(crate) async fn client(server: &PostgresServer) -> Client {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
