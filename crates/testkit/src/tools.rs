//! Programs that `cargo xtask services` builds and fetches into the target directory.

use std::path::{Path, PathBuf};

/// The path of a program or its files in the tools' folder, such as `nats/nats-server`.
pub fn tool(path: &str) -> PathBuf {
    target_directory().join("tools").join(path)
}

/// Cargo's target directory, which holds the running program: the folder with the mark that cargo puts there.
fn target_directory() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let found = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    found.map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), Path::to_owned)
}
