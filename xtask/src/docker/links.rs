//! The network links of this machine. A daemon creates bridges and doesn't remove them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::captured;

/// The prefixes of the links that Docker creates.
const OF_DOCKER: &[&str] = &["br-", "docker", "veth", "vx-", "ov-"];

/// The links at one time.
#[derive(Debug)]
pub(super) struct Links(BTreeSet<OsString>);

impl Links {
    pub(super) fn now() -> Result<Self> {
        let folder = std::fs::read_dir("/sys/class/net").context("listing the network links")?;
        Ok(Self(folder.filter_map(|entry| Some(entry.ok()?.file_name())).collect()))
    }

    /// Removes all of Docker's links that were created later, including those of another daemon.
    pub(super) fn remove_newer(&self) -> Result<()> {
        let is_of_docker = |name: &str| OF_DOCKER.iter().any(|prefix| name.starts_with(prefix));
        let now = Self::now()?;
        let newer = now.0.difference(&self.0).filter_map(|name| name.to_str());
        for name in newer.filter(|name| is_of_docker(name)) {
            // Deleting one end of a pair deletes the other, too.
            let _ = captured(Command::new("ip").args(["link", "delete", name]));
        }
        Ok(())
    }
}
