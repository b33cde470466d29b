//! The files of an archive and of a package, and their paths.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Release, notices};
use crate::workspace::{copy, create_folder_of, output, root, run};

/// The layout of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// One folder, which the user can put anywhere.
    Archive,
    /// The file system's root.
    Debian,
}

/// A file of the repository, its path in the archive, and its path in the package.
const FILES: &[(&str, &str, &str)] = &[
    ("LICENSE", "LICENSE", "usr/share/doc/forebay/copyright"),
    ("README.md", "README.md", "usr/share/doc/forebay/README.md"),
    ("CHANGELOG.md", "CHANGELOG.md", "usr/share/doc/forebay/CHANGELOG.md"),
    ("docs/start/install.md", "INSTALL.md", "usr/share/doc/forebay/INSTALL.md"),
    ("packaging/forebay.toml", "forebay.toml", "etc/forebay/forebay.toml"),
    ("packaging/examples/gateway.toml", "examples/gateway.toml", "usr/share/doc/forebay/examples/gateway.toml"),
    ("packaging/examples/writer.toml", "examples/writer.toml", "usr/share/doc/forebay/examples/writer.toml"),
    ("deploy/systemd/forebay.service", "systemd/forebay.service", "usr/lib/systemd/system/forebay.service"),
    (
        "deploy/systemd/forebay-gateway.service",
        "systemd/forebay-gateway.service",
        "usr/lib/systemd/system/forebay-gateway.service",
    ),
    (
        "deploy/systemd/forebay-writer.service",
        "systemd/forebay-writer.service",
        "usr/lib/systemd/system/forebay-writer.service",
    ),
];

/// A shell, and the paths of its completions in the archive and in the package.
const COMPLETIONS: &[(&str, &str, &str)] = &[
    ("bash", "completions/forebay.bash", "usr/share/bash-completion/completions/forebay"),
    ("zsh", "completions/_forebay", "usr/share/zsh/vendor-completions/_forebay"),
    ("fish", "completions/forebay.fish", "usr/share/fish/vendor_completions.d/forebay.fish"),
];

impl Layout {
    fn of<'a>(self, archive: &'a str, package: &'a str) -> &'a str {
        match self {
            Self::Archive => archive,
            Self::Debian => package,
        }
    }
}

/// Creates the tree in `folder`. The binary itself writes its completions, manual pages and the schema of its configuration.
pub(super) fn fill(folder: &Path, layout: Layout, release: &Release<'_>) -> Result<()> {
    let (root, binary) = (root()?, release.binary);
    let program = folder.join(layout.of("forebay", "usr/bin/forebay"));
    copy(binary, &program)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    for (from, archive, package) in FILES {
        copy(&root.join(from), &folder.join(layout.of(archive, package)))?;
    }
    write(&folder.join(layout.of("NOTICES", "usr/share/doc/forebay/NOTICES")), &notices::text()?)?;
    for (shell, archive, package) in COMPLETIONS {
        let script = output(Command::new(binary).args(["completions", shell]))?;
        write(&folder.join(layout.of(archive, package)), &script)?;
    }
    let schema = output(Command::new(binary).args(["config", "schema"]))?;
    write(&folder.join(layout.of("forebay.schema.json", "usr/share/doc/forebay/forebay.schema.json")), &schema)?;
    if let Some(html) = release.html {
        copy_folder(html, &folder.join(layout.of("html", "usr/share/doc/forebay/html")))?;
    }
    let manual = folder.join(layout.of("man/man1", "usr/share/man/man1"));
    run(Command::new(binary).arg("man").arg(&manual))?;
    if layout == Layout::Debian {
        run(Command::new("gzip").args(["--recursive", "--no-name", "-9"]).arg(&manual))?;
    }
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let path = entry?.path();
        let target = to.join(path.file_name().context("an entry has a name")?);
        if path.is_dir() { copy_folder(&path, &target)? } else { copy(&path, &target)? }
    }
    Ok(())
}

/// Writes a file, and creates its folder.
pub(super) fn write(path: &Path, content: &str) -> Result<()> {
    create_folder_of(path)?;
    fs::write(path, content).with_context(|| format!("writing {}", path.display()))
}
