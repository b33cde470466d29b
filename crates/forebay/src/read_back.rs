//! The readers of the gateway: a sink, and delivery's progress with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use config::{Configuration, Route};
use delivery::{LaneBoard, SinkSetup};
use event::TypeName;
use event::read::{LookingUp, Lookup, Query, ReadError, Reading, StoreReader};
use sink::Sink;
use writer::Offered;

/// A sink that can be read.
pub(crate) struct SinkReader {
    name: Arc<str>,
    sink: Sink,
    lanes: LaneBoard,
    /// The type of all events that go there, if they have one.
    only_type: Option<TypeName>,
}

impl SinkReader {
    /// The client only gets that the store can't be read; the log has the reason.
    fn log<T>(&self, answer: &Result<T, ReadError>) {
        if let Err(ReadError::Unavailable(reason)) = answer {
            tracing::warn!(
                sink = &*self.name, %reason,
                "clients can't read events: correct the reason, or check the store"
            );
        }
    }

    /// The same readers for the bus.
    pub(crate) fn for_bus(
        configuration: &Configuration,
        sinks: &[SinkSetup],
        lanes: &LaneBoard,
    ) -> Vec<Arc<dyn StoreReader>> {
        let readers = Self::of_all(configuration, sinks, lanes).into_iter();
        readers.map(|reader| reader as Arc<dyn StoreReader>).collect()
    }

    /// Those of the sinks that can be read.
    pub(crate) fn of_all(configuration: &Configuration, sinks: &[SinkSetup], lanes: &LaneBoard) -> Vec<Arc<Self>> {
        let reader = |setup: &SinkSetup| {
            let (name, only_type) = (setup.name.clone(), only_type(configuration, &setup.name));
            Arc::new(Self { name, sink: setup.sink.clone(), lanes: lanes.clone(), only_type })
        };
        sinks.iter().filter(|setup| setup.sink.can_read()).map(reader).collect()
    }
}

/// The sinks of a writer that can be read. It has no lanes, and knows no types.
pub(crate) fn of_writer(offered: &BTreeMap<String, Offered>) -> Vec<Arc<dyn StoreReader>> {
    let reader = |(name, offered): (&String, &Offered)| -> Arc<dyn StoreReader> {
        let (name, sink) = (name.as_str().into(), offered.sink.clone());
        Arc::new(SinkReader { name, sink, lanes: LaneBoard::default(), only_type: None })
    };
    offered.iter().filter(|(_, offered)| offered.sink.can_read()).map(reader).collect()
}

/// The type of all events that go to a sink; `None` if there are several, or types that the configuration doesn't name.
fn only_type(configuration: &Configuration, sink: &str) -> Option<TypeName> {
    let goes_there = |routes: &[Route]| routes.iter().any(|route| **route.to.as_arc() == *sink);
    if configuration.other_types.as_ref().is_some_and(|config| goes_there(&config.routes)) {
        return None;
    }
    let named = configuration.types.iter().filter(|(_, config)| goes_there(&config.routes)).map(|(name, _)| name);
    let aggregates = configuration.types.values().flat_map(|config| &config.aggregates);
    let results = aggregates.filter(|aggregate| goes_there(&aggregate.routes)).map(|aggregate| aggregate.rules.name());
    let mut all = named.chain(results);
    all.next().cloned().filter(|_| all.next().is_none())
}

/// Why the events of these routes can't be read back, if they can't: the reason of each sink.
pub(crate) fn why_not_read(configuration: &Configuration, routes: &[Route]) -> Option<Arc<str>> {
    let reason = |route: &Route| {
        let settings = configuration.sinks.get(&route.to)?;
        (!settings.store.can_be_read()).then(|| format!("sink {}: {}", route.to, settings.store.why_not_read()))
    };
    let reasons: Vec<String> = routes.iter().filter_map(reason).collect();
    (!reasons.is_empty()).then(|| reasons.join("; ").into())
}

impl StoreReader for SinkReader {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn read(&self, query: Query) -> Reading<'_> {
        Box::pin(async move {
            let answer = self.sink.read(Query { only_type: self.only_type.clone(), ..query }).await;
            self.log(&answer);
            answer
        })
    }

    fn get(&self, lookup: Lookup) -> LookingUp<'_> {
        Box::pin(async move {
            let answer = self.sink.get(Lookup { only_type: self.only_type.clone(), ..lookup }).await;
            self.log(&answer);
            answer
        })
    }

    fn settled_up_to(&self, shard: u16) -> u64 {
        let lanes = self.lanes.lanes();
        let lane = lanes.iter().find(|status| status.lane().shard == shard && status.lane().sink == self.name);
        lane.map_or(0, |status| status.settled())
    }
}
