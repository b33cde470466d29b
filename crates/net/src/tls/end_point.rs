//! The channel binding `tls-server-end-point` (RFC 5929 §4): the digest of the server's certificate, by the hash of its signature. A login
//! that is bound to it can't be relayed by a server with another certificate.

use ring::digest::{Algorithm, SHA256, SHA384, SHA512, digest};

use super::OverStream;
use super::der::{OBJECT_ID, SEQUENCE, element};

/// The first optional member of the parameters of RSASSA-PSS: the hash.
const PSS_HASH: u8 = 0xa0;
/// rsassaPss, 1.2.840.113549.1.1.10.
const PSS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 10];

/// Signature and hash algorithms by their object identifiers, with the hash of the binding: SHA-256 instead of MD5 and SHA-1 (RFC 5929 §4.1).
static HASHES: [(&[u8], &Algorithm); 13] = [
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4], &SHA256), // md5WithRSAEncryption
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5], &SHA256), // sha1WithRSAEncryption
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11], &SHA256), // sha256WithRSAEncryption
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12], &SHA384), // sha384WithRSAEncryption
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13], &SHA512), // sha512WithRSAEncryption
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1], &SHA256),          // ecdsa-with-SHA1
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2], &SHA256),       // ecdsa-with-SHA256
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3], &SHA384),       // ecdsa-with-SHA384
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4], &SHA512),       // ecdsa-with-SHA512
    (&[0x2b, 0x0e, 3, 2, 26], &SHA256),                        // sha1
    (&[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1], &SHA256),       // sha256
    (&[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 2], &SHA384),       // sha384
    (&[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 3], &SHA512),       // sha512
];

/// The binding of a connection; `None` if the certificate is signed without one of these hashes, as by Ed25519.
#[must_use]
pub fn server_end_point<S>(stream: &OverStream<S>) -> Option<Vec<u8>> {
    let certificate = stream.get_ref().1.peer_certificates()?.first()?;
    of_certificate(certificate)
}

fn of_certificate(certificate: &[u8]) -> Option<Vec<u8>> {
    Some(digest(hash(certificate)?, certificate).as_ref().to_vec())
}

/// The hash of a certificate's signature.
fn hash(certificate: &[u8]) -> Option<&'static Algorithm> {
    let (members, _) = element(certificate, SEQUENCE)?;
    let (_, signature) = element(members, SEQUENCE)?;
    let (signature, _) = element(signature, SEQUENCE)?;
    let (id, parameters) = element(signature, OBJECT_ID)?;
    if id != PSS {
        return by_id(id);
    }
    let (parameters, _) = element(parameters, SEQUENCE)?;
    // Without the member it is SHA-1.
    let Some((hash, _)) = element(parameters, PSS_HASH) else { return Some(&SHA256) };
    let (hash, _) = element(hash, SEQUENCE)?;
    by_id(element(hash, OBJECT_ID)?.0)
}

fn by_id(id: &[u8]) -> Option<&'static Algorithm> {
    HASHES.iter().find(|(known, _)| *known == id).map(|(_, hash)| *hash)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};

    use super::*;

    #[test]
    fn binding_uses_the_hash_of_the_signature() {
        for (signature, bytes) in
            [(&PKCS_ECDSA_P256_SHA256, Some(32)), (&PKCS_ECDSA_P384_SHA384, Some(48)), (&PKCS_ED25519, None)]
        {
            let key = KeyPair::generate_for(signature).unwrap();
            let certificate = CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
            let binding = of_certificate(certificate.der());
            assert_eq!(binding.as_ref().map(Vec::len), bytes);
            if bytes == Some(32) {
                assert_eq!(binding.as_deref(), Some(digest(&SHA256, certificate.der()).as_ref()));
            }
        }
    }

    #[test]
    fn pss_names_its_hash_in_the_parameters() {
        let wrap = |tag: u8, content: &[u8]| [&[tag, u8::try_from(content.len()).unwrap()], content].concat();
        let certificate = |parameters: &[u8]| {
            let algorithm = [wrap(OBJECT_ID, PSS), wrap(SEQUENCE, parameters)].concat();
            wrap(SEQUENCE, &[wrap(SEQUENCE, b""), wrap(SEQUENCE, &algorithm)].concat())
        };
        let sha512 = wrap(OBJECT_ID, HASHES[12].0);
        let named = certificate(&wrap(PSS_HASH, &wrap(SEQUENCE, &sha512)));
        assert_eq!(hash(&named), Some(&SHA512));
        assert_eq!(hash(&certificate(b"")), Some(&SHA256));
        assert!((0..named.len()).all(|end| hash(&named[..end]).is_none()), "cut short");
    }
}
