//! TLS on the admin port: the handshake before the requests, and what is said to those who speak without it.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::{Response, StatusCode};
use net::tls::{Accepted, SecureStream, ServerTls};
use tokio::io::{AsyncWrite, Interest};
use tokio::net::TcpStream;

use super::response;

/// A client gets this long to agree on TLS.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Who is refused gets this long to read why.
const LINGER: Duration = Duration::from_secs(2);

/// What can be served.
pub(super) enum Opened {
    Plain(TcpStream),
    Secure(Box<SecureStream>),
    /// Without TLS, where it is needed.
    NotSecure(TcpStream),
}

/// Opens a connection; `None` if nothing can be said on it.
pub(super) async fn open(tls: Option<&Arc<ServerTls>>, stream: TcpStream) -> Option<Opened> {
    let Some(tls) = tls else { return Some(Opened::Plain(stream)) };
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await.ok()? {
        Accepted::Secure(stream) => Some(Opened::Secure(stream)),
        Accepted::Plain(stream) => Some(Opened::NotSecure(stream)),
        Accepted::Refused(stream) => {
            linger(stream).await;
            None
        }
        Accepted::Gone => None,
    }
}

/// Reads on until the peer closes: a reset would make it lose the alert.
async fn linger(mut stream: TcpStream) {
    let mut scratch = [0; 1024];
    let read = async {
        poll_fn(|context| Pin::new(&mut stream).poll_shutdown(context)).await?;
        while stream.async_io(Interest::READABLE, || stream.try_read(&mut scratch)).await? > 0 {}
        io::Result::Ok(())
    };
    // However it ends, it has ended.
    let _ = tokio::time::timeout(LINGER, read).await;
}

/// The answer to each request that comes without TLS.
pub(super) fn not_secure() -> Response<Full<Bytes>> {
    let detail = "this port speaks TLS: begin the URL with https://".into();
    let mut response = response::problem(StatusCode::BAD_REQUEST, "bad_request", detail).into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
