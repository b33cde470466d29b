//! A directory as a store of objects: each is a file, beside it its description. It is never listed.
//!
//! What writes to the disk may take long, so it has a thread of tokio's. One object of a directory is written at a
//! time, so that a write whose caller has left is over before the next begins: lanes wait for their turn, and other
//! drivers and processes are kept out by a lock.

mod exchange;
mod failure;
mod files;
mod mark;
mod put;
mod read;

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use files::{Files, NewFile, OsFiles};

use super::read::{Looked, ObjectCache, PIECE_BYTES, Sender};
use super::room::Room;
use super::{Manifest, ObjectRules, Parts};
use crate::{Mark, Reason, SinkError};
use put::Put;

/// Which directory, and what its files are like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryConfig {
    /// The directory. It and those above it are made if they are missing.
    pub path: PathBuf,
    /// How large files are.
    pub rules: ObjectRules,
}

/// A directory of objects. Cheap to clone.
#[derive(Clone)]
pub struct Directory(Arc<Shared>);

struct Shared {
    config: DirectoryConfig,
    files: Arc<dyn Files>,
    turn: Mutex<()>,
    room: Room,
}

impl Directory {
    /// A directory whose files are made through `files`. Nothing is made before the first call.
    #[must_use]
    pub fn new(config: DirectoryConfig, files: Arc<dyn Files>) -> Self {
        Self(Arc::new(Shared { config, files, turn: Mutex::new(()), room: Room::new() }))
    }

    /// It takes every payload.
    pub(super) const fn refusal(&self, _: &[u8]) -> Option<Reason> {
        None
    }

    pub(super) fn room(&self) -> &Room {
        &self.0.room
    }

    pub(super) fn rules(&self) -> ObjectRules {
        self.0.config.rules.clone()
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Makes the directory if it is missing, and sees whether files can be made in it.
    pub(crate) async fn connect(&self) -> Result<(), SinkError> {
        self.work(|files, folder, _| put::probe(files, folder)).await
    }

    pub(super) async fn mark(&self) -> Result<Mark, SinkError> {
        self.work(|files, folder, _| mark::of(files, folder)).await
    }

    pub(super) async fn put<P: Parts>(&self, manifest: &Manifest, mut parts: P) -> Result<P, SinkError> {
        let manifest = manifest.clone();
        self.work(move |files, folder, abandoned| {
            Put::new(files, folder, &manifest).run(&mut parts, abandoned)?;
            Ok(parts)
        })
        .await
    }

    /// What stands under a name, unless it has the tag that is known. Nobody waits for those who write.
    pub(super) async fn look(&self, name: &str, known: Option<&str>, cache: &ObjectCache) -> Result<Looked, SinkError> {
        let (name, known, cache) = (name.to_owned(), known.map(str::to_owned), cache.clone());
        self.reading(move |folder| read::look(folder, &name, known.as_deref(), &cache)).await
    }

    /// Gives some bytes of the file with this tag. Whoever waits for them may leave; who takes them slowly holds no thread.
    pub(super) async fn give(
        &self,
        (name, etag): (&str, &str),
        range: Range<u64>,
        sender: &Sender,
    ) -> Result<(), SinkError> {
        let (name, etag) = (name.to_owned(), etag.to_owned());
        let file = self.reading(move |folder| read::open_same(folder, &name, &etag)).await?;
        let (file, mut at) = (Arc::new(file), range.start);
        let mut given = sender.begin().await;
        while given.is_ok() && at < range.end {
            let (file, end) = (file.clone(), range.end.min(at + PIECE_BYTES as u64));
            let piece = self.reading(move |folder| read::piece(folder, &file, at..end)).await?;
            at = end;
            given = sender.give(piece.into()).await;
        }
        Ok(())
    }

    async fn reading<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> Result<T, SinkError> + Send + 'static,
    ) -> Result<T, SinkError> {
        let shared = self.0.clone();
        let read = tokio::task::spawn_blocking(move || work(&shared.config.path)).await;
        read.unwrap_or_else(|_| Err(failure::unanswered(&self.0.config.path)))
    }

    /// Does `work` in its turn. It is told when nobody waits for it any more.
    async fn work<T: Send + 'static>(
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
    async fn work_aside<T: Send + 'static>(
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
        worked.unwrap_or_else(|_| Err(failure::unanswered(&self.0.config.path)))
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Directory").field(&self.0.config).finish()
    }
}

/// Whoever waits for an answer: with it goes the wish for one.
struct Caller(Arc<AtomicBool>);

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
