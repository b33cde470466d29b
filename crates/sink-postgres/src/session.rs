//! A connection to a server. The caller that works on it also drives it: there is no separate task. So a dropped call
//! closes its connection, and the server rolls back the call's transaction.

use std::future::{Future, poll_fn};
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use net::tls::{ClientTls, OverStream, server_end_point};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, timeout};
use tokio_postgres::config::ChannelBinding as BindingRule;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{Client, Connection, Socket};

use super::config::PostgresConfig;
use super::connection_limits::PoolLimits;
use super::error::{Failure, NO_BINDING};

/// How much longer than the server's own limit to wait for its response.
const RESPONSE_MARGIN: Duration = Duration::from_secs(5);
/// The time limit for closing a connection.
const CLOSE_MAX: Duration = Duration::from_secs(1);

/// An open connection.
pub(super) struct Session {
    talk: Talk,
    wire: Wire,
    limits: PoolLimits,
    opened: Instant,
    used: Instant,
}

type Wire = Pin<Box<Connection<Socket, Secured>>>;

/// The part of a connection that a call uses, while the connection is driven.
pub(super) struct Talk {
    pub(super) client: Client,
    /// The server's process.
    pub(super) process: i32,
    limit: Duration,
}

impl Talk {
    /// The server's response to one step.
    pub(super) async fn wait<T>(
        &self,
        step: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Failure> {
        match timeout(self.limit, step).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Failure::NoResponse(self.limit)),
        }
    }

    /// Commands without parameters.
    pub(super) async fn execute(&self, sql: &str) -> Result<(), Failure> {
        self.wait(self.client.batch_execute(sql)).await
    }
}

/// Drives a connection.
pub(super) struct Driver<'a> {
    wire: &'a mut Wire,
    used: &'a mut Instant,
}

impl Driver<'_> {
    /// Does `work` while the connection is driven. A connection whose work has failed must not be used again.
    pub(super) async fn run<T>(self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let Self { wire, used } = self;
        let mut work = pin!(work);
        let mut end = None;
        let done = poll_fn(|context| {
            if end.is_none()
                && let Poll::Ready(ended) = wire.as_mut().poll(context)
            {
                end = Some(ended);
            }
            match work.as_mut().poll(context) {
                // The connection has ended, so no response will come.
                Poll::Pending if end.is_some() => Poll::Ready(None),
                polled => polled.map(Some),
            }
        })
        .await;
        *used = Instant::now();
        match (done, end) {
            // The reason why a connection ended is the better error.
            (Some(Err(Failure::Driver(error))), Some(Err(why))) if error.is_closed() => Err(why.into()),
            (Some(done), _) => done,
            (None, Some(Err(why))) => Err(why.into()),
            (None, _) => Err(Failure::ServerClosed),
        }
    }
}

impl Session {
    /// Sets the server's process.
    pub(super) fn set_process(&mut self, process: i32) {
        self.talk.process = process;
    }

    /// How long the connection may be idle.
    pub(super) fn idle_max(&self) -> Duration {
        self.limits.idle
    }

    /// Connects to the first server that accepts writes, without any settings.
    pub(super) async fn connect(config: &PostgresConfig) -> Result<Self, Failure> {
        let needs_binding = config.server.driver().get_channel_binding() == BindingRule::Require;
        let secure = Secure { ca: config.ca.clone(), host: String::new(), needs_binding };
        let most = config.server.connect_max();
        let connecting = timeout(most, config.server.driver().connect(secure));
        let (client, connection) = connecting.await.map_err(|_| Failure::NoResponse(most))??;
        let now = Instant::now();
        let talk = Talk { client, process: 0, limit: config.timeout.saturating_add(RESPONSE_MARGIN) };
        Ok(Self { talk, wire: Box::pin(connection), limits: config.connections, opened: now, used: now })
    }

    /// The part that a call uses, and the driver of the connection.
    pub(super) fn parts(&mut self) -> (&Talk, Driver<'_>) {
        (&self.talk, Driver { wire: &mut self.wire, used: &mut self.used })
    }

    /// Whether the connection is still good for a call.
    pub(super) async fn check_fresh(&mut self) -> bool {
        let wire = &mut self.wire;
        // Everything received in the meantime is read, including the end of the connection.
        let ended = poll_fn(|context| Poll::Ready(wire.as_mut().poll(context).is_ready())).await;
        !ended && !self.talk.client.is_closed() && !self.is_stale()
    }

    /// Whether it was idle for too long, or is too old.
    pub(super) fn is_stale(&self) -> bool {
        self.used.elapsed() >= self.limits.idle || self.opened.elapsed() >= self.limits.lifetime
    }

    /// Closes the connection.
    pub(super) async fn close(self) {
        let Self { talk, wire, .. } = self;
        drop(talk);
        // An unreachable server detects the loss of the connection itself.
        let _ = timeout(CLOSE_MAX, wire).await;
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("opened", &self.opened).finish_non_exhaustive()
    }
}

/// TLS in the form that the driver requires.
#[derive(Clone)]
struct Secure {
    ca: Option<PathBuf>,
    host: String,
    needs_binding: bool,
}

impl Secure {
    async fn handshake(self, socket: Socket) -> io::Result<Secured> {
        // The file is read at each handshake, so an authority can be replaced without a restart.
        let trusted = match &self.ca {
            Some(path) => {
                let pem = std::fs::read(path)
                    .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
                ClientTls::trusting(&pem)
            }
            None => ClientTls::of_system(),
        };
        let trusted = trusted.map_err(io::Error::other)?;
        let stream = trusted.connect_over(&self.host, socket).await?;
        let binding = server_end_point(&stream);
        if self.needs_binding && binding.is_none() {
            return Err(io::Error::other(NO_BINDING));
        }
        Ok(Secured { stream, binding })
    }
}

impl MakeTlsConnect<Socket> for Secure {
    type Stream = Secured;
    type TlsConnect = Self;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Self> {
        Ok(Self { host: host.to_owned(), ..self.clone() })
    }
}

impl TlsConnect<Socket> for Secure {
    type Stream = Secured;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Secured>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(self.handshake(socket))
    }
}

/// A TLS connection.
struct Secured {
    stream: OverStream<Socket>,
    /// The value that a login is bound to (SCRAM-SHA-256-PLUS).
    binding: Option<Vec<u8>>,
}

impl TlsStream for Secured {
    fn channel_binding(&self) -> ChannelBinding {
        self.binding.clone().map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl AsyncRead for Secured {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Secured {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
