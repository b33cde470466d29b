//! TLS on the intake port: what is negotiated, what is rejected, and what it may cost.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use gateway::{GatewayOptions, RouteName, StatusClass};
use net::tls::{ClientStream, ClientTls, Identity, ServerTls};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, SocketType, socket};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::early_responses;
use crate::fixture::{Answer, Client, Fixture, open_types};

const PATIENCE: Duration = Duration::from_secs(60);

/// An identity, and the certificate that a client must trust for it.
struct Shown {
    identity: Identity,
    certificate: String,
}

fn shown() -> Shown {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = cert.pem();
    let identity = Identity::from_pem(certificate.as_bytes(), signing_key.serialize_pem().as_bytes()).unwrap();
    Shown { identity, certificate }
}

/// A gateway that speaks TLS.
struct Secure {
    fixture: Fixture,
    tls: Arc<ServerTls>,
    certificate: String,
}

impl Secure {
    fn with(options: GatewayOptions) -> Self {
        let Shown { identity, certificate } = shown();
        let tls = Arc::new(ServerTls::new(identity));
        let fixture = Fixture::with(open_types(), GatewayOptions { tls: Some(tls.clone()), ..options });
        Self { fixture, tls, certificate }
    }

    fn open() -> Self {
        Self::with(GatewayOptions::default())
    }

    /// With deadlines that pass immediately.
    fn impatient() -> Self {
        Self::with(GatewayOptions { tick: Duration::from_millis(2), ..GatewayOptions::default() })
    }

    fn socket(&self) -> TcpStream {
        let stream = TcpStream::connect(self.fixture.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    fn connect(&self) -> ClientStream {
        connect(&self.certificate, self.socket()).unwrap()
    }
}

fn connect(certificate: &str, socket: TcpStream) -> std::io::Result<ClientStream> {
    ClientTls::trusting(certificate.as_bytes()).unwrap().connect("localhost", socket)
}

fn post(path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Sends a request and reads its answer.
fn ask(stream: &mut (impl Read + Write), request: &[u8]) -> Answer {
    stream.write_all(request).unwrap();
    stream.flush().unwrap();
    answer(stream)
}

fn answer(stream: &mut impl Read) -> Answer {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap_or_else(|error| panic!("{error} after {head:?}"));
        head.push(byte[0]);
    }
    let text = String::from_utf8(head).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    let fields = text.lines().filter_map(|line| line.split_once(": "));
    let headers = fields.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    let mut answer = Answer { status, headers, body: Vec::new() };
    answer.body = vec![0; answer.header("content-length").map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut answer.body).unwrap();
    answer
}

/// Everything that comes until the server closes.
fn rest(stream: &mut impl Read) -> Vec<u8> {
    let mut rest = Vec::new();
    // A reset is an end too.
    let _ = stream.read_to_end(&mut rest);
    rest
}

#[test]
fn events_and_batches_are_accepted_over_tls() {
    let secure = Secure::open();
    let mut stream = secure.connect();
    for payload in ["1", "{\"a\":2}"] {
        assert_eq!(ask(&mut stream, &post("/ingest/event", payload.as_bytes())).status, 200);
    }
    // Larger than what TLS holds back, in both directions.
    let text = format!("\"{}\"\n", "x".repeat(900_000));
    assert_eq!(ask(&mut stream, &post("/ingest/batch", text.repeat(8).as_bytes())).status, 200);
    let refused = ask(&mut stream, &post("/ingest/batch", "{\n".repeat(1000).as_bytes()));
    assert_eq!((refused.status, refused.json()["refused"].as_array().unwrap().len()), (400, 1000));
    assert!(refused.body.len() > 64 * 1024, "{}", refused.body.len());
    let pipelined = [post("/ingest/event", b"3"), post("/ingest/event", b"4")].concat();
    assert_eq!([ask(&mut stream, &pipelined).status, answer(&mut stream).status], [200, 200]);
    assert_eq!(secure.fixture.payloads().len(), 12);
    assert_eq!((secure.fixture.counters().tls_handshakes(), secure.fixture.counters().tls_failures()), (1, 0));
}

#[test]
fn rejections_reach_clients_that_write_first() {
    let patient = GatewayOptions { tick: Duration::from_hours(1), ..GatewayOptions::default() };
    let secure = Secure::with(patient);
    assert_eq!(early_responses::write_then_read_secure(&mut secure.connect()), 404);
    assert_eq!(early_responses::write_then_read_plain(&secure.fixture), 400);
    secure.fixture.wait("both are closed", |counters| counters.open_connections() == 0);
    assert!(secure.fixture.counters().drains().discarded_bytes() > 39_000_000);
}

#[test]
fn slow_peer_gets_whole_large_response() {
    let secure = Secure::open();
    let address: std::net::SocketAddr = secure.fixture.address();
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    set_socket_recv_buffer_size(&socket, 1).unwrap();
    rustix::net::connect(&socket, &address).unwrap();
    let socket = TcpStream::from(socket);
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut stream = connect(&secure.certificate, socket).unwrap();
    // More than the kernel buffers: a part waits within TLS until the peer reads on.
    stream.write_all(&post("/ingest/batch", "{\n".repeat(1000).as_bytes())).unwrap();
    secure
        .fixture
        .wait("it is answered", |counters| counters.requests(RouteName::Batch, StatusClass::ClientError) == 1);
    assert_eq!(answer(&mut stream).json()["refused"].as_array().unwrap().len(), 1000);
}

#[test]
fn target_scheme_must_match_connection() {
    let secure = Secure::open();
    let request = |scheme: &str| format!("GET {scheme}://a/healthz HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(ask(&mut secure.connect(), request("https").as_bytes()).status, 200);
    let refused = ask(&mut secure.connect(), request("http").as_bytes());
    assert_eq!((refused.status, refused.code()), (400, "bad_request".into()));
    let plain = Fixture::open();
    let ask_plain = |scheme: &str| {
        let mut client = plain.connect();
        client.send(request(scheme));
        client.answer()
    };
    assert_eq!(ask_plain("http").status, 200);
    let refused = ask_plain("HTTPS");
    assert_eq!((refused.status, refused.code()), (400, "bad_request".into()));
    assert!(refused.json()["detail"].as_str().unwrap().contains("has no TLS"));
}

#[test]
fn plain_http_on_tls_port_is_explained() {
    let secure = Secure::open();
    for request in [&post("/ingest/event", b"1")[..], b"GET / HTTP/1.1\r\n", b"h", &[b'A'; 100_000]] {
        let mut client = Client::connect(secure.fixture.address());
        // The server may close before it has read all of it.
        let _ = client.try_send(request);
        client.finish_sending();
        let answer = client.answer();
        assert_eq!((answer.status, answer.code()), (400, "bad_request".into()));
        assert!(answer.json()["detail"].as_str().unwrap().contains("this port speaks TLS"), "{answer:?}");
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(client.read_to_close());
    }
    assert!(secure.fixture.payloads().is_empty());
    assert_eq!(secure.fixture.counters().tls_failures(), 4);
}

/// A record with a message of a handshake.
fn record(version: u8, message: &[u8]) -> Vec<u8> {
    let length = u16::try_from(message.len()).unwrap().to_be_bytes();
    [&[22, 3, version], &length[..], message].concat()
}

/// The first message of a client that knows no version above this one.
fn hello(version: u8, extensions: &[u8]) -> Vec<u8> {
    let ciphers = [0xc0, 0x2f, 0xc0, 0x13, 0x00, 0x2f];
    let body = [&[3, version], &[7; 32][..], &[0, 0, 6], &ciphers, &[1, 0], extensions].concat();
    [&[1, 0, 0, u8::try_from(body.len()).unwrap()], &body[..]].concat()
}

#[test]
fn old_tls_versions_get_an_alert() {
    let secure = Secure::open();
    // SSL 3.0, TLS 1.0 and TLS 1.1; the record's own version says nothing.
    for version in [0, 1, 2] {
        // Signatures are negotiated since TLS 1.2: a client without them is recognised by that.
        let signatures = [0, 8, 0, 13, 0, 4, 0, 2, 4, 3];
        for (extensions, why) in [(&signatures[..], 70), (&[], 40)] {
            let mut socket = secure.socket();
            socket.write_all(&record(1, &hello(version, extensions))).unwrap();
            let alert = rest(&mut socket);
            assert_eq!(alert.first(), Some(&21), "an alert: {alert:?}");
            assert_eq!(alert[5..], [2, why], "fatal: protocol_version or handshake_failure");
        }
    }
    secure.fixture.wait("all are counted and closed", |counters| {
        (counters.tls_failures(), counters.open_connections()) == (6, 0)
    });
}

#[test]
fn garbage_is_rejected_without_harming_others() {
    let secure = Secure::open();
    let mut good = secure.connect();
    let mut noise: Vec<u8> = (0..4096_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    noise[0] = 0;
    let cut = |bytes: &[u8]| bytes[..bytes.len() / 2].to_vec();
    for garbage in [
        noise.clone(),
        record(3, &noise[..4000]),
        record(3, &[1, 0, 0, 1, 0]),
        vec![22, 3, 3, 255, 255],
        vec![23, 3, 3, 0, 1, 7],
        vec![21, 3, 3, 0, 2, 1, 0],
        cut(&record(3, &hello(3, &[]))),
        vec![0x80, 0x2e, 1, 0, 2],
        vec![0; 70_000],
    ] {
        let mut socket = secure.socket();
        // The server may close before it has read all of it.
        let _ = socket.write_all(&garbage);
        let _ = socket.shutdown(std::net::Shutdown::Write);
        let answer = rest(&mut socket);
        assert!(answer.len() <= 7, "nothing but an alert: {answer:?} to {:?}", &garbage[..5]);
        assert_eq!(ask(&mut good, &post("/ingest/event", b"1")).status, 200);
    }
    secure.fixture.wait("all are closed but the good one", |counters| counters.open_connections() == 1);
}

#[test]
fn handshake_has_a_deadline() {
    let secure = Secure::impatient();
    let hello = record(3, &hello(3, &[]));
    for begun in [&[][..], &hello[..1], &hello[..hello.len() - 1]] {
        let mut socket = secure.socket();
        socket.write_all(begun).unwrap();
        assert!(rest(&mut socket).is_empty());
    }
    // Byte after byte doesn't make it longer.
    let mut socket = secure.socket();
    let mut bytes = [&[22, 3, 3, 16, 0, 1, 0, 15, 252], &[0; 4091][..]].concat().into_iter();
    while let Some(byte) = bytes.next()
        && socket.write_all(&[byte]).is_ok()
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(bytes.len() > 0, "it was cut before the end");
    secure.fixture.wait("all are closed", |counters| counters.open_connections() == 0);
}

#[test]
fn concurrent_handshakes_are_limited() {
    let secure = Secure::open();
    let mut socket = secure.socket();
    // The beginning of a message of 60 kB, in records of 8: within what TLS allows.
    let message = [&[1, 0, 0xea, 0x60], &[0; 48_000][..]].concat();
    for piece in message.chunks(8_000) {
        if socket.write_all(&record(3, piece)).is_err() {
            break;
        }
    }
    assert!(rest(&mut socket).len() <= 7);
    // A client that is cut off at the deadline doesn't count as failed: it is ended by its length.
    assert_eq!(secure.fixture.counters().tls_failures(), 1);
    secure.fixture.wait("it is closed", |counters| counters.open_connections() == 0);
}

/// A busy server finds the handshake's end and the request after it in its buffer together.
#[test]
fn request_may_arrive_with_handshake_end() {
    let secure = Secure::open();
    let config = Arc::new(client_config(&secure, &[&rustls::version::TLS13]));
    let mut client = ClientConnection::new(config, ServerName::try_from("localhost").unwrap()).unwrap();
    let mut socket = secure.socket();
    client.write_tls(&mut socket).unwrap();
    while client.is_handshaking() {
        client.read_tls(&mut socket).unwrap();
        client.process_new_packets().unwrap();
    }
    client.set_buffer_limit(None);
    let body = format!("\"{}\"", "x".repeat(100_000));
    client.writer().write_all(&post("/ingest/event", body.as_bytes())).unwrap();
    let mut rest = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut rest).unwrap();
    }
    socket.write_all(&rest).unwrap();
    assert_eq!(answer(&mut rustls::Stream::new(&mut client, &mut socket)).status, 200);
    assert_eq!((secure.fixture.counters().tls_handshakes(), secure.fixture.counters().tls_failures()), (1, 0));
}

#[test]
fn handshake_counts_as_connection_of_its_client() {
    let secure = Secure::with(GatewayOptions { connections_per_client: 2, ..GatewayOptions::default() });
    let held = [secure.socket(), secure.socket()];
    secure.fixture.wait("both are taken", |counters| counters.open_connections() == 2);
    assert!(rest(&mut secure.socket()).is_empty());
    assert_eq!(secure.fixture.counters().connections_refused(), 1);
    drop(held);
    secure.fixture.wait("both have left", |counters| counters.open_connections() == 0);
    assert_eq!(ask(&mut secure.connect(), &post("/ingest/event", b"1")).status, 200);
}

#[test]
fn tls_client_that_reads_nothing_is_closed() {
    let secure = Secure::impatient();
    let mut stream = secure.connect();
    let request = post("/ingest/batch", "{\n".repeat(1000).as_bytes());
    // Until the unread responses fill all buffers.
    while stream.write_all(&request).is_ok() {}
    secure.fixture.wait("it is closed", |counters| counters.open_connections() == 0);
}

#[test]
fn new_certificate_applies_to_new_connections() {
    let secure = Secure::open();
    let mut old = secure.connect();
    assert_eq!(ask(&mut old, &post("/ingest/event", b"1")).status, 200);
    let Shown { identity, certificate } = shown();
    assert!(connect(&certificate, secure.socket()).is_err());
    secure.tls.publish(identity);
    let mut new = connect(&certificate, secure.socket()).unwrap();
    assert!(connect(&secure.certificate, secure.socket()).is_err());
    for stream in [&mut old, &mut new] {
        assert_eq!(ask(stream, &post("/ingest/event", b"1")).status, 200);
    }
}

fn client_config(secure: &Secure, versions: &[&'static rustls::SupportedProtocolVersion]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(secure.certificate.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
    builder.with_root_certificates(roots).with_no_client_auth()
}

#[test]
fn both_tls_versions_resume_with_tickets() {
    let secure = Secure::open();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let mut config = client_config(&secure, &[version]);
        config.alpn_protocols = vec![b"h2".into(), b"http/1.1".into()];
        let config = Arc::new(config);
        let kinds = [(); 2].map(|()| {
            let connection = ClientConnection::new(config.clone(), ServerName::try_from("localhost").unwrap()).unwrap();
            let mut stream = StreamOwned::new(connection, secure.socket());
            assert_eq!(ask(&mut stream, &post("/ingest/event", b"1")).status, 200);
            assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
            stream.conn.handshake_kind().unwrap()
        });
        assert_eq!(kinds, [rustls::HandshakeKind::Full, rustls::HandshakeKind::Resumed], "{version:?}");
    }
    // A client that speaks only HTTP/2 is rejected.
    let mut config = client_config(&secure, rustls::ALL_VERSIONS);
    config.alpn_protocols = vec![b"h2".into()];
    let mut connection = ClientConnection::new(config.into(), ServerName::try_from("localhost").unwrap()).unwrap();
    let refused = connection.complete_io(&mut secure.socket()).unwrap_err();
    assert!(refused.to_string().contains("NoApplicationProtocol"), "{refused}");
}
