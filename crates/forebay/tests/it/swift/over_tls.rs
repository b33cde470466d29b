//! Swift and S3 over TLS: nginx with a certificate of the test's own before the real Swift.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use super::{s3, start, swift};
use crate::support::{Folder, wait_until};
use crate::tls::Pair;
use testkit::ports::free_address;
use testkit::swift::SwiftServer;

/// nginx, which is ended when this is dropped.
struct Front {
    process: Child,
    address: SocketAddr,
    folder: Folder,
    pair: Pair,
}

impl Front {
    /// `None`, with a message, if nginx isn't installed.
    #[allow(clippy::print_stderr, reason = "it says why it is skipped")]
    fn start(swift: SocketAddr) -> Option<Self> {
        let mut version = Command::new("nginx");
        if version.arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            testkit::skipped::report("there is no nginx; `cargo xtask services` installs it");
            return None;
        }
        let (folder, pair) = (Folder::new(), Pair::new());
        let address = free_address();
        folder.write("shown.pem", &pair.certificate);
        folder.write("shown.key", &pair.key);
        let file = folder.write("nginx.conf", configuration(&folder.path("").display().to_string(), address, swift));
        let mut nginx = Command::new("nginx");
        nginx.arg("-p").arg(folder.path("")).arg("-e").arg(folder.path("error.log")).arg("-c").arg(&file);
        let process = nginx.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let front = Self { process, address, folder, pair };
        let log = || std::fs::read_to_string(front.folder.path("error.log")).unwrap_or_default();
        assert!(wait_until(|| TcpStream::connect(address).is_ok()), "nginx doesn't listen: {}", log());
        Some(front)
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Swift has no TLS, and names itself by the request's scheme: nginx corrects that.
fn configuration(folder: &str, listen: SocketAddr, swift: SocketAddr) -> String {
    format!(
        "daemon off; master_process off; pid {folder}/pid;
         events {{ worker_connections 256; }}
         http {{
             access_log off; client_max_body_size 0;
             client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
             uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
             map $upstream_http_x_storage_url $storage {{ default \"\"; \"~^http:(?<rest>.*)$\" \"https:$rest\"; }}
             server {{
                 listen {listen} ssl; ssl_certificate {folder}/shown.pem; ssl_certificate_key {folder}/shown.key;
                 location / {{
                     proxy_pass http://{swift}; proxy_http_version 1.1; proxy_set_header Connection \"\";
                     proxy_set_header Host $http_host; proxy_request_buffering off;
                     proxy_hide_header X-Storage-Url; add_header X-Storage-Url $storage;
                 }}
             }}
         }}"
    )
}

#[test]
fn objects_are_written_only_over_trusted_tls() {
    let Some(server) = SwiftServer::start() else { return };
    let Some(front) = Front::start(server.address()) else { return };
    let mut objects = 0;
    for sink in [swift(front.address), s3(front.address)] {
        let folder = Folder::new();
        let secured = sink.replace("http://", "https://");
        let forebay = start(&folder, &secured);
        assert_eq!(forebay.post("/ingest/event", "1").0, 200);
        let log = || std::fs::read_to_string(folder.path("log")).unwrap();
        assert!(wait_until(|| log().contains("certificate")), "an untrusted certificate is rejected: {}", log());
        assert_eq!(forebay.metric("forebay_events_stored_total{"), 0);
        assert_eq!(server.client().list("events").len(), objects, "nothing went there");
        folder.write("ca.pem", &front.pair.certificate);
        folder.write(
            "forebay.toml",
            format!("[types.\"*\"]\nroutes = [\"archive\"]\n[sinks.archive]\n{secured}ca = \"ca.pem\"\n"),
        );
        forebay.signal("-HUP");
        forebay.wait_delivered();
        assert_eq!(forebay.stop("-TERM"), Some(0));
        objects += 2;
        assert_eq!(server.client().list("events").len(), objects);
    }
}
