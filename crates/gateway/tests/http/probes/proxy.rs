//! Real proxies before the gateway, which reuse their connections to it for the requests of several clients.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::fixture::LOOK_EVERY;
use testkit::ports::free_address;

/// After this time a proxy counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);
/// Another program may take a free port before the proxy does.
const STARTS_MAX: usize = 10;

/// The proxy, and how it is configured to treat requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Nginx,
    Haproxy,
    /// With its option to forward requests that it would reject.
    LenientHaproxy,
}

/// A running proxy; it is stopped when this is dropped.
pub(super) struct Proxy {
    process: Child,
    pub(super) address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Kind {
    fn program(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Haproxy | Self::LenientHaproxy => "haproxy",
        }
    }

    fn configuration(self, folder: &Path, listen: SocketAddr, gateway: SocketAddr) -> String {
        match self {
            Self::Nginx => nginx(&folder.display().to_string(), listen, gateway),
            Self::Haproxy => haproxy("", listen, gateway),
            Self::LenientHaproxy => haproxy("option accept-invalid-http-request", listen, gateway),
        }
    }

    fn command(self, folder: &Path, file: &Path) -> Command {
        let mut command = Command::new(self.program());
        match self {
            Self::Nginx => command.arg("-p").arg(folder).arg("-e").arg(folder.join("error.log")).arg("-c").arg(file),
            Self::Haproxy | Self::LenientHaproxy => command.arg("-db").arg("-f").arg(file),
        };
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Starts it; `None`, with a message, if it isn't installed.
    pub(super) fn start(self, gateway: SocketAddr) -> Option<Proxy> {
        if Command::new(self.program()).arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            testkit::skipped::report(&format!("there is no {}; `cargo xtask services` installs it", self.program()));
            return None;
        }
        let started = (0..STARTS_MAX).find_map(|_| self.try_start(gateway));
        Some(started.unwrap_or_else(|| panic!("{} ends at once", self.program())))
    }

    fn try_start(self, gateway: SocketAddr) -> Option<Proxy> {
        let folder = tempfile::tempdir().unwrap();
        let address = free_address();
        let file = folder.path().join("proxy.conf");
        fs::write(&file, self.configuration(folder.path(), address, gateway)).unwrap();
        let process = self.command(folder.path(), &file).spawn().unwrap();
        let mut proxy = Proxy { process, address, _folder: folder };
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            if proxy.process.try_wait().unwrap().is_some() {
                return None;
            }
            assert!(start.elapsed() < PATIENCE, "{self:?} doesn't listen");
            std::thread::sleep(LOOK_EVERY);
        }
        Some(proxy)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One process, so nothing is left when it is killed. Requests are processed even if their client disconnects.
fn nginx(folder: &str, listen: SocketAddr, gateway: SocketAddr) -> String {
    format!(
        "daemon off; master_process off; pid {folder}/pid;
         events {{ worker_connections 256; }}
         http {{
             access_log off;
             client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
             uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
             client_header_buffer_size 64k; large_client_header_buffers 4 128k; client_max_body_size 0;
             underscores_in_headers on; ignore_invalid_headers off;
             upstream gateway {{ server {gateway}; keepalive 4; }}
             server {{
                 listen {listen};
                 location / {{
                     proxy_pass http://gateway; proxy_http_version 1.1; proxy_set_header Connection \"\";
                     proxy_set_header Host $http_host; proxy_request_buffering off; proxy_ignore_client_abort on;
                     proxy_next_upstream off;
                 }}
             }}
         }}"
    )
}

fn haproxy(option: &str, listen: SocketAddr, gateway: SocketAddr) -> String {
    format!(
        "global
    maxconn 256
    nbthread 1
defaults
    mode http
    timeout connect 60s
    timeout client 60s
    timeout server 60s
    retries 0
frontend clients
    bind {listen}
    {option}
    default_backend gateway
backend gateway
    http-reuse always
    server gateway {gateway}
"
    )
}
