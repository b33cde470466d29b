//! A stream to a server, with TLS or without.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use net::tls::ClientStream;

use crate::ServerConnector;

/// How long each step of connecting may take.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// An open connection, with TLS or without.
pub(super) trait Stream: Read + Write + Send {
    /// The socket under it.
    fn socket(&self) -> &TcpStream;
}

/// Any of them.
pub(super) type Wire = Box<dyn Stream>;

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
pub(super) fn connect(server: &ServerConnector) -> io::Result<Wire> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the server's name has no address: check the name");
    for address in server.target().addresses()? {
        match TcpStream::connect_timeout(&address, CONNECT_MAX) {
            Ok(stream) => return secured(server, stream),
            Err(error) => last = error,
        }
    }
    Err(last)
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
