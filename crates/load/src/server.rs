//! A server, how it is trusted, and requests to it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use http::Request;
use http::header::AUTHORIZATION;
use http::request::Builder;
use net::http_client::{HttpOptions, full};
use net::tls::{ClientTls, TrustError};

use crate::blocking_client::{BlockingClient, ServerResponse};
use crate::server_url::ServerUrl;

/// Far longer than any request of a command takes.
const UNLIMITED: Duration = Duration::from_hours(365 * 24);

/// A server, and for TLS the authorities to trust.
#[derive(Clone, Debug)]
pub struct ServerConnector {
    target: ServerUrl,
    tls: Option<ClientTls>,
    ca: Option<PathBuf>,
}

impl ServerConnector {
    /// The server of this address. For an `https` one the authorities are those of a PEM file, with its path, else those of this machine.
    ///
    /// # Errors
    /// TLS is needed, and no authority is trusted.
    pub fn new(target: ServerUrl, authorities: Option<(&Path, &[u8])>) -> Result<Self, TrustError> {
        let trust = || authorities.map_or_else(ClientTls::of_system, |(_, pem)| ClientTls::trusting(pem));
        let tls = target.is_secure().then(trust).transpose()?;
        Ok(Self { target, tls, ca: authorities.map(|(path, _)| path.to_owned()) })
    }

    /// Its address.
    #[must_use]
    pub const fn target(&self) -> &ServerUrl {
        &self.target
    }

    /// How its certificate is checked; `None` without TLS.
    pub(crate) const fn tls(&self) -> Option<&ClientTls> {
        self.tls.as_ref()
    }

    /// A client of this server. A connection may take `connect_max`, and the server may be silent for `silence_max`.
    pub(crate) fn client(&self, connect_max: Duration, silence_max: Duration) -> io::Result<BlockingClient> {
        BlockingClient::new(HttpOptions {
            ca: self.ca.clone(),
            connect_timeout: connect_max,
            silence_max,
            waits_for_retry_after: false,
        })
    }

    /// Sends one request and returns the response. Connecting may take `connect_max`, and everything `limit`.
    ///
    /// # Errors
    /// There is no whole response.
    pub fn ask(
        &self,
        (method, path, body): (&str, &str, &[u8]),
        token: Option<&str>,
        (connect_max, limit): (Duration, Option<Duration>),
    ) -> io::Result<ServerResponse> {
        let request = Request::builder().method(method).uri(self.target.url(path));
        let request = with_token(request, token).body(full(body.to_vec())).map_err(io::Error::other)?;
        self.client(connect_max, UNLIMITED)?.exchange(request, limit)
    }
}

impl ServerConnector {
    /// Sends a GET request and passes on each line of the response as it comes, until the end, `take` returns false, or `stop` is
    /// set. Connecting may take `connect_max`, and the server may be silent for `silence_max`. Returns the response instead if its status isn't
    /// 200.
    ///
    /// # Errors
    /// There is no response, or it is incomplete.
    pub fn lines(
        &self,
        path: &str,
        token: Option<&str>,
        (connect_max, silence_max): (Duration, Duration),
        stop: &AtomicBool,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> io::Result<Option<ServerResponse>> {
        let request = with_token(Request::builder().uri(self.target.url(path)), token);
        let request = request.body(full(Vec::new())).map_err(io::Error::other)?;
        self.client(connect_max, silence_max)?.lines(request, stop, take)
    }
}

/// Adds a token to a request.
pub(crate) fn with_token(request: Builder, token: Option<&str>) -> Builder {
    match token {
        Some(token) => request.header(AUTHORIZATION, format!("Bearer {token}")),
        None => request,
    }
}

/// The server and the type of events.
#[derive(Clone, Debug)]
pub struct IngestEndpoint {
    /// The server.
    pub server: ServerConnector,
    /// The type of the events; without it the server decides.
    pub event_type: Option<String>,
    /// The credentials of the sender.
    pub token: Option<String>,
}

impl IngestEndpoint {
    /// The path for requests with a `batch`, or a single `event`.
    pub(crate) fn path(&self, what: &str) -> String {
        let event_type = self.event_type.as_ref().map_or_else(String::new, |name| format!("/{name}"));
        self.server.target().path(&format!("/ingest/{what}{event_type}"))
    }
}
