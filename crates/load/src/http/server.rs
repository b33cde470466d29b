//! A server with what is needed to know it, and connections to it.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use net::tls::{ClientTls, TrustError};

use super::answer::Answer;
use super::connection::Connection;
use super::stream::Wire;
use super::target::ServerUrl;

/// The time-out of each step of connecting, if the caller has none of its own.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// No commit takes that long: whoever waits longer waits for a server that has gone.
const RESPONSE_MAX: Duration = Duration::from_secs(60);

/// A server, and for TLS whom to trust that it is the right one.
#[derive(Clone, Debug)]
pub struct ServerConnector {
    target: ServerUrl,
    tls: Option<ClientTls>,
}

impl ServerConnector {
    /// The server of this address. For an `https` one the authorities are those of a PEM file, else those of this machine.
    ///
    /// # Errors
    /// TLS is needed, and there is nobody to trust.
    pub fn new(target: ServerUrl, authorities: Option<&[u8]>) -> Result<Self, TrustError> {
        let trust = || authorities.map_or_else(ClientTls::of_system, ClientTls::trusting);
        let tls = target.is_secure().then(trust).transpose()?;
        Ok(Self { target, tls })
    }

    /// Its address.
    #[must_use]
    pub const fn target(&self) -> &ServerUrl {
        &self.target
    }

    /// A connection on which requests can be sent.
    pub(crate) fn open(&self) -> io::Result<Connection> {
        self.connect(CONNECT_MAX, Some(RESPONSE_MAX)).map(Connection::over)
    }

    /// Sends one request and gives the response. Connecting, and each read and write after it, may take these times at most.
    ///
    /// # Errors
    /// There is no whole response.
    pub fn ask(
        &self,
        (method, target, body): (&str, &str, &[u8]),
        token: Option<&str>,
        (connect_max, exchange_max): (Duration, Option<Duration>),
    ) -> io::Result<IngestResponse> {
        let authorization = token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\n{authorization}Connection: close\r\nContent-Length: {}\r\n\r\n",
            self.target.authority(),
            body.len()
        );
        let mut connection = Connection::over(self.connect(connect_max, exchange_max)?);
        let Answer { status, body, .. } = connection.exchange(head.as_bytes(), body)?;
        Ok(IngestResponse { status, body: String::from_utf8_lossy(&body).into_owned() })
    }

    /// Connects, and agrees on TLS where the address wants it. Each step, and from then on each read and write, may
    /// take so long.
    ///
    /// # Errors
    /// It can't be reached, or isn't trusted: then the kind is [`io::ErrorKind::InvalidData`].
    pub(crate) fn connect(&self, connect_max: Duration, exchange_max: Option<Duration>) -> io::Result<Wire> {
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
        let wire: Wire = match &self.tls {
            None => Box::new(stream),
            Some(tls) => Box::new(tls.connect(self.target.host(), stream)?),
        };
        limit(wire.socket(), exchange_max)?;
        Ok(wire)
    }
}

/// Where events go, and as which type.
#[derive(Clone, Debug)]
pub struct IngestEndpoint {
    /// The server.
    pub server: ServerConnector,
    /// The type of the events; without it the server decides.
    pub event_type: Option<String>,
    /// What shows the server that the sender may.
    pub token: Option<String>,
}

impl IngestEndpoint {
    /// The path for requests with a `batch`, or a single `event`.
    pub(crate) fn path(&self, what: &str) -> String {
        let event_type = self.event_type.as_ref().map_or_else(String::new, |name| format!("/{name}"));
        self.server.target().path(&format!("/ingest/{what}{event_type}"))
    }
}

/// What a server answers.
#[derive(Debug)]
pub struct IngestResponse {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: String,
}
