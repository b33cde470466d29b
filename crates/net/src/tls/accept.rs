//! The handshake, from a server's side.

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::metered::Metered;
use super::{SecureStream, ServerTls};

/// The outcome of a handshake.
#[derive(Debug)]
pub enum HandshakeOutcome {
    /// The handshake succeeded.
    Secure(Box<SecureStream>),
    /// The client doesn't use TLS; nothing was read.
    Plain(TcpStream),
    /// The handshake failed. The alert for the client is sent; it may still be in flight.
    Refused(TcpStream),
    /// The client has left.
    Gone,
}

impl ServerTls {
    /// Performs the handshake. It takes as long as the client does: the caller limits the time.
    pub async fn accept(&self, stream: TcpStream) -> HandshakeOutcome {
        let mut first = [0];
        match stream.peek(&mut first).await {
            Ok(1..) => {}
            _ => return HandshakeOutcome::Gone,
        }
        // TLS begins with 22, an HTTP request with a method in ASCII letters: such a client has the wrong port, and gets a response that says so.
        if first[0].is_ascii_alphabetic() {
            return HandshakeOutcome::Plain(stream);
        }
        match TlsAcceptor::from(self.current()).accept(Metered::new(stream)).into_fallible().await {
            Ok(mut stream) => {
                stream.get_mut().0.lift_limit();
                HandshakeOutcome::Secure(Box::new(stream))
            }
            Err((_, metered)) => HandshakeOutcome::Refused(metered.into_stream()),
        }
    }
}
