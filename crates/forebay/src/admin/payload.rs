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

/// Payloads that are in memory at a time; more wait.
const PLACES: usize = 8;
/// A client gets this long for its payload.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Of a payload that is too large so much more is read, so that its client comes to read why it is refused.
const UNREAD_MAX: usize = 8 * EVENT_BYTES_MAX;

/// Takes payloads.
pub(crate) struct Payloads {
    places: Semaphore,
}

impl Payloads {
    pub(crate) fn new() -> Self {
        Self { places: Semaphore::new(PLACES) }
    }

    /// The whole payload of a request, and its place: to be held while the payload is in memory. Who has the last place is
    /// cut off by the time for payloads.
    ///
    /// # Errors
    /// The answer: it is packed, too long, too slow, or broken off.
    pub(super) async fn read(
        &self,
        request: &mut Request<Incoming>,
    ) -> Result<(Vec<u8>, SemaphorePermit<'_>), AdminResponse> {
        if request.headers().get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
            let detail = "a payload comes as it is here: without Content-Encoding";
            return Err(problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_encoding", detail.into()));
        }
        let place = self.places.acquire().await.map_err(|_| stopping())?;
        let late = || {
            let detail = format!("the payload has to be there within {} seconds", BODY_TIMEOUT.as_secs());
            problem(StatusCode::REQUEST_TIMEOUT, "timeout", detail)
        };
        let read = timeout(BODY_TIMEOUT, read(request.body_mut())).await;
        Ok((read.unwrap_or_else(|_| Err(late()))?, place))
    }
}

async fn read(body: &mut Incoming) -> Result<Vec<u8>, AdminResponse> {
    let (mut bytes, mut length) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| problem(StatusCode::BAD_REQUEST, "bad_request", error.to_string()))?;
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length <= EVENT_BYTES_MAX {
            bytes.extend_from_slice(&data);
        } else if length > UNREAD_MAX {
            break;
        }
    }
    if length <= EVENT_BYTES_MAX {
        return Ok(bytes);
    }
    let detail = format!("an event has at most {EVENT_BYTES_MAX} bytes");
    Err(problem(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail))
}
