//! Detects a pooler that assigns a connection another server process for each transaction, as PgBouncer does with
//! `pool_mode = transaction`. A session's settings and prepared statements then affect other clients.
//!
//! A server names its process twice: when the connection is opened, for cancel requests, and by `pg_backend_pid()`.
//! Both are the same unless a pooler answers for the server. Only if they differ, a second connection opens a
//! transaction. In a pool of transactions it gets the process of the first, or the first gets another one. Nothing is
//! set or prepared before.

use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_postgres::{Client, SimpleQueryMessage};

use super::config::PostgresConfig;
use super::connection_limits::Pooler;
use super::error::Failure;
use super::session::{Session, Talk};

/// Why a connection can't be used.
pub(super) const NOT_KEPT: &str = "a pooler assigns each transaction another server process (PgBouncer: pool_mode = \
    transaction), so settings and prepared statements would reach other clients. Point `url` at the server, or set \
    pool_mode = session";

/// How long the second connection may take. A pool of sessions may have no free process for it, which proves nothing.
const SECOND_MAX: Duration = Duration::from_secs(3);
/// How often the processes are compared: another client may change the assignment between two comparisons.
const ROUNDS: usize = 3;
/// Where a cancel request has the process: after its length and its code.
const PROCESS_RANGE: std::ops::Range<usize> = 8..12;
const CANCEL_BYTES: usize = 16;

/// The server's process that serves `session`.
///
/// # Errors
/// [`Failure::Misfit`] if it changes between transactions.
pub(super) async fn find_process(config: &PostgresConfig, session: &mut Session) -> Result<i32, Failure> {
    let (talk, driver) = session.parts();
    let process = driver.run(process(talk)).await?;
    if config.connections.pooler == Pooler::Session || announced(&talk.client).await == Some(process) {
        return Ok(process);
    }
    match timeout(SECOND_MAX, compare(config, session, process)).await {
        Ok(Ok(true)) => Err(Failure::Misfit(NOT_KEPT.to_owned())),
        // The first connection failed, or the second couldn't be opened: the first use shows a better error.
        Ok(_) | Err(_) => Ok(process),
    }
}

/// Whether a second connection shows that the first doesn't keep its process.
async fn compare(config: &PostgresConfig, first: &mut Session, process_of_first: i32) -> Result<bool, Failure> {
    let mut second = Session::connect(config).await?;
    let mut changes = false;
    for _ in 0..ROUNDS {
        let (talk, driver) = second.parts();
        let begun = async {
            // A pool of statements rejects transactions.
            if talk.execute("begin").await.is_err() { Ok(None) } else { process(talk).await.map(Some) }
        };
        let Some(process_of_second) = driver.run(begun).await? else { return Ok(true) };
        changes |= process_of_second == process_of_first;
        if !changes {
            let (talk, driver) = first.parts();
            changes |= driver.run(process(talk)).await? != process_of_first;
        }
        let (talk, driver) = second.parts();
        driver.run(talk.execute("rollback")).await?;
        if changes {
            break;
        }
    }
    second.close().await;
    Ok(changes)
}

/// The process that answers. Read without a prepared statement, because another process may answer the next request.
async fn process(talk: &Talk) -> Result<i32, Failure> {
    let rows = talk.wait(talk.client.simple_query("select pg_backend_pid()")).await?;
    let process = rows.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    });
    process.ok_or(Failure::Unexpected("the server didn't return the number of its process"))
}

/// The process that the connection was opened with. The driver reveals it only in a cancel request, so the request is
/// written to a recorder.
async fn announced(client: &Client) -> Option<i32> {
    let written = Arc::new(Mutex::new(Vec::new()));
    client.cancel_token().cancel_query_raw(Recorder(written.clone()), Plain).await.ok()?;
    let written = written.lock().unwrap_or_else(PoisonError::into_inner);
    let request = written.get(written.len().checked_sub(CANCEL_BYTES)?..)?;
    Some(i32::from_be_bytes(request.get(PROCESS_RANGE)?.try_into().ok()?))
}

/// A stream that keeps the bytes that are written, and offers TLS if asked.
struct Recorder(Arc<Mutex<Vec<u8>>>);

/// Continues without TLS although it is offered.
struct Plain;

impl TlsConnect<Recorder> for Plain {
    type Stream = Recorder;
    type Error = io::Error;
    type Future = Ready<io::Result<Recorder>>;

    fn connect(self, stream: Recorder) -> Self::Future {
        ready(Ok(stream))
    }
}

impl TlsStream for Recorder {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Recorder {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        buffer.put_slice(b"S");
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Recorder {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
