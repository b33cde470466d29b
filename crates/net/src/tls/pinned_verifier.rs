//! Verifies a server's certificate: by the authorities that are trusted, or because it is one of the trusted certificates itself.
//!
//! The PostgreSQL manual makes a server's certificate with `openssl req -x509`: self-signed, marked as an authority, often with a common
//! name and no alternative names. A chain can't end with an authority, so the verifier compares such a certificate byte for byte. It
//! still checks the certificate's name and validity and the signature of the handshake.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme};
use webpki::{EndEntityCert, KeyUsage};

use super::PROVIDER;
use super::trust_error::TrustError;

/// The identifier 2.5.4.3 of a common name, in DER.
const COMMON_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x03];
/// The tags of DER that a name consists of.
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

/// Trusts authorities, and pinned certificates.
#[derive(Debug)]
pub(crate) struct Verifier {
    by_authority: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl Verifier {
    /// `named` are the pinned certificates.
    pub(crate) fn new(roots: RootCertStore, named: Vec<CertificateDer<'static>>) -> Result<Self, TrustError> {
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), PROVIDER.clone());
        Ok(Self { by_authority: builder.build().map_err(|_| TrustError::Unusable)?, named })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.by_authority.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            Err(error) if self.named.iter().any(|named| named == end_entity) => {
                verify_named(end_entity, server_name, now, error)
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authority.supported_verify_schemes()
    }
}

/// Checks a pinned certificate, regardless of its signer. `error` is the result of the check by authorities.
fn verify_named(
    certificate: &CertificateDer<'_>,
    server_name: &ServerName<'_>,
    now: UnixTime,
    error: Error,
) -> Result<ServerCertVerified, Error> {
    let Ok(parsed) = EndEntityCert::try_from(certificate) else { return Err(error) };
    let algorithms = PROVIDER.signature_verification_algorithms.all;
    // Without any authority webpki checks the validity first, then whether it is a server's, and last that it has no issuer.
    match parsed.verify_for_usage(algorithms, &[], &[], now, KeyUsage::server_auth(), None, None) {
        Ok(_) | Err(webpki::Error::CaUsedAsEndEntity | webpki::Error::UnknownIssuer) => {}
        Err(webpki::Error::CertExpired { time, not_after }) => {
            return Err(CertificateError::ExpiredContext { time, not_after }.into());
        }
        Err(webpki::Error::CertNotValidYet { time, not_before }) => {
            return Err(CertificateError::NotValidYetContext { time, not_before }.into());
        }
        Err(other) => return Err(CertificateError::Other(OtherError(Arc::new(other))).into()),
    }
    match parsed.verify_is_valid_for_subject_name(server_name) {
        Ok(()) => Ok(ServerCertVerified::assertion()),
        Err(webpki::Error::CertNotValidForName(wrong)) => {
            let has_common_name = wrong.presented.is_empty() && is_common_name(parsed.subject(), server_name);
            if has_common_name {
                return Ok(ServerCertVerified::assertion());
            }
            let (expected, presented) = (wrong.expected, wrong.presented);
            Err(CertificateError::NotValidForNameContext { expected, presented }.into())
        }
        Err(other) => Err(CertificateError::Other(OtherError(Arc::new(other))).into()),
    }
}

/// Whether a subject's common name is exactly this name: a certificate without alternative names has no other.
fn is_common_name(subject: &[u8], name: &ServerName<'_>) -> bool {
    let name = name.to_str();
    common_names(subject).any(|common| common.eq_ignore_ascii_case(name.as_bytes()))
}

/// The common names of a subject: a sequence of sets of pairs, of an identifier and a text.
fn common_names(subject: &[u8]) -> impl Iterator<Item = &[u8]> {
    // webpki gives the subject without its own tag.
    elements(subject).filter(|(tag, _)| *tag == SET).flat_map(|(_, set)| elements(set)).filter_map(|(tag, pair)| {
        let text = pair.strip_prefix(&COMMON_NAME).filter(|_| tag == SEQUENCE)?;
        elements(text).next().map(|(_, text)| text)
    })
}

/// The elements of DER that follow each other, each with its tag, up to the first that can't be read.
fn elements(mut der: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let [tag, length, rest @ ..] = der else { return None };
        let (length, rest) = match *length {
            short @ ..=0x7f => (usize::from(short), rest),
            0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
            0x82 => (usize::from(u16::from_be_bytes([*rest.first()?, *rest.get(1)?])), rest.get(2..)?),
            _ => return None,
        };
        let (content, behind) = rest.split_at_checked(length)?;
        der = behind;
        Some((*tag, content))
    })
}

#[cfg(test)]
mod tests;
