//! Which servers a client trusts by a pinned certificate: handshakes over a socket.

use std::io;
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::super::*;

struct Made {
    certificate: String,
    key: String,
}

/// The parts of a certificate.
struct Recipe {
    is_ca: bool,
    common_name: &'static str,
    names: &'static [&'static str],
    from: i32,
    until: i32,
}

/// The certificate of the PostgreSQL manual, except for the name.
const MANUAL: Recipe = Recipe { is_ca: true, common_name: "localhost", names: &[], from: 2020, until: 4000 };

impl Recipe {
    fn parameters(&self) -> CertificateParams {
        let names: Vec<String> = self.names.iter().map(|name| (*name).to_owned()).collect();
        let mut parameters = CertificateParams::new(names).unwrap();
        parameters.distinguished_name = DistinguishedName::new();
        parameters.distinguished_name.push(DnType::OrganizationName, "Example");
        parameters.distinguished_name.push(DnType::CommonName, self.common_name);
        if self.is_ca {
            parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        (parameters.not_before, parameters.not_after) =
            (date_time_ymd(self.from, 1, 1), date_time_ymd(self.until, 1, 1));
        parameters
    }

    fn made(&self) -> Made {
        let key = KeyPair::generate().unwrap();
        Made { certificate: self.parameters().self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
    }
}

/// A handshake with a server that shows `certificate` and signs with `key`.
async fn shake_hands(certificate: &str, key: &str, ca: &str, host: &str) -> io::Result<()> {
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let key = PROVIDER.key_provider.load_private_key(key).unwrap();
    let config = ServerConfig::builder_with_provider(PROVIDER.clone()).with_safe_default_protocol_versions().unwrap();
    let shown = Arc::new(SingleCertAndKey::from(CertifiedKey::new(chain, key)));
    let config = config.with_no_client_auth().with_cert_resolver(shown);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await?;
    let (accepted, _) = listener.accept().await?;
    let server = tokio::spawn(async move { TlsAcceptor::from(Arc::new(config)).accept(accepted).await.is_ok() });
    let client = ClientTls::trusting(ca.as_bytes()).unwrap().connect_over(host, stream).await;
    let message = client.map(drop);
    assert!(server.await.is_ok());
    message
}

async fn with(server: &Made, ca: &str) -> io::Result<()> {
    shake_hands(&server.certificate, &server.key, ca, "localhost").await
}

async fn refusal(server: &Made, ca: &str) -> String {
    with(server, ca).await.unwrap_err().to_string()
}

#[tokio::test]
async fn pinned_leaf_certificate_is_trusted() {
    for is_ca in [true, false] {
        for names in [&[][..], &["localhost"], &["other.example", "localhost"]] {
            let server = Recipe { is_ca, names, ..MANUAL }.made();
            assert!(with(&server, &server.certificate).await.is_ok(), "{is_ca} {names:?}");
            let several = MANUAL.made().certificate + &server.certificate;
            assert!(with(&server, &several).await.is_ok(), "{is_ca} {names:?}");
        }
    }
}

#[tokio::test]
async fn certificate_is_trusted_by_leaf_or_authority() {
    let authority_key = KeyPair::generate().unwrap();
    let parameters = Recipe { common_name: "authority", ..MANUAL }.parameters();
    let authority = parameters.self_signed(&authority_key).unwrap().pem();
    let key = KeyPair::generate().unwrap();
    let server = Recipe { is_ca: false, names: &["localhost"], ..MANUAL }.parameters();
    let issued = server.signed_by(&key, &Issuer::new(parameters, authority_key)).unwrap().pem();
    let server = Made { certificate: issued, key: key.serialize_pem() };
    assert!(with(&server, &server.certificate).await.is_ok());
    assert!(with(&server, &authority).await.is_ok());
}

#[tokio::test]
async fn pinned_certificate_name_and_validity_are_checked() {
    for is_ca in [true, false] {
        for wrong in [
            Recipe { is_ca, common_name: "other.example", ..MANUAL },
            Recipe { is_ca, names: &["other.example"], ..MANUAL },
            Recipe { is_ca, common_name: "localhost.example", ..MANUAL },
        ] {
            let server = wrong.made();
            let message = refusal(&server, &server.certificate).await;
            assert!(message.contains("not for localhost") && !message.contains("--ca"), "{message}");
        }
        let server = Recipe { is_ca, until: 2021, ..MANUAL }.made();
        let message = refusal(&server, &server.certificate).await;
        assert!(message.contains("its certificate has expired, "), "{message}");
        let server = Recipe { is_ca, from: 3999, ..MANUAL }.made();
        let message = refusal(&server, &server.certificate).await;
        assert!(message.contains("isn't valid yet"), "{message}");
    }
}

#[tokio::test]
async fn other_certificate_of_same_subject_is_untrusted() {
    for names in [&[][..], &["localhost"]] {
        let [one, other] = [(); 2].map(|()| Recipe { names, ..MANUAL }.made());
        let message = refusal(&one, &other.certificate).await;
        assert!(message.contains("the server isn't trusted"), "{message}");
        let has_remedy = message.contains("an authority's certificate as its own") && message.contains("--ca FILE");
        assert!(has_remedy && !message.contains("CaUsed"), "{message}");
    }
}

#[tokio::test]
async fn pinned_certificate_needs_its_key() {
    for is_ca in [true, false] {
        let [one, other] = [(); 2].map(|()| Recipe { is_ca, names: &["localhost"], ..MANUAL }.made());
        let message = shake_hands(&one.certificate, &other.key, &one.certificate, "localhost").await;
        assert!(message.is_err());
    }
}

#[tokio::test]
async fn certificates_from_documented_openssl_commands_are_trusted() {
    let folder = std::env::temp_dir().join(format!("forebay-trust-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| folder.join(name);
    for options in [&[][..], &["-addext", "subjectAltName=DNS:localhost"]] {
        let made = Command::new("openssl")
            .args(["req", "-new", "-x509", "-days", "365", "-nodes", "-text", "-subj", "/CN=localhost"])
            .args(options)
            .arg("-out")
            .arg(file("server.crt"))
            .arg("-keyout")
            .arg(file("server.key"))
            .output();
        let Ok(made) = made else { break };
        assert!(made.status.success(), "{made:?}");
        let read = |name| std::fs::read_to_string(file(name)).unwrap();
        let server = Made { certificate: read("server.crt"), key: read("server.key") };
        assert!(with(&server, &server.certificate).await.is_ok(), "{options:?}");
        let message = shake_hands(&server.certificate, &server.key, &server.certificate, "127.0.0.1").await;
        assert!(message.unwrap_err().to_string().contains("not for 127.0.0.1"));
    }
    std::fs::remove_dir_all(folder).unwrap();
}
