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
    turn: Mutex<()>,
}

impl Directory {
    /// A directory whose files are made through `files`. Nothing is made before the first call.
    #[must_use]
    pub fn new(config: DirectoryConfig, files: Arc<dyn Files>) -> Self {
        Self(Arc::new(Shared { config, files, turn: Mutex::new(()) }))
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
        read.unwrap_or_else(|_| Err(error::unanswered(&self.0.config.path)))
    }

    /// Does `work` in its turn. It is told when nobody waits for it any more.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Files, &Path, &AtomicBool) -> Result<T, SinkError> + Send + 'static,
    ) -> Result<T, SinkError> {
        if self.0.files.may_block() {
            return self.work_aside(work).await;
        }
        let _turn = self.0.turn.lock().unwrap_or_else(PoisonError::into_inner);
        work(&*self.0.files, &self.0.config.path, &AtomicBool::new(false))
    }

    /// The same on a thread that may block.
    pub(super) async fn work_aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Files, &Path, &AtomicBool) -> Result<T, SinkError> + Send + 'static,
    ) -> Result<T, SinkError> {
        let shared = self.0.clone();
        let caller = Caller(Arc::default());
        let abandoned = caller.0.clone();
        let in_turn = move || {
            let _turn = shared.turn.lock().unwrap_or_else(PoisonError::into_inner);
            work(&*shared.files, &shared.config.path, &abandoned)
        };
        let worked = tokio::task::spawn_blocking(in_turn).await;
        worked.unwrap_or_else(|_| Err(error::unanswered(&self.0.config.path)))
    }
}

/// Whoever waits for an answer: with it goes the wish for one.
struct Caller(Arc<AtomicBool>);

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
