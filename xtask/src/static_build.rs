//! The release build: one static binary, which runs on any Linux of its architecture, and in an otherwise empty image.

use std::env;
use std::iter;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::workspace::{cargo, root, run, target_directory};

/// Builds the binary, and returns its path. This takes ten minutes on two cores.
///
/// The C library is linked statically (`crt-static`). That needs an explicit target: otherwise the flags also apply to procedural macros, which
/// are shared libraries. They replace the flags
/// in `.cargo/config.toml`, so those are repeated here. `RUSTFLAGS` would replace all of them, so the build ignores it.
pub(crate) fn build() -> Result<PathBuf> {
    let triple = triple();
    let prefixes = prefixes()?;
    let remapped = prefixes.iter().map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display()));
    let own = ["-C", "target-feature=+crt-static", "-C", "force-frame-pointers=yes"].map(String::from);
    let flags: Vec<String> = own.into_iter().chain(remapped).collect();
    let maps = prefixes.iter().map(|(path, name)| format!("-ffile-prefix-map={}={name}", path.display()));
    let of_c = iter::once("-fno-omit-frame-pointer".into()).chain(maps);
    let mut build = cargo();
    build.args([
        "build",
        "--profile",
        "dist",
        "--locked",
        "--package",
        "forebay",
        "--bin",
        "forebay",
        "--target",
        &triple,
    ]);
    // A list of strings has the same syntax in JSON and in TOML.
    build.args(["--config", &format!("target.{triple}.rustflags={}", serde_json::to_string(&flags)?)]);
    build
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("CFLAGS", of_c.collect::<Vec<_>>().join(" "));
    run(&mut build)?;
    Ok(target_directory()?.join(triple).join("dist").join("forebay"))
}

/// Cargo's target triple of this machine with the GNU C library.
pub(crate) fn triple() -> String {
    format!("{}-unknown-linux-gnu", env::consts::ARCH)
}

/// Folders of this machine, each with its name in panics and debuggers. With these names the binary doesn't depend on the machine's paths.
fn prefixes() -> Result<[(PathBuf, &'static str); 3]> {
    let cargo_home =
        env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    // The last match applies.
    Ok([
        (cargo_home.context("neither CARGO_HOME nor a home directory is known")?, "cargo"),
        (root()?, "forebay"),
        (target_directory()?, "target"),
    ])
}
