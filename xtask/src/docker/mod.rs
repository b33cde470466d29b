//! A separate Docker daemon with its own data, socket and networks, which are removed when the value is dropped. It doesn't use the containers,
//! images and volumes of another daemon. It needs root.

mod image;
mod links;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::server::{Process, tail};
use crate::wait::until;
use crate::workspace::{captured, has_program};
pub(crate) use image::Image;
use links::Links;

/// The timeout of the daemon's start.
const START_LIMIT: Duration = Duration::from_secs(60);
/// The timeout of the daemon's stop. It stops its containers within ten seconds.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// A running daemon.
#[derive(Debug)]
pub(crate) struct Docker {
    daemon: Process,
    /// All its files. The path is short, since a socket's path has at most 108 bytes.
    folder: PathBuf,
    links: Links,
}

impl Docker {
    /// The reason if no daemon can be started here.
    pub(crate) fn missing() -> Option<&'static str> {
        if !rustix::process::geteuid().is_root() {
            return Some("root is needed to start Docker");
        }
        let is_there = ["dockerd", "docker", "iptables", "tar"].iter().all(|program| has_program(program));
        (!is_there).then_some("Docker is missing: `cargo xtask services` installs it")
    }

    /// Starts a daemon without containers, images or networks, and waits until it answers.
    pub(crate) fn start() -> Result<Self> {
        if let Some(missing) = Self::missing() {
            bail!("{missing}");
        }
        let folder = std::env::temp_dir().join(format!("forebay-docker-{}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("making {}", folder.display()))?;
        let links = Links::now()?;
        let log = File::create(folder.join("log"))?;
        let mut dockerd = Command::new("dockerd");
        dockerd.arg("--data-root").arg(folder.join("data")).arg("--exec-root").arg(folder.join("exec"));
        dockerd.arg("--pidfile").arg(folder.join("pid")).arg("--host").arg(socket(&folder));
        // The machine's configuration file could set other addresses and folders.
        let config = folder.join("daemon.json");
        fs::write(&config, "{}")?;
        dockerd.arg("--config-file").arg(config);
        dockerd.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let mut docker = Self { daemon: Process::start(&mut dockerd)?, folder, links };
        docker.wait_ready()?;
        Ok(docker)
    }

    fn wait_ready(&mut self) -> Result<()> {
        let mut info = self.command();
        info.arg("info");
        let ready = until("dockerd answers", START_LIMIT, || match self.daemon.ended()? {
            Some(status) => bail!("dockerd ended before it was ready: {status}"),
            None => Ok(info.output().is_ok_and(|output| output.status.success())),
        });
        ready.with_context(|| tail(&self.log()))
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// The value of `DOCKER_HOST` for the daemon.
    pub(crate) fn host(&self) -> String {
        socket(&self.folder)
    }

    /// A folder for files that are removed with the daemon.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// `docker`, for this daemon.
    pub(crate) fn command(&self) -> Command {
        self.program("docker")
    }

    /// Another client of this daemon, such as `docker-compose`. It doesn't read the user's settings.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.env("DOCKER_HOST", self.host()).env("DOCKER_CONFIG", self.folder.join("config"));
        // The daemon's built-in builder. BuildKit is a plugin, which Debian lacks.
        command.env("DOCKER_BUILDKIT", "0").env_remove("DOCKER_CONTEXT").stdin(Stdio::null());
        command
    }

    /// Runs `docker` with these arguments. Returns its standard output.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Result<String> {
        captured(self.command().args(arguments))
    }

    /// Builds an image of one program with its libraries, and of more files and folders, each with its path in the image. The program is the
    /// entry point, at `/NAME`.
    pub(crate) fn image_of_program(&self, name: &str, program: &Path, files: &[(&Path, &str)]) -> Result<()> {
        let base = program.file_name().and_then(OsStr::to_str).context("a program has a name")?;
        let place = format!("/{base}");
        let image = Image::new(self)?.program(program, &place)?;
        let image = files.iter().try_fold(image, |image, (from, to)| image.copy(from, to))?;
        image.entry_point(&[&place]).import(self, name)
    }

    fn end(&mut self) -> Result<()> {
        // A Swarm would restart its containers.
        let _ = self.run(["swarm", "leave", "--force"]);
        let left = self.run(["ps", "--all", "--quiet"])?;
        if !left.is_empty() {
            self.run(["rm", "--force", "--volumes"].into_iter().chain(left.lines()))?;
        }
        self.daemon.signal(Signal::TERM)?;
        let ended = until("dockerd stops", STOP_LIMIT, || Ok(self.daemon.ended()?.is_some()));
        ended.with_context(|| tail(&self.log()))
    }

    fn remove(&mut self) -> Result<()> {
        if let Err(error) = self.end() {
            eprintln!("ending dockerd: {error:#}");
            self.daemon.end()?;
        }
        self.links.remove_newer()?;
        self.unmount()?;
        fs::remove_dir_all(&self.folder).with_context(|| format!("removing {}", self.folder.display()))
    }
}

impl Docker {
    /// The daemon leaves a mount for the network namespace of containers on the host's network.
    fn unmount(&self) -> Result<()> {
        let mounts = fs::read_to_string("/proc/self/mounts").context("listing the mounts")?;
        let points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        for point in points.filter(|point| Path::new(point).starts_with(&self.folder)) {
            captured(Command::new("umount").args(["--lazy", point]))?;
        }
        Ok(())
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            eprintln!("can't clean up after dockerd: {error:#}");
        }
    }
}

fn socket(folder: &Path) -> String {
    format!("unix://{}", folder.join("sock").display())
}
