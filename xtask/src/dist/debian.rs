//! The Debian package: the tree, its control files from `packaging/debian`, and `dpkg-deb`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::stage::{self, Layout, write};
use super::{Compression, Release, commit_time};
use crate::workspace::{output, root, run};

const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];
/// Prints the checksums that `dpkg --verify` compares.
const MD5SUMS: &str =
    "find . -type f -not -path './DEBIAN/*' -printf '%P\\0' | LC_ALL=C sort --zero-terminated | xargs --null md5sum";

impl Release<'_> {
    /// Builds the package in `folder`.
    pub(crate) fn debian(&self, folder: &Path) -> Result<PathBuf> {
        let (version, architecture) = (debian_version(self.version), architecture()?);
        let stage = folder.join("stage");
        stage::fill(&stage, Layout::Debian, self.binary)?;
        let size =
            output(Command::new("du").args(["--summarize", "--apparent-size", "--block-size=1024"]).arg(&stage))?;
        let size = size.split_whitespace().next().context("du says how large the package is")?;
        let sources = root()?.join("packaging/debian");
        let read = |name| fs::read_to_string(sources.join(name)).with_context(|| format!("reading {name}"));
        let control = read("control")?.replace("@VERSION@", &version).replace("@ARCHITECTURE@", architecture);
        let own = stage.join("DEBIAN");
        let sums = output(Command::new("env").arg("--chdir").arg(&stage).args(["sh", "-c", MD5SUMS]))?;
        write(&own.join("control"), &control.replace("@INSTALLED_SIZE@", size))?;
        write(&own.join("conffiles"), &read("conffiles")?)?;
        write(&own.join("md5sums"), &sums)?;
        run(Command::new("chmod").args(["--recursive", "u=rwX,go=rX"]).arg(&stage))?;
        for script in SCRIPTS {
            write(&own.join(script), &read(script)?)?;
            fs::set_permissions(own.join(script), fs::Permissions::from_mode(0o755))?;
        }
        let path = folder.join(format!("forebay_{version}_{architecture}.deb"));
        let mut build = Command::new("dpkg-deb");
        build.args(["--build", "--root-owner-group"]).args(self.compression.of_package());
        run(build.arg(&stage).arg(&path).env("SOURCE_DATE_EPOCH", commit_time()?))?;
        fs::remove_dir_all(&stage).with_context(|| format!("removing {}", stage.display()))?;
        Ok(path)
    }
}

impl Compression {
    const fn of_package(self) -> &'static [&'static str] {
        match self {
            Self::Small => &["-Zxz"],
            Self::Quick => &["-Zgzip", "-z1"],
        }
    }
}

/// The version as Debian sorts it: a pre-release such as `1.0.0-rc.1` becomes `1.0.0~rc.1`, which is before `1.0.0`.
fn debian_version(version: &str) -> String {
    version.replace('-', "~")
}

/// Debian's name of the processor architecture that this program was built for.
fn architecture() -> Result<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => bail!("there is no package for {other}: add Debian's name of it here"),
    }
}
