//! One persistent connection of a gateway. It serves one request after the other until the gateway closes it.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tls::Accepted;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::{Writer, request};

/// The time-out of the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// From the first byte of a request's head to its last. Between requests a connection may be idle without limit.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) async fn serve(stream: TcpStream, writer: &Arc<Writer>) {
    let Some(tls) = &writer.tls else { return requests(stream, writer).await };
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
        Ok(Accepted::Secure(stream)) => requests(stream, writer).await,
        // A client without TLS, or whose handshake fails, sees the connection close.
        Ok(Accepted::Plain(_) | Accepted::Refused(_) | Accepted::Gone) | Err(_) => {}
    }
}

async fn requests(stream: impl AsyncRead + AsyncWrite + Unpin, writer: &Arc<Writer>) {
    let answer = service_fn(|request| {
        let writer = writer.clone();
        async move { Ok::<_, Infallible>(request::answer(request, writer).await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    let mut connection = pin!(server.serve_connection(TokioIo::new(stream), answer));
    let mut stopping = writer.stopping.subscribe();
    // If the connection breaks, the gateway retries: this side has nothing to do.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = async { drop(stopping.wait_for(|stops| *stops).await) } => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}
