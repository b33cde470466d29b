//! The side of a client within a protocol that has begun without TLS, such as a store's: over any stream, and without a name for the
//! protocol within TLS.

use std::io;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::ClientTls;
use super::error_text::explained;

impl ClientTls {
    /// Performs the handshake over an open stream, with the server of this name or address.
    ///
    /// # Errors
    /// The name is invalid, the server isn't trusted, or the connection breaks.
    pub async fn connect_over<S>(&self, host: &str, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "a certificate can't have the server's name: use a host name or an IP address",
            )
        })?;
        let mut config = self.config().clone();
        // A server that knows no protocol of this name would reject the handshake.
        config.alpn_protocols.clear();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(explained)
    }
}
