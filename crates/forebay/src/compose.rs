//! Builds the running parts from a configuration: at the start, and at each reload.

use std::sync::Arc;

use aggregation::AggregateSetup;
use config::ConnectionLimits;
use config::{self, AggregateConfig, Configuration, TypeConfig};
use delivery::{LaneBoard, SinkSetup};
use event::TypeName;
use event::read::StoreReader;
use gateway::{GatewayOptions, GatewayTypes, RefusedTo, StoreReaders, TypeNames, TypeResolver, TypeRules};
use ledger::Routes;
use limits::memory::Budgets;
use nats::ConnectOptions;
use objects::ObjectSink;
use sink::Sink;

use crate::process::descriptors;
use crate::read_back::{SinkReader, why_not_read};

/// The limits and access rules of the gateway, without the tokens.
pub(crate) fn gateway_options(configuration: &Configuration, memory: &Budgets) -> GatewayOptions {
    let gateway = &configuration.gateway;
    let ConnectionLimits { all, per_client } = descriptors::within_limit(gateway.connections_wanted(memory));
    GatewayOptions {
        connections_max: all,
        connections_per_client: per_client,
        cors_origins: gateway.cors_origins.clone(),
        allowed_hosts: gateway.hosts(),
        trusted_proxies: gateway.trusted_proxies.clone(),
        demand: configuration.demand(),
        read_demand: gateway.read_demand(),
        ack_timeout: gateway.ack_timeout,
        idle_timeout: gateway.idle_timeout,
        bus: configuration.bus.as_ref().filter(|_| !configuration.bridges.is_empty()).map(bus),
        bridges: configuration.bridges.clone(),
        intakes: configuration.intakes.iter().map(|(name, intake)| intake.rule(name)).collect(),
        in_flight_bytes_max: memory.in_flight_bytes,
        memory: *memory,
        ..GatewayOptions::default()
    }
}

fn bus(bus: &config::BusConfig) -> ConnectOptions {
    let config::BusConfig { servers, credentials, ca, .. } = bus.clone();
    ConnectOptions { servers, credentials, ca, name: "forebay bridge" }
}

/// The limits of connections, if the process may not have the file descriptors for as many as the operator has set, or as the default.
pub(crate) fn lowered_connections(gateway: &config::GatewayConfig, memory: &Budgets) -> Option<ConnectionLimits> {
    let wanted = gateway.connections_wanted(memory);
    Some(descriptors::within_limit(wanted)).filter(|limits| limits.all < wanted.all)
}

/// Says so if file descriptors limit the connections. Only if the operator has set their number it is worth a warning.
pub(crate) fn warn_of_descriptors(gateway: &config::GatewayConfig, memory: &Budgets) {
    if let Some(ConnectionLimits { all, per_client }) = lowered_connections(gateway, memory) {
        let message = format!(
            "only {all} of {} connections can be open at a time, {per_client} of them from one client: the process may not have more \
             file descriptors. Raise their limit (ulimit -n, LimitNOFILE=)",
            gateway.connections_wanted(memory).all
        );
        if gateway.max_connections.is_some() { tracing::warn!("{message}") } else { tracing::info!("{message}") }
    }
}

/// The setup of delivery with these sinks.
pub(crate) fn delivery(configuration: &Configuration, sinks: Vec<SinkSetup>) -> delivery::Setup {
    delivery::Setup { routes: routes(configuration), sinks, aggregates: aggregates(configuration) }
}

/// The aggregates of all types.
pub(crate) fn aggregates(configuration: &Configuration) -> Vec<AggregateSetup> {
    let of_type = |(of, config): (&TypeName, &TypeConfig)| -> Vec<AggregateSetup> {
        let setup = |aggregate: &AggregateConfig| AggregateSetup { of: of.clone(), rules: aggregate.rules.clone() };
        config.aggregates.iter().map(setup).collect()
    };
    configuration.types.iter().flat_map(of_type).collect()
}

/// Which types go to which sinks, those of results too.
fn routes(configuration: &Configuration) -> Routes {
    let mut routes = Routes::new();
    for (name, config) in &configuration.types {
        routes = add(routes, Some(name), &config.routes);
        for aggregate in &config.aggregates {
            routes = add(routes, Some(aggregate.rules.name()), &aggregate.routes);
        }
    }
    match &configuration.other_types {
        Some(config) => add(routes, None, &config.routes),
        None => routes,
    }
}

/// Adds the routes of a type, or of all others.
fn add(routes: Routes, of: Option<&TypeName>, added: &[config::Route]) -> Routes {
    let sinks = added.iter().map(|route| route.to.as_arc().clone());
    let routes = match of {
        Some(name) => routes.with(name.clone(), sinks),
        None => routes.with_others(sinks),
    };
    let conditions = added.iter().filter_map(|route| Some((route.to.as_arc(), route.when.as_ref()?)));
    conditions.fold(routes, |routes, (sink, when)| routes.when(of.cloned(), sink.clone(), when.clone()))
}

/// The sinks, each with a driver from `driver`.
pub(crate) fn sinks(
    configuration: &Configuration,
    driver: impl Fn(&config::SinkName, &config::SinkConfig) -> Sink,
) -> Vec<SinkSetup> {
    let setup = |(name, settings): (&config::SinkName, &config::SinkSettings)| SinkSetup {
        name: name.as_arc().clone(),
        sink: driver(name, &settings.store),
        begin: settings.from,
        max_backlog: settings.max_backlog,
        max_dead_letters: settings.max_dead_letters,
    };
    configuration.sinks.iter().map(setup).collect()
}

/// The drivers by the names of their sinks.
pub(crate) fn named(sinks: &[SinkSetup]) -> impl Iterator<Item = (Arc<str>, Sink)> {
    sinks.iter().map(|setup| (setup.name.clone(), setup.sink.clone()))
}

/// A driver that isn't connected yet.
pub(crate) fn new_driver(store: &config::SinkConfig, memory: &Budgets) -> Sink {
    let sink = store.build();
    if let Some(objects) = ObjectSink::of(&sink) {
        objects.shrink_to(memory);
    }
    sink
}

/// Where a type's rejected events are stored. Without a random secret no rejected event of a type that hides values may be stored.
fn quarantine(config: &TypeConfig) -> Option<Arc<RefusedTo>> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).ok()?;
    config.quarantine(secret).map(Arc::new)
}

/// The accepted types. Their events are read back from `sinks`, and `lanes` has the progress of these.
pub(crate) fn types(configuration: &Configuration, sinks: &[SinkSetup], lanes: &LaneBoard) -> GatewayTypes {
    let readers = SinkReader::of_all(configuration, sinks, lanes);
    let reader = |name: &config::SinkName| {
        let reader = readers.iter().find(|reader| *reader.name() == *name.as_arc())?;
        Some(reader.clone() as Arc<dyn StoreReader>)
    };
    let readers = |name: &config::SinkName| {
        let shards = configuration.shards.get(name).into_iter().flatten();
        let shards = shards.filter_map(|(value, shard)| Some((value.clone(), reader(shard)?)));
        Some(StoreReaders::new(reader(name)?, shards.collect()))
    };
    let rules = |config: &TypeConfig| TypeRules {
        id: config.id.clone(),
        time: config.time.clone(),
        schema: config.schema.as_ref().map(|schema| schema.compiled.clone()),
        steps: config.transform.as_ref().map(|transform| transform.steps.clone()),
        texts: config.unstorable,
        ack_memory: config.ack_memory,
        ack_stored: config.ack_stored,
        partial: config.partial,
        refused_to: quarantine(config),
        readers: config.read.as_ref().and_then(readers),
        why_not_read: why_not_read(configuration, &config.routes),
    };
    let of_results = |aggregate: &AggregateConfig| {
        let why_not_read = why_not_read(configuration, &aggregate.routes);
        let rules =
            TypeRules { readers: aggregate.read.as_ref().and_then(readers), why_not_read, ..TypeRules::default() };
        (aggregate.rules.name().clone(), rules)
    };
    let naming = &configuration.gateway.naming;
    let results = configuration.types.values().flat_map(|config| &config.aggregates);
    let mut names = TypeNames::default();
    configuration.types.iter().for_each(|(name, config)| names.add(name, &config.aliases, config.lowercase));
    if configuration.other_types.as_ref().is_some_and(|config| config.lowercase) {
        names.lower_all();
    }
    GatewayTypes {
        names,
        results: results.map(of_results).collect(),
        named: configuration.types.iter().map(|(name, config)| (name.clone(), rules(config))).collect(),
        open: configuration.other_types.as_ref().map(rules),
        type_pointer: configuration.gateway.type_pointer.clone(),
        choice: TypeResolver::new(naming.rules.iter().map(|rule| (rule.of.clone(), rule.when.clone()))),
        unknown: naming.unknown.clone(),
    }
}
