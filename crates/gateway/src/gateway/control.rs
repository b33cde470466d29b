//! Changes a running gateway: its types, rules and limits. Requests that have begun continue.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use event::TypeName;
use eventlog::Types;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::GatewayOptions;
use super::command::{LongRequests, ShardCommand};
use crate::admission::ReadBudget;
use crate::auth::{AllowedHosts, Cors, TrustedProxies};
use crate::bridge::BridgeTable;
use crate::counters::GatewayCounters;
use crate::event_types::{CurrentTypes, GatewayTypes, TypeRegistry};
use crate::handlers::StoredEvents;
use crate::intakes::IntakeTable;
use crate::shard::rules::Rules;
use net::connections::ConnectionLimiter;

/// Changes a running gateway. Cheap to clone.
#[derive(Clone)]
pub struct GatewayControl {
    pub(crate) shards: Vec<UnboundedSender<ShardCommand>>,
    pub(crate) limiter: Arc<ConnectionLimiter>,
    pub(crate) types: Arc<Types>,
    pub(crate) counters: Arc<GatewayCounters>,
    pub(crate) read_budget: Arc<ReadBudget>,
    /// The types that the shards accept now.
    pub(crate) registry: CurrentTypes,
}

/// A request is long after so many ticks. A tick is a second: it has been open for more than one.
const LONG_TICKS: u32 = 1;

/// What a shard does at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardState {
    /// Open connections.
    pub connections: usize,
    /// Bytes of bodies whose requests have no response yet.
    pub bytes_in_flight: usize,
    /// Requests that have been open for more than a second, if the shard answered.
    pub long_requests: Option<LongRequests>,
}

impl GatewayControl {
    /// Applies other types, and the members of `options` that can change: access, and limits of connections. Blocks until all shards have
    /// applied them: from then on no event of a removed type is appended, even if its request began before.
    pub fn configure(&self, types: &GatewayTypes, options: &GatewayOptions) {
        self.limiter.limit(options.connections_max.max(1), options.connections_per_client.max(1));
        self.counters.filters.show(types);
        self.tell(rules(types.clone(), options, &self.types, &self.counters));
    }

    /// As [`GatewayControl::configure`], with only those types whose rules are the same `before` and after. Events of other types are rejected
    /// during this time: no event may follow the rules of one configuration and the routes of the other. So a reload calls this first, then
    /// changes the routes, and then configures the new types, or the old ones if the routes couldn't be changed.
    pub fn narrow(&self, types: &GatewayTypes, before: &GatewayTypes, options: &GatewayOptions) {
        let types = TypeRegistry::changing(before.clone(), types.clone(), &self.types);
        self.tell(rules_with(types, options, &self.counters));
    }

    /// The connections, bytes in flight and requests of each shard. A shard that doesn't answer within `wait`, because it is at work, has no
    /// known requests.
    pub async fn shard_states(&self, wait: Duration) -> Vec<ShardState> {
        let ask = |shard: &UnboundedSender<ShardCommand>| {
            let (answer, asked) = oneshot::channel();
            // A shard that has ended receives nothing, and drops the question.
            let _ = shard.send(ShardCommand::Report(LONG_TICKS, answer));
            asked
        };
        // All are asked before the first answer is awaited.
        let asked: Vec<_> = self.shards.iter().map(ask).collect();
        let until = Instant::now() + wait;
        let mut states = Vec::new();
        for (shard, asked) in asked.into_iter().enumerate() {
            let long_requests = timeout_at(until, asked).await.ok().and_then(Result::ok);
            let (connections, bytes_in_flight) = self.counters.load_of(shard);
            states.push(ShardState { connections, bytes_in_flight, long_requests });
        }
        states
    }

    /// Bytes of bodies that have arrived and whose requests have no response yet.
    #[must_use]
    pub fn bytes_in_flight(&self) -> usize {
        self.counters.bytes_in_flight()
    }

    /// Bytes of pages that are read, and of responses that clients haven't received.
    #[must_use]
    pub fn read_bytes(&self) -> usize {
        self.read_budget.bytes()
    }

    /// Reads stored events for the admin port, with the types and the memory of this gateway.
    #[must_use]
    pub fn stored_events(&self) -> StoredEvents {
        StoredEvents::new(self.registry.clone(), self.read_budget.clone())
    }

    fn tell(&self, rules: Rules) {
        let rules = Arc::new(rules);
        self.registry.show(rules.types.clone());
        let (applied, all_applied) = channel();
        for shard in &self.shards {
            // A shard that has ended receives nothing.
            let _ = shard.send(ShardCommand::Rules(rules.clone(), applied.clone()));
        }
        drop(applied);
        // Ends when the last shard has dropped its sender; nothing is ever sent.
        let _ = all_applied.recv();
    }
}

/// The rules of these types and options.
pub(crate) fn rules(
    types: GatewayTypes,
    options: &GatewayOptions,
    seen: &Arc<Types>,
    counters: &GatewayCounters,
) -> Rules {
    let types = TypeRegistry::new(types, seen);
    for rule in &options.intakes {
        let own = rule.type_name.iter().map(TypeName::as_str);
        // A type that isn't accepted needs no place.
        rule.intake.types().iter().copied().chain(own).for_each(|name| drop(types.find(name)));
    }
    rules_with(types, options, counters)
}

fn rules_with(types: TypeRegistry, options: &GatewayOptions, counters: &GatewayCounters) -> Rules {
    Rules {
        types: Arc::new(types),
        demand: options.demand,
        read_demand: options.read_demand,
        objects: options.objects.clone(),
        bridges: BridgeTable::new(&options.bridges, &counters.bridges),
        intakes: IntakeTable::new(&options.intakes, &counters.intakes),
        ack_timeout: options.ack_timeout,
        idle_timeout: options.idle_timeout,
        proxies: TrustedProxies::new(options.trusted_proxies.clone()),
        hosts: AllowedHosts(options.allowed_hosts.clone()),
        cors: Cors::new(&options.cors_origins),
    }
}
