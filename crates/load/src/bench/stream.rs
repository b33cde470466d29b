//! A stream to a server, with TLS or without.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use net::tls::ClientStream;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::ServerConnector;

/// How long each step of connecting may take.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// An open connection, with TLS or without.
pub(crate) trait Stream: Read + Write + Send {
    /// The socket under it.
    fn socket(&self) -> &TcpStream;
}

/// Any of them.
pub(crate) type Wire = Box<dyn Stream>;

impl Stream for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl Stream for ClientStream {
    fn socket(&self) -> &TcpStream {
        self.socket()
    }
}

/// Connects, with TLS if the address wants it. The stream doesn't block.
///
/// # Errors
/// The server can't be reached, or isn't trusted.
pub(crate) fn connect(server: &ServerConnector) -> io::Result<Wire> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the server's name has no address: check the name");
    for address in server.target().addresses()? {
        match TcpStream::connect_timeout(&address, CONNECT_MAX) {
            Ok(stream) => return secured(server, stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Begins to connect, and returns a stream that doesn't block: it can be written to when the connection is open, and with TLS the first writes
/// and reads do the handshake.
///
/// # Errors
/// The server is on this machine and doesn't listen, or there is no socket.
pub(crate) fn begin(server: &ServerConnector, address: SocketAddr) -> io::Result<Wire> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    Ok(match server.tls() {
        None => Box::new(stream),
        Some(tls) => Box::new(tls.begin(server.target().host(), stream)?),
    })
}

fn secured(server: &ServerConnector, stream: TcpStream) -> io::Result<Wire> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(CONNECT_MAX))?;
    stream.set_write_timeout(Some(CONNECT_MAX))?;
    let wire: Wire = match server.tls() {
        None => Box::new(stream),
        Some(tls) => Box::new(tls.connect(server.target().host(), stream)?),
    };
    wire.socket().set_nonblocking(true)?;
    Ok(wire)
}
