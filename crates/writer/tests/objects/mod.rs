//! Objects through a real writer: the suite of all sinks over a directory and over Swift, damaged uploads, and rules that differ.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use event::{EventId, Lane, Origin};
use sink::conformance::{Case, Subject, check, sequences};
use sink::object::Line;
use sink::remote::objects::digest_text;
use sink::remote::{RemoteConfig, RemoteObjectsConfig, RemoteStore};
use sink::{Codec, DirectoryConfig, Manifest, ObjectRules, Prefix, Sink, SinkConfig, SinkError};
use tempfile::TempDir;

use crate::proxy::{Hindrance, Proxy};
use crate::stand::{Protocol, Stand, server};
use crate::{Running, lines};

/// Random sequences for each store.
const SEQUENCES: u32 = 6;
/// Places at which the proxy cuts: behind so many times so many bytes of answers.
const CUTS: usize = 12;
const CUT_STEP: usize = 61;

fn rules(codec: Codec, prefix: Prefix) -> ObjectRules {
    let (line, age_max) = (Line::Envelope, Duration::from_secs(1));
    ObjectRules { line, codec, bytes_max: 1 << 20, records_max: 1_000, age_max, prefix, apart: None }
}

/// A gateway's sink, by way of this address.
fn gateway(address: std::net::SocketAddr, store: RemoteStore, rules: ObjectRules) -> Sink {
    let servers = vec![format!("http://{address}").parse().unwrap()];
    let remote = RemoteConfig { servers, sink: "store".into(), store, reads: false, token: None, ca: None };
    Sink::new(SinkConfig::RemoteObjects(RemoteObjectsConfig { remote, rules }))
}

/// A directory behind a writer, and a proxy before it.
struct Directory<const CODEC: usize> {
    folder: TempDir,
    writer: Running,
    proxy: Proxy,
}

impl<const CODEC: usize> Directory<CODEC> {
    fn rules() -> ObjectRules {
        rules(Codec::ALL[CODEC], Prefix::NONE)
    }

    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = DirectoryConfig { path: folder.path().join("archive"), rules: Self::rules() };
        let writer = Running::start("directory", Sink::new(SinkConfig::Directory(config)));
        let proxy = Proxy::to(writer.address);
        Self { folder, writer, proxy }
    }

    fn names(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.folder.path().join("archive")).into_iter().flatten();
        let names = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !name.starts_with('.')).collect()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(Path::new(self.folder.path()).join("archive").join(name)).unwrap()
    }
}

impl<const CODEC: usize> Subject for Directory<CODEC> {
    const COMPARES: bool = false;
    const KNOWS_IDS: bool = false;
    type Hindrance = Hindrance;

    async fn fresh() -> Self {
        Self::start()
    }

    fn sink(&self) -> Sink {
        gateway(self.proxy.address(), RemoteStore::Directory, Self::rules())
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        let names = self.names();
        let described = names.iter().filter_map(|name| name.strip_suffix(".manifest.json"));
        described.flat_map(|name| lines::events(name, &self.read(name))).collect()
    }

    async fn spoil(&self, _: EventId) {
        unreachable!("a directory refuses nothing")
    }

    async fn outage(&self, stage: usize) -> Option<Hindrance> {
        (stage < CUTS).then(|| self.proxy.cut_after(stage * CUT_STEP))
    }

    async fn stall(&self) -> Hindrance {
        self.proxy.freeze_after(0)
    }
}

#[test]
fn a_directory_passes_each_case_and_follows_the_model() {
    Case::ALL.into_iter().for_each(check::<Directory<0>>);
    Case::ALL.into_iter().for_each(check::<Directory<2>>);
    sequences::<Directory<2>>(SEQUENCES);
}

/// Swift behind a writer, and a proxy before it.
struct Swift {
    stand: Stand<'static>,
    proxy: Proxy,
    _writer: Running,
}

impl Subject for Swift {
    const COMPARES: bool = false;
    const KNOWS_IDS: bool = false;
    type Hindrance = Hindrance;

    async fn fresh() -> Self {
        let stand = Stand::with(server().expect("asked before"), Protocol::Swift, Codec::Zstd);
        let writer = Running::start("swift", stand.past_the_proxy());
        let proxy = Proxy::to(writer.address);
        Self { stand, proxy, _writer: writer }
    }

    fn sink(&self) -> Sink {
        gateway(self.proxy.address(), RemoteStore::Swift, self.stand.rules.clone())
    }

    async fn rows(&self) -> Vec<(EventId, Vec<u8>)> {
        self.stand.events()
    }

    async fn spoil(&self, _: EventId) {
        unreachable!("a store of objects refuses nothing")
    }

    async fn outage(&self, stage: usize) -> Option<Hindrance> {
        (stage < CUTS).then(|| self.proxy.cut_after(stage * CUT_STEP))
    }

    async fn stall(&self) -> Hindrance {
        self.proxy.freeze_after(0)
    }
}

#[test]
fn swift_passes_each_case_and_follows_the_model() {
    if server().is_some() {
        Case::ALL.into_iter().for_each(check::<Swift>);
        sequences::<Swift>(SEQUENCES);
    }
}

/// An upload by hand: so many bytes are announced, and these are sent. The connection ends behind too few.
fn upload(writer: &Running, name: &str, announced: usize, digest: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(writer.address).unwrap();
    let lane = format!("{}/0/archive", "01".repeat(16));
    let address = writer.address;
    let head = format!(
        "PUT /ingest/data/store/objects/{name} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nForebay-Lane: {lane}\r\n\
         Content-Type: application/x-ndjson\r\nContent-Digest: {digest}\r\nContent-Length: {announced}\r\n\
         If-None-Match: *\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    if body.len() < announced {
        stream.shutdown(std::net::Shutdown::Write).unwrap();
    }
    let mut answer = String::new();
    // Behind a body that was cut there is no answer.
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn a_damaged_or_cut_upload_leaves_nothing_under_its_name() {
    let directory = Directory::<0>::start();
    let lane = Lane { origin: Origin([1; 16]), shard: 0, sink: "archive".into() };
    let rules = Directory::<0>::rules();
    let name = Manifest::new(lane, 1..=9, "access", 1_760_000_000_000_000, &rules, None, None).name;
    let body = b"{\"whole\": true}\n";
    let digest = {
        use md5::Digest as _;
        digest_text(&md5::Md5::digest(body).into(), &sha2::Sha256::digest(body).into())
    };
    let folder = directory.folder.path().join("archive");
    std::fs::create_dir(&folder).unwrap();
    let damaged = upload(&directory.writer, &name, body.len(), &digest, b"{\"whole\": fals}\n");
    assert!(damaged.contains("cut or damaged"), "{damaged}");
    upload(&directory.writer, &name, body.len(), &digest, &body[..7]);
    for (wrong, says) in [("../x", "no name of an object"), (&*name.replace("0101", "0202"), "Forebay-Lane")] {
        let refused = upload(&directory.writer, wrong, body.len(), &digest, body);
        assert!(refused.starts_with("HTTP/1.1 400") && refused.contains(says), "{refused}");
    }
    assert_eq!(directory.names(), [""; 0]);
    let whole = upload(&directory.writer, &name, body.len(), &digest, body);
    assert!(whole.contains("\"stored\""), "{whole}");
    assert_eq!(directory.names(), [name.clone()]);
    assert_eq!(directory.read(&name), body);
}

#[tokio::test]
async fn a_gateway_that_allows_more_or_names_otherwise_is_refused() {
    let directory = Directory::<0>::start();
    let right = Directory::<0>::rules();
    let connect = async |rules| gateway(directory.writer.address, RemoteStore::Directory, rules).connect().await;
    assert_eq!(connect(right.clone()).await, Ok(()));
    assert_eq!(connect(ObjectRules { bytes_max: right.bytes_max / 2, ..right.clone() }).await, Ok(()));
    for (rules, says) in [
        (
            ObjectRules { bytes_max: right.bytes_max + 1, ..right.clone() },
            "max_bytes is 1048576 there and 1048577 here",
        ),
        (ObjectRules { codec: Codec::Gzip, ..right.clone() }, "codec is"),
        (ObjectRules { prefix: "x/".parse().unwrap(), ..right.clone() }, "object is \"\" there and \"x/\" here"),
    ] {
        match connect(rules).await {
            Err(SinkError::Misconfigured(reason)) => assert!(reason.contains(says), "{reason}"),
            other => panic!("{other:?}"),
        }
    }
}
