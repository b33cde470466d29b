//! Before the first request: the handshake, on a port with TLS.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use net::tls::{HandshakeOutcome, ServerTls};
use tokio::net::TcpStream;

use crate::connection::{ConnectionState, Order, Phase};
use crate::handler::Handler;
use crate::socket::Socket;
use crate::stream::Stream;

/// A connection after the handshake.
pub(crate) enum Opened {
    /// Requests can be read.
    Ready(Socket),
    /// The client speaks plain HTTP on a port with TLS.
    NotSecure(Socket),
    /// The handshake failed, and the client may still have to read why.
    Refused(Socket),
    /// The client is gone, or the server stops.
    Gone,
}

/// Opens a connection.
pub(crate) async fn open<H: Handler>(handler: &H, connection: &Rc<ConnectionState>, stream: TcpStream) -> Opened {
    let transport = handler.transport();
    let socket = |stream| Socket::new(stream, transport.clone(), connection.clone());
    let Some(tls) = transport.tls() else { return Opened::Ready(socket(Stream::Plain(stream))) };
    connection.enter(Phase::Handshake, transport.now());
    // Boxed: a connection has room for this only as long as it takes.
    let accepted = Box::pin(shake_hands(tls, connection, stream)).await;
    match accepted {
        HandshakeOutcome::Secure(stream) => {
            handler.count_handshake(true);
            connection.enter(Phase::Idle, transport.now());
            Opened::Ready(socket(Stream::Secure(stream)))
        }
        HandshakeOutcome::Plain(stream) => {
            handler.count_handshake(false);
            Opened::NotSecure(socket(Stream::Plain(stream)))
        }
        HandshakeOutcome::Refused(stream) => {
            handler.count_handshake(false);
            Opened::Refused(socket(Stream::Plain(stream)))
        }
        HandshakeOutcome::Gone => Opened::Gone,
    }
}

/// The handshake, unless the connection gets the order to end first.
async fn shake_hands(tls: &ServerTls, connection: &ConnectionState, stream: TcpStream) -> HandshakeOutcome {
    let mut accepted = pin!(tls.accept(stream));
    poll_fn(|context| match connection.order() {
        Order::Continue => accepted.as_mut().poll(context),
        Order::Finish | Order::TooSlow | Order::Abort => Poll::Ready(HandshakeOutcome::Gone),
    })
    .await
}
