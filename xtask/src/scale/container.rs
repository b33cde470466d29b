//! Forebay and the reference loops in containers of a separate Docker daemon, on the host's network, because a bridge would add latency.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow};

use crate::benchmarks::bench_binary;
use crate::docker::Docker;
use crate::wait::until;
use crate::{http, image, workspace};
use testkit::ports::free_address;

/// The user of the image.
pub(super) const USER: u32 = 65532;
const READY_LIMIT: Duration = Duration::from_secs(30);
pub(super) const REFERENCE: &str = "reference:1";

/// The daemon with the images of the server and of the reference loops.
pub(super) struct Site {
    pub(super) docker: Docker,
    pub(super) tag: String,
}

/// A running container. It is removed with the daemon.
pub(super) struct Container {
    pub(super) name: String,
    pub(super) address: SocketAddr,
    /// The admin port of a server. That of a reference loop is its only one.
    pub(super) admin: SocketAddr,
    /// The time of the first answer, in seconds since 1970.
    pub(super) ready_at: f64,
}

impl Site {
    pub(super) fn start(binary: &Path) -> Result<Self> {
        let site = Self::on(Docker::start()?, binary)?;
        site.docker.image_of_program(REFERENCE, &bench_binary()?, &[])?;
        Ok(site)
    }

    /// The server's image on this daemon, without that of the reference loops.
    pub(super) fn on(docker: Docker, binary: &Path) -> Result<Self> {
        let tag = image::default_tag();
        image::build(binary, &tag, &mut docker.command())?;
        Ok(Self { docker, tag })
    }

    /// A folder on the disk of the workspace that the image's user may write to.
    pub(super) fn folder(&self, parent: &Path, name: &str) -> Result<PathBuf> {
        let folder = parent.join(name);
        workspace::empty_directory(&folder)?;
        chown(&folder, Some(USER), Some(USER)).with_context(|| format!("giving {} away", folder.display()))?;
        Ok(folder)
    }

    /// Starts `forebay serve` with the recommended hardening and these options of `docker run`.
    pub(super) fn serve(&self, name: &str, folder: &Path, config: &str, limits: &[&str]) -> Result<Container> {
        let [address, admin] = [free_address(), free_address()];
        let file = folder.with_extension("toml");
        fs::write(&file, config).with_context(|| format!("writing {}", file.display()))?;
        let mut run = self.docker.command();
        run.args(["run", "--detach", "--name", name, "--network", "host", "--read-only", "--cap-drop", "ALL"]);
        run.args(["--security-opt", "no-new-privileges"]).args(limits);
        run.arg("--volume").arg(format!("{}:/data", folder.display()));
        run.arg("--volume").arg(format!("{}:/forebay.toml:ro", file.display()));
        run.args(["--env", "FOREBAY_CONFIG=/forebay.toml", "--env", &format!("FOREBAY_GATEWAY_LISTEN={address}")]);
        run.args(["--env", &format!("FOREBAY_GATEWAY_ADMIN={admin}"), &self.tag]);
        self.start_container(&mut run, name, [address, admin], "/readyz")
    }

    fn start_container(
        &self,
        run: &mut Command,
        name: &str,
        [address, admin]: [SocketAddr; 2],
        path: &str,
    ) -> Result<Container> {
        // `docker run` returns some time after the process has started.
        let ready_at = thread::scope(|scope| -> Result<f64> {
            let waiting = scope.spawn(|| wait_ready(address, path));
            workspace::captured(run)?;
            waiting.join().map_err(|_| anyhow!("waiting for {name} panicked"))?.with_context(|| self.logs(name))
        })?;
        Ok(Container { name: name.to_owned(), address, admin, ready_at })
    }

    pub(super) fn logs(&self, name: &str) -> String {
        let logs = self.docker.command().args(["logs", "--tail", "20", name]).output();
        logs.map_or_else(|error| error.to_string(), |logs| String::from_utf8_lossy(&logs.stderr).into_owned())
    }

    /// Starts a reference loop with these options of `docker run`. With a `folder` it is durable.
    pub(super) fn reference(&self, name: &str, folder: Option<&Path>, limits: &[&str]) -> Result<Container> {
        let address = free_address();
        let mut run = self.docker.command();
        run.args(["run", "--detach", "--name", name, "--network", "host"]).args(limits);
        if let Some(folder) = folder {
            run.arg("--volume").arg(format!("{}:/data", folder.display()));
        }
        let kind = if folder.is_some() { "http-durable" } else { "http" };
        run.args([REFERENCE, "reference", kind, "--port", &address.port().to_string()]);
        if folder.is_some() {
            run.args(["--directory", "/data"]);
        }
        self.start_container(&mut run, name, [address, address], "/")
    }
}

/// Waits for the first 200, and returns its time in seconds since 1970.
fn wait_ready(address: SocketAddr, path: &str) -> Result<f64> {
    until("it answers 200", READY_LIMIT, || Ok(http::get(address, path).is_ok_and(|answer| answer.status == 200)))?;
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64())
}

impl Container {
    /// The output of `docker inspect` in this format.
    pub(super) fn inspect(&self, docker: &Docker, format: &str) -> Result<String> {
        docker.run(["inspect", "--format", format, &self.name])
    }

    pub(super) fn remove(self, docker: &Docker) -> Result<()> {
        docker.run(["rm", "--force", "--volumes", &self.name]).map(drop)
    }
}
