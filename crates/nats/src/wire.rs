//! A stream of frames: opens it, and logs in.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use net::stream::{MaybeTlsStream, ServerAddress};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::connect_options::ConnectOptions;
use crate::error::Error;
use crate::greeting::{Greeting, INVALID_GREETING};
use crate::protocol::{self, Frame};

/// How long a server may take to accept a connection, TLS and login included.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes that are read at a time.
const READ_BYTES: usize = 4 * 1024;

/// An open stream.
pub(crate) struct Wire {
    pub(crate) stream: MaybeTlsStream,
    /// Bytes that aren't parsed yet.
    pub(crate) received: Vec<u8>,
}

impl Wire {
    /// Connects to a host, or to one of its addresses. Sends the login and `commands`, and waits for the server's
    /// confirmation.
    pub(crate) async fn open(
        options: &ConnectOptions,
        (host, port): (&str, u16),
        address: Option<SocketAddr>,
        commands: &[u8],
    ) -> Result<(Self, Greeting), Error> {
        let place = ServerAddress { host, port, is_secure: false, ca: options.ca.as_deref() };
        let mut wire = Self { stream: MaybeTlsStream::open_at(address, place).await?, received: Vec::new() };
        // The server sends its first line before TLS begins.
        let Frame::Info(info) = wire.next().await? else { return Err(INVALID_GREETING) };
        let mut greeting = Greeting::parse(&info)?;
        if options.servers.is_secure || greeting.tls_required {
            // Bytes that were received before TLS aren't trusted.
            wire.received.clear();
            greeting.connect_urls.clear();
            wire.stream = wire.stream.secure(place).await?;
        }
        let mut bytes = Vec::new();
        greeting.log_in(options, &mut bytes)?;
        bytes.extend_from_slice(commands);
        protocol::command(&mut bytes, &["PING"]);
        wire.send(&bytes).await?;
        loop {
            match wire.next().await? {
                Frame::Pong => return Ok((wire, greeting)),
                Frame::Error(said) => return Err(Error::Server(said)),
                Frame::Info(info) => greeting = Greeting::parse(&info)?,
                Frame::Ping | Frame::Message(_) => {}
            }
        }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.stream.write_all(bytes).await?;
        Ok(self.stream.flush().await?)
    }

    /// The next frame. Pings are answered before it.
    pub(crate) async fn next(&mut self) -> Result<Frame, Error> {
        loop {
            if let Some((frame, length)) = protocol::frame(&self.received)? {
                self.received.drain(..length);
                if matches!(frame, Frame::Ping) {
                    self.send(b"PONG\r\n").await?;
                }
                return Ok(frame);
            }
            self.received.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err(Error::Connection(io::Error::other("the server closed the connection")));
            }
        }
    }
}

/// Unpredictable bytes.
///
/// # Errors
/// The operating system has none.
pub fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Error::Connection(io::Error::other(error)))?;
    Ok(bytes)
}
