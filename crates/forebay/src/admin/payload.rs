//! Payloads that are sent to the admin port: as long as an event may be, and few at a time.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::CONTENT_ENCODING;
use hyper::{Request, StatusCode};
use limits::EVENT_BYTES_MAX;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::response::{AdminResponse, problem, stopping};

/// Payloads of a kind that are in memory at a time; more wait.
const PLACES: usize = 4;
/// A client gets this long for its payload.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// So much more is read of a payload that is too large, to let its client read the answer.
const UNREAD_MAX: usize = 8 * EVENT_BYTES_MAX;

/// Takes payloads.
pub(crate) struct Payloads {
    places: Semaphore,
}

impl Default for Payloads {
    fn default() -> Self {
        Self::new()
    }
}

impl Payloads {
    pub(crate) fn new() -> Self {
        Self { places: Semaphore::new(PLACES) }
    }

    /// The whole payload of a request, and its permit: hold it while the payload is in memory. The timeout for payloads also ends a slow client that
    /// has the last permit.
    ///
    /// # Errors
    /// The answer: the payload is compressed, too long, too slow, or incomplete.
    pub(super) async fn read(
        &self,
        request: &mut Request<Incoming>,
    ) -> Result<(Vec<u8>, SemaphorePermit<'_>), AdminResponse> {
        if request.headers().get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
            let detail = "this API takes payloads without Content-Encoding: send it uncompressed";
            return Err(problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_encoding", detail.into()));
        }
        let place = self.places.acquire().await.map_err(|_| stopping())?;
        let read = timeout(BODY_TIMEOUT, read(request.body_mut(), EVENT_BYTES_MAX)).await;
        Ok((read.unwrap_or_else(|_| Err(late()))?, place))
    }
}

/// A body of few bytes, which needs no permit.
///
/// # Errors
/// The answer: the body is longer than `bytes_max`, too slow, or incomplete.
pub(super) async fn read_small(body: &mut Incoming, bytes_max: usize) -> Result<Vec<u8>, AdminResponse> {
    timeout(BODY_TIMEOUT, read(body, bytes_max)).await.unwrap_or_else(|_| Err(late()))
}

fn late() -> AdminResponse {
    let detail = format!("the payload didn't arrive within {} seconds: send it again", BODY_TIMEOUT.as_secs());
    problem(StatusCode::REQUEST_TIMEOUT, "timeout", detail)
}

async fn read(body: &mut Incoming, bytes_max: usize) -> Result<Vec<u8>, AdminResponse> {
    let (mut bytes, mut length) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| problem(StatusCode::BAD_REQUEST, "bad_request", error.to_string()))?;
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length <= bytes_max {
            bytes.extend_from_slice(&data);
        } else if length > UNREAD_MAX {
            break;
        }
    }
    if length <= bytes_max {
        return Ok(bytes);
    }
    let detail = format!("the payload may have {bytes_max} bytes: send a smaller one");
    Err(problem(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail))
}
