//! Objects read back over HTTP: from a directory and from Swift, whole and in parts, with validators, and none that isn't the sink's.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use crate::support::{Folder, HANGS, Server, wait_until};
use testkit::swift::{KEY, SwiftProcess, SwiftServer, USER};

/// An answer: status, head, body.
struct ObjectResponse {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl ObjectResponse {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        let first = found.next();
        assert!(found.next().is_none(), "{name} twice in {}", self.head);
        first
    }
}

/// Asks, on a connection that is closed then.
fn ask(address: SocketAddr, method: &str, path: &str, headers: &str) -> ObjectResponse {
    let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
    let bytes = raw(address, &request);
    let at = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..at].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    ObjectResponse { status, head, body: bytes[at + 4..].to_vec() }
}

pub(crate) fn raw(address: SocketAddr, request: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(HANGS)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

/// A server whose only sink this is.
fn start(folder: &Folder, gateway: &str, sink: &str) -> Server {
    let configuration = format!("[gateway]\n{gateway}[types.\"*\"]\nroutes = [\"archive\"]\n[sinks.archive]\n{sink}");
    let configuration = folder.write("forebay.toml", configuration);
    Server::start_configured(&folder.data(), Path::new(&configuration), &folder.path("log"))
}

const DIRECTORY: &str = "kind = \"directory\"\npath = \"archive\"\nmax_age = \"1s\"\nserve = true\n";

/// A directory with one file of several hundred kilobytes, and foreign files next to it: the server, and the file's name and bytes.
fn directory(folder: &Folder, gateway: &str) -> (Server, String, Vec<u8>) {
    let server = start(folder, gateway, DIRECTORY);
    let batch = format!("{{\"text\": \"{}\"}}\n", "x".repeat(1000)).repeat(300);
    assert_eq!(server.post("/ingest/batch", &batch).0, 200);
    server.wait_delivered();
    let archive = folder.data().join("archive");
    let names = fs::read_dir(&archive).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let name = names.into_iter().find(|name| name.ends_with(".ndjson")).unwrap();
    let bytes = fs::read(archive.join(&name)).unwrap();
    fs::write(archive.join("secret"), "secret").unwrap();
    (server, name, bytes)
}

/// All requests for an object, whether it is cached or passed on.
fn check(server: &Server, path: &str, bytes: &[u8], content_type: &str) {
    let get = |headers: &str| ask(server.intake, "GET", path, headers);
    let whole = get("");
    assert_eq!((whole.status, whole.header("content-type")), (200, Some(content_type)), "{}", whole.head);
    assert!(whole.body == bytes, "{} bytes", whole.body.len());
    let etag = whole.header("etag").unwrap().to_owned();
    assert!(etag.starts_with('"') && etag.ends_with('"') && etag.len() > 2, "{etag}");
    for (name, value) in [
        ("content-length", &*bytes.len().to_string()),
        ("accept-ranges", "bytes"),
        ("cache-control", "private, no-cache"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; sandbox"),
    ] {
        assert_eq!(whole.header(name), Some(value), "{}", whole.head);
    }
    for tags in [format!("\"other\", {etag}"), "*".to_owned(), format!("W/{etag}")] {
        let same = get(&format!("If-None-Match: {tags}\r\nRange: bytes=0-1\r\n"));
        assert_eq!((same.status, same.header("etag"), &*same.body), (304, Some(&*etag), &b""[..]));
        assert_eq!((same.header("content-length"), same.header("content-type")), (None, None));
    }
    let all = bytes.len();
    for (range, first, end) in [
        ("0-0".to_owned(), 0, 1),
        ("10-99".to_owned(), 10, all.min(100)),
        (format!("{}-", all - 5), all - 5, all),
        ("-7".to_owned(), all - 7, all),
    ] {
        let part = get(&format!("Range: bytes={range}\r\nIf-Range: {etag}\r\n"));
        let shown = format!("bytes {first}-{}/{all}", end - 1);
        assert_eq!((part.status, part.header("content-range")), (206, Some(&*shown)));
        assert!(part.body == bytes[first..end] && part.header("etag") == Some(&*etag));
    }
    for headers in [
        "Range: bytes=0-1,4-5\r\n",
        "Range: bytes=0-1\r\nIf-Range: \"other\"\r\n",
        "Range: bytes=0-1\r\nRange: bytes=0-1\r\n",
        "Range: lines=0-1\r\n",
        "If-None-Match: \"other\"\r\n",
    ] {
        let whole = get(headers);
        assert_eq!((whole.status, whole.body.len(), whole.header("content-range")), (200, all, None), "{headers}");
    }
    let beyond = get(&format!("Range: bytes={all}-\r\n"));
    assert_eq!((beyond.status, beyond.header("content-range")), (416, Some(&*format!("bytes */{all}"))));
    let head = ask(server.intake, "HEAD", path, "Range: bytes=0-1\r\n");
    assert_eq!((head.status, head.header("content-length")), (200, Some(&*all.to_string())));
    assert_eq!((head.header("etag"), &*head.body), (Some(&*etag), &b""[..]));
    let old = raw(server.intake, &format!("GET {path} HTTP/1.0\r\nRange: bytes=0-2\r\n\r\n"));
    assert!(old.starts_with(b"HTTP/1.1 206 ") && old.ends_with(&[b"\r\n\r\n", &bytes[..3]].concat()));
    assert_eq!(ask(server.intake, "POST", path, "").status, 405);
    // One request after the other on a connection: each answer has the right length.
    let more = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: {etag}\r\n\r\nHEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    );
    let last = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-2\r\nConnection: close\r\n\r\n");
    let answers = raw(server.intake, &(more.clone() + &more + &last));
    let text = String::from_utf8_lossy(&answers);
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("HTTP/1.1 ")).collect();
    let [same, found] = ["HTTP/1.1 304 Not Modified", "HTTP/1.1 200 OK"];
    assert_eq!(lines, [same, found, same, found, "HTTP/1.1 206 Partial Content"]);
    assert!(answers.ends_with(&[b"\r\n\r\n", &bytes[..3]].concat()));
}

#[test]
fn directory_file_is_served_from_memory_and_disk() {
    for (gateway, kept) in [("", true), ("object_cache = \"0\"\n", false)] {
        let folder = Folder::new();
        let (server, name, bytes) = directory(&folder, gateway);
        check(&server, &format!("/objects/archive/{name}"), &bytes, "application/x-ndjson");
        let reads =
            |result| server.metric(&format!("forebay_object_reads_total{{sink=\"archive\",result=\"{result}\"}}"));
        assert_eq!((reads("miss") == 1, reads("hit") > 10), (kept, kept));
        let fetched = server.metric("forebay_object_fetched_bytes_total{");
        assert_eq!(fetched == bytes.len() as u64, kept, "{fetched}");
        assert_eq!(server.metric("forebay_object_cache_bytes") > bytes.len() as u64, kept);
        let manifest = ask(server.intake, "GET", &format!("/objects/archive/_manifests/{name}.manifest.json"), "");
        assert_eq!((manifest.status, manifest.header("content-type")), (200, Some("application/json")));
    }
}

#[test]
fn nothing_else_is_given() {
    let folder = Folder::new();
    let (server, name, _) = directory(&folder, "");
    let outside = folder.path("outside");
    fs::write(&outside, "secret").unwrap();
    let archive = folder.data().join("archive");
    let linked = name.replace("0001-", "0002-");
    assert!(linked != name);
    std::os::unix::fs::symlink(&outside, archive.join(&linked)).unwrap();
    for path in [
        "/objects",
        "/objects/",
        "/objects/archive",
        "/objects/archive/",
        "/objects/archive/secret",
        "/objects/archive/../archive/secret",
        "/objects/archive/..%2fledger.0",
        "/objects/archive/%2e%2e/ledger.0",
        "/objects/archive/../ledger.0",
        "/objects/archive//etc/passwd",
        "/objects/archive/%2fetc%2fpasswd",
        "/objects/archive/..\u{2f}..\u{2f}etc/passwd",
        "/objects/../events",
        "/objects/other/x",
        &format!("/objects/other/{name}"),
        &format!("/objects/archive/./{name}"),
        &format!("/objects/archive/x/../{name}"),
        &format!("/objects/archive/%2e/{name}"),
        &format!("/objects/archive/{name}%00"),
        &format!("/objects/archive/{name}/"),
        &format!("/objects/archive/{name}.bak"),
        &format!("/objects/archive/{linked}"),
    ] {
        let said = ask(server.intake, "GET", path, "");
        assert_eq!(said.status, 404, "{path}: {}", said.head);
        assert!(!String::from_utf8_lossy(&said.body).contains("secret"), "{path}");
    }
    assert_eq!(ask(server.intake, "GET", &format!("/objects/archive/{name}"), "").status, 200);
    // A directory that is gone says nothing of its files.
    fs::rename(&archive, folder.path("away")).unwrap();
    let said = ask(server.intake, "GET", &format!("/objects/archive/{}", name.replace("0001-", "0003-")), "");
    assert_eq!((said.status, said.header("retry-after")), (503, Some("1")), "{}", said.head);
}

#[test]
fn image_is_served_and_unreachable_store_reported() {
    let Some(swift) = SwiftServer::start() else { return };
    let sink = |more: &str| {
        format!(
            "kind = \"swift\"\nauth = \"http://{}/auth/v1.0\"\nuser = \"{USER}\"\nkey = \"{KEY}\"\ncontainer = \"shots\"\n\
             object_from = \"/image\"\nobject_type_from = \"/type\"\nobject = \"{{day}}/\"\nmax_age = \"1s\"\nserve = true\n{more}",
            swift.address()
        )
    };
    let folder = Folder::new();
    let server = start(&folder, "", &sink("revalidate = \"0s\"\nstale = \"1h\"\n"));
    let shot = "{\"image\": \"iVBORw0KGgoAAAAAAAAAAAAA\", \"type\": \"image/png\"}";
    assert_eq!(server.post("/ingest/event/shot", shot).0, 200);
    server.wait_delivered();
    let names = swift.client().list("shots");
    let image = names.iter().find(|name| !name.contains(".ndjson")).unwrap();
    assert!(
        ask(server.intake, "GET", &format!("/objects/archive/{image}"), "").header("content-disposition").is_none()
    );
    let path = format!("/objects/archive/{image}");
    let bytes = swift.client().get("shots", image).unwrap();
    check(&server, &path, &bytes, "image/png");
    assert!(server.metric("forebay_object_reads_total{sink=\"archive\",result=\"revalidated\"}") > 10);
    let lines = names.iter().find(|name| name.ends_with(".ndjson")).unwrap();
    swift.kill_part(SwiftProcess::Proxy);
    assert_eq!(ask(server.intake, "GET", &path, "").body, bytes, "cached bytes are served");
    let away = ask(server.intake, "GET", &format!("/objects/archive/{lines}"), "");
    assert_eq!((away.status, away.header("retry-after")), (503, Some("1")), "{}", away.head);
    swift.run_part(SwiftProcess::Proxy);
    let bytes = swift.client().get("shots", lines).unwrap();
    check(&server, &format!("/objects/archive/{lines}"), &bytes, "application/x-ndjson");
    // Another configuration: first no object may be served that the store doesn't confirm; then none at all.
    let reload = |more: &str| {
        let configuration = format!("[types.\"*\"]\nroutes = [\"archive\"]\n[sinks.archive]\n{}", sink(more));
        folder.write("forebay.toml", configuration.replace("serve = true\n#", "#"));
        let before = server.metric("forebay_reloads_total{result=\"applied\"}");
        server.signal("-HUP");
        server.wait("forebay_reloads_total{result=\"applied\"}", |applied| applied > before);
    };
    reload("revalidate = \"0s\"\n");
    assert_eq!(ask(server.intake, "GET", &path, "").status, 200);
    swift.kill_part(SwiftProcess::Proxy);
    assert_eq!(ask(server.intake, "GET", &path, "").status, 503);
    swift.run_part(SwiftProcess::Proxy);
    reload("#");
    assert_eq!(ask(server.intake, "GET", &path, "").status, 404);
}

/// A file that only has a name like one of the sink's.
fn put_large(folder: &Folder, number: usize, bytes: &[u8]) -> String {
    let name = format!("archive-20261121T130000Z-{}-0000-{number:020}.ndjson", "cd".repeat(16));
    fs::write(folder.data().join("archive").join(&name), bytes).unwrap();
    format!("/objects/archive/{name}")
}

/// Asks, and takes nothing of the answer beyond its first bytes.
fn begin(address: SocketAddr, path: &str) -> (TcpStream, u16) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(HANGS)).unwrap();
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    (stream, std::str::from_utf8(&first[9..]).unwrap().parse().unwrap())
}

#[test]
fn large_objects_use_little_memory() {
    const BYTES: usize = 48 << 20;
    let folder = Folder::new();
    let (server, name, small) = directory(&folder, "");
    let large: Vec<u8> = (0..BYTES).map(|at| (at / 7).to_le_bytes()[0]).collect();
    let path = put_large(&folder, 1, &large);
    let before = server.memory("VmHWM");
    let mut slow: Vec<_> = (0..40).map(|_| begin(server.intake, &path)).collect();
    let served = slow.iter().filter(|(_, status)| *status == 200).count();
    assert!(slow.iter().all(|(_, status)| [200, 503].contains(status)));
    let (mut patient, _) = slow.remove(0);
    let mut rest = Vec::new();
    patient.read_to_end(&mut rest).unwrap();
    assert!(rest.ends_with(&large), "{} bytes", rest.len());
    // A client that leaves frees its memory.
    drop(slow);
    assert!(wait_until(|| {
        let streams: Vec<_> = (0..served).map(|_| begin(server.intake, &path)).collect();
        streams.iter().all(|(_, status)| *status == 200)
    }));
    // These have left, too, but the server may not have noticed yet.
    assert!(wait_until(|| ask(server.intake, "GET", &format!("/objects/archive/{name}"), "").body == small));
    let more = server.memory("VmHWM") - before;
    assert!((8..40).contains(&served) && more < BYTES, "{more} bytes for {served} readers");
}

#[test]
fn five_hundred_concurrent_readers_are_answered() {
    let folder = Folder::new();
    let (server, name, bytes) = directory(&folder, "");
    let path = format!("/objects/archive/{name}");
    let asking: Vec<_> = (0..500).map(|_| begin(server.intake, &path)).collect();
    for (mut stream, status) in asking {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert!(status == 200 && rest.ends_with(&bytes), "{status}: {} bytes", rest.len());
    }
    assert_eq!(server.metric("forebay_object_fetched_bytes_total{"), bytes.len() as u64, "asked for once");
}

#[test]
fn all_sinks_share_one_bound() {
    let folder = Folder::new();
    let configuration = "[gateway]\nobject_cache = \"1MiB\"\n[types.\"*\"]\nroutes = [\"a\", \"b\"]\n\
                         [sinks.a]\nkind = \"directory\"\npath = \"a\"\nserve = true\n\
                         [sinks.b]\nkind = \"directory\"\npath = \"b\"\nserve = true\n";
    let path = folder.write("forebay.toml", configuration);
    let server = Server::start_configured(&folder.data(), Path::new(&path), &folder.path("log"));
    for sink in ["a", "b"] {
        fs::create_dir_all(folder.data().join(sink)).unwrap();
        for number in 1..=6 {
            let name = format!("{sink}-20261121T130000Z-{}-0000-{number:020}.ndjson", "cd".repeat(16));
            fs::write(folder.data().join(sink).join(&name), vec![b'x'; 200 << 10]).unwrap();
            let said = ask(server.intake, "GET", &format!("/objects/{sink}/{name}"), "");
            assert_eq!((said.status, said.body.len()), (200, 200 << 10));
        }
    }
    let kept = server.metric("forebay_object_cache_bytes");
    assert!((800 << 10..=1 << 20).contains(&kept), "{kept}");
    // Another size takes effect without a restart.
    folder.write("forebay.toml", configuration.replace("1MiB", "300KiB"));
    server.signal("-HUP");
    server.wait("forebay_object_cache_bytes", |kept| kept <= 300 << 10);
}

#[test]
fn pending_object_is_reported() {
    let folder = Folder::new();
    let server = start(&folder, "", &DIRECTORY.replace("max_age = \"1s\"", "max_age = \"1h\"\nmax_records = 2"));
    (0..3).for_each(|_| assert_eq!(server.post("/ingest/event", "1").0, 200));
    server.wait("forebay_events_stored_total{", |stored| stored == 2);
    server.wait("forebay_events_pending{", |pending| pending == 1);
    let archive = fs::read_dir(folder.data().join("archive")).unwrap();
    let names: Vec<String> = archive.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let name = names.iter().find(|name| name.ends_with(".ndjson")).unwrap();
    let at = |sequence: u64| {
        let other = name.replace("-00000000000000000001-", &format!("-{sequence:020}-"));
        ask(server.intake, "GET", &format!("/objects/archive/{other}"), "")
    };
    assert_eq!([1, 2, 4].map(|sequence| at(sequence).status), [200, 404, 404]);
    let waits = at(3);
    assert_eq!((waits.status, waits.header("content-type")), (202, Some("application/json")));
    let expected = "{\"position\":\"0:3\",\"pending\":[\"archive\"]}";
    assert_eq!(String::from_utf8(waits.body).unwrap(), expected);
    let (_, tail) = name.split_at(name.find("-0000-00000000000000000001-").unwrap());
    let foreign = format!("archive-20261121T130000Z-{}{}", "cd".repeat(16), tail.replacen("01-", "03-", 1));
    assert_eq!(ask(server.intake, "GET", &format!("/objects/archive/{foreign}"), "").status, 404);
}

#[test]
fn posted_html_is_not_served_as_a_page() {
    let Some(swift) = SwiftServer::shared() else { return };
    let folder = Folder::new();
    let server = start(
        &folder,
        "",
        &format!(
            "kind = \"swift\"\nauth = \"http://{}/auth/v1.0\"\nuser = \"{USER}\"\nkey = \"{KEY}\"\ncontainer = \"pages\"\n\
             object_from = \"/body\"\nobject_type_from = \"/type\"\nmax_age = \"1s\"\nserve = true\n",
            swift.address()
        ),
    );
    assert_eq!(server.post("/ingest/event", "{\"body\": \"PHNjcmlwdD4=\", \"type\": \"text/html\"}").0, 200);
    server.wait_delivered();
    let names = swift.client().list("pages");
    let page = names.iter().find(|name| !name.contains(".ndjson")).unwrap();
    let said = ask(server.intake, "GET", &format!("/objects/archive/{page}"), "");
    assert_eq!((said.status, &*said.body), (200, &b"<script>"[..]));
    for (name, value) in [
        ("content-type", "text/html"),
        ("content-disposition", "attachment"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; sandbox"),
    ] {
        assert_eq!(said.header(name), Some(value), "{}", said.head);
    }
}
