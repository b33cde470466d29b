//! HAProxy or nginx in front of servers, as a child process.

use std::fmt::Write as _;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::server::Process;
use crate::wait::until;
use crate::workspace;
use testkit::ports::free_address;

const READY_LIMIT: Duration = Duration::from_secs(10);

/// A load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    HaProxy,
    Nginx,
}

/// A running load balancer. It is killed when the value is dropped.
pub(super) struct Balancer {
    _process: Process,
    pub(super) address: SocketAddr,
}

impl Program {
    pub(super) const ALL: [Self; 2] = [Self::HaProxy, Self::Nginx];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::HaProxy => "HAProxy",
            Self::Nginx => "nginx",
        }
    }

    /// Starts it in front of these servers. Its files are in `folder`.
    pub(super) fn start(self, servers: &[SocketAddr], folder: &Path) -> Result<Balancer> {
        let folder = folder.join(self.name());
        workspace::empty_directory(&folder)?;
        let address = free_address();
        let path = folder.join("configuration");
        let text = match self {
            Self::HaProxy => haproxy(address, servers),
            Self::Nginx => nginx(address, servers, &folder),
        };
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        let mut command = match self {
            Self::HaProxy => Command::new("haproxy"),
            Self::Nginx => Command::new("nginx"),
        };
        match self {
            Self::HaProxy => command.args(["-db", "-f"]).arg(&path),
            Self::Nginx => command.args(["-e", "stderr", "-p"]).arg(&folder).arg("-c").arg(&path),
        };
        let log = fs::File::create(folder.join("log"))?;
        let mut process = Process::start(command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log))?;
        let listens = until("it listens", READY_LIMIT, || match process.ended()? {
            Some(status) => bail!("it ended: {status}"),
            None => Ok(TcpStream::connect(address).is_ok()),
        });
        listens.with_context(|| format!("{}: see {}", self.name(), folder.join("log").display()))?;
        Ok(Balancer { _process: process, address })
    }
}

fn haproxy(listen: SocketAddr, servers: &[SocketAddr]) -> String {
    let mut text = format!(
        "global\n    maxconn 4096\n\ndefaults\n    mode http\n    timeout connect 2s\n    timeout client 60s\n    timeout server 60s\n    \
         http-reuse always\n\nfrontend in\n    bind {listen}\n    default_backend out\n\nbackend out\n    balance roundrobin\n"
    );
    for (number, server) in servers.iter().enumerate() {
        // A String accepts any text.
        let _ = writeln!(text, "    server s{number} {server}");
    }
    text
}

/// A single process: a kill leaves no workers.
fn nginx(listen: SocketAddr, servers: &[SocketAddr], folder: &Path) -> String {
    let folder = folder.display();
    let listed: String = servers.iter().map(|server| format!("        server {server};\n")).collect();
    format!(
        "daemon off;\nmaster_process off;\npid {folder}/pid;\nevents {{ worker_connections 4096; }}\nhttp {{\n    access_log off;\n    \
         client_body_temp_path {folder}/body;\n    proxy_temp_path {folder}/proxy;\n    fastcgi_temp_path {folder}/f;\n    \
         uwsgi_temp_path {folder}/u;\n    scgi_temp_path {folder}/s;\n    client_max_body_size 64m;\n    client_body_buffer_size 4m;\n    \
         keepalive_requests 1000000;\n    upstream out {{\n{listed}        keepalive 256;\n        keepalive_requests 1000000;\n    }}\n    \
         server {{\n        listen {listen};\n        location / {{\n            proxy_pass http://out;\n            \
         proxy_http_version 1.1;\n            proxy_set_header Connection \"\";\n            proxy_set_header Host $host;\n            \
         proxy_buffering off;\n            proxy_request_buffering off;\n        }}\n    }}\n}}\n"
    )
}
