//! What happens before the first request: on a port with TLS, the handshake.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use net::tls::{Accepted, ServerTls};
use tokio::net::TcpStream;

use crate::worker::Worker;

use super::connection::{Connection, Order, Phase};
use super::socket::Socket;
use super::stream::Stream;

/// A connection on which something can be said.
pub(super) enum Opened {
    /// Requests can be read.
    Ready(Socket),
    /// The client speaks without TLS where it is needed.
    NotSecure(Socket),
    /// The handshake failed, and the client may still have to read why.
    Refused(Socket),
    /// Nobody is there, or the server stops.
    Gone,
}

/// Opens a connection.
pub(super) async fn open(worker: &Rc<Worker>, connection: &Rc<Connection>, stream: TcpStream) -> Opened {
    let socket = |stream| Socket::new(stream, worker.clone(), connection.clone());
    let Some(tls) = worker.tls() else { return Opened::Ready(socket(Stream::Plain(stream))) };
    connection.enter(Phase::Handshake, worker.now());
    // Boxed: a connection has room for this only as long as it takes.
    let accepted = Box::pin(shake_hands(tls, connection, stream)).await;
    match accepted {
        Accepted::Secure(stream) => {
            worker.cells().tls_handshakes.add(1);
            connection.enter(Phase::Idle, worker.now());
            Opened::Ready(socket(Stream::Secure(stream)))
        }
        Accepted::Plain(stream) => {
            worker.cells().tls_failures.add(1);
            Opened::NotSecure(socket(Stream::Plain(stream)))
        }
        Accepted::Refused(stream) => {
            worker.cells().tls_failures.add(1);
            Opened::Refused(socket(Stream::Plain(stream)))
        }
        Accepted::Gone => Opened::Gone,
    }
}

/// The handshake, unless the connection is told to end before.
async fn shake_hands(tls: &ServerTls, connection: &Connection, stream: TcpStream) -> Accepted {
    let mut accepted = pin!(tls.accept(stream));
    poll_fn(|context| match connection.order() {
        Order::GoOn => accepted.as_mut().poll(context),
        Order::Finish | Order::TooSlow | Order::Abort => Poll::Ready(Accepted::Gone),
    })
    .await
}
