//! The handle of a directory: its work, on threads that may block.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use objects::ObjectFormat;
use sink::SinkError;

use crate::config::DirectoryConfig;
use crate::error;
use crate::files::Files;

/// A directory of objects. Cheap to clone.
#[derive(Clone)]
pub struct Directory(Arc<Shared>);

struct Shared {
    config: DirectoryConfig,
    files: Arc<dyn Files>,
    exclusive: Mutex<()>,
}

impl Directory {
    /// A directory whose files are created through `files`. Nothing is created before the first call.
    #[must_use]
    pub fn new(config: DirectoryConfig, files: Arc<dyn Files>) -> Self {
        Self(Arc::new(Shared { config, files, exclusive: Mutex::new(()) }))
    }

    pub(super) fn rules(&self) -> &ObjectFormat {
        &self.0.config.rules
    }

    /// Does `work` on a thread that may block.
    pub(super) async fn reading<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> Result<T, SinkError> + Send + 'static,
    ) -> Result<T, SinkError> {
        let shared = self.0.clone();
        let read = tokio::task::spawn_blocking(move || work(&shared.config.path)).await;
        read.unwrap_or_else(|_| Err(error::cancelled(&self.0.config.path)))
    }

    /// Does `work` exclusively. Its flag is set when the caller no longer waits for it.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Files, &Path, &AtomicBool) -> Result<T, SinkError> + Send + 'static,
    ) -> Result<T, SinkError> {
        if self.0.files.may_block() {
            return self.work_on_thread(work).await;
        }
        let _guard = self.0.exclusive.lock().unwrap_or_else(PoisonError::into_inner);
        work(&*self.0.files, &self.0.config.path, &AtomicBool::new(false))
    }

    /// The same on a thread that may block.
    pub(super) async fn work_on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Files, &Path, &AtomicBool) -> Result<T, SinkError> + Send + 'static,
    ) -> Result<T, SinkError> {
        let shared = self.0.clone();
        let caller = Caller(Arc::default());
        let abandoned = caller.0.clone();
        let exclusively = move || {
            let _guard = shared.exclusive.lock().unwrap_or_else(PoisonError::into_inner);
            work(&*shared.files, &shared.config.path, &abandoned)
        };
        let worked = tokio::task::spawn_blocking(exclusively).await;
        worked.unwrap_or_else(|_| Err(error::cancelled(&self.0.config.path)))
    }
}

/// The waiting caller: dropping this cancels the work.
struct Caller(Arc<AtomicBool>);

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
