//! Changes a gateway that runs: other types, other rules, other limits. Requests that have begun go on.

use std::sync::Arc;
use std::sync::mpsc::channel;

use eventlog::Types;
use tokio::sync::mpsc::UnboundedSender;

use super::GatewayOptions;
use super::command::ShardCommand;
use crate::auth::{AllowedHosts, Cors, TrustedProxies};
use crate::counters::GatewayCounters;
use crate::event_types::{GatewayTypes, TypeRegistry};
use crate::shard::rules::Rules;
use net::connections::ConnectionLimiter;

/// Changes a gateway that runs. Cheap to clone.
#[derive(Clone)]
pub struct GatewayControl {
    pub(crate) shards: Vec<UnboundedSender<ShardCommand>>,
    pub(crate) limiter: Arc<ConnectionLimiter>,
    pub(crate) types: Arc<Types>,
    pub(crate) counters: Arc<GatewayCounters>,
}

impl GatewayControl {
    /// Goes on with other types, and what of `options` can change: who may use it, and how many connections there may be.
    /// Blocks until all shards do so: from then on no event is appended of a type that isn't taken any more, also where
    /// its request began before.
    pub fn configure(&self, types: &GatewayTypes, options: &GatewayOptions) {
        self.limiter.limit(options.connections_max.max(1), options.connections_per_client.max(1));
        self.counters.filters.show(types);
        self.tell(rules(types.clone(), options, &self.types));
    }

    /// As [`GatewayControl::configure`], with only those of the types whose rules are the same `before` and after. Events of others are
    /// refused for as long: none is to be made by rules of the one configuration and go by routes of the other. So this comes before
    /// routes are changed, and the whole after it, or what was before where they couldn't be.
    pub fn narrow(&self, types: &GatewayTypes, before: &GatewayTypes, options: &GatewayOptions) {
        let types = TypeRegistry::changing(before.clone(), types.clone(), &self.types);
        self.tell(rules_with(types, options));
    }

    fn tell(&self, rules: Rules) {
        let rules = Arc::new(rules);
        let (told, all_told) = channel();
        for shard in &self.shards {
            // A shard that has ended takes nothing.
            let _ = shard.send(ShardCommand::Rules(rules.clone(), told.clone()));
        }
        drop(told);
        // Ends when the last shard has dropped its sender; nothing is ever sent.
        let _ = all_told.recv();
    }
}

/// The rules that these come to.
pub(crate) fn rules(types: GatewayTypes, options: &GatewayOptions, seen: &Arc<Types>) -> Rules {
    rules_with(TypeRegistry::new(types, seen), options)
}

fn rules_with(types: TypeRegistry, options: &GatewayOptions) -> Rules {
    Rules {
        types: Arc::new(types),
        demand: options.demand,
        read_demand: options.read_demand,
        objects: options.objects.clone(),
        ack_timeout: options.ack_timeout,
        idle_timeout: options.idle_timeout,
        proxies: TrustedProxies::new(options.trusted_proxies.clone()),
        hosts: AllowedHosts(options.allowed_hosts.clone()),
        cors: Cors::new(&options.cors_origins),
    }
}
