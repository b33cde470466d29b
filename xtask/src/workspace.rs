//! Where the workspace is, what it consists of, and how its commands are run.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The workspace's root directory.
pub(crate) fn root() -> Result<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(own.parent().context("xtask stands in the workspace's root")?.to_path_buf())
}

/// `cargo`, the one that runs this program where there is one.
pub(crate) fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// What `cargo metadata` says of the workspace's own packages.
pub(crate) fn metadata() -> Result<Value> {
    let mut command = cargo();
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    serde_json::from_str(&output(&mut command)?).context("cargo metadata printed no JSON")
}

/// Where cargo puts what it builds.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let metadata = metadata()?;
    let path = metadata["target_directory"].as_str().context("cargo metadata names no target_directory")?;
    Ok(PathBuf::from(path))
}

/// A new empty directory under `target/`, so that it is on the disk of the workspace.
pub(crate) fn scratch_directory(purpose: &str) -> Result<PathBuf> {
    let path = target_directory()?.join(purpose).join(std::process::id().to_string());
    empty_directory(&path)?;
    Ok(path)
}

/// Makes `path` an empty directory.
pub(crate) fn empty_directory(path: &Path) -> Result<()> {
    if path.exists() {
        std::fs::remove_dir_all(path).with_context(|| format!("removing {}", path.display()))?;
    }
    std::fs::create_dir_all(path).with_context(|| format!("making {}", path.display()))
}

/// Copies a file, and creates the folder of the copy.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    create_folder_of(to)?;
    std::fs::copy(from, to).with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Creates the folder of a file.
pub(crate) fn create_folder_of(path: &Path) -> Result<()> {
    let folder = path.parent().context("a file is in a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))
}

/// The packages and features that all tests are built with.
pub(crate) const TESTED: &[&str] = &["--workspace"];

/// The server to be measured: `given`, or the workspace's own, built with `profile`.
pub(crate) fn server_binary(given: Option<&Path>, profile: &str) -> Result<PathBuf> {
    if let Some(path) = given {
        return path.canonicalize().with_context(|| format!("finding the server {}", path.display()));
    }
    let mut build = cargo();
    build.args(["build", "--profile", profile]);
    // With the features of the tests, which have built it then.
    build.args(if profile == "dev" { TESTED } else { &["--package", "forebay"] });
    run(build.args(["--bin", "forebay"]))?;
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(target_directory()?.join(folder).join("forebay"))
}

/// Whether a program of this name stands in the `PATH`.
pub(crate) fn has_program(name: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}

/// Runs a command in the workspace's root with its output shown.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = describe(command);
    let status = command.current_dir(root()?).status().with_context(|| format!("starting `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// Runs a command in the workspace's root and returns what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = describe(command);
    let output = command.current_dir(root()?).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("starting `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` failed: {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed something other than UTF-8"))
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// One named part of a longer run.
pub(crate) type Step = (&'static str, fn() -> Result<()>);

/// Runs the steps one after the other, the first failure ends it. The closing lines name each with its time.
pub(crate) fn run_steps(steps: &[Step]) -> Result<()> {
    let begun = Instant::now();
    let mut closing = Vec::new();
    for (name, step) in steps {
        println!("── {name}");
        let step_begun = Instant::now();
        step().with_context(|| format!("{name} (after {:.0} s)", begun.elapsed().as_secs_f64()))?;
        closing.push(format!("   ok {:>5.0} s  {name}", step_begun.elapsed().as_secs_f64()));
    }
    println!("── all passed in {:.0} s\n{}", begun.elapsed().as_secs_f64(), closing.join("\n"));
    Ok(())
}
