//! A connection to a store's server, with TLS or without.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::tls::{ClientTls, OverStream};

/// A connection with TLS or without.
pub enum MaybeTlsStream {
    /// Without TLS.
    Plain(TcpStream),
    /// With TLS.
    Secured(Box<OverStream<TcpStream>>),
}

/// The server of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ServerAddress<'a> {
    /// The server's name or IP address.
    pub host: &'a str,
    /// The server's port.
    pub port: u16,
    /// Whether it uses TLS.
    pub is_secure: bool,
    /// A PEM file with the authorities that are trusted; without one those that the machine trusts.
    pub ca: Option<&'a Path>,
}

impl MaybeTlsStream {
    /// Connects to the server.
    ///
    /// # Errors
    /// As [`Self::open_at`].
    pub async fn open(place: ServerAddress<'_>) -> io::Result<Self> {
        Self::open_at(None, place).await
    }

    /// A connection, to an address of the host if one was looked up before.
    ///
    /// # Errors
    /// The connection or the TLS handshake fails, or the file of authorities can't be read.
    pub async fn open_at(address: Option<SocketAddr>, place: ServerAddress<'_>) -> io::Result<Self> {
        let socket = match address {
            Some(address) => TcpStream::connect(address).await?,
            None => TcpStream::connect((place.host, place.port)).await?,
        };
        socket.set_nodelay(true)?;
        let plain = Self::Plain(socket);
        if place.is_secure { plain.secure(place).await } else { Ok(plain) }
    }

    /// The same connection, with TLS from now on.
    ///
    /// # Errors
    /// The TLS handshake fails, or the file of authorities can't be read.
    pub async fn secure(self, place: ServerAddress<'_>) -> io::Result<Self> {
        let Self::Plain(socket) = self else { return Ok(self) };
        let trusted = trusted(place.ca)?;
        Ok(Self::Secured(Box::new(trusted.connect_over(place.host, socket).await?)))
    }
}

/// Whether a connection failed because the server isn't trusted, which needs an operator.
pub fn is_of_trust(error: &io::Error) -> bool {
    error.to_string().contains("isn't trusted")
}

/// The file is read for each connection, so an authority can be replaced without a restart.
fn trusted(ca: Option<&Path>) -> io::Result<ClientTls> {
    let trusted = match ca {
        Some(path) => {
            let pem = std::fs::read(path)
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
            ClientTls::trusting(&pem)
        }
        None => ClientTls::of_system(),
    };
    trusted.map_err(io::Error::other)
}

impl AsyncRead for MaybeTlsStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Secured(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for MaybeTlsStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Secured(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Secured(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Secured(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
