//! The archive and the checksums: two runs produce the same bytes, and the unpacked binary runs.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::dist::{Compression, Release, VERSION};
use crate::workspace::{empty_directory, output, run};

/// Instead of the site, which mdBook builds.
const PAGE: &str = "<p>Forebay</p>";

/// Packs `binary` twice in `folder`, which is empty.
pub(super) fn run_twice(binary: &Path, folder: &Path) -> Result<()> {
    let html = folder.join("html");
    empty_directory(&html.join("docs"))?;
    fs::write(html.join("docs/index.html"), PAGE).context("writing a page")?;
    let release = Release { binary, version: VERSION, compression: Compression::Quick, html: Some(&html) };
    let [first, second] = ["first", "second"].map(|name| folder.join(name));
    let made = release.pack(&first)?;
    release.pack(&second)?;
    let sums = |folder: &Path| fs::read_to_string(folder.join("SHA256SUMS")).context("reading checksums");
    ensure!(sums(&first)? == sums(&second)?, "two runs differ: {}\n{}", sums(&first)?, sums(&second)?);
    run(Command::new("env").arg("--chdir").arg(&first).args(["sha256sum", "--check", "--quiet", "SHA256SUMS"]))?;
    for path in &made {
        println!("{} has {:.1} MB", path.display(), fs::metadata(path)?.len() as f64 / 1e6);
    }
    let unpacked = folder.join("unpacked");
    empty_directory(&unpacked)?;
    let archive = made.first().context("an archive was made")?;
    run(Command::new("tar")
        .args(["--extract", "--strip-components=1", "--file"])
        .arg(archive)
        .arg("--directory")
        .arg(&unpacked))?;
    let page = fs::read_to_string(unpacked.join("html/docs/index.html")).context("reading the page in the archive")?;
    ensure!(page == PAGE, "the page in the archive is {page}");
    let program = unpacked.join("forebay");
    let version = output(Command::new(&program).arg("--version"))?;
    ensure!(version.trim() == format!("forebay {VERSION}"), "the program says {version}");
    for (role, config) in
        [("serve", "forebay.toml"), ("gateway", "examples/gateway.toml"), ("writer", "examples/writer.toml")]
    {
        run(Command::new(&program).args(["check", "--role", role, "--config"]).arg(unpacked.join(config)))?;
    }
    fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))
}
