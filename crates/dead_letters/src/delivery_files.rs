//! The data directory as delivery's own files need it.

use std::path::PathBuf;
use std::sync::Arc;

use event::Origin;
use eventlog::{DataDirectory, Losses, Reserve, SharedDisk};

/// What delivery's own files need of the data directory.
#[derive(Clone)]
pub struct DeliveryFiles {
    /// The disk that they are on.
    pub disk: SharedDisk,
    /// The data directory.
    pub data: PathBuf,
    /// The id of the data directory.
    pub origin: Origin,
    /// The space that is kept back for them.
    pub reserve: Arc<Reserve>,
    /// What starts have found lost.
    pub losses: Arc<Losses>,
}

impl DeliveryFiles {
    /// The files of delivery in `directory`.
    pub fn of(directory: &DataDirectory, losses: &Arc<Losses>) -> Self {
        Self {
            disk: directory.disk().clone(),
            data: directory.path().into(),
            origin: directory.origin(),
            reserve: directory.reserve().clone(),
            losses: losses.clone(),
        }
    }
}
