//! One persistent connection of a gateway. It serves one request after the other until the gateway closes it.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use net::lingering_close::Lingering;
use net::newcomers::{Closed, Place};
use net::tls::HandshakeOutcome;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use writer_protocol::{version, wire};

use crate::answer::Refused;
use crate::{Phase, Writer, request};

/// The timeout of the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection is open before its first request that is admitted, the handshake included.
const NEWCOMER_MAX: Duration = Duration::from_secs(20);
const _: () =
    assert!(NEWCOMER_MAX.as_secs() > HANDSHAKE_TIMEOUT.as_secs(), "a slow handshake leaves time for a request");
/// From one answer to the end of the next request's head. hyper has one limit for a connection that is idle and for a head that is slow.
const IDLE_MAX: Duration = Duration::from_secs(90);
const _: () = assert!(
    IDLE_MAX.as_secs() >= wire::IDLE_MAX.as_secs() + 30,
    "a gateway loses a batch's answer if the writer closes the connection at the moment of the request"
);
/// The size of hyper's read buffer, which limits a request's head too. hyper keeps a buffer for each idle connection. With its default limit of
/// 400 KiB, a connection would keep that after a large batch.
const BUFFER_BYTES_MAX: usize = 8 * 1024;

/// Serves a connection until its end. Before its first admitted request it ends early: if another connection
/// needs its place, or after [`NEWCOMER_MAX`].
pub(super) async fn serve(stream: TcpStream, place: Place, closed: Closed, writer: &Arc<Writer>) {
    let place = Arc::new(place);
    tokio::select! {
        () = secured(stream, writer, &place) => {}
        _ = closed => writer.counters.connections_closed.add(1),
        () = expired(&place) => {}
    }
}

/// Ends when a newcomer's time is over.
async fn expired(place: &Place) {
    tokio::time::sleep(NEWCOMER_MAX).await;
    if place.is_admitted() {
        std::future::pending::<()>().await;
    }
}

async fn secured(stream: TcpStream, writer: &Arc<Writer>, place: &Arc<Place>) {
    let Some(tls) = &writer.tls else { return requests(stream, writer, place).await };
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
        Ok(HandshakeOutcome::Secure(stream)) => requests(stream, writer, place).await,
        Ok(HandshakeOutcome::Plain(stream)) => refuse_plain(stream, writer, place).await,
        // A client whose handshake fails sees the connection close.
        Ok(HandshakeOutcome::Refused(_) | HandshakeOutcome::Gone) | Err(_) => {}
    }
}

/// Answers a request without TLS. Discards the request's body.
async fn refuse_plain(stream: TcpStream, writer: &Writer, place: &Place) {
    let answer = service_fn(async |_| {
        let detail = "this port speaks TLS: begin the URL with https://";
        let mut response = Refused::new(StatusCode::BAD_REQUEST, "bad_request", detail).response();
        response.headers_mut().insert(wire::PROTOCOL, HeaderValue::from_static(version::OWN));
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        Ok::<_, Infallible>(response)
    });
    // The client may be gone.
    let _ = server(HANDSHAKE_TIMEOUT).serve_connection(io(stream, writer, place), answer).await;
}

/// A stream that is drained when it is closed: the client gets the response even if its request is unread.
fn io<S>(stream: S, writer: &Writer, place: &Place) -> TokioIo<Lingering<S>> {
    TokioIo::new(Lingering::new(stream, writer.drains.clone(), place.client()))
}

/// How connections are served: the end of a request's head must come within this time.
fn server(head_timeout: Duration) -> http1::Builder {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(head_timeout).max_buf_size(BUFFER_BYTES_MAX);
    server
}

pub(super) async fn requests(stream: impl AsyncRead + AsyncWrite + Unpin, writer: &Arc<Writer>, place: &Arc<Place>) {
    let answer = service_fn(|request| {
        let (writer, place) = (writer.clone(), place.clone());
        async move { Ok::<_, Infallible>(request::answer(request, writer, place).await) }
    });
    let mut connection = pin!(server(IDLE_MAX).serve_connection(io(stream, writer, place), answer));
    let mut phase = writer.phase.subscribe();
    // If the connection breaks, the gateway retries: this side has nothing to do.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = async { drop(phase.wait_for(|phase| *phase == Phase::Ending).await) } => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use access::{Demand, Tokens};
    use net::connections::ConnectionLimiter;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;

    /// Serves a connection without tokens as its listener does.
    async fn served(stream: DuplexStream, writer: &Arc<Writer>) {
        requests(stream, writer, &crate::tests::place().await).await;
    }

    async fn ask(gateway: &mut DuplexStream) {
        gateway.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(gateway.read_u8().await.unwrap());
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", String::from_utf8_lossy(&answer));
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connection_outlives_its_use_by_gateways() {
        let writer = Writer::new(BTreeMap::new(), Arc::new(Tokens::default()), Demand::WithTokens, true, None);
        let (mut gateway, stream) = tokio::io::duplex(1024);
        let served = tokio::spawn(async move { served(stream, &Arc::new(writer)).await });
        ask(&mut gateway).await;
        tokio::time::sleep(wire::IDLE_MAX + Duration::from_secs(29)).await;
        ask(&mut gateway).await;
        let begun = tokio::time::Instant::now();
        assert_eq!(gateway.read(&mut [0]).await.unwrap(), 0);
        assert_eq!(begun.elapsed().as_secs(), IDLE_MAX.as_secs());
        served.await.unwrap();
    }

    #[tokio::test]
    async fn gateway_gets_the_rejection_after_sending_a_body() {
        let tokens = Arc::new(Tokens::default());
        let writer = Arc::new(Writer::new(BTreeMap::new(), tokens, Demand::Always, true, None));
        for (start, status) in [("POST /v1/nowhere HTTP/1.1", "401"), ("POST /v1/nowhere HTTP/3.0", "400")] {
            let (mut gateway, stream) = tokio::io::duplex(1024);
            let serving = writer.clone();
            let served = tokio::spawn(async move { served(stream, &serving).await });
            let head = format!("{start}\r\nHost: localhost\r\nContent-Length: 5000000\r\n\r\n");
            gateway.write_all(head.as_bytes()).await.unwrap();
            gateway.write_all(&vec![0; 5_000_000]).await.unwrap();
            let mut response = String::new();
            gateway.read_to_string(&mut response).await.unwrap();
            assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
            drop(gateway);
            served.await.unwrap();
        }
        assert_eq!((writer.drains().draining(), writer.drains().refused()), (0, 0));
        assert!(writer.drains().discarded_bytes() > 9_000_000);
    }

    #[tokio::test(start_paused = true)]
    async fn stop_does_not_wait_for_idle_gateways() {
        for has_unread_body in [false, true] {
            let writer = Writer::new(BTreeMap::new(), Arc::new(Tokens::default()), Demand::WithTokens, true, None);
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let writer = Arc::new(writer);
            let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
            let served = tokio::spawn(
                writer.clone().serve(listener, ConnectionLimiter::new(1, 1), async { drop(stopped.await) }),
            );
            let mut gateway = TcpStream::connect(address).await.unwrap();
            let length = if has_unread_body { 5_000_000 } else { 0 };
            let head = format!("POST /v1/nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
            gateway.write_all(head.as_bytes()).await.unwrap();
            let mut response = [0; 9];
            gateway.read_exact(&mut response).await.unwrap();
            let begun = tokio::time::Instant::now();
            stop.send(()).unwrap();
            served.await.unwrap();
            assert_eq!(begun.elapsed().as_secs(), 0, "has an unread body: {has_unread_body}");
            drop(gateway);
        }
    }
}
