//! A stream to a server, with TLS or without.

use std::io::{Read, Write};
use std::net::TcpStream;

use net::tls::ClientStream;

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
