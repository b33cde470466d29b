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
        stage::fill(&stage, Layout::Debian, self)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Purges below a folder of the test, in its own mount namespace.
    const PURGE: &str = r#"
set -e
cd "$1"
mkdir -p bin var/lib etc/default elsewhere/bind elsewhere/linked elsewhere/below elsewhere/config
printf '#!/bin/sh\n' > bin/deb-systemd-helper
chmod +x bin/deb-systemd-helper
for file in bind/a linked/a below/a config/a; do echo kept > "elsewhere/$file"; done
mkdir -p var/lib/forebay/journal/0 "var/lib/forebay/b [*?] d/deep" var/lib/forebay-gateway etc/forebay/schemas
for file in forebay/journal/0/1 forebay/tokens.json "forebay/b [*?] d/a"; do echo gone > "var/lib/$file"; done
mount --bind elsewhere/bind "var/lib/forebay/b [*?] d/deep"
ln -s "$1/elsewhere/below" var/lib/forebay/journal/link
ln -s 0/1 var/lib/forebay/journal/inner
ln -s "$1/elsewhere/linked" var/lib/forebay-writer
mkdir etc/forebay/mounted
mount --bind elsewhere/config etc/forebay/mounted
echo password > etc/forebay/forebay.toml
ln -s "$1/elsewhere/config/a" etc/default/forebay
echo gone > etc/default/forebay-writer
PATH="$1/bin:$PATH" DPKG_ROOT="$1" sh "$2" purge
find var etc ! -type d
"#;

    #[test]
    fn purge_never_deletes_through_mounts_and_links() {
        let folder = std::env::temp_dir().join(format!("forebay-purge-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let root = folder.canonicalize().unwrap();
        let mut purge = Command::new("unshare");
        purge.args(["--map-root-user", "--mount", "--propagation", "private", "sh", "-c", PURGE, "sh"]);
        let done =
            purge.arg(&root).arg(crate::workspace::root().unwrap().join("packaging/debian/postrm")).output().unwrap();
        let (left, said) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
        assert!(done.status.success(), "{said}");
        let path = |name: &str| root.join(name).display().to_string();
        for (name, why) in [
            ("var/lib/forebay/b [*?] d/deep", "it is a mount point"),
            ("etc/forebay/mounted", "it is a mount point"),
            ("elsewhere/below", "was a symbolic link to it"),
            ("elsewhere/linked", "was a symbolic link to it"),
            ("elsewhere/config/a", "was a symbolic link to it"),
        ] {
            let line = said.lines().find(|line| line.starts_with(&format!("forebay: purge left {}: ", path(name))));
            assert!(line.is_some_and(|line| line.ends_with(why)), "{name}: {said}");
        }
        let left: Vec<_> = left.lines().filter(|line| !line.starts_with("forebay: ")).collect();
        assert_eq!(left, ["var/lib/forebay/b [*?] d/deep/a", "etc/forebay/mounted/a"], "{said}");
        for kept in ["bind/a", "linked/a", "below/a", "config/a"] {
            assert!(root.join("elsewhere").join(kept).is_file(), "{kept}");
        }
        for gone in
            ["var/lib/forebay-writer", "var/lib/forebay-gateway", "etc/default/forebay", "etc/default/forebay-writer"]
        {
            assert!(!root.join(gone).exists(), "{gone}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
