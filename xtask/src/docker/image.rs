//! An image without a registry: programs of this machine with the libraries that they need, and files.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::{Docker, output};
use crate::libraries;

/// What is to be an image: a folder with its files, and the settings that a `Dockerfile` would have.
#[derive(Debug)]
pub(crate) struct Image {
    root: PathBuf,
    settings: Vec<String>,
}

impl Image {
    /// An empty one.
    pub(crate) fn new(docker: &Docker) -> Result<Self> {
        let root = docker.folder().join("image");
        if root.exists() {
            fs::remove_dir_all(&root).with_context(|| format!("removing {}", root.display()))?;
        }
        fs::create_dir(&root).with_context(|| format!("making {}", root.display()))?;
        Ok(Self { root, settings: Vec::new() })
    }

    /// A program of this machine at this path of the image, with all libraries that it is linked with.
    pub(crate) fn program(self, from: &Path, to: &str) -> Result<Self> {
        self.copy_file(from, to)?;
        self.libraries(from)
    }

    /// A file or folder of this machine, links followed, at this path of the image. Libraries in it get those that they need.
    pub(crate) fn copy(self, from: &Path, to: &str) -> Result<Self> {
        if from.is_file() {
            self.copy_file(from, to)?;
            return Ok(self);
        }
        let target = self.place(to)?;
        output(
            Command::new("cp").args(["--recursive", "--dereference", "--no-target-directory"]).arg(from).arg(target),
        )?;
        let entries = fs::read_dir(from).with_context(|| format!("reading {}", from.display()))?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let is_library = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "so");
        paths.filter(is_library).try_fold(self, |image, path| image.libraries(&path))
    }

    /// A file with this text.
    pub(crate) fn text(self, to: &str, text: &str, mode: u32) -> Result<Self> {
        let target = self.place(to)?;
        fs::write(&target, text).with_context(|| format!("writing {}", target.display()))?;
        fs::set_permissions(&target, Permissions::from_mode(mode))?;
        Ok(self)
    }

    /// An empty folder of this user.
    pub(crate) fn folder(self, to: &str, owner: u32, mode: u32) -> Result<Self> {
        let target = self.place(to)?;
        fs::create_dir_all(&target).with_context(|| format!("making {}", target.display()))?;
        chown(&target, Some(owner), Some(owner))?;
        fs::set_permissions(&target, Permissions::from_mode(mode))?;
        Ok(self)
    }

    /// An instruction as a `Dockerfile` has it: `USER`, `ENV`, `EXPOSE`, `VOLUME`, `WORKDIR`, `CMD`.
    pub(crate) fn setting(mut self, instruction: &str) -> Self {
        self.settings.push(instruction.to_owned());
        self
    }

    /// The program that a container runs, with its first arguments.
    pub(crate) fn entry_point(self, words: &[&str]) -> Self {
        self.setting(&format!("ENTRYPOINT {words:?}"))
    }

    /// Gives it to the daemon under this name, `NAME:TAG`.
    pub(crate) fn import(self, docker: &Docker, name: &str) -> Result<()> {
        let mut tar = Command::new("tar");
        tar.arg("--create").arg("--directory").arg(&self.root).arg(".").stdout(Stdio::piped()).stdin(Stdio::null());
        let mut tar = tar.spawn().context("starting tar")?;
        let packed = tar.stdout.take().context("tar writes to a pipe")?;
        let mut import = docker.command();
        import.arg("import");
        for setting in &self.settings {
            import.args(["--change", setting]);
        }
        let imported = import.args(["-", name]).stdin(packed).output().context("starting docker import")?;
        if !tar.wait()?.success() || !imported.status.success() {
            bail!("docker import {name} failed: {}", String::from_utf8_lossy(&imported.stderr).trim());
        }
        fs::remove_dir_all(&self.root).with_context(|| format!("removing {}", self.root.display()))
    }

    /// Copies the libraries of a program or library to the paths at which it looks for them.
    fn libraries(self, of: &Path) -> Result<Self> {
        for path in libraries::of(of)? {
            self.copy_file(&path, &path.to_string_lossy())?;
        }
        Ok(self)
    }

    fn copy_file(&self, from: &Path, to: &str) -> Result<()> {
        let target = self.place(to)?;
        fs::copy(from, &target).with_context(|| format!("copying {} to {}", from.display(), target.display()))?;
        Ok(())
    }

    /// Where a path of the image is here; its folder exists.
    fn place(&self, path: &str) -> Result<PathBuf> {
        let place = self.root.join(path.trim_start_matches('/'));
        let parent = place.parent().context("a path of an image isn't its root")?;
        fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))?;
        Ok(place)
    }
}
