//! Objects of a sink read back, through a cache in memory: one that many ask for is fetched once, and the store is asked again after a
//! while whether it is still the same.

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
pub use reader::{Lookup, ObjectStoreReader};
use sink::SinkError;
use thread::ReadingThread;

/// How a sink's objects are read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRules {
    /// After so long the store is asked whether an object is still the same.
    pub revalidate: Duration,
    /// For so much longer an object is given out though the store can't be asked.
    pub stale: Duration,
}

/// What came of reads.
#[derive(Debug, Default)]
pub struct ReadCounters {
    /// They were answered from memory.
    pub hits: Counter,
    /// They waited for what another one had asked for.
    pub joined: Counter,
    /// The store was asked, and gave the object.
    pub misses: Counter,
    /// The store was asked, and said that the object is still the same.
    pub revalidated: Counter,
    /// The store couldn't be asked, and what is in memory was given out.
    pub stale: Counter,
    /// There is no such object.
    pub unknown: Counter,
    /// The store couldn't be asked.
    pub failed: Counter,
    /// Bytes that the store gave.
    pub fetched_bytes: Counter,
}

/// What came of a fetch, for all who wait for it.
type Outcome = Result<Option<Arc<FoundObject>>, ReadError>;
/// A fetch that isn't over.
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
    /// What is being fetched, by name.
    fetches: Mutex<HashMap<Arc<str>, Fetch>>,
    turns: Semaphore,
    thread: ReadingThread,
    counters: ReadCounters,
}

/// What there is of an object at once.
enum Begun {
    Kept(Arc<FoundObject>),
    Coming(Fetch),
}

impl ObjectReads {
    /// The objects of a sink with this name, made by these rules. Nothing is requested before the first read.
    pub(crate) fn new(
        sink: Arc<str>,
        objects: &ObjectFormat,
        store: Box<dyn ObjectStoreReader>,
        (rules, cache): (ReadRules, ObjectCache),
    ) -> Self {
        let ObjectFormat { prefix, manifests, apart, .. } = objects.clone();
        let parts = apart.map_or(SideFolder::BESIDE, |apart| apart.folder);
        Self(Arc::new(Shared {
            names: Names { sink, prefix, manifests, parts, has_folders: store.has_folders() },
            store,
            rules,
            number: cache.add_sink(),
            cache,
            fetches: Mutex::default(),
            turns: Semaphore::new(OBJECT_FETCHES_MAX),
            thread: ReadingThread::default(),
            counters: ReadCounters::default(),
        }))
    }

    /// What came of reads.
    #[must_use]
    pub fn counters(&self) -> &ReadCounters {
        &self.0.counters
    }

    /// What an object of this name would hold, if one of this sink can have it.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<ObjectPlace> {
        self.0.names.place(name)
    }

    /// What stands under a name; `None` where there is nothing, or no object of this sink could have the name.
    ///
    /// # Errors
    /// [`ReadError`] where the store can't be asked, or too many ask.
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
        outcome.ok().flatten().unwrap_or_else(|| Err(unavailable("the fetch ended without an answer")))
    }

    /// Some bytes of an object that was found, as they come.
    ///
    /// # Errors
    /// [`ReadError`] where the store can't be asked, or has another object now.
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
                // What is known of it may be wrong.
                shared.cache.remove(shared.number, &name);
                sender.fail(of_store(error)).await;
            }
        })?;
        pieces.begun().await
    }

    /// Finds what is kept, and begins to fetch what isn't, unless somebody has.
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

    /// Whoever waits for it may leave: it goes on for the others.
    fn fetch(&self, name: Arc<str>) -> Result<Fetch, ReadError> {
        let (told, fetch) = watch::channel(None);
        let shared = self.0.clone();
        self.0.spawn(async move {
            let outcome = shared.outcome(&name).await;
            // Those who come now find it in memory.
            shared.fetches().remove(&name);
            told.send_replace(Some(outcome));
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
        self.thread.spawn(work).map_err(|error| unavailable(&format!("no thread to read with: {error}")))
    }

    /// What is kept, or what the store says.
    async fn outcome(&self, name: &Arc<str>) -> Outcome {
        let (known, asked) = (self.kept(name), Instant::now());
        let looked = self.ask(name, known.as_ref().map(|known| &*known.found.etag)).await;
        let counters = &self.counters;
        match (looked, known) {
            (Ok(Lookup::Same), Some(known)) => {
                counters.revalidated.add(1);
                self.keep(name, known.found.clone(), asked);
                Ok(Some(known.found))
            }
            (Ok(Lookup::Found(found)), _) => {
                counters.misses.add(1);
                counters.fetched_bytes.add(found.content.as_ref().map_or(0, |content| content.len() as u64));
                let found = Arc::new(found);
                self.keep(name, found.clone(), asked);
                Ok(Some(found))
            }
            (Ok(Lookup::Missing | Lookup::Same), _) => {
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

    /// Asks the store, in turn.
    async fn ask(&self, name: &str, known: Option<&str>) -> Result<Lookup, SinkError> {
        let asking = async {
            // It is never closed.
            let _turn = self.turns.acquire().await;
            self.store.look(name, known, &self.cache).await
        };
        let silent = |_| SinkError::Unavailable(format!("no answer within {OBJECT_READ_TIMEOUT:?}").into());
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
