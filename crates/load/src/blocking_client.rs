//! Requests of a thread that waits for each response.

use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Request;
use net::http_client::{HttpClient, HttpFailure, HttpFailureKind, HttpOptions, RequestBody, retry_after};
use tokio::runtime::{self, Runtime};
use tokio::time::timeout;

/// A response lists at most a thousand rejected records: far below.
const RESPONSE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How often a stream checks whether it should stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A client that keeps its connection for the next request.
pub(crate) struct BlockingClient {
    runtime: Runtime,
    http: HttpClient,
}

/// A whole response.
#[derive(Debug)]
pub struct ServerResponse {
    /// The status.
    pub status: u16,
    /// How long the server asks the client to wait.
    pub retry_after: Option<Duration>,
    /// The body.
    pub body: Vec<u8>,
}

impl ServerResponse {
    /// The body as text.
    #[must_use]
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }
}

impl BlockingClient {
    pub(crate) fn new(options: HttpOptions) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, http: HttpClient::new(options) })
    }

    /// Sends a request and waits for the whole response, for `limit` at most.
    ///
    /// # Errors
    /// There is no whole response. [`io::ErrorKind::InvalidData`] means that the server isn't trusted. After other errors it is unknown
    /// whether the server has processed the request.
    pub(crate) fn exchange(
        &self,
        request: Request<RequestBody>,
        limit: Option<Duration>,
    ) -> io::Result<ServerResponse> {
        let receive = async { self.receive(request).await.map_err(cause) };
        self.runtime.block_on(async {
            let Some(limit) = limit else { return receive.await };
            let late = |_| io::Error::new(io::ErrorKind::TimedOut, format!("no response within {limit:?}"));
            timeout(limit, receive).await.map_err(late)?
        })
    }

    /// Sends a request, and passes on each line of the response as it comes, until the end, `take` returns false, or `stop` is set.
    /// Returns the whole response instead if its status isn't 200.
    ///
    /// # Errors
    /// The response is incomplete, or a line is too long.
    pub(crate) fn lines(
        &self,
        request: Request<RequestBody>,
        stop: &AtomicBool,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> io::Result<Option<ServerResponse>> {
        self.runtime.block_on(async {
            let mut response = self.http.send(request).await.map_err(cause)?.at_any_rate();
            let status = response.status().as_u16();
            if status != 200 {
                let body = response.bytes(RESPONSE_BYTES_MAX).await.map_err(cause)?.into();
                return Ok(Some(ServerResponse { status, retry_after: None, body }));
            }
            let mut rest = Vec::new();
            loop {
                let chunk = {
                    let mut chunk = pin!(response.chunk());
                    loop {
                        if stop.load(Ordering::Relaxed) {
                            return Ok(None);
                        }
                        if let Ok(chunk) = timeout(LOOK_EVERY, chunk.as_mut()).await {
                            break chunk.map_err(cause)?;
                        }
                    }
                };
                let Some(chunk) = chunk else { return Ok(None) };
                rest.extend_from_slice(&chunk);
                while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = rest.drain(..=end).collect();
                    if !take(&line[..end]) {
                        return Ok(None);
                    }
                }
                if rest.len() > RESPONSE_BYTES_MAX {
                    return Err(io::Error::other("the response has too long a line"));
                }
            }
        })
    }

    async fn receive(&self, request: Request<RequestBody>) -> Result<ServerResponse, HttpFailure> {
        let response = self.http.send(request).await?.at_any_rate();
        let (status, retry_after) = (response.status().as_u16(), retry_after(response.headers()));
        let body = response.bytes(RESPONSE_BYTES_MAX).await?.into();
        Ok(ServerResponse { status, retry_after, body })
    }
}

/// The failure without the server's name, which callers add themselves; the operating system's error if there is one.
fn cause(failure: HttpFailure) -> io::Error {
    match failure.kind {
        HttpFailureKind::Connect(error) | HttpFailureKind::Untrusted(error) => error,
        kind => io::Error::other(kind.to_string()),
    }
}
