//! `cargo xtask image`: the container image from a binary of this machine. It uses the last stage of the `Dockerfile` unchanged, and creates
//! the files that this stage copies from the build stage.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::{captured, copy, empty_directory, has_program, root, target_directory};
use crate::{libraries, static_build};

/// The authorities of this machine, as Debian installs them.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// The beginning of the Dockerfile's last stage.
const LAST_STAGE: &str = "\nFROM scratch\n";
/// The build stage, from which the last stage copies.
const BUILD_STAGE: &str = "--from=build ";
const BUILD_FOLDER: &str = "/source/";

/// Options of `cargo xtask image`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The binary, instead of a static release build. The image of a dynamic one has its libraries too, and is for tests.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// The image's name [default: forebay:VERSION]
    #[arg(long, value_name = "NAME")]
    tag: Option<String>,
}

/// Builds the image in the Docker Engine that `docker` uses.
pub(crate) fn run_command(arguments: &Arguments) -> Result<()> {
    if !has_program("docker") {
        bail!("no `docker` here: install the Docker client, and start its engine");
    }
    let binary = match &arguments.binary {
        Some(binary) => binary.canonicalize().with_context(|| format!("finding {}", binary.display()))?,
        None => static_build::build()?,
    };
    let tag = arguments.tag.clone().unwrap_or_else(default_tag);
    build(&binary, &tag, &mut Command::new("docker"))?;
    println!("built {tag}: docker run --rm {tag} --version");
    Ok(())
}

/// The image's name.
pub(crate) fn default_tag() -> String {
    format!("forebay:{}", env!("CARGO_PKG_VERSION"))
}

/// Builds the image of this binary with `docker`, a command of a Docker client.
pub(crate) fn build(binary: &Path, tag: &str, docker: &mut Command) -> Result<()> {
    let folder = target_directory()?.join("image");
    prepare(binary, &folder)?;
    // Every engine has the older builder. BuildKit is a separate program.
    captured(docker.env("DOCKER_BUILDKIT", "0").args(["build", "--quiet", "--tag", tag]).arg(&folder)).map(drop)
}

/// Creates the build context of the image.
fn prepare(binary: &Path, folder: &Path) -> Result<()> {
    empty_directory(folder)?;
    let rootfs = folder.join("rootfs");
    for made in ["data", "rootfs/etc/ssl/certs"] {
        fs::create_dir_all(folder.join(made)).with_context(|| format!("making {made} in {}", folder.display()))?;
    }
    copy(binary, &rootfs.join("forebay"))?;
    for library in libraries::of(binary)? {
        copy(&library, &rootfs.join(library.strip_prefix("/")?))?;
    }
    let own = root()?.join("packaging").join("image");
    for entry in fs::read_dir(&own).with_context(|| format!("reading {}", own.display()))? {
        let entry = entry?;
        copy(&entry.path(), &rootfs.join("etc").join(entry.file_name()))?;
    }
    copy(Path::new(AUTHORITIES), &rootfs.join(AUTHORITIES.trim_start_matches('/')))?;
    let whole = root()?.join("Dockerfile");
    let text = fs::read_to_string(&whole).with_context(|| format!("reading {}", whole.display()))?;
    let path = folder.join("Dockerfile");
    fs::write(&path, last_stage(&text)?).with_context(|| format!("writing {}", path.display()))
}

/// The last stage alone. It copies from the build context instead of the build stage.
fn last_stage(dockerfile: &str) -> Result<String> {
    let at = dockerfile.rfind(LAST_STAGE).context("the Dockerfile's last stage begins with `FROM scratch`")?;
    Ok(dockerfile[at..].trim_start().replace(BUILD_STAGE, "").replace(BUILD_FOLDER, ""))
}

/// The size of an image in bytes.
pub(crate) fn size(tag: &str, docker: &mut Command) -> Result<u64> {
    let text = captured(docker.args(["image", "inspect", "--format", "{{.Size}}", tag]))?;
    text.trim().parse().with_context(|| format!("docker says that {tag} has {text} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_stage_needs_no_build_stage() {
        let text = fs::read_to_string(root().unwrap().join("Dockerfile")).unwrap();
        let stage = last_stage(&text).unwrap();
        assert!(stage.starts_with("FROM scratch\nCOPY rootfs/ /\n"), "{stage}");
        assert!(stage.contains("COPY --chown=65532:65532 data/ /data/\n"), "{stage}");
        assert_eq!(stage.matches("FROM").count(), 1);
        assert!(!stage.contains("build"), "{stage}");
        let toolchain = fs::read_to_string(root().unwrap().join("rust-toolchain.toml")).unwrap();
        let version = toolchain.lines().find_map(|line| line.strip_prefix("channel = ")).unwrap().trim_matches('"');
        assert!(text.contains(&format!("\nFROM rust:{version}-slim-")), "the Dockerfile builds with {version}");
    }
}
