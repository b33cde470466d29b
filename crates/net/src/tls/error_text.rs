//! Why a client has no TLS with a server, as messages for the caller: what happened, and what to do.

use std::fmt::Display;
use std::io;

use rustls::{CertificateError, Error, InvalidMessage, OtherError};

/// Mistakes that the caller can fix have the kind [`io::ErrorKind::InvalidData`]: a retry doesn't help.
pub(crate) fn explained(error: io::Error) -> io::Error {
    let mistake = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(wrong)) => {
            mistake(format!("the server isn't trusted: {}", of_certificate(wrong)))
        }
        Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => mistake(
            "the server does not speak TLS on this port: write http:// instead of https://, or name its port with TLS"
                .to_owned(),
        ),
        Some(Error::InvalidMessage(_)) => mistake(
            "the server's response is not TLS: write http:// instead of https://, or name its port with TLS".to_owned(),
        ),
        Some(Error::AlertReceived(alert)) => {
            io::Error::other(format!("the server rejects TLS with this client ({alert:?}): see the log of the server"))
        }
        Some(inner) => io::Error::other(format!("can't set up TLS with the server: {inner}")),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            let text = "the server closed the connection while TLS began: it may be stopping, or this port may \
                        serve another protocol";
            io::Error::new(io::ErrorKind::UnexpectedEof, text)
        }
        None => error,
    }
}

/// The option of commands that names authorities.
const CA_OPTION: &str = "--ca FILE";

/// The message of `explained`, for the author of a configuration.
#[must_use]
pub fn in_configuration(message: &impl Display) -> String {
    let message = message.to_string();
    let setting = if message.contains(CA_OPTION) { "; in this configuration: the setting `ca`" } else { "" };
    format!("{message}{setting}")
}

/// The error of a certificate, and what to do.
fn of_certificate(wrong: &CertificateError) -> String {
    match wrong {
        // If two authorities have one name, the wrong one may be trusted here: then the signature doesn't match.
        CertificateError::UnknownIssuer
        | CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            format!("no authority that is trusted here has signed its certificate: name its authority with {CA_OPTION}")
        }
        CertificateError::ExpiredContext { time, not_after } => {
            let days = time.as_secs().saturating_sub(not_after.as_secs()) / 86_400;
            let ago =
                if days == 0 { "today or yesterday".to_owned() } else { format!("{} ago", text::counted(days, "day")) };
            format!("its certificate has expired, {ago}: renew it on the server (or set this machine's clock right)")
        }
        CertificateError::Expired => {
            "its certificate has expired: renew it on the server (or set this machine's clock right)".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate isn't valid yet: compare this machine's clock with the server's".to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let named = if presented.is_empty() {
                "no name".to_owned()
            } else {
                presented.iter().map(|name| bare(name)).collect::<Vec<_>>().join(", ")
            };
            let expected = expected.to_str();
            format!("its certificate is for {named}, not for {expected}: use a name of the certificate in the address")
        }
        CertificateError::NotValidForName => {
            "its certificate is for another name: use a name of the certificate in the address".to_owned()
        }
        CertificateError::BadEncoding => "its certificate is damaged: create a new one for the server".to_owned(),
        CertificateError::Revoked => "its certificate was revoked: create another one for the server".to_owned(),
        CertificateError::Other(other) if is_of_authority(other) => format!(
            "it uses an authority's certificate as its own, as `openssl req -x509` creates it: create one \
             with -addext basicConstraints=critical,CA:FALSE and trust it, or name a copy of this one with {CA_OPTION}"
        ),
        other => format!(
            "its certificate can't be used ({other}): name its authority with {CA_OPTION}, or give the server another one"
        ),
    }
}

/// Whether a server shows a certificate that is marked as an authority's.
fn is_of_authority(error: &OtherError) -> bool {
    matches!(error.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// A name of a certificate, without its kind: `DnsName("a.example")`.
fn bare(name: &str) -> &str {
    let inside = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
    inside.trim_matches('"')
}
