//! Objects through real writers: damaged uploads, and limits that differ.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use event::{Lane, Origin};
use objects::{Codec, Line, Manifest, ObjectFormat, Portion, Prefix, SideFolder};
use sink::SinkError;
use sink_directory::DirectoryConfig;
use tempfile::TempDir;
use writer_protocol::object::digest_text;
use writer_protocol::version;

use sink_testing::through_writer::{RemoteStore, Running, remote};

fn rules() -> ObjectFormat {
    let (line, age_max, prefix) = (Line::Envelope, Duration::from_secs(1), Prefix::NONE);
    let manifests = SideFolder::manifests();
    ObjectFormat {
        line,
        codec: Codec::None,
        bytes_max: 1 << 20,
        records_max: 1_000,
        age_max,
        prefix,
        apart: None,
        manifests,
    }
}

/// A writer with a directory.
struct Directory {
    folder: TempDir,
    writer: Running,
}

impl Directory {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = DirectoryConfig { path: folder.path().join("archive"), rules: rules() };
        let writer =
            Running::start("directory", sink_directory::sink(config, std::sync::Arc::new(sink_directory::OsFiles)));
        Self { folder, writer }
    }

    fn names(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.folder.path().join("archive")).into_iter().flatten();
        let names = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !name.starts_with('.')).collect()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.path().join("archive").join(name)).unwrap()
    }
}

/// A manual upload: this many bytes are announced, and these are sent. The connection ends after too few.
fn upload(address: SocketAddr, name: &str, announced: usize, digest: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let lane = format!("{}/0/archive", "01".repeat(16));
    let head = format!(
        "PUT /ingest/data/store/objects/{name} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Forebay-Protocol: {}\r\nForebay-Lane: {lane}\r\nContent-Type: application/x-ndjson\r\n\
         Content-Digest: {digest}\r\nContent-Length: {announced}\r\n\
         If-None-Match: *\r\n\r\n",
        version::OWN
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    if body.len() < announced {
        stream.shutdown(std::net::Shutdown::Write).unwrap();
    }
    let mut answer = String::new();
    // After a truncated body there is no response.
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn damaged_upload_leaves_no_object() {
    let directory = Directory::start();
    let lane = Lane { origin: Origin([1; 16]), shard: 0, sink: "archive".into() };
    let rules = rules();
    let name = Manifest::new(lane, 1..=9, Portion::received("access", 1_760_000_000_000_000), &rules, None, None).name;
    let body = b"{\"whole\": true}\n";
    let digest = {
        use md5::Digest as _;
        digest_text(&md5::Md5::digest(body).into(), &sha2::Sha256::digest(body).into())
    };
    let folder = directory.folder.path().join("archive");
    std::fs::create_dir(&folder).unwrap();
    let damaged = upload(directory.writer.address, &name, body.len(), &digest, b"{\"whole\": fals}\n");
    assert!(damaged.contains("truncated or damaged"), "{damaged}");
    upload(directory.writer.address, &name, body.len(), &digest, &body[..7]);
    for (wrong, says) in
        [("../x", "not end with the name of an object"), (&*name.replace("0101", "0202"), "Forebay-Lane")]
    {
        let refused = upload(directory.writer.address, wrong, body.len(), &digest, body);
        assert!(refused.starts_with("HTTP/1.1 400") && refused.contains(says), "{refused}");
    }
    assert_eq!(directory.names(), [""; 0]);
    let whole = upload(directory.writer.address, &name, body.len(), &digest, body);
    assert!(whole.contains("\"stored\""), "{whole}");
    assert_eq!(directory.names(), [&*name]);
    assert_eq!(directory.read(&name), body);
}

#[tokio::test]
async fn gateway_with_larger_objects_is_rejected() {
    let directory = Directory::start();
    let store = |rules| RemoteStore { kind: "directory", rules: Some(rules), ..RemoteStore::default() };
    let connect = async |rules| remote(directory.writer.address, store(rules)).connect().await;
    assert_eq!(connect(rules()).await, Ok(()));
    assert_eq!(connect(ObjectFormat { bytes_max: rules().bytes_max / 2, ..rules() }).await, Ok(()));
    match connect(ObjectFormat { bytes_max: rules().bytes_max + 1, ..rules() }).await {
        Err(SinkError::Misconfigured(reason)) => {
            assert!(
                reason.contains("`max_bytes` of its sink `store` is 1048576, and 1048577 in this gateway"),
                "{reason}"
            );
        }
        other => panic!("{other:?}"),
    }
}
