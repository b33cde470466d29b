//! The side of a client within a protocol that has begun without TLS, as a store's has: over any stream, and without a
//! name for what goes on within.

use std::io;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::ClientTls;
use super::error_text::explained;

impl ClientTls {
    /// Shakes hands over a stream that is open, with the server of this name or address.
    ///
    /// # Errors
    /// The name can't be one, the server isn't trusted, or the connection breaks.
    pub async fn connect_over<S>(&self, host: &str, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the server's name can't be in a certificate"))?;
        let mut config = self.config().clone();
        // A server that knows this name for none of its protocols would refuse.
        config.alpn_protocols.clear();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(explained)
    }
}
