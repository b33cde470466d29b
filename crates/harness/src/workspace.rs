//! The workspace: its folder, its packages, and how its commands are run.

use std::env;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use testkit::skipped::LIST;

/// The workspace's root directory.
pub fn root() -> Result<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(own.ancestors().nth(2).context("this crate is in the folder `crates` of the workspace")?.to_path_buf())
}

/// The `cargo` that runs this program, if there is one.
pub fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The data of `cargo metadata` about the workspace's own packages.
pub fn metadata() -> Result<Value> {
    let mut command = cargo();
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    serde_json::from_str(&output(&mut command)?).context("cargo metadata printed no JSON")
}

/// The folder of cargo's output.
pub fn target_directory() -> Result<PathBuf> {
    let metadata = metadata()?;
    let path = metadata["target_directory"].as_str().context("cargo metadata names no target_directory")?;
    Ok(PathBuf::from(path))
}

/// A new empty directory under `target/`, on the disk of the workspace.
pub fn scratch_directory(purpose: &str) -> Result<PathBuf> {
    let path = target_directory()?.join(purpose).join(std::process::id().to_string());
    empty_directory(&path)?;
    Ok(path)
}

/// Makes `path` an empty directory.
pub fn empty_directory(path: &Path) -> Result<()> {
    if path.exists() {
        std::fs::remove_dir_all(path).with_context(|| format!("removing {}", path.display()))?;
    }
    std::fs::create_dir_all(path).with_context(|| format!("making {}", path.display()))
}

/// Copies a file, and creates the folder of the copy.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    create_folder_of(to)?;
    std::fs::copy(from, to).with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Compresses a file as a log rotation does, and returns its new path.
pub fn gzip(file: &Path) -> Result<PathBuf> {
    run(Command::new("gzip").args(["--fast", "--force"]).arg(file))?;
    let mut name = file.as_os_str().to_owned();
    name.push(".gz");
    Ok(name.into())
}

/// Creates the folder of a file.
pub fn create_folder_of(path: &Path) -> Result<()> {
    let folder = path.parent().context("a file is in a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))
}

/// The packages and features that all tests are built with.
pub const TESTED: &[&str] = &["--workspace", "--exclude", "bench"];
/// The test of the binary, for which cargo builds it.
const END_TO_END: &str = "it";

/// The server of a campaign: `given`, or the one that the tests were built with.
pub fn tested_binary(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = given {
        return existing(path);
    }
    // `cargo build` would build half of the workspace again: it doesn't know the features that tests add to dependencies.
    run(cargo().args(["test", "--quiet", "--no-run"]).args(TESTED).args(["--test", END_TO_END]))?;
    Ok(target_directory()?.join("debug").join("forebay"))
}

/// The server to be measured: `given`, or one of the profile `dist`.
pub fn dist_binary(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = given {
        return existing(path);
    }
    run(cargo().args(["build", "--profile", "dist", "--package", "forebay", "--bin", "forebay"]))?;
    Ok(target_directory()?.join("dist").join("forebay"))
}

/// The full path of a server that is there.
pub fn existing(server: &Path) -> Result<PathBuf> {
    server.canonicalize().with_context(|| format!("finding the server {}", server.display()))
}

/// Whether a program of this name is in the `PATH`.
pub fn has_program(name: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}

/// Runs a command in the workspace's root with its output shown.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = describe(command);
    let status = command.current_dir(root()?).status().with_context(|| format!("starting `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// Runs a command in the workspace's root and returns what it printed.
pub fn output(command: &mut Command) -> Result<String> {
    let shown = describe(command);
    let output = command.current_dir(root()?).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("starting `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` failed: {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed something other than UTF-8"))
}

/// Runs a command whose errors say something only if it fails. Returns its standard output; an error has its standard error.
pub fn captured(command: &mut Command) -> Result<String> {
    let shown = describe(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("starting `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// `cargo test` of all packages that tests are built with. Skipped tests are listed.
pub fn cargo_test() -> Result<Command> {
    let mut command = cargo();
    command.arg("test").args(TESTED).env(LIST, skipped_list()?);
    Ok(command)
}

/// The step that runs.
static STEP: Mutex<&str> = Mutex::new("campaign");

/// Names the step that runs in this process from now on.
pub fn begin_step(name: &'static str) {
    *STEP.lock().unwrap_or_else(PoisonError::into_inner) = name;
}

/// The file that lists skipped tests.
pub fn skipped_list() -> Result<PathBuf> {
    Ok(target_directory()?.join("skipped-tests"))
}

/// Reports that a part of a campaign is skipped, and why.
pub fn skipped(reason: &str) -> Result<()> {
    println!("   skipped: {reason}");
    let path = skipped_list()?;
    let list = File::options().create(true).append(true).open(&path);
    let step = *STEP.lock().unwrap_or_else(PoisonError::into_inner);
    // One write for each line: processes append at the same time.
    let line = format!("{step}: {reason}\n");
    list.and_then(|mut list| list.write_all(line.as_bytes())).with_context(|| format!("writing {}", path.display()))
}
