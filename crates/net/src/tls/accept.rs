//! The handshake, from a server's side.

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::metered::Metered;
use super::{SecureStream, ServerTls};

/// What a connection turned out to be.
#[derive(Debug)]
pub enum HandshakeOutcome {
    /// TLS was agreed on.
    Secure(Box<SecureStream>),
    /// The client speaks without TLS; nothing was read.
    Plain(TcpStream),
    /// Nothing was agreed on. What the client was to be told is sent; it may still be on its way.
    Refused(TcpStream),
    /// The client has left.
    Gone,
}

impl ServerTls {
    /// Shakes hands. It takes as long as the client does: who waits sets the limit.
    pub async fn accept(&self, stream: TcpStream) -> HandshakeOutcome {
        let mut first = [0];
        match stream.peek(&mut first).await {
            Ok(1..) => {}
            _ => return HandshakeOutcome::Gone,
        }
        // TLS begins with 22, a request with a letter: who sends one has mistaken the port, and can be told so.
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
