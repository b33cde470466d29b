//! A store that is reached by HTTPS alone: a stand-in ends TLS before an OpenSearch server, and shows a certificate of the test's own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::{documents, post, start};
use crate::support::{Folder, wait_until};
use crate::tls::Pair;
use testkit::opensearch::OpenSearch;

type Secured = StreamOwned<ServerConnection, TcpStream>;

/// The stand-in. Its threads end with the connections.
struct Front {
    address: SocketAddr,
    /// The heads of the requests received.
    heads: Arc<Mutex<Vec<String>>>,
}

impl Front {
    /// Serves the certificate of `pair` at this address, and forwards the requests to `store`.
    fn before(store: SocketAddr, pair: &Pair, address: &str) -> Self {
        let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = Arc::new(config.with_single_cert(vec![certificate], key).unwrap());
        let listener = TcpListener::bind((address, 0)).unwrap();
        let (address, heads) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<String>>>::default());
        let kept = Arc::clone(&heads);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (session, kept) = (ServerConnection::new(Arc::clone(&config)).unwrap(), Arc::clone(&kept));
                let client = StreamOwned::new(session, client.unwrap());
                std::thread::spawn(move || serve(client, store, &kept));
            }
        });
        Self { address, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// Hands on requests and their answers, one after the other, until either side ends.
fn serve(mut client: Secured, store: SocketAddr, kept: &Mutex<Vec<String>>) {
    let mut store = TcpStream::connect(store).unwrap();
    while let Some((head, request)) = message(&mut client) {
        kept.lock().unwrap().push(head);
        if store.write_all(&request).is_err() {
            return;
        }
        let Some((_, answer)) = message(&mut store) else { return };
        if client.write_all(&answer).and_then(|()| client.flush()).is_err() {
            return;
        }
    }
}

/// The next head, in lower case, and the whole message; `None` after the last, or if TLS fails.
fn message(from: &mut impl Read) -> Option<(String, Vec<u8>)> {
    let mut whole = Vec::new();
    while !whole.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        from.read_exact(&mut byte).ok()?;
        whole.push(byte[0]);
    }
    let head = String::from_utf8(whole.clone()).unwrap().to_ascii_lowercase();
    let length = head.split_once("content-length: ").map(|(_, behind)| behind.lines().next().unwrap());
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
    from.read_exact(&mut body).ok()?;
    whole.extend_from_slice(&body);
    Some((head, whole))
}

#[test]
fn documents_are_written_only_over_trusted_tls() {
    let Some(store) = OpenSearch::shared() else { return };
    let (pair, untrusted) = (Pair::new(), Pair::new());
    let front = Front::before(store.address(), &pair, "127.0.0.1");
    let folder = Folder::new();
    let authority = folder.write("authority.pem", &untrusted.certificate);
    let url = format!("https://ann:s3cret@localhost:{}", front.address.port());
    let server = start(&folder, &url, &format!("ca = \"{authority}\"\n"));
    assert_eq!(post(&server, 1), 200);
    let log = || std::fs::read_to_string(folder.path("log")).unwrap();
    assert!(wait_until(|| log().contains("isn't trusted")), "{}", log());
    assert!(log().contains("the setting `ca`"), "what to do: {}", log());
    assert_eq!(front.heads(), Vec::<String>::new(), "an untrusted server gets nothing, and no password");
    // The authority is exchanged without a restart.
    folder.write("authority.pem", &pair.certificate);
    server.wait_delivered();
    assert_eq!(documents(store).len(), 1);
    let heads = front.heads();
    let bulk = heads.iter().find(|head| head.starts_with("post /_bulk")).unwrap();
    assert!(bulk.contains("authorization: basic yw5uonmzy3jlda=="), "{bulk}");
    assert!(!log().contains("s3cret"), "{}", log());
    // An address that the certificate doesn't have.
    let (misnamed, plain) = (Folder::new(), Folder::new());
    let authority = misnamed.write("authority.pem", &pair.certificate);
    let elsewhere = Front::before(store.address(), &pair, "127.0.0.2");
    let other = format!("https://{}", elsewhere.address);
    let server = start(&misnamed, &other, &format!("ca = \"{authority}\"\n"));
    assert_eq!(post(&server, 2), 200);
    let log = || std::fs::read_to_string(misnamed.path("log")).unwrap();
    assert!(wait_until(|| log().contains("certificate")), "{}", log());
    assert_eq!(elsewhere.heads(), Vec::<String>::new());
    drop(server);
    // And one without TLS at all.
    let server = start(&plain, &url.replace("https", "http"), "");
    assert_eq!(post(&server, 3), 200);
    let log = || std::fs::read_to_string(plain.path("log")).unwrap();
    assert!(wait_until(|| log().contains("broke")), "{}", log());
    assert_eq!(documents(store).len(), 1);
}
