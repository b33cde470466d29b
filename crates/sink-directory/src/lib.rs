//! A directory as a store of objects: each is a file, beside it its description. It is never listed.
//!
//! What writes to the disk may take long, so it has a thread of tokio's. One object of a directory is written at a
//! time, so that a write whose caller has left is over before the next begins: lanes wait for their turn, and other
//! drivers and processes are kept out by a lock.

mod config;
mod error;
mod exchange;
mod files;
mod mark;
mod put;
mod read;
mod settings;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use config::DirectoryConfig;
pub use files::{Files, NewFile, OsFiles};
pub use settings::KIND;

use async_trait::async_trait;
use objects::read::{Lookup, ObjectCache, ObjectStoreReader, PIECE_BYTES, PieceSender};
use objects::{Manifest, ObjectDownload, ObjectFormat, ObjectQuery, ObjectSink, ObjectStore, ObjectUpload, Parts};
use put::Put;
use sink::{Mark, Sink, SinkError};

/// A sink of a directory whose files are made through `files`. Nothing is made before the first call.
#[must_use]
pub fn sink(config: DirectoryConfig, files: Arc<dyn Files>) -> Sink {
    Sink::new(ObjectSink::new(Directory::new(config, files)))
}

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

    async fn reading<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> Result<T, SinkError> + Send + 'static,
    ) -> Result<T, SinkError> {
        let shared = self.0.clone();
        let read = tokio::task::spawn_blocking(move || work(&shared.config.path)).await;
        read.unwrap_or_else(|_| Err(error::unanswered(&self.0.config.path)))
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
        worked.unwrap_or_else(|_| Err(error::unanswered(&self.0.config.path)))
    }
}

#[async_trait]
impl ObjectStore for Directory {
    fn rules(&self) -> &ObjectFormat {
        &self.0.config.rules
    }

    fn is_on_this_disk(&self) -> bool {
        true
    }

    /// Creates the directory if it is missing, and checks whether files can be created in it.
    async fn connect(&self) -> Result<(), SinkError> {
        self.work(|files, folder, _| put::probe(files, folder)).await
    }

    async fn mark(&self) -> Result<Mark, SinkError> {
        self.work(|files, folder, _| mark::of(files, folder)).await
    }

    async fn put(&self, manifest: &Manifest, mut parts: Box<dyn Parts>) -> Result<Box<dyn Parts>, SinkError> {
        let manifest = manifest.clone();
        self.work(move |files, folder, abandoned| {
            Put::new(files, folder, &manifest).run(&mut *parts, abandoned)?;
            Ok(parts)
        })
        .await
    }

    fn reader(&self) -> Box<dyn ObjectStoreReader> {
        Box::new(self.clone())
    }

    async fn accept(&self, upload: ObjectUpload) -> Result<(), SinkError> {
        self.write_upload(upload).await
    }

    async fn fetch(&self, name: &str, query: &ObjectQuery) -> Result<ObjectDownload, SinkError> {
        self.download(name, query).await
    }
}

#[async_trait]
impl ObjectStoreReader for Directory {
    async fn look(&self, name: &str, known: Option<&str>, cache: &ObjectCache) -> Result<Lookup, SinkError> {
        let (name, known, cache) = (name.to_owned(), known.map(str::to_owned), cache.clone());
        self.reading(move |folder| read::look(folder, &name, known.as_deref(), &cache)).await
    }

    /// A slow receiver holds no thread.
    async fn give(&self, named: (&str, &str), range: Range<u64>, sender: &PieceSender) -> Result<(), SinkError> {
        let (name, etag) = (named.0.to_owned(), named.1.to_owned());
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

    fn has_folders(&self) -> bool {
        false
    }
}

/// Whoever waits for an answer: with it goes the wish for one.
struct Caller(Arc<AtomicBool>);

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
