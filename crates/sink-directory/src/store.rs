//! The store of objects, one of which is written at a time.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use objects::read::{ObjectCache, ObjectLookup, ObjectStoreReader, PIECE_BYTES, PieceSender};
use objects::{Manifest, ObjectDownload, ObjectFormat, ObjectQuery, ObjectSink, ObjectStore, ObjectUpload, Parts};
use sink::{Mark, Sink, SinkError};

use crate::config::DirectoryConfig;
use crate::directory::Directory;
use crate::files::Files;
use crate::put::{self, Put};
use crate::{mark, read};

/// A sink of a directory whose files are created through `files`. Nothing is created before the first call.
#[must_use]
pub fn sink(config: DirectoryConfig, files: Arc<dyn Files>) -> Sink {
    Sink::new(ObjectSink::new(Directory::new(config, files)))
}

#[async_trait]
impl ObjectStore for Directory {
    fn rules(&self) -> &ObjectFormat {
        self.rules()
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
    async fn look(&self, name: &str, known: Option<&str>, cache: &ObjectCache) -> Result<ObjectLookup, SinkError> {
        let (name, known, cache) = (name.to_owned(), known.map(str::to_owned), cache.clone());
        self.reading(move |folder| read::look(folder, &name, known.as_deref(), &cache)).await
    }

    /// A slow receiver doesn't occupy a thread.
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
