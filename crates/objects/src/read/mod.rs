//! Reads objects of a sink back, through a cache in memory. Concurrent reads of one object fetch it once, and after a
//! while the store is asked whether it is still the same.

mod cache;
mod name;
mod pieces;
mod reader;
mod thread;

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use event::object::{FoundObject, Pieces};
use event::read::ReadError;
use limits::{OBJECT_FETCHES_MAX, OBJECT_READ_TIMEOUT, OBJECT_READS_WAITING_MAX};
use metrics::Counter;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use crate::{ObjectFormat, SideFolder};
pub use cache::ObjectCache;
use cache::{Entry, SinkNumber};
use name::Names;
pub use name::ObjectPlace;
pub use pieces::{Gone, PIECE_BYTES, PieceSender};
pub use reader::{ObjectLookup, ObjectStoreReader};
use sink::SinkError;
use thread::ReadingThread;

/// How to read a sink's objects back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRules {
    /// After this time the store is asked whether an object is still the same.
    pub revalidate: Duration,
    /// For this long afterwards an object is still returned if the store is unavailable.
    pub stale: Duration,
}

/// The results of reads.
#[derive(Debug, Default)]
pub struct ReadCounters {
    /// Answered from memory.
    pub hits: Counter,
    /// Waited for the fetch of another read.
    pub joined: Counter,
    /// The store returned the object.
    pub misses: Counter,
    /// The store reported that the object is still the same.
    pub revalidated: Counter,
    /// The store was unavailable, and the object in memory was returned.
    pub stale: Counter,
    /// There is no such object.
    pub unknown: Counter,
    /// The store was unavailable.
    pub failed: Counter,
    /// Bytes that the store returned.
    pub fetched_bytes: Counter,
}

/// The result of a fetch, for all readers that wait for it.
type Outcome = Result<Option<Arc<FoundObject>>, ReadError>;
/// A fetch in progress.
type Fetch = watch::Receiver<Option<Outcome>>;

/// The objects of a sink. Cheap to clone.
#[derive(Clone)]
pub struct ObjectReads(Arc<Shared>);

struct Shared {
    names: Names,
    store: Box<dyn ObjectStoreReader>,
    rules: ReadRules,
    cache: ObjectCache,
    /// The sink's number in the cache.
    number: SinkNumber,
    /// The fetches in progress, by name.
    fetches: Mutex<HashMap<Arc<str>, Fetch>>,
    permits: Semaphore,
    thread: ReadingThread,
    counters: ReadCounters,
}

/// The immediate result of a read.
enum Begun {
    Kept(Arc<FoundObject>),
    Coming(Fetch),
}

impl ObjectReads {
    /// The objects of a sink with this name, created by these rules. Nothing is requested before the first read.
    pub(crate) fn new(
        sink: Arc<str>,
        objects: &ObjectFormat,
        store: Box<dyn ObjectStoreReader>,
        (rules, cache): (ReadRules, ObjectCache),
    ) -> Self {
        let ObjectFormat { prefix, manifests, apart, .. } = objects.clone();
        let parts = apart.map_or(SideFolder::NONE, |apart| apart.folder);
        Self(Arc::new(Shared {
            names: Names { sink, prefix, manifests, parts, has_folders: store.has_folders() },
            store,
            rules,
            number: cache.add_sink(),
            cache,
            fetches: Mutex::default(),
            permits: Semaphore::new(OBJECT_FETCHES_MAX),
            thread: ReadingThread::default(),
            counters: ReadCounters::default(),
        }))
    }

    /// The results of reads.
    #[must_use]
    pub fn counters(&self) -> &ReadCounters {
        &self.0.counters
    }

    /// The place of an object with this name, if an object of this sink can have it.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<ObjectPlace> {
        self.0.names.place(name)
    }

    /// The object of a name; `None` if it doesn't exist, or no object of this sink can have the name.
    ///
    /// # Errors
    /// [`ReadError`] if the store is unavailable, or there are too many reads.
    pub async fn look(&self, name: &str) -> Result<Option<Arc<FoundObject>>, ReadError> {
        if self.place(name).is_none() {
            self.0.counters.unknown.add(1);
            return Ok(None);
        }
        let mut fetch = match self.begin(name)? {
            Begun::Kept(found) => return Ok(Some(found)),
            Begun::Coming(fetch) => fetch,
        };
        let outcome = fetch.wait_for(Option::is_some).await.map(|outcome| outcome.clone());
        outcome
            .ok()
            .flatten()
            .unwrap_or_else(|| Err(unavailable("the read from the store ended without a result: retry")))
    }

    /// Streams a part of an object that was found.
    ///
    /// # Errors
    /// [`ReadError`] if the store is unavailable, or has another object now.
    pub async fn open(
        &self,
        name: &str,
        found: &FoundObject,
        range: Range<u64>,
    ) -> Result<impl Pieces + use<>, ReadError> {
        let (sender, pieces) = pieces::channel(self.0.clone());
        let (shared, name, etag) = (self.0.clone(), name.to_owned(), found.etag.clone());
        self.0.spawn(async move {
            if let Err(error) = shared.store.give((&name, &etag), range, &sender).await {
                // The cached entry may be wrong.
                shared.cache.remove(shared.number, &name);
                sender.fail(of_store(error)).await;
            }
        })?;
        pieces.begun().await
    }

    /// Finds a cached object, or joins or begins a fetch.
    fn begin(&self, name: &str) -> Result<Begun, ReadError> {
        let shared = &self.0;
        let mut fetches = shared.fetches();
        if let Some(entry) = shared.kept(name).filter(|entry| entry.asked.elapsed() < shared.rules.revalidate) {
            shared.counters.hits.add(1);
            return Ok(Begun::Kept(entry.found));
        }
        if let Some(fetch) = fetches.get(name) {
            shared.counters.joined.add(1);
            return Ok(Begun::Coming(fetch.clone()));
        }
        if fetches.len() >= OBJECT_READS_WAITING_MAX {
            return Err(ReadError::Busy);
        }
        let name: Arc<str> = name.into();
        let fetch = self.fetch(name.clone())?;
        fetches.insert(name, fetch.clone());
        Ok(Begun::Coming(fetch))
    }

    /// A caller may stop waiting: the fetch continues for the others.
    fn fetch(&self, name: Arc<str>) -> Result<Fetch, ReadError> {
        let (sender, fetch) = watch::channel(None);
        let shared = self.0.clone();
        self.0.spawn(async move {
            let outcome = shared.outcome(&name).await;
            // Later reads find it in memory.
            shared.fetches().remove(&name);
            sender.send_replace(Some(outcome));
        })?;
        Ok(fetch)
    }
}

impl Shared {
    fn fetches(&self) -> MutexGuard<'_, HashMap<Arc<str>, Fetch>> {
        self.fetches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self, name: &str) -> Option<Entry> {
        self.cache.get(self.number, name)
    }

    fn keep(&self, name: &Arc<str>, found: Arc<FoundObject>, asked: Instant) {
        self.cache.put(self.number, name, Entry { found, asked });
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Result<(), ReadError> {
        self.thread.spawn(work).map_err(|error| {
            unavailable(&format!(
                "can't start the thread that reads objects ({error}): \
                 raise the limit of threads"
            ))
        })
    }

    /// The cached object, or the store's.
    async fn outcome(&self, name: &Arc<str>) -> Outcome {
        let (known, asked) = (self.kept(name), Instant::now());
        let looked = self.ask(name, known.as_ref().map(|known| &*known.found.etag)).await;
        let counters = &self.counters;
        match (looked, known) {
            (Ok(ObjectLookup::Same), Some(known)) => {
                counters.revalidated.add(1);
                self.keep(name, known.found.clone(), asked);
                Ok(Some(known.found))
            }
            (Ok(ObjectLookup::Found(found)), _) => {
                counters.misses.add(1);
                counters.fetched_bytes.add(found.content.as_ref().map_or(0, |content| content.len() as u64));
                let found = Arc::new(found);
                self.keep(name, found.clone(), asked);
                Ok(Some(found))
            }
            (Ok(ObjectLookup::Missing | ObjectLookup::Same), _) => {
                counters.unknown.add(1);
                self.cache.remove(self.number, name);
                Ok(None)
            }
            (Err(_), Some(known)) if known.asked.elapsed() < self.rules.revalidate + self.rules.stale => {
                counters.stale.add(1);
                Ok(Some(known.found))
            }
            (Err(error), _) => {
                counters.failed.add(1);
                Err(of_store(error))
            }
        }
    }

    /// Asks the store, within the limit of concurrent requests.
    async fn ask(&self, name: &str, known: Option<&str>) -> Result<ObjectLookup, SinkError> {
        let asking = async {
            // It is never closed.
            let _permit = self.permits.acquire().await;
            self.store.look(name, known, &self.cache).await
        };
        let silent = |_| {
            SinkError::Unavailable(
                format!(
                    "the store sent no response within {OBJECT_READ_TIMEOUT:?}: check it and the network, then retry"
                )
                .into(),
            )
        };
        timeout(OBJECT_READ_TIMEOUT, asking).await.map_err(silent)?
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.cache.forget(self.number);
    }
}

fn of_store(error: SinkError) -> ReadError {
    let reason = error.visible().into_reason();
    ReadError::Unavailable(reason)
}

fn unavailable(reason: &str) -> ReadError {
    ReadError::Unavailable(reason.into())
}

impl fmt::Debug for ObjectReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectReads").field("sink", &self.0.names.sink).finish_non_exhaustive()
    }
}
