//! The data directory as delivery's own files need it.

use std::path::PathBuf;
use std::sync::Arc;

use event::Origin;
use eventlog::{DataDirectory, Losses, Reserve, SharedDisk};

/// What delivery's own files need of the data directory.
#[derive(Clone)]
pub(crate) struct Home {
    pub(crate) disk: SharedDisk,
    pub(crate) data: PathBuf,
    pub(crate) origin: Origin,
    pub(crate) reserve: Arc<Reserve>,
    pub(crate) losses: Arc<Losses>,
}

impl Home {
    pub(crate) fn of(directory: &DataDirectory, losses: &Arc<Losses>) -> Self {
        Self {
            disk: directory.disk().clone(),
            data: directory.path().into(),
            origin: directory.origin(),
            reserve: directory.reserve().clone(),
            losses: losses.clone(),
        }
    }
}
