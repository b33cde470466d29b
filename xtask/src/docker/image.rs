//! An image without a registry: programs of this machine with their libraries, and files.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::Docker;
use crate::workspace::create_folder_of;
use crate::{libraries, workspace};

/// An image under construction: a folder with its files, and the instructions that a `Dockerfile` would have.
#[derive(Debug)]
pub(crate) struct Image {
    root: PathBuf,
    settings: Vec<String>,
}

impl Image {
    /// An empty image.
    pub(crate) fn new(docker: &Docker) -> Result<Self> {
        let root = docker.folder().join("image");
        if root.exists() {
            fs::remove_dir_all(&root).with_context(|| format!("removing {}", root.display()))?;
        }
        fs::create_dir(&root).with_context(|| format!("making {}", root.display()))?;
        Ok(Self { root, settings: Vec::new() })
    }

    /// Adds a program of this machine at this path, with its libraries.
    pub(crate) fn program(self, from: &Path, to: &str) -> Result<Self> {
        self.copy_file(from, to)?;
        self.libraries(from)
    }

    /// Adds a file or folder of this machine at this path. It follows links, and adds the libraries that libraries in the folder need.
    pub(crate) fn copy(self, from: &Path, to: &str) -> Result<Self> {
        if from.is_file() {
            self.copy_file(from, to)?;
            return Ok(self);
        }
        let target = self.place(to)?;
        workspace::captured(
            Command::new("cp").args(["--recursive", "--dereference", "--no-target-directory"]).arg(from).arg(target),
        )?;
        let entries = fs::read_dir(from).with_context(|| format!("reading {}", from.display()))?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let is_library = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "so");
        paths.filter(is_library).try_fold(self, |image, path| image.libraries(&path))
    }

    /// Adds a file with this text.
    pub(crate) fn text(self, to: &str, text: &str, mode: u32) -> Result<Self> {
        let target = self.place(to)?;
        fs::write(&target, text).with_context(|| format!("writing {}", target.display()))?;
        fs::set_permissions(&target, Permissions::from_mode(mode))?;
        Ok(self)
    }

    /// Adds an empty folder of this user.
    pub(crate) fn folder(self, to: &str, owner: u32, mode: u32) -> Result<Self> {
        let target = self.place(to)?;
        fs::create_dir_all(&target).with_context(|| format!("making {}", target.display()))?;
        chown(&target, Some(owner), Some(owner))?;
        fs::set_permissions(&target, Permissions::from_mode(mode))?;
        Ok(self)
    }

    /// Adds an instruction of a `Dockerfile`: `USER`, `ENV`, `EXPOSE`, `VOLUME`, `WORKDIR`, `CMD`.
    pub(crate) fn setting(mut self, instruction: &str) -> Self {
        self.settings.push(instruction.to_owned());
        self
    }

    /// Sets the program that a container runs, with its first arguments.
    pub(crate) fn entry_point(self, words: &[&str]) -> Self {
        self.setting(&format!("ENTRYPOINT {words:?}"))
    }

    /// Imports the image into the daemon under this name, `NAME:TAG`.
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

    /// Copies the libraries of a program or library to the paths at which it searches for them.
    fn libraries(self, of: &Path) -> Result<Self> {
        for path in libraries::of(of)? {
            self.copy_file(&path, &path.to_string_lossy())?;
        }
        Ok(self)
    }

    fn copy_file(&self, from: &Path, to: &str) -> Result<()> {
        workspace::copy(from, &self.place(to)?)
    }

    /// The path on this machine of a path of the image. Creates its folder.
    fn place(&self, path: &str) -> Result<PathBuf> {
        let place = self.root.join(path.trim_start_matches('/'));
        create_folder_of(&place)?;
        Ok(place)
    }
}
