//! `cargo xtask dist`: the files to install, in `target/packages`: an archive for any Linux, a Debian package, and their checksums.
//!
//! The same commit results in the same bytes: files are sorted, belong to root, and have the time of the commit.

mod debian;
mod notices;
mod stage;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::{empty_directory, output, run as run_shown, target_directory};
use crate::{docs, static_build};
use stage::Layout;

/// The version of the workspace.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Options of `cargo xtask dist`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A server to pack; without it the command builds a static one, which takes ten minutes on two cores.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// The compression of the packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    /// For downloads.
    Small,
    /// For tests, whose packages are large and short-lived.
    Quick,
}

/// A binary, its version and its documentation.
pub(crate) struct Release<'a> {
    pub(crate) binary: &'a Path,
    pub(crate) version: &'a str,
    pub(crate) compression: Compression,
    /// The site that `cargo xtask docs` builds; none in tests of other parts.
    pub(crate) html: Option<&'a Path>,
}

/// Packs, and prints the files.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let binary = match &arguments.binary {
        Some(path) => path.canonicalize().with_context(|| format!("finding the server {}", path.display()))?,
        None => static_build::build()?,
    };
    let (html, folder) = (docs::book::build()?, target_directory()?.join("packages"));
    let release = Release { binary: &binary, version: VERSION, compression: Compression::Small, html: Some(&html) };
    for path in release.pack(&folder)? {
        println!("{} ({:.1} MB)", path.display(), std::fs::metadata(&path)?.len() as f64 / 1e6);
    }
    Ok(())
}

impl Release<'_> {
    /// Empties `folder`, and creates in it the archive, the Debian package and `SHA256SUMS`.
    pub(crate) fn pack(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        empty_directory(folder)?;
        let made = [self.archive(folder)?, self.debian(folder)?];
        let names = made.iter().filter_map(|path| path.file_name());
        let sums = output(Command::new("env").arg("--chdir").arg(folder).arg("sha256sum").args(names))?;
        let path = folder.join("SHA256SUMS");
        std::fs::write(&path, sums).with_context(|| format!("writing {}", path.display()))?;
        Ok([Vec::from(made), vec![path]].concat())
    }

    fn archive(&self, folder: &Path) -> Result<PathBuf> {
        let name = format!("forebay-{}-{}-linux", self.version, std::env::consts::ARCH);
        let stage = folder.join("stage");
        stage::fill(&stage.join(&name), Layout::Archive, self)?;
        let path = folder.join(format!("{name}.tar.gz"));
        let mut tar = Command::new("tar");
        tar.args(["--create", "--sort=name", "--format=gnu", "--owner=0", "--group=0", "--numeric-owner"]);
        tar.args(["--mode=u=rwX,go=rX", &format!("--mtime=@{}", commit_time()?)]);
        tar.arg(format!("--use-compress-program=gzip --no-name {}", self.compression.gzip()));
        run_shown(tar.arg("--file").arg(&path).arg("--directory").arg(&stage).arg(name))?;
        std::fs::remove_dir_all(&stage).with_context(|| format!("removing {}", stage.display()))?;
        Ok(path)
    }
}

impl Compression {
    const fn gzip(self) -> &'static str {
        match self {
            Self::Small => "-9",
            Self::Quick => "-1",
        }
    }
}

/// The time of all files, in seconds since 1970: `SOURCE_DATE_EPOCH`, or else the time of the last commit.
fn commit_time() -> Result<String> {
    if let Ok(given) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(given);
    }
    let time = output(Command::new("git").args(["log", "-1", "--format=%ct"]));
    Ok(time.context("set SOURCE_DATE_EPOCH, because git is missing")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{has_program, root};

    const UNITS: [&str; 3] = ["forebay", "forebay-gateway", "forebay-writer"];
    /// The highest exposure by `systemd-analyze security`, in tenths. A service without any limit has 100.
    const EXPOSURE_MAX: u32 = 15;

    fn unit(name: &str) -> PathBuf {
        root().unwrap().join("deploy/systemd").join(format!("{name}.service"))
    }

    #[test]
    fn units_are_hardened_alike() {
        let hardening = UNITS.map(|name| {
            let text = std::fs::read_to_string(unit(name)).unwrap();
            text.split_once("# Hardening").unwrap().1.to_owned()
        });
        assert!(hardening.iter().all(|lines| *lines == hardening[0]));
    }

    #[test]
    fn units_are_rated_well() {
        if !has_program("systemd-analyze") {
            testkit::skipped::report("systemd-analyze is missing");
            return;
        }
        for name in UNITS {
            let mut rate = Command::new("systemd-analyze");
            rate.args(["security", "--no-pager", "--offline=true", &format!("--threshold={EXPOSURE_MAX}")]);
            let rated = rate.arg(unit(name)).output().unwrap();
            assert!(rated.status.success(), "{name}: {}", String::from_utf8_lossy(&rated.stdout));
        }
    }
}
