//! TLS on the admin port: the handshake before the requests, and the answer to clients without TLS.

use std::future::{Future, poll_fn};
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::{Request, Response, StatusCode};
use net::lingering_close::{DrainLimiter, Lingering};
use net::tls::{HandshakeOutcome, ServerTls};
use tokio::io::{AsyncWrite, Interest};
use tokio::net::TcpStream;

use super::{AdminBody, response, serve_requests};

/// A client gets this long to agree on TLS.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// A rejected client gets this long to read the reason.
const LINGER: Duration = Duration::from_secs(2);

/// Serves the requests of a connection, after the handshake if there is TLS.
pub(super) async fn serve<F: Future<Output = Response<AdminBody>>>(
    tls: Option<Arc<ServerTls>>,
    stream: TcpStream,
    drains: Arc<DrainLimiter>,
    client: IpAddr,
    answer: impl Fn(Request<Incoming>) -> F,
) {
    let Some(tls) = tls else { return serve_requests(Lingering::new(stream, drains, client), answer).await };
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
        Ok(HandshakeOutcome::Secure(stream)) => serve_requests(Lingering::new(stream, drains, client), answer).await,
        Ok(HandshakeOutcome::Plain(stream)) => {
            serve_requests(Lingering::new(stream, drains, client), |_| async { not_secure() }).await;
        }
        Ok(HandshakeOutcome::Refused(stream)) => linger(stream).await,
        Ok(HandshakeOutcome::Gone) | Err(_) => {}
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

/// The answer to each request without TLS.
fn not_secure() -> Response<AdminBody> {
    let detail = "this port speaks TLS: begin the URL with https://".into();
    let mut response = response::problem(StatusCode::BAD_REQUEST, "bad_request", detail).into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
