//! The side of a client: the authorities that it trusts, and a connection to such a server.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::error_text::explained;
use super::pinned_verifier::Verifier;
use super::time_provider::WallClock;
use super::trust_error::TrustError;
use super::{HTTP_11, PROVIDER};

/// The authorities that a client trusts.
#[derive(Clone, Debug)]
pub struct ClientTls(Arc<ClientConfig>);

impl ClientTls {
    /// Trusts the authorities of a PEM file, and servers that show one of its certificates themselves.
    ///
    /// # Errors
    /// There is none, or one can't be read.
    pub fn trusting(pem: &[u8]) -> Result<Self, TrustError> {
        let (mut roots, mut named) = (RootCertStore::empty(), Vec::new());
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|_| TrustError::WrongCertificate)?;
            named.push(certificate.clone());
            roots.add(certificate).map_err(|_| TrustError::WrongCertificate)?;
        }
        if roots.is_empty() { Err(TrustError::NoCertificate) } else { Self::with(roots, named) }
    }

    /// Trusts the authorities of this machine.
    ///
    /// # Errors
    /// It has none.
    pub fn of_system() -> Result<Self, TrustError> {
        let mut roots = RootCertStore::empty();
        // Some lists have certificates that can't be parsed: the others count.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() { Err(TrustError::NoSystemRoots) } else { Self::with(roots, Vec::new()) }
    }

    pub(crate) fn config(&self) -> &ClientConfig {
        &self.0
    }

    fn with(roots: RootCertStore, named: Vec<CertificateDer<'static>>) -> Result<Self, TrustError> {
        let verifier = Verifier::new(roots, named)?;
        let builder = ClientConfig::builder_with_details(PROVIDER.clone(), Arc::new(WallClock));
        let builder = builder.with_protocol_versions(&[&TLS13, &TLS12]).map_err(|_| TrustError::Unusable)?;
        // "Dangerous" are checks that a verifier omits: this one is rustls' own, extended for pinned certificates.
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![HTTP_11.into()];
        Ok(Self(Arc::new(config)))
    }

    /// Performs the handshake over a blocking socket, with the server of this name or address.
    ///
    /// # Errors
    /// The name is invalid, the server isn't trusted, or the connection breaks.
    pub fn connect(&self, host: &str, stream: TcpStream) -> io::Result<ClientStream> {
        let mut stream = self.begin(host, stream)?;
        let StreamOwned { conn, sock } = &mut *stream.0;
        while conn.is_handshaking() {
            conn.complete_io(sock).map_err(explained)?;
        }
        Ok(stream)
    }

    /// The same without the handshake: the first writes and reads do it.
    ///
    /// # Errors
    /// The name is invalid.
    pub fn begin(&self, host: &str, stream: TcpStream) -> io::Result<ClientStream> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "a certificate can't have the server's name: use a host name or an IP address",
            )
        })?;
        let connection = ClientConnection::new(self.0.clone(), name).map_err(io::Error::other)?;
        Ok(ClientStream(Box::new(StreamOwned::new(connection, stream))))
    }
}

/// A connection to a server that is trusted.
#[derive(Debug)]
pub struct ClientStream(Box<StreamOwned<ClientConnection, TcpStream>>);

impl ClientStream {
    /// The socket under it.
    #[must_use]
    pub const fn socket(&self) -> &TcpStream {
        &self.0.sock
    }
}

impl Read for ClientStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for ClientStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    /// If the socket doesn't block, bytes that can't be sent now are kept, and sent with the next call.
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
