//! The identity of a server: a chain of certificates and the key of the first.

use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::version::{TLS12, TLS13};
use rustls::{Error, InconsistentKeys, ServerConfig};

use super::time_provider::{Tickets, WallClock};
use super::{HTTP_11, PROVIDER};

/// Certificates and a key that match.
#[derive(Clone, Debug)]
pub struct Identity(pub(crate) Arc<ServerConfig>);

/// Why certificates and a key can't be used. No message repeats what is in the files: it may be a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// No certificate.
    #[error("there is no certificate in the file: expected PEM, with a line -----BEGIN CERTIFICATE-----")]
    NoCertificate,
    /// An invalid certificate.
    #[error("its certificate is damaged, or of an unsupported kind: create another one")]
    WrongCertificate,
    /// No key.
    #[error(
        "there is no private key in the file: expected PEM, with a line -----BEGIN PRIVATE KEY----- (RSA and EC too)"
    )]
    NoKey,
    /// An encrypted key.
    #[error("its private key is encrypted; write it without a password: openssl pkey -in FILE -out NEW")]
    EncryptedKey,
    /// An invalid key.
    #[error("its private key is damaged, or of an unsupported kind: expected RSA, ECDSA P-256 or P-384, or Ed25519")]
    WrongKey,
    /// A key of another certificate.
    #[error("the private key belongs to another certificate: the first one of the file must be the server's own")]
    Mismatch,
    /// The operating system has no randomness, or another failure that should never happen.
    #[error("TLS can't be set up on this machine: check that /dev/urandom can be read, or report this")]
    Unusable,
}

impl IdentityError {
    /// Whether the file of certificates is wrong, and not that of the key.
    #[must_use]
    pub const fn is_of_certificate(self) -> bool {
        matches!(self, Self::NoCertificate | Self::WrongCertificate)
    }
}

impl Identity {
    /// Reads a server's certificate, followed by the chain to its authority, and its key, both in PEM.
    ///
    /// # Errors
    /// [`IdentityError`] says which of the two is wrong, or that they don't match.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let chain = certificate_chain(certificates)?;
        let key = private_key(key)?;
        let builder = ServerConfig::builder_with_details(PROVIDER.clone(), Arc::new(WallClock));
        let builder = builder.with_protocol_versions(&[&TLS13, &TLS12]).map_err(|_| IdentityError::Unusable)?;
        let mut config = builder.with_no_client_auth().with_single_cert(chain, key).map_err(of_rustls)?;
        config.alpn_protocols = vec![HTTP_11.into()];
        // Clients keep their own session tickets, so the server remembers nothing of closed connections.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        if let Some(tickets) = Tickets::make().map_err(|_| IdentityError::Unusable)? {
            config.ticketer = tickets;
        }
        Ok(Self(Arc::new(config)))
    }
}

fn certificate_chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err(IdentityError::NoCertificate),
        Ok(chain) => Ok(chain),
        Err(_) => Err(IdentityError::WrongCertificate),
    }
}

fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, IdentityError> {
    let is_encrypted = has(pem, b"BEGIN ENCRYPTED PRIVATE KEY") || has(pem, b"Proc-Type: 4,ENCRYPTED");
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
        _ if is_encrypted => IdentityError::EncryptedKey,
        pem::Error::NoItemsFound => IdentityError::NoKey,
        _ => IdentityError::WrongKey,
    })
}

fn has(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

/// rustls reads the key first and then looks whether the certificate has the same one.
fn of_rustls(error: Error) -> IdentityError {
    match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => IdentityError::Mismatch,
        Error::InvalidCertificate(_) => IdentityError::WrongCertificate,
        _ => IdentityError::WrongKey,
    }
}
