//! A server with what is needed to know it, and connections to it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use net::tls::{ClientStream, ClientTls, TrustError};

use super::target::Target;

/// A server, and for TLS whom to trust that it is the right one.
#[derive(Clone, Debug)]
pub struct Server {
    target: Target,
    tls: Option<ClientTls>,
}

impl Server {
    /// The server of this address. For an `https` one the authorities are those of a PEM file, else those of this machine.
    ///
    /// # Errors
    /// TLS is needed, and there is nobody to trust.
    pub fn new(target: Target, authorities: Option<&[u8]>) -> Result<Self, TrustError> {
        let trust = || authorities.map_or_else(ClientTls::of_system, ClientTls::trusting);
        let tls = target.is_secure().then(trust).transpose()?;
        Ok(Self { target, tls })
    }

    /// Its address.
    #[must_use]
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// Connects, and agrees on TLS where the address wants it. Each step, and from then on each read and write, may
    /// take so long.
    ///
    /// # Errors
    /// It can't be reached, or isn't trusted: then the kind is [`io::ErrorKind::InvalidData`].
    pub fn connect(&self, connect_max: Duration, exchange_max: Option<Duration>) -> io::Result<Wire> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in self.target.addresses()? {
            match TcpStream::connect_timeout(&address, connect_max) {
                Ok(stream) => return self.secured(stream, connect_max, exchange_max),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn secured(&self, stream: TcpStream, connect_max: Duration, exchange_max: Option<Duration>) -> io::Result<Wire> {
        let limit = |stream: &TcpStream, time| {
            stream.set_read_timeout(time)?;
            stream.set_write_timeout(time)
        };
        stream.set_nodelay(true)?;
        limit(&stream, Some(connect_max))?;
        let wire = match &self.tls {
            None => Wire::Plain(stream),
            Some(tls) => Wire::Secure(tls.connect(self.target.host(), stream)?),
        };
        limit(wire.socket(), exchange_max)?;
        Ok(wire)
    }
}

/// An open connection.
#[derive(Debug)]
pub enum Wire {
    /// Without TLS.
    Plain(TcpStream),
    /// With it.
    Secure(ClientStream),
}

impl Wire {
    /// The socket under it.
    #[must_use]
    pub const fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Secure(stream) => stream.socket(),
        }
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Secure(stream) => stream.read(buffer),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Secure(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Secure(stream) => stream.flush(),
        }
    }
}
