//! Which certificates and keys are accepted.

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};

use super::*;

struct Pair {
    certificate: String,
    key: String,
}

fn pair() -> Pair {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    Pair { certificate: cert.pem(), key: signing_key.serialize_pem() }
}

fn error(certificate: &str, key: &str) -> IdentityError {
    Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap_err()
}

#[test]
fn certificate_and_key_must_fit() {
    let pair = pair();
    let Pair { certificate, key } = &pair;
    let sound = Identity::from_pem(certificate.as_bytes(), key.as_bytes());
    assert!(sound.is_ok());
    let together = format!("{key}{certificate}");
    assert!(Identity::from_pem(together.as_bytes(), together.as_bytes()).is_ok(), "both in one file");
    let other = KeyPair::generate().unwrap().serialize_pem();
    assert_eq!(error(certificate, &other), IdentityError::Mismatch);
    assert_eq!(error("", key), IdentityError::NoCertificate);
    assert_eq!(error(key, key), IdentityError::NoCertificate);
    assert_eq!(error(certificate, ""), IdentityError::NoKey);
    assert_eq!(error(certificate, certificate), IdentityError::NoKey);
    let encrypted = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    assert_eq!(error(certificate, &encrypted), IdentityError::EncryptedKey);
    let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(error(damaged, key).is_of_certificate());
}

#[test]
fn errors_show_no_bytes_of_a_key() {
    let Pair { certificate, key } = pair();
    let lines: Vec<&str> = key.lines().filter(|line| !line.starts_with('-')).collect();
    let mut wrong = vec![key.replace("-----END", "-----FIN"), key.replace("-----\n", "")];
    wrong.extend((0..lines.len()).map(|at| key.replace(lines[at], &format!("-----BEGIN {}", lines[at]))));
    wrong.extend((0..lines.len()).map(|at| key.replace(lines[at], &lines[at][..lines[at].len() / 2])));
    wrong.extend((0..lines.len()).map(|at| key.replace(lines[at], &format!("{}\u{e9}", lines[at]))));
    for wrong in wrong {
        let error = error(&certificate, &wrong);
        let shown = format!("{error} {error:?}");
        assert!(lines.iter().all(|line| !shown.contains(&line[..8])), "{shown}");
    }
    assert!(!format!("{:?}", Identity::from_pem(certificate.as_bytes(), key.as_bytes())).contains(&lines[0][..8]));
}

#[test]
fn authorities_are_loaded_from_a_file() {
    let Pair { certificate, key } = pair();
    assert!(ClientTls::trusting(certificate.as_bytes()).is_ok());
    assert_eq!(ClientTls::trusting(key.as_bytes()).unwrap_err(), TrustError::NoCertificate);
    let cut = &certificate[..certificate.len() / 2];
    assert!(ClientTls::trusting(cut.as_bytes()).is_err());
}
