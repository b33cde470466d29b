//! Why a client trusts no authority.

/// Why there are no authorities to trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// The file has no certificate.
    #[error("there is no certificate in the file: expected PEM, with a line -----BEGIN CERTIFICATE-----")]
    NoCertificate,
    /// A certificate of the file can't be read.
    #[error("a certificate in the file is damaged: replace it")]
    WrongCertificate,
    /// The machine has no authorities.
    #[error("this machine has no list of authorities to trust: name a file with --ca")]
    NoSystemRoots,
    /// A failure that should never happen.
    #[error("TLS can't be set up on this machine: check that /dev/urandom can be read, or report this")]
    Unusable,
}
