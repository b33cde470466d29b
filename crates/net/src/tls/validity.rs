//! When certificates end (RFC 5280 §4.1.2.5).

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use text::rfc3339;

use super::der::{SEQUENCE, element};
use super::identity::IdentityError;

/// The optional version at the front of a certificate's content.
const VERSION: u8 = 0xa0;
const INTEGER: u8 = 0x02;
/// A time with a year of two digits: 1950 to 2049.
const UTC_TIME: u8 = 0x17;
/// A time with a year of four digits.
const GENERALIZED_TIME: u8 = 0x18;

/// When the first certificate of a PEM file ends, in microseconds since 1970. It is the server's own; its authorities renew theirs.
///
/// # Errors
/// The file has no certificate, or a damaged one.
pub fn end_of_certificate(pem: &[u8]) -> Result<i64, IdentityError> {
    let first = CertificateDer::pem_slice_iter(pem).next().ok_or(IdentityError::NoCertificate)?;
    let certificate = first.map_err(|_| IdentityError::WrongCertificate)?;
    end(&certificate).ok_or(IdentityError::WrongCertificate)
}

fn end(certificate: &[u8]) -> Option<i64> {
    let (members, _) = element(certificate, SEQUENCE)?;
    let (content, _) = element(members, SEQUENCE)?;
    let content = element(content, VERSION).map_or(content, |(_, rest)| rest);
    let (_serial, rest) = element(content, INTEGER)?;
    let (_signature, rest) = element(rest, SEQUENCE)?;
    let (_issuer, rest) = element(rest, SEQUENCE)?;
    let (validity, _) = element(rest, SEQUENCE)?;
    let skipped = element(validity, UTC_TIME).or_else(|| element(validity, GENERALIZED_TIME));
    let (_begin, end) = skipped?;
    let text = |bytes| std::str::from_utf8(bytes).ok();
    match (element(end, UTC_TIME), element(end, GENERALIZED_TIME)) {
        (Some((short, _)), _) => {
            let short = text(short)?;
            let century = if short.get(..2)?.parse::<u8>().ok()? < 50 { "20" } else { "19" };
            time(&format!("{century}{short}"))
        }
        (None, Some((long, _))) => time(text(long)?),
        (None, None) => None,
    }
}

/// A time as `20261127080000Z`.
fn time(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('Z').filter(|digits| digits.len() == 14 && digits.is_ascii())?;
    let [year, month, day] = [&digits[..4], &digits[4..6], &digits[6..8]];
    let [hour, minute, second] = [&digits[8..10], &digits[10..12], &digits[12..]];
    rfc3339::parse(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z")).ok()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn end_of_a_certificate_is_found() {
        for (year, expected) in [(2031, "2031-05-17T00:00:00Z"), (2101, "2101-05-17T00:00:00Z")] {
            let mut parameters = CertificateParams::new(["localhost".to_owned()]).unwrap();
            parameters.not_after = date_time_ymd(year, 5, 17);
            let pem = parameters.self_signed(&KeyPair::generate().unwrap()).unwrap().pem();
            assert_eq!(end_of_certificate(pem.as_bytes()), Ok(rfc3339::parse(expected).unwrap()));
        }
        assert_eq!(end_of_certificate(b""), Err(IdentityError::NoCertificate));
        let wrong = b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        assert_eq!(end_of_certificate(wrong), Err(IdentityError::WrongCertificate));
        assert_eq!((time("20261327080000Z"), time("261127080000Z"), time("2026112708000éZ")), (None, None, None));
    }
}
