//! TLS 1.2 and 1.3 by rustls, as Forebay speaks it: a server's side for both ports, a client's for the commands and for stores. It takes
//! bytes of PEM files, never their paths, and none of its messages shows what is in them.
//!
//! Within TLS there is HTTP/1.1, or a store's own protocol. Clients are known by tokens, not by certificates.

mod accept;
mod client;
mod der;
mod end_point;
mod error_text;
mod identity;
mod metered;
mod pinned_verifier;
mod server;
mod starttls;
#[cfg(test)]
mod tests;
mod time_provider;
mod trust_error;
mod validity;

use std::sync::{Arc, LazyLock};

use rustls::crypto::{CryptoProvider, ring};

pub use accept::HandshakeOutcome;
pub use client::{ClientStream, ClientTls};
pub use end_point::server_end_point;
pub use error_text::in_configuration;
pub use identity::{Identity, IdentityError};
pub use metered::Metered;
pub use server::ServerTls;
pub use trust_error::TrustError;
pub use validity::end_of_certificate;

/// What a client has of a stream after the handshake over it.
pub type OverStream<S> = tokio_rustls::client::TlsStream<S>;
/// What a server has of a connection after the handshake.
pub type SecureStream = tokio_rustls::server::TlsStream<Metered>;

/// The protocol within TLS, by its registered name (RFC 7301).
const HTTP_11: &[u8] = b"http/1.1";

static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| Arc::new(ring::default_provider()));
