//! What is to be delivered: routes, sinks and aggregates.

use aggregation::AggregateSetup;
use ledger::{Begin, ConfiguredRoutes, ConfiguredSink, Routes, SinkName};
use sink::Sink;

/// A sink to deliver to.
#[derive(Clone, Debug)]
pub struct SinkSetup {
    /// Its name in the configuration.
    pub name: SinkName,
    /// Its driver.
    pub sink: Sink,
    /// Where new routes to it begin.
    pub begin: Begin,
    /// Bytes of the journal that may wait for it before events with a route to it are rejected; by default half of the
    /// disk.
    pub max_backlog: Option<u64>,
    /// Dead letters of it that are held before its lanes pause; by default as many as the memory budget permits.
    pub max_dead_letters: Option<u64>,
}

/// What is to be delivered.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Which types go to which sinks, results of aggregates too.
    pub routes: Routes,
    /// The sinks.
    pub sinks: Vec<SinkSetup>,
    /// The aggregates, each with a unique name.
    pub aggregates: Vec<AggregateSetup>,
}

impl Setup {
    /// The part of it that the ledger needs.
    pub(crate) fn configuration(&self) -> ConfiguredRoutes<'_> {
        let sinks = self.sinks.iter().map(|setup| ConfiguredSink {
            name: &setup.name,
            begin: setup.begin,
            is_fenced: setup.sink.capabilities().fenced,
        });
        let results = self.aggregates.iter().map(AggregateSetup::name).collect();
        ConfiguredRoutes { routes: &self.routes, sinks: sinks.collect(), results }
    }
}
