//! A small client of HTTP/1.1 for stores that speak it: absolute URLs, TLS, reused connections, bounded responses and deadlines. It
//! follows no redirects, uses no proxy of the environment, and retries only what certainly wasn't sent.
//!
//! The caller drives the connection: there are no tasks, and if a call is dropped, its connection is closed.

mod answer;
mod connection;
mod failure;
mod idle_timeout;
mod origin;
mod pace;
mod pool;
mod retry_after;
mod sanitize;

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;

pub use answer::HttpResponse;
pub use connection::IDLE_MAX;
pub use failure::{HttpFailure, HttpFailureKind};
pub use origin::{Endpoint, HttpOrigin, InvalidEndpoint};
pub use retry_after::retry_after;
pub use sanitize::shortened;

use connection::PooledConnection;
use pool::Pool;
use retry_after::Pauses;

/// Why a body of a request couldn't be built.
pub type BodyError = Box<dyn Error + Send + Sync>;
/// The body of a request. One that knows its length is sent with `Content-Length`.
pub type RequestBody = UnsyncBoxBody<Bytes, BodyError>;

/// A body without a byte.
#[must_use]
pub fn empty() -> RequestBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// A body that is in memory.
#[must_use]
pub fn full(bytes: impl Into<Bytes>) -> RequestBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// The value of `Host` in a request for this URL: host and port, without the default port of its scheme.
///
/// # Errors
/// The URL isn't absolute.
pub fn host_of(url: &Uri) -> Result<String, HttpFailure> {
    Ok(HttpOrigin::of(url)?.authority())
}

/// How a client connects and how long it waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpOptions {
    /// A PEM file with the authorities that are trusted; without one those that the machine trusts.
    pub ca: Option<PathBuf>,
    /// How long a server may take to accept a connection, TLS included.
    pub connect_timeout: Duration,
    /// How long the server may read nothing of a request, send no final head after it, or send nothing of a body.
    pub silence_max: Duration,
    /// Whether requests wait as long as the server asked for with `Retry-After`. If not, they are sent immediately.
    pub waits_for_retry_after: bool,
}

/// A client with the connections that it has open. Cheap to clone: the clones share them.
#[derive(Clone)]
pub struct HttpClient {
    options: Arc<HttpOptions>,
    pool: Arc<Pool>,
    pauses: Arc<Pauses>,
}

impl HttpClient {
    /// A client without connections.
    #[must_use]
    pub fn new(options: HttpOptions) -> Self {
        Self { options: Arc::new(options), pool: Arc::default(), pauses: Arc::default() }
    }

    /// Sends a request to the server of its URL, which must be absolute, and waits for the response's head. `Host` is set by the URL, and
    /// `Content-Length` by the body.
    ///
    /// # Errors
    /// [`HttpFailure`] if there is no response. A response of any status is no failure.
    pub async fn send(&self, request: Request<RequestBody>) -> Result<HttpResponse, HttpFailure> {
        self.send_to(None, request).await
    }

    /// The same, to an address of the URL's host that the caller has looked up. `Host`, and the name that the server's certificate must
    /// have, are still those of the URL.
    ///
    /// # Errors
    /// As [`Self::send`].
    ///
    /// The future is boxed: the compiler generates an async body in each crate that polls it, and with this one hyper's client.
    pub fn send_to(
        &self,
        address: Option<SocketAddr>,
        request: Request<RequestBody>,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpFailure>> + Send + '_>> {
        Box::pin(self.exchange(address, request))
    }

    async fn exchange(
        &self,
        address: Option<SocketAddr>,
        mut request: Request<RequestBody>,
    ) -> Result<HttpResponse, HttpFailure> {
        let origin = HttpOrigin { address, ..HttpOrigin::of(request.uri())? };
        let host = HeaderValue::try_from(origin.authority()).map_err(|_| origin.failure(HttpFailureKind::Url))?;
        request.headers_mut().insert(HOST, host);
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = path.parse().map_err(|_| origin.failure(HttpFailureKind::Url))?;
        if self.options.waits_for_retry_after {
            self.pauses.wait(&origin).await;
        }
        while let Some(mut connection) = self.pool.take(&origin).await {
            // The server may have closed it just now: a request of which nothing was sent is sent again.
            match connection.send(request, &origin, self.options.silence_max).await {
                Ok(response) => return self.answer(origin, connection, response),
                Err(unsent) => request = *unsent?,
            }
        }
        let mut connection = PooledConnection::open(&origin, &self.options).await?;
        match connection.send(request, &origin, self.options.silence_max).await {
            Ok(response) => self.answer(origin, connection, response),
            Err(Ok(_)) => Err(origin.failure(HttpFailureKind::Closed)),
            Err(Err(failure)) => Err(failure),
        }
    }

    /// Closes the unused connections.
    pub fn close_idle(&self) {
        self.pool.clear();
    }

    fn answer(
        &self,
        origin: HttpOrigin,
        connection: PooledConnection,
        response: Response<Incoming>,
    ) -> Result<HttpResponse, HttpFailure> {
        let status = response.status();
        if status.is_informational() {
            return Err(origin.failure(HttpFailureKind::Interim(status)));
        }
        self.pauses.note(&origin, status, response.headers());
        Ok(HttpResponse::new(origin, connection, response, self.options.silence_max, Arc::clone(&self.pool)))
    }
}

impl std::fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpClient").field("options", &self.options).finish_non_exhaustive()
    }
}
