//! The sinks that serve their objects: the readers for the gateway, and their metrics.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use config::{Configuration, SinkSettings};
use delivery::{LaneBoard, SinkSetup};
use event::Position;
use event::object::{FoundObject, Looking, ObjectReader, Opening, Pieces};
use event::read::ReadError;
use gateway::ObjectReaders;
use limits::memory::Budgets;
use objects::ObjectSink;
use objects::read::{ObjectCache, ObjectReads};

/// A sink that serves its objects.
pub(crate) struct Served {
    pub(crate) name: Arc<str>,
    pub(crate) reads: ObjectReads,
    lanes: LaneBoard,
    /// The settings that it was built from.
    settings: SinkSettings,
    cache_control: Arc<str>,
}

/// All object readers, as requested last, with their objects in memory. Cheap to clone: the clones share it.
#[derive(Clone)]
pub(crate) struct ObjectRegistry {
    served: Arc<Mutex<BTreeMap<Arc<str>, Arc<Served>>>>,
    cache: ObjectCache,
    /// Bytes of the cache, unless the configuration says how many.
    cache_bytes: u64,
    lanes: LaneBoard,
}

impl ObjectRegistry {
    /// An empty registry. `lanes` has the progress of the sinks.
    pub(crate) fn new(lanes: LaneBoard, memory: &Budgets) -> Self {
        let cache_bytes = memory.object_cache_bytes as u64;
        Self { served: Arc::default(), cache: ObjectCache::new(0), cache_bytes, lanes }
    }

    /// The readers for a gateway with this configuration. A sink that hasn't changed keeps its objects in memory.
    pub(crate) fn readers(&self, configuration: &Configuration, sinks: &[SinkSetup]) -> ObjectReaders {
        self.cache.resize(configuration.gateway.object_cache.unwrap_or(self.cache_bytes));
        let mut board = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        let served = configuration.sinks.iter().filter_map(|(name, settings)| {
            let name = name.as_arc();
            let same = board.get(name).filter(|served| served.settings == *settings);
            let served = same.cloned().or_else(|| self.serve(name, settings, sinks).map(Arc::new))?;
            Some((name.clone(), served))
        });
        *board = served.collect();
        board.values().map(|served| served.clone() as Arc<dyn ObjectReader>).collect()
    }

    fn serve(&self, name: &Arc<str>, settings: &SinkSettings, sinks: &[SinkSetup]) -> Option<Served> {
        let serving = settings.serving.as_ref()?;
        let store = ObjectSink::of(&sinks.iter().find(|setup| setup.name == *name)?.sink)?;
        Some(Served {
            name: name.clone(),
            reads: store.reads(name.clone(), serving.rules.clone(), self.cache.clone()),
            lanes: self.lanes.clone(),
            settings: settings.clone(),
            cache_control: serving.cache_control.clone(),
        })
    }

    /// Each of them.
    pub(crate) fn all(&self) -> Vec<Arc<Served>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Bytes of objects in memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.cache.bytes()
    }

    /// Bytes that they may take.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.cache.bytes_max()
    }
}

impl Served {
    /// Logs why the store can't be read: the client only gets that it can't.
    fn log_unavailable<T>(&self, answer: Result<T, ReadError>) -> Result<T, ReadError> {
        if let Err(ReadError::Unavailable(reason)) = &answer {
            tracing::warn!(
                sink = &*self.name, %reason,
                "clients can't read objects: correct the reason, or check the store"
            );
        }
        answer
    }
}

impl ObjectReader for Served {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn look<'a>(&'a self, name: &'a str) -> Looking<'a> {
        Box::pin(async move { self.log_unavailable(self.reads.look(name).await) })
    }

    fn open<'a>(&'a self, name: &'a str, found: &'a FoundObject, range: Range<u64>) -> Opening<'a> {
        Box::pin(async move {
            let pieces = self.log_unavailable(self.reads.open(name, found, range).await)?;
            Ok(Box::new(pieces) as Box<dyn Pieces>)
        })
    }

    fn awaited(&self, name: &str) -> Option<Position> {
        let place = self.reads.place(name)?;
        let lanes = self.lanes.lanes();
        let is_of_place = |lane: &event::Lane| {
            lane.origin == place.origin && lane.shard == place.position.shard && lane.sink == self.name
        };
        let lane = lanes.iter().find(|status| is_of_place(status.lane()))?;
        (lane.cursor() < place.position.sequence).then_some(place.position)
    }

    fn cache_control(&self) -> &str {
        &self.cache_control
    }
}
