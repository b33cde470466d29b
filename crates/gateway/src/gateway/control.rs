//! Changes a running gateway: its types, rules and limits. Requests that have begun continue.

use std::sync::Arc;
use std::sync::mpsc::channel;

use eventlog::Types;
use tokio::sync::mpsc::UnboundedSender;

use super::GatewayOptions;
use super::command::ShardCommand;
use crate::auth::{AllowedHosts, Cors, TrustedProxies};
use crate::bridge::{BridgeBoard, BridgeTable};
use crate::counters::GatewayCounters;
use crate::event_types::{GatewayTypes, TypeRegistry};
use crate::shard::rules::Rules;
use net::connections::ConnectionLimiter;

/// Changes a running gateway. Cheap to clone.
#[derive(Clone)]
pub struct GatewayControl {
    pub(crate) shards: Vec<UnboundedSender<ShardCommand>>,
    pub(crate) limiter: Arc<ConnectionLimiter>,
    pub(crate) types: Arc<Types>,
    pub(crate) counters: Arc<GatewayCounters>,
}

impl GatewayControl {
    /// Applies other types, and the members of `options` that can change: access, and limits of connections. Blocks until all shards have
    /// applied them: from then on no event of a removed type is appended, even if its request began before.
    pub fn configure(&self, types: &GatewayTypes, options: &GatewayOptions) {
        self.limiter.limit(options.connections_max.max(1), options.connections_per_client.max(1));
        self.counters.filters.show(types);
        self.tell(rules(types.clone(), options, &self.types, &self.counters.bridges));
    }

    /// As [`GatewayControl::configure`], with only those types whose rules are the same `before` and after. Events of other types are rejected
    /// during this time: no event may follow the rules of one configuration and the routes of the other. So a reload calls this first, then
    /// changes the routes, and then configures the new types, or the old ones if the routes couldn't be changed.
    pub fn narrow(&self, types: &GatewayTypes, before: &GatewayTypes, options: &GatewayOptions) {
        let types = TypeRegistry::changing(before.clone(), types.clone(), &self.types);
        self.tell(rules_with(types, options, &self.counters.bridges));
    }

    fn tell(&self, rules: Rules) {
        let rules = Arc::new(rules);
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
pub(crate) fn rules(types: GatewayTypes, options: &GatewayOptions, seen: &Arc<Types>, bridges: &BridgeBoard) -> Rules {
    rules_with(TypeRegistry::new(types, seen), options, bridges)
}

fn rules_with(types: TypeRegistry, options: &GatewayOptions, bridges: &BridgeBoard) -> Rules {
    Rules {
        types: Arc::new(types),
        demand: options.demand,
        read_demand: options.read_demand,
        objects: options.objects.clone(),
        bridges: BridgeTable::new(&options.bridges, bridges),
        ack_timeout: options.ack_timeout,
        idle_timeout: options.idle_timeout,
        proxies: TrustedProxies::new(options.trusted_proxies.clone()),
        hosts: AllowedHosts(options.allowed_hosts.clone()),
        cors: Cors::new(&options.cors_origins),
    }
}
