//! A response: its head, and its body as it arrives.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use http::header::DATE;
use http::response::Parts;
use http::{HeaderMap, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use tokio::time::Instant;

use super::connection::PooledConnection;
use super::failure::{HttpFailure, HttpFailureKind};
use super::origin::HttpOrigin;
use super::pace::Pace;
use super::pool::Pool;

/// A response whose body is still to be read. If it is dropped before its end, its connection is closed.
pub struct HttpResponse {
    head: Parts,
    body: Incoming,
    origin: HttpOrigin,
    connection: Option<PooledConnection>,
    silence_max: Duration,
    pace: Option<Pace>,
    pool: Arc<Pool>,
}

impl HttpResponse {
    pub(super) fn new(
        origin: HttpOrigin,
        connection: PooledConnection,
        response: Response<Incoming>,
        silence_max: Duration,
        pool: Arc<Pool>,
    ) -> Self {
        let (head, body) = response.into_parts();
        Self { head, body, origin, connection: Some(connection), silence_max, pace: Some(Pace::new(silence_max)), pool }
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    /// The headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The server's time in whole seconds, since 1970; `None` if it doesn't say it.
    #[must_use]
    pub fn date(&self) -> Option<Duration> {
        let text = self.head.headers.get(DATE)?.to_str().ok()?;
        httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()
    }

    /// Accepts a body of any rate above zero: for servers that send single bytes while they work.
    #[must_use]
    pub fn at_any_rate(self) -> Self {
        Self { pace: None, ..self }
    }

    /// The next bytes of the body, as they arrive; none after its end.
    ///
    /// # Errors
    /// [`HttpFailure`] if the connection breaks, or bytes no longer arrive, or arrive too slowly.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpFailure> {
        loop {
            let Some(connection) = &mut self.connection else { return Ok(None) };
            let begun = Instant::now();
            let frame = connection.frame(&mut self.body, self.silence_max).await;
            match frame.map_err(|kind| self.origin.failure(kind))? {
                // Trailers are ignored.
                Some(frame) => {
                    let Ok(data) = frame.into_data() else { continue };
                    if self.pace.as_mut().is_some_and(|pace| !pace.keeps_up(begun.elapsed(), data.len())) {
                        return Err(self.origin.failure(HttpFailureKind::TooSlow));
                    }
                    return Ok(Some(data));
                }
                None => self.give_back().await,
            }
        }
    }

    /// The whole body.
    ///
    /// # Errors
    /// [`HttpFailure`] if it has more than `bytes_max` bytes, or is incomplete.
    pub async fn bytes(mut self, bytes_max: usize) -> Result<Bytes, HttpFailure> {
        let too_long = |origin: &HttpOrigin| Err(origin.failure(HttpFailureKind::TooLong(bytes_max)));
        if self.body.size_hint().lower() > bytes_max as u64 {
            return too_long(&self.origin);
        }
        let mut whole = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            if chunk.len() > bytes_max - whole.len() {
                return too_long(&self.origin);
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }

    async fn give_back(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.keep(&self.origin, connection).await;
        }
    }
}
